"""`coach sweep` prints what can be typed."""

import re
import shlex

import pytest

from coach_rl.cli.main import main
from tests.small_runs import FAKE

RATES = "learning_rate=choice(0.01, 0.1)"
pytest.importorskip("optuna")


def test_a_sweep_ends_with_a_command_that_trains_with_the_best_setting(tmp_path, capsys):
    words = ["sweep", "-p", str(FAKE), "--search", RATES, "--sampler", "grid", "--steps", "60"]
    assert main([*words, "--confirm", "1", "--confirm_seeds", "3", "-c"]) == 0
    said = capsys.readouterr().out
    assert re.search(r"trial 1 \(learning_rate=0\.1?0?1\): reward_mean -?[\d.]+, ", said)
    assert "| trial | reward_mean | learning_rate |" in said
    assert "On fresh seeds trial" in said
    (command,) = re.findall(r"^train with it: \S*coach (.*)$", said, re.MULTILINE)
    page = tmp_path / "experiments" / "fake_preset_sweep" / "sweep.md"
    assert "| shipped " in page.read_text()
    assert main([*shlex.split(command), "--plain", "-ntb"]) == 0
    assert "steps" not in command  # those of the sweep's runs are fewer than the preset's
