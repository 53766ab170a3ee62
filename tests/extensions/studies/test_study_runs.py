import json
import shutil
from dataclasses import replace

import pytest

import coach_rl
from coach_rl import CoachWarning, Runtime, Study, Variant, find_preset, load_preset
from coach_rl.configuration.parameters_json import encode
from coach_rl.extensions.studies.job import run_job
from coach_rl.extensions.studies.study import jobs_of
from coach_rl.extensions.studies.study_runs import (
    evaluate_missing,
    is_run_of,
    parameter_difference,
    study_runs,
)
from coach_rl.runs.folder import RunFolder, read_manifest, write_manifest
from tests.extensions.studies.walks import WALK

SLOW = Variant(name="slow", preset=WALK)
FAST = Variant(name="fast", preset=WALK, changes={"learning_rate": 0.5})
STUDY = Study(name="walks", variants=(SLOW, FAST), seeds=(1, 2), steps=60, device="cpu")


def make(study, root, *, only=slice(None)):
    for job in jobs_of(study, root=root)[only]:
        assert run_job(replace(job, tensorboard=False)).state == "done"


def done(study, root, **given):
    return [(run.variant, run.seed) for run in study_runs(study, root=root, **given) if run.is_done]


def test_study_runs_found_by_parameters(tmp_path):
    make(STUDY, tmp_path, only=slice(1, 3))
    assert done(STUDY, tmp_path) == [("fast", 1), ("slow", 2)]
    missing, fast, *_ = study_runs(STUDY, root=tmp_path)
    assert (missing.folder, missing.scores) == (None, None)
    assert missing.score(STUDY) is None
    assert fast.score(STUDY) == fast.scores.final["reward_mean"]


def test_study_extended_by_seeds_and_variants_keeps_its_runs(tmp_path):
    make(STUDY, tmp_path)
    wider = replace(STUDY, seeds=(1, 2, 3), variants=(SLOW, FAST, replace(FAST, name="x", steps=9)))
    assert len(done(wider, tmp_path)) == 4
    renamed = replace(STUDY, variants=(replace(SLOW, name="other name"), FAST))
    assert len(done(renamed, tmp_path)) == 4
    assert done(replace(STUDY, steps=80), tmp_path) == []


def test_study_runs_earlier_runs_count(tmp_path):
    elsewhere = replace(STUDY, name="by_hand")
    make(elsewhere, tmp_path / "old" / "deep")
    assert done(STUDY, tmp_path) == []
    assert len(done(STUDY, tmp_path, earlier=[tmp_path / "old"])) == 4
    for run in study_runs(elsewhere, root=tmp_path / "old" / "deep"):
        run.folder.summary.unlink()  # as where it was stopped
    assert done(STUDY, tmp_path, earlier=[tmp_path / "old"]) == []


def test_study_runs_changes_by_seed(tmp_path):
    variant = replace(SLOW, changes_by_seed={2: {"learning_rate": 0.5}})
    study = replace(STUDY, variants=(variant,))
    make(study, tmp_path)
    assert done(study, tmp_path) == [("slow", 1), ("slow", 2)]
    assert done(STUDY, tmp_path) == [("slow", 1), ("fast", 2)]
    elsewhere = replace(study, name="elsewhere")
    assert done(elsewhere, tmp_path, earlier=[tmp_path]) == [("slow", 1), ("slow", 2)]
    swapped = replace(variant, changes_by_seed={1: {"learning_rate": 0.5}})
    assert done(replace(elsewhere, variants=(swapped,)), tmp_path, earlier=[tmp_path]) == []


def test_study_runs_after_added_parameter(tmp_path):
    make(STUDY, tmp_path, only=slice(0, 1))
    (run,) = [run for run in study_runs(STUDY, root=tmp_path) if run.is_done]
    manifest = read_manifest(run.folder)
    del manifest["parameters"]["agent"]["diverge_at"]
    manifest["job"]["identity"] = "of an earlier version"
    write_manifest(run.folder, manifest)
    assert done(STUDY, tmp_path) == [("slow", 1)]


def test_study_runs_damaged_earlier_run_warning(tmp_path):
    make(replace(STUDY, name="by_hand"), tmp_path / "old", only=slice(0, 1))
    (manifest,) = (tmp_path / "old").glob("*/*/manifest.json")
    manifest.write_text("{")
    with pytest.warns(CoachWarning):
        assert done(STUDY, tmp_path, earlier=[tmp_path / "old"]) == []


