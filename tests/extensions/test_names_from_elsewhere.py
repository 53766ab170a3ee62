"""Flags and settings of other libraries for which an extension has the answer."""

import pytest

from coach_rl.configuration.familiar_names import familiar_flags
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import UnknownNameError


def test_flag_for_exports_means_the_command() -> None:
    assert familiar_flags("-onnx", ["-cp"], []) == ["coach export"]


def test_setting_of_a_tracker_means_the_flag() -> None:
    preset = load_preset(find_preset("CartPole_PPO"))
    with pytest.raises(UnknownNameError, match="did you mean '--tracker'"):
        preset.configure({"wandb": True})
