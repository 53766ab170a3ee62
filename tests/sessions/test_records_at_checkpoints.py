"""Log records follow periodic checkpoints, which are taken at them; a run keeps its purpose."""

from dataclasses import replace
from pathlib import Path

from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.checkpoint import list_checkpoints
from coach_rl.runs.folder import read_manifest
from coach_rl.sessions.session import run_experiment
from coach_rl.sessions.settings import Audience
from tests.small_runs import QUIET, experiment


def test_run_with_frequent_checkpoints_has_a_record_for_each(tmp_path: Path) -> None:
    often = CheckpointParameters(every_steps=EnvironmentSteps(20))
    lines: list[str] = []
    result = run_experiment(
        experiment(training=60, checkpoints=often),
        Runtime(device="cpu"),
        name="often",
        root=tmp_path,
        settings=replace(QUIET, message="a trial"),
        audience=Audience(announce=lines.append),
    )
    kept = [path.name for path in list_checkpoints(result.folder.checkpoints)]
    assert {"step_20", "step_40"} <= {*kept}
    assert lines == [
        "schedule.progress_interval is 20 in place of 1,000, as checkpoints are taken at log "
        "records"
    ]
    manifest = read_manifest(result.folder)
    assert manifest["parameters"]["schedule"]["progress_interval"]["count"] == 20
    assert manifest["message"] == "a trial"


def test_evaluate_takes_a_number_of_episodes() -> None:
    with experiment() as graph_manager:
        graph_manager.create_graph(Runtime(device="cpu"))
        assert graph_manager.evaluate(2).scalars["evaluation/episodes"] == 2