def test_read_scores_code_of_every_part(tmp_path):
    make(STUDY, tmp_path, only=slice(0, 1))
    (run,) = [run for run in study_runs(STUDY, root=tmp_path) if run.is_done]
    (now,) = run.scores.code
    manifest = read_manifest(run.folder)
    part = {**manifest, "git": {"coach_rl": {"commit": "abcdef1234", "dirty": True}}}
    write_manifest(run.folder, {**manifest, "resumes": [part]})
    assert study_runs(STUDY, root=tmp_path)[0].scores.code == (now, "abcdef12*")
    write_manifest(run.folder, {**manifest, "git": {"coach_rl": None}})
    assert study_runs(STUDY, root=tmp_path)[0].scores.code == (f"version {coach_rl.__version__}",)


def test_score_of_an_evaluation_afterwards(tmp_path):
    study = replace(STUDY, episodes=7)
    make(study, tmp_path, only=slice(0, 1))
    run = study_runs(study, root=tmp_path)[0]
    assert run.score(study) is None
    assert [each.seed for each in evaluate_missing(study, study_runs(study, root=tmp_path))] == [1]
    assert list(evaluate_missing(study, study_runs(study, root=tmp_path))) == []
    score = run.score(study)
    assert score is not None
    (file,) = run.folder.evaluations.glob("*.json")
    document = json.loads(file.read_text())
    for name, value in (("sampling", True), ("seed", 3), ("overrides", {"a": 1})):
        other = file.with_name(f"{name}.json")
        scalars = {**document["scalars"], "evaluation/reward_mean": -1e9}
        other.write_text(json.dumps({**document, "scalars": scalars, name: value}))
    assert run.score(study) == score


def test_study_runs_best_copy_is_chosen(tmp_path):
    make(STUDY, tmp_path, only=slice(0, 1))
    run = study_runs(STUDY, root=tmp_path)[0]
    copy = run.folder.path.with_name("unfinished")
    shutil.copytree(run.folder.path, copy)
    RunFolder(copy).summary.unlink()
    assert study_runs(STUDY, root=tmp_path)[0].folder == run.folder


def recorded(**panel):
    graph_manager = load_preset(find_preset("Pendulum_HAC")).configure({"levels": 2, **panel})
    task = Runtime(seed=3, device="cpu", threads=1)
    manifest = {
        "graph_manager": "coach_rl:HACGraphManager",
        "parameters": encode(graph_manager.parameters),
        "task": encode(task),
    }
    return manifest, graph_manager, task


def test_is_run_of_same_parameters():
    manifest, graph_manager, task = recorded()
    assert is_run_of(manifest, graph_manager, task)
    assert is_run_of(manifest, graph_manager, replace(task, device="cuda"))
    assert not is_run_of(manifest, graph_manager, replace(task, seed=4))
    assert not is_run_of(manifest, graph_manager, replace(task, threads=2))


@pytest.mark.parametrize("changed", [{"steps": 3}, {"layers": (4,)}, {"noise": 0.3}])
def test_is_run_of_other_parameter_false(changed):
    manifest, _, task = recorded()
    _, other, _ = recorded(**changed)
    assert not is_run_of(manifest, other, task)
    assert parameter_difference(manifest["parameters"], other.parameters)


def test_is_run_of_ignores_checkpoints():
    manifest, graph_manager, task = recorded()
    manifest["parameters"]["checkpoints"] = {}
    assert is_run_of(manifest, graph_manager, task)


def test_is_run_of_added_field_is_default():
    manifest, graph_manager, task = recorded()
    del manifest["parameters"]["schedule"]["stop_after"]
    assert is_run_of(manifest, graph_manager, task)
    limited = load_preset(find_preset("Pendulum_HAC")).configure(
        {"levels": 2, "schedule.stop_after": 1.0}
    )
    assert parameter_difference(manifest["parameters"], limited.parameters) == "schedule.stop_after"


def test_is_run_of_task_threads_count():
    manifest, _, task = recorded()
    del manifest["parameters"]["threads"]  # a run of an earlier version
    graph_manager = load_preset(find_preset("Pendulum_HAC")).configure({"levels": 2, "threads": 2})
    assert is_run_of(manifest, graph_manager, task)
    assert not is_run_of(manifest, graph_manager, replace(task, threads=None))


def test_parameter_difference_removed_field():
    manifest, graph_manager, _ = recorded()
    manifest["parameters"]["schedule"]["burn_in"] = 3
    found = parameter_difference(manifest["parameters"], graph_manager.parameters)
    assert found == "schedule.burn_in"
