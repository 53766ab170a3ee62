"""Settings that presets refuse: a call, the kind of error, and parts of its one line."""

import sys
from unittest.mock import patch

import pytest

import coach_rl as rl
from tests.refusals import check_refused


def built(name, **panel):
    """A call that builds the graph manager of a preset, with its panel changed."""
    return lambda: rl.load_preset(rl.find_preset(name)).build(panel)


def without_robotics():
    manager = built("Fetch_DDPG_HER")()
    with patch.dict(sys.modules):
        for loaded in [name for name in sys.modules if name.startswith("gymnasium_robotics")]:
            del sys.modules[loaded]
        sys.modules["gymnasium_robotics"] = None
        manager.create_graph(rl.Runtime(device="cpu"))


C, P = rl.ConfigurationError, rl.ParameterError


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (built("Mujoco_PPO", level="hopperx"), C, "did you mean ... 'hopper'"),
        *(
            (built("Fetch_DDPG_HER", level=level), C, f"task '{level}' ... 'FetchReach-v4'")
            for level in ("FetchReech-v4", "FetchReach")
        ),
        (without_robotics, C, "pip install -e ... robotics"),
    ],
)
def test_presets_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
