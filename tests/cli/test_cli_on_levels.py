"""A stack from the command line."""

import torch

from coach_rl.runs.checkpoint import read_checkpoint
from tests.cli.commands import coach, only_run
from tests.small_runs import STACK


def test_a_level_that_diverges_ends_the_run_with_a_diagnosis_and_the_last_checkpoint(capsys):
    override = "levels.1.agent.optimizer.learning_rate=1e38"
    words = ("-p", STACK, "-ntb", "-c", "-e", "nan", "--plain", "-s", "1e-9", "-cp", override)
    assert coach(*words) == 1
    error = capsys.readouterr().err
    assert error.startswith("coach: error: agent 'agent' of level 'low' has diverged: at gradient ")
    assert "Learning rate 1e+38" in error
    run = only_run("nan")
    last = run.absolute() / "checkpoints" / "step_0"
    assert "had done 16 environment steps; its last checkpoint, " in error
    assert f"{run / 'checkpoints' / 'step_0'}, was written before" in error
    assert last.is_dir()
    assert [path.name for path in last.parent.glob("step_*")] == ["step_0"]
    state = read_checkpoint(last).state["agents"]["low"]["network"]["online"]
    assert all(bool(torch.isfinite(values).all()) for values in state.values())
