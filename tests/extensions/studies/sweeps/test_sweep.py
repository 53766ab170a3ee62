"""A sweep makes trials, ends the bad ones, goes on after any end, and checks what it found."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.core.runtime import Runtime
from coach_rl.extensions.studies.comparison import compare
from coach_rl.extensions.studies.job import run_job
from coach_rl.extensions.studies.runs import Scored
from coach_rl.extensions.studies.scores import NOTE, stop_note, write_stop_note
from coach_rl.extensions.studies.sweeps.fresh_seeds import FreshSeeds
from coach_rl.extensions.studies.sweeps.report import conclusion, report, write_report
from coach_rl.extensions.studies.sweeps.search import SweepResult, run_sweep
from coach_rl.extensions.studies.sweeps.sweep import Metric, Sweep
from coach_rl.runs.folder import RunFolder, read_manifest
from tests.extensions.studies.walks import WALK, Here, walk

CHECKOUT = Path(__file__).parents[4]
RATES = "learning_rate=log(0.01, 1)"


@pytest.fixture(autouse=True)
def with_optuna():
    pytest.importorskip("optuna")


def walks(tmp_path, **changes):
    sweep = Sweep(
        preset=WALK,
        search=RATES,
        name="rates",
        root=tmp_path,
        task=Runtime(seed=3, device="cpu"),
        trials=8,
        confirmed=0,
    )
    return replace(sweep, **changes)


def outcomes(result):
    """The trials without the names of their folders, which hold the time."""
    return [(of.state, of.params, of.value, of.intermediate_values) for of in result.trials]


def test_sweep_trials_labelled_and_confirmed(tmp_path):
    said = []
    executor = Here()
    result = run_sweep(walks(tmp_path, confirmed=2, fresh_seeds=3), executor, announce=said.append)
    states = [trial.state.name for trial in result.trials]
    assert len(states) == 8
    assert {"COMPLETE", "PRUNED"} == set(states)
    assert [trial.value for trial in result.best] == sorted(
        (trial.value for trial in result.trials if trial.state.name == "COMPLETE"), reverse=True
    )
    labels = [job.labels for job in executor.given[:8]]
    assert labels == [{"sweep": "rates", "trial": str(number)} for number in range(8)]
    assert {job.task.seed for job in executor.given[:8]} == {3}
    fresh = [(job.labels["variant"], job.task.seed) for job in executor.given[8:]]
    variants = ["shipped", *(f"trial {trial.number}" for trial in result.best[:2])]
    assert sorted(fresh) == sorted((name, seed) for name in variants for seed in (4, 5, 6))
    assert [each.group for each in result.fresh.scored] == variants
    assert [each.group for each in result.fresh.comparisons] == variants[1:]
    for trial in result.trials:
        note = stop_note(tmp_path / "rates" / trial.user_attrs["run"])
        assert note.startswith("pruned at evaluation") == (trial.state.name == "PRUNED")
    page = write_report(result).read_text()
    assert report(result) in page
    assert f"| trial {result.best[0].number} " in page
    assert len([line for line in said if line.startswith("trial ")]) == 8
    again = Here()
    repeated = run_sweep(walks(tmp_path, confirmed=2, fresh_seeds=3), again)
    assert outcomes(repeated) == outcomes(result)
    assert again.given == []  # nothing runs twice


@pytest.mark.filterwarnings("ignore:.* it is taken over")
def test_sweep_killed_and_continued_same_result(tmp_path):
    changes = {"trials": 4, "overrides": {"checkpoints.every_steps": 20}}
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from coach_rl.runs.keeper import CheckpointKeeper\n"
        "from tests.extensions.studies.sweeps.test_sweep import Here, run_sweep, walks\n"
        "save, root = CheckpointKeeper.save, Path(sys.argv[1])\n"
        "def save_or_die(keeper, reasons, record):\n"
        "    save(keeper, reasons, record)\n"
        "    runs = list(root.glob('rates/*/manifest.json'))\n"
        "    if len(runs) == 2 and record.environment_steps > 30:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "CheckpointKeeper.save = save_or_die\n"
        f"run_sweep(walks(Path(sys.argv[1]), **{changes!r}), Here())\n"
    )
    folder = tmp_path / "killed" / "rates"
    words = [sys.executable, "-c", program, str(folder.parent)]
    assert subprocess.run(words, cwd=CHECKOUT, check=False).returncode == -signal.SIGKILL
    said = []
    killed = run_sweep(walks(folder.parent, **changes), Here(), announce=said.append)
    assert said[:2] == [
        f"sweep rates: 4 trials in the folder {folder}",
        "trial 1 was left unfinished; it continues",
    ]
    whole = run_sweep(walks(tmp_path / "whole", **changes), Here())
    assert outcomes(killed) == outcomes(whole)
    runs = [RunFolder(folder / trial.user_attrs["run"]) for trial in killed.trials]
    manifests = list(map(read_manifest, runs))
    assert [len(manifest["resumes"]) for manifest in manifests] == [0, 1, 0, 0]
    assert len(list(folder.glob("*/manifest.json"))) == 4


def test_sweep_failing_trial_others_continue(tmp_path):
    search = "fail_at=choice(None, 30); learning_rate=choice(0.1, 0.2)"
    result = run_sweep(walks(tmp_path, search=search, sampler="grid", trials=None), Here())
    assert len(result.trials) == 4
    failed = [trial for trial in result.trials if trial.state.name == "FAIL"]
    assert [trial.params["fail_at"] for trial in failed] == ["30", "30"]
    assert all("the loss is NaN" in trial.user_attrs["error"] for trial in failed)
    assert f"Trial {failed[0].number} failed: " in report(result)


def test_sweep_repeated_trial_not_run(tmp_path):
    executor = Here()
    result = run_sweep(walks(tmp_path, search="learning_rate=choice(0.1, 0.2)"), executor)
    assert len(result.trials) == 8
    assert len(executor.given) <= 2


def test_sweep_confirms_different_settings_only(tmp_path):
    executor = Here()
    search = {"search": "learning_rate=choice(0.1, 0.2)"}
    result = run_sweep(walks(tmp_path, confirmed=3, fresh_seeds=2, **search), executor)
    assert len(result.trials) == 8
    assert [trial.params["learning_rate"] for trial in result.best] in (
        ["0.1", "0.2"],
        ["0.2", "0.1"],
    )
    assert len(result.fresh.settings) == 3  # with the shipped one


def test_metric_of_best_checkpoint(tmp_path):
    overrides = {"checkpoints.best_of": "reward_std", "checkpoints.best_is": "smallest"}
    result = run_sweep(walks(tmp_path, trials=2, overrides=overrides), Here())
    assert (result.metric.name, result.metric.best) == ("reward_std", "smallest")
    assert [trial.value for trial in result.trials] == [0.0, 0.0]
    with pytest.raises(ConfigurationError, match="best_of is None"):
        run_sweep(walks(tmp_path, overrides={"checkpoints.best_of": None}), Here())


def test_sweep_without_trials_error(tmp_path):
    with pytest.raises(ParameterError, match="trials must be 1 or more"):
        walks(tmp_path, trials=0)


def test_stop_note_stops_resumable_run(tmp_path):
    job = walk(tmp_path, steps=100, signal_at=15)
    stopped = run_job(job)
    write_stop_note(stopped.folder, "pruned by hand")
    again = run_job(job)
    assert (again.state, again.folder) == ("stopped", stopped.folder)
    (again.folder / NOTE).unlink()
    assert run_job(job).state == "done"


@pytest.mark.parametrize(
    ("scores", "best", "verdict"),
    [
        ((5.0, 5.1, 4.9), "largest", "beats"),
        ((5.0, 5.1, 4.9), "smallest", "loses to"),
        ((1.0, 1.1, 0.9), "largest", "loses to"),
        ((2.8, 3.1, 3.2), "smallest", "ties with"),
    ],
)
def test_sweep_conclusion_sentence(tmp_path, scores, best, verdict):
    groups = {"shipped": np.array([3.0, 3.2, 2.9]), "trial 0": np.array(scores)}
    scored = [Scored(group=name, level="", runs=(), scores=of) for name, of in groups.items()]
    compared = compare(scored, "shipped", metric="reward_mean")
    result = SweepResult(
        sweep=walks(tmp_path, overrides={"discount": 0.9, "steps": 9}),
        space={},
        metric=Metric(name="reward_mean", best=best),
        trials=(),
        best=(SimpleNamespace(params={"learning_rate": 0.5}),),
        importances={},
        fresh=FreshSeeds(
            settings={"shipped": {}, "trial 0": {"learning_rate": 0.5}},
            scored=tuple(scored),
            comparisons=tuple(compared),
        ),
    )
    assert f"trial 0 {verdict} the shipped setting" in conclusion(result)
    is_lost = verdict == "loses to"
    assert result.recommended == ("discount=0.9" if is_lost else "discount=0.9; learning_rate=0.5")
    assert conclusion(result).endswith("so the shipped setting is the best.") == is_lost
