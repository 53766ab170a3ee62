"""`coach sweep` prints what can be typed, and refuses what it cannot do in one line."""

import re
import shlex
from pathlib import Path

import pytest

from coach_rl.cli.main import main

WALK = str(Path(__file__).parent.parent / "fake_preset.py")
RATES = "learning_rate=choice(0.01, 0.1)"


@pytest.fixture(autouse=True)
def with_optuna():
    pytest.importorskip("optuna")


def test_a_sweep_ends_with_a_command_that_trains_with_the_best_setting(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    words = ["sweep", "-p", WALK, "--search", RATES, "--sampler", "grid", "--steps", "60"]
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs a preset: coach sweep -p PRESET"),
        (["-p", "Pendulum_SAX"], "did you mean 'Pendulum_SAC'"),
        (["Pendulum_SAX"], "did you mean 'Pendulum_SAC'"),
        (["-p", WALK, "--trial", "3"], "unknown flag '--trial'; did you mean '--trials'"),
        (["-p", WALK], "has no search space of its own"),
        (["-p", WALK, "--search", "learning_rte=log(0.1, 1)"], "did you mean 'learning_rate'"),
        (["-p", WALK, "--search", RATES, "-cp", "learning_rate=1"], "given twice"),
        (["-p", WALK, "--search", RATES, "--sampler", "cmaes"], "choose from"),
        (["-p", WALK, "--search", "learning_rate=log(0.1, 1)", "--sampler", "grid"], "grid needs"),
        (["-p", WALK, "--search", RATES, "--trials", "0"], "must be a whole number of 1 or more"),
        (["-p", WALK, "--search", RATES, "--confirm_seeds", "1"], "fresh_seeds must be 2 or more"),
        (["-p", WALK, "--search", RATES, "--on", "mars"], "unknown place to run 'mars'"),
        (["-p", WALK, "--search", RATES, "--hours", "1"], "unknown flag '--hours'"),
        (
            ["-p", "CartPole_PPO", "--search", "discount=uniform(0.9, 1)", "--metric", "reward"],
            "unknown metric",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith("coach: error: ")
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "experiments").exists()
