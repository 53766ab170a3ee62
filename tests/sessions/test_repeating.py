"""A run's experiment trained again from its beginning, with another seed or changes."""

from pathlib import Path

import pytest

from coach_rl.cli.main import main
from coach_rl.core import errors
from coach_rl.runs.manifest import Origin
from coach_rl.sessions.repeating import repeat_experiment
from coach_rl.sessions.session import resume_experiment, run_experiment
from coach_rl.sessions.settings import RunResult
from tests.refusals import check_refused
from tests.small_runs import FAKE, QUIET, experiment, log_of, manifest_of, preset


@pytest.fixture
def run(tmp_path: Path) -> RunResult:
    """A run of the fake preset with its panel changed."""
    loaded = preset(FAKE)
    panel = {"learning_rate": 0.5, "steps": 40}
    return run_experiment(
        loaded.build(panel),
        name="walk",
        root=tmp_path,
        origin=Origin(preset=loaded, panel=loaded.panel_values(panel)),
        settings=QUIET,
    )


def test_repeated_run_has_the_same_numbers(run: RunResult) -> None:
    again = repeat_experiment(run.folder.path, settings=QUIET)
    assert again.folder.path.parent == run.folder.path.parent
    assert log_of(again) == log_of(run)
    old, new = manifest_of(run), manifest_of(again)
    for part in ("parameters", "task", "preset", "panel", "differences", "name"):
        assert new[part] == old[part]
    assert new["repeats"] == {"run": str(run.folder.path), "seed": 0, "changes": {}}
    assert again.folder.preset.read_text() == run.folder.preset.read_text()


def test_repeated_run_with_changes(run: RunResult) -> None:
    changes = {"agent.learning_rate": 0.25, "schedule.training": 60}
    again = repeat_experiment(
        run.folder.path, name="other", seed=7, overrides=changes, settings=QUIET
    )
    manifest = manifest_of(again)
    assert manifest["task"]["seed"] == 7
    assert manifest["repeats"]["changes"] == changes
    assert manifest["differences"]["agent.learning_rate"] == [0.5, 0.25]
    assert (
        manifest["differences"]["learning_rate"] == manifest_of(run)["differences"]["learning_rate"]
    )
    assert again.environment_steps == 60
    third = repeat_experiment(again.folder.path, settings=QUIET)
    assert manifest_of(third)["differences"] == manifest["differences"]
    assert log_of(third) == log_of(again)


def test_repeated_run_can_be_resumed(run: RunResult) -> None:
    again = repeat_experiment(run.folder.path, settings=QUIET)
    longer = resume_experiment(again.folder.path, changes={"schedule.training": 60}, settings=QUIET)
    assert longer.environment_steps == 60


def test_experiment_without_a_preset_is_repeated(tmp_path: Path) -> None:
    first = run_experiment(experiment(), name="small", root=tmp_path, settings=QUIET)
    again = repeat_experiment(first.folder.path, settings=QUIET)
    assert log_of(again) == log_of(first)
    assert not again.folder.preset.exists()


def test_train_from_a_run(
    run: RunResult, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run.folder.path.parent.parent)
    words = ["train", "--from", "walk", "--seed", "3", "-e", "more", "-ntb", "-n", "2"]
    assert main([*words, "-cp", "agent.learning_rate=0.25", "--steps", "20"]) == 0
    assert "the only run in walk" in capsys.readouterr().out
    (folder,) = Path("more").iterdir()
    manifest = manifest_of(folder)
    assert manifest["command"][:4] == ["coach", "train", "--from", "walk"]
    assert manifest["parameters"]["num_envs"] == 2
    assert manifest["task"]["seed"] == 3


C, U = errors.ConfigurationError, errors.UnknownNameError


@pytest.mark.parametrize(
    ("overrides", "kind", "message"),
    [
        ({"agent.learning_rat": 1}, U, "'learning_rat' of 'agent'; did you mean 'learning_rate'"),
        ({"learning_rate": 1}, C, "learning_rate"),
        ({"num_envs": 0}, errors.ParameterError, "num_envs must be"),
    ],
)
def test_repeat_invalid_changes_error(run, overrides, kind, message):
    runs = list(run.folder.path.parent.iterdir())
    check_refused(lambda: repeat_experiment(run.folder.path, overrides=overrides), kind, message)
    assert list(run.folder.path.parent.iterdir()) == runs


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train x --from run", "unexpected argument 'x'"),
        ("train -p x --from run", "`coach train` ignores -p: with --from it trains"),
        ("train --from nowhere", "nowhere"),
        ("resume run --from other", "`coach resume` ignores --from"),
    ],
)
def test_train_from_invalid_words_error(words, message, capsys):
    assert main(words.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
