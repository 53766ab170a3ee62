import json
import os
from dataclasses import replace

import numpy as np
import pytest

from coach_rl.extensions.studies.runs import (
    bounds_of,
    default_metric,
    find_runs,
    group_scores,
    is_share,
    list_runs,
    selected,
    sort_keys,
)
from tests.extensions.studies.written_runs import LOG, SUMMARY, record, write_run, write_seeds


def names(paths):
    return list(find_runs(paths)[0].groups)


def test_find_runs_folders_are_groups(tmp_path):
    a, b = write_seeds(tmp_path / "a", [1, 2, 3]), write_seeds(tmp_path / "b", [4])
    frame, notes = find_runs([a, b])
    assert [(row.group, row.run.seed) for row in frame.rows] == [
        ("a", 0),
        ("a", 1),
        ("a", 2),
        ("b", 0),
    ]
    assert notes == []
    assert names([tmp_path]) == ["a", "b"]  # the folders in the only one
    assert names([a]) == ["trial"]  # the experiment
    assert names([a, b, a]) == ["a", "b"]  # a run counts once


def test_find_runs_equal_folder_names_distinguished(tmp_path):
    paths = [write_seeds(tmp_path / each / "two", [1]) for each in ("x", "y")]
    assert names(paths) == ["x/two", "y/two"]


def test_find_runs_variants_are_groups(tmp_path):
    for variant in ("flat", "deep"):
        labels = {"study": "question", "variant": variant}
        write_seeds(tmp_path / "question" / variant, [1, 2], job={"labels": labels})
    assert names([tmp_path / "question"]) == ["deep", "flat"]


def test_find_runs_repeated_seed_counts_once(tmp_path):
    folder = write_seeds(tmp_path / "a", [1, 2])
    write_run(folder / "again", seed=1)  # newer, but not finished
    frame, notes = find_runs([folder])
    assert [run.path.name for run in frame.runs] == ["seed0", "seed1"]
    assert notes == [
        "trial has several runs of the seeds 1; the newest finished one of each counts"
    ]


def test_find_runs_different_presets_noted(tmp_path):
    folder = write_seeds(tmp_path / "a", [1])
    write_run(folder / "b", seed=7, preset=None)
    assert "different presets" in find_runs([folder])[1][0]


def test_default_metric_success_where_all_report_it(tmp_path):
    a = write_seeds(tmp_path / "a", [0.5], metric="success_rate")
    b = write_seeds(tmp_path / "b", [0.5], metric="reward_mean", level="without success")
    assert default_metric(find_runs([a])[0]) == "success_rate"
    assert default_metric(find_runs([a, b])[0]) == "reward_mean"


@pytest.mark.parametrize(
    ("at", "expected"),
    [("final", [-2.0]), ("last", [-1.0]), (1000, [-3.0]), ("afterwards", [-5.0])],
)
def test_group_scores_moments(tmp_path, at, expected):
    run = write_run(tmp_path / "a", log=LOG, summary={"evaluation": {"reward_mean": -2.0}})
    (run / "evaluations").mkdir()
    later = {"environment_steps": 2500, "scalars": {"evaluation/reward_mean": -5.0}}
    (run / "evaluations" / "step_2500.json").write_text(json.dumps(later))
    scored, notes = group_scores(find_runs([tmp_path])[0], metric="reward_mean", at=at)
    assert [each.scores.tolist() for each in scored] == [expected]
    assert notes == []


def test_group_scores_unscored_runs_noted(tmp_path):
    folder = write_seeds(tmp_path / "a", [1, 2])
    write_run(folder / "b", seed=7, log=LOG)
    scored, notes = group_scores(find_runs([folder])[0], metric="reward_mean")
    assert scored[0].scores.tolist() == [1, 2]
    assert notes == ["trial on point: 1 of 3 runs have no such score and are left out (1 stopped)"]


def write_rare(folder, rates, *, level="point"):
    """Runs of an environment that reports success only when there is one, evaluated twice."""
    for seed, rate in enumerate(rates):
        scalars = {} if rate is None else {"evaluation/success_rate": rate}
        log = record("evaluation", 100, {"evaluation/reward_mean": 0.0})
        log += record("evaluation", 200, {"evaluation/reward_mean": 1.0, **scalars})
        evaluation = {"reward_mean": 1.0, "episodes": 10, "success_rate": rate}
        path = folder / f"seed{seed}"
        write_run(path, seed=seed, level=level, log=log, summary={"evaluation": evaluation})
    return folder


@pytest.mark.parametrize("at", ["final", "last", 200])
def test_group_scores_runs_that_never_succeed_count_as_zero(tmp_path, at):
    a = write_rare(tmp_path / "a", [1.0, None, None])
    b = write_rare(tmp_path / "b", [None, None])
    without = write_rare(tmp_path / "c", [None, None], level="without success")
    frame, _ = find_runs([a, b, without])
    scored, notes = group_scores(frame, metric="success_rate", at=at)
    assert {each.group: each.scores.tolist() for each in scored} == {"a": [1, 0, 0], "b": [0, 0]}
    assert notes == [
        "c on without success: 2 of 2 runs have no such score and are left out (2 done)"
    ]
    assert default_metric(frame) == "reward_mean"
    assert default_metric(find_runs([a, b])[0]) == "success_rate"


def test_find_runs_curves_begin_at_zero_success(tmp_path):
    frame, _ = find_runs([write_rare(tmp_path / "a", [1.0, None])])
    assert [run.curve.metrics["success_rate"].tolist() for run in frame.runs] == [
        [0.0, 1.0],
        [0.0, 0.0],
    ]


def test_group_scores_episodes_stand_beside_success_rates_only(tmp_path):
    frame, _ = find_runs([write_rare(tmp_path / "a", [1.0, None])])
    (success,), _ = group_scores(frame, metric="success_rate")
    assert success.episodes.tolist() == [10, 10]
    (reward,), _ = group_scores(frame, metric="reward_mean")
    assert reward.episodes is None


def test_find_runs_different_settings_are_named(tmp_path):
    panels = [{"rate": 0.1, "steps": 9}, {"rate": 0.1, "steps": 9}, {"rate": 0.5, "steps": 9}]
    for seed, panel in enumerate(panels):
        changed = {"agent.discount": [0.9, 0.5]} if seed == 2 else {}
        write_run(
            tmp_path / "a" / f"{seed}",
            seed=seed,
            panel=panel,
            differences=changed,
            parameters={"agent": {"discount": 0.5 if seed == 2 else 0.9, "rate": panel["rate"]},
                        "checkpoints": {"every": seed}},
        )  # fmt: skip
    _, notes = find_runs([tmp_path / "a"])
    assert notes == [
        "trial holds runs with different settings: "
        "rate 0.1 with seeds 0, 1, 0.5 with seed 2; "
        "agent.discount 0.9 with seeds 0, 1, 0.5 with seed 2"
    ]


def test_find_runs_settings_that_only_the_resolved_parameters_show_are_named(tmp_path):
    for seed, rate in enumerate((0.1, 0.5)):
        write_run(tmp_path / "a" / f"{seed}", seed=seed, parameters={"agent": {"rate": rate}})
    old = {"seed": 2, "parameters": {"agent": {}}}  # an earlier version, without this setting
    write_run(tmp_path / "a" / "old", **old)
    _, notes = find_runs([tmp_path / "a"])
    assert notes[0].endswith("settings: agent.rate 0.1 with seed 0, 0.5 with seed 1")


@pytest.fixture
def runs(tmp_path):
    write_run(tmp_path / "a", log=LOG, summary=SUMMARY, created="2026-11-20T10:00:00+00:00")
    labels = {"study": "question", "variant": "flat"}
    write_run(tmp_path / "b", seed=1, level="ant", job={"labels": labels})
    write_run(tmp_path / "c", seed=2, preset=None)
    (tmp_path / "c" / "manifest.json").write_text("{")
    return list_runs(tmp_path)


def test_list_runs_state_scores_and_size(runs, tmp_path):
    assert [(run.path.name, run.state) for run in runs] == [
        ("a", "done"),
        ("b", "stopped"),
        ("c", "damaged"),
    ]
    assert (runs[0].best("reward_mean"), runs[0].last("reward_mean")) == (-1.0, -2.0)
    assert runs[1].last("reward_mean") is None
    assert "c/manifest.json is not valid JSON" in runs[2].damage
    assert runs[0].size == sum(file.stat().st_size for file in (tmp_path / "a").iterdir())
    os.link(tmp_path / "a" / "log.jsonl", tmp_path / "a" / "the_same")
    assert list_runs(tmp_path)[0].size == runs[0].size


def test_selected_filters_combine(runs):
    def found(**asked):
        return [run.path.name for run in selected(runs, **asked)]

    assert found() == ["a", "b", "c"]
    assert found(states=["done", "damaged"]) == ["a", "c"]
    assert found(preset="a") == ["a", "b"]
    assert found(level="AN") == ["b"]
    assert found(study="question") == ["b"]
    assert found(study="question", states=["done"]) == []


@pytest.mark.parametrize(
    ("key", "expected"),
    [("path", "abc"), ("state", "cab"), ("steps", "abc"), ("best", "abc"), ("size", "abc")],
)
def test_sort_keys_order(runs, key, expected):
    assert [run.path.name for run in sorted(runs, key=sort_keys()[key])] == list(expected)


def test_sort_keys_age(runs):
    ordered = sorted(runs[:2], key=sort_keys()["age"])
    assert [run.path.name for run in ordered] == ["b", "a"]


def write_later(run, name, *, steps=2000, episodes=10, reward=0.0, **options):
    """An evaluation that `coach evaluate` made, the newest so far."""
    folder = run / "evaluations"
    folder.mkdir(exist_ok=True)
    scalars = {"evaluation/reward_mean": reward, "evaluation/episodes": episodes}
    document = {"environment_steps": steps, "scalars": scalars, **options}
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    at = 1_000_000_000 + len(list(folder.iterdir()))
    os.utime(path, (at, at))


def test_group_scores_afterwards_takes_evaluations_without_options(tmp_path):
    folder = write_seeds(tmp_path / "a", [1, 2, 3])
    for seed in range(3):
        write_later(folder / f"seed{seed}", "plain", reward=5.0 + seed)
    write_later(folder / "seed0", "sampled", reward=90.0, sampling=True)
    frame, _ = find_runs([folder])
    scored, notes = group_scores(frame, metric="reward_mean", at="afterwards")
    assert scored[0].scores.tolist() == [5, 6, 7]
    assert [note.partition(" is not taken")[0] for note in notes] == [
        "of 1 runs the last evaluation"
    ]
    write_later(folder / "seed1", "longer", reward=8.0, episodes=100, steps=1000)
    scored, notes = group_scores(frame, metric="reward_mean", at="afterwards")
    assert scored[0].scores.tolist() == [5, 8, 7]
    assert notes[1:] == [
        "of 1 runs the evaluation is of an earlier checkpoint than the last",
        "the evaluations differ in their episodes: 10, 100",
    ]


def test_group_scores_evaluations_of_the_frame(tmp_path):
    frame, _ = find_runs([write_seeds(tmp_path / "a", [1])])
    own = {"reward_mean": 9.0, "only_there": 4.0}
    frame = replace(frame, rows=tuple(replace(row, evaluation=own) for row in frame.rows))
    for metric, score in own.items():
        scored, _ = group_scores(frame, metric=metric, at=None)
        assert scored[0].scores.tolist() == [score]


def labelled(folder, *, kind="study", of="", variant="shipped", **given):
    labels = {kind: of or folder.name, "variant": variant}
    return write_seeds(folder, [1, 2], job={"labels": labels}, **given)


def test_find_runs_variants_of_one_name_in_several_folders_stay_apart(tmp_path):
    old, new = (labelled(tmp_path / name / "x").parent for name in ("old", "new"))
    labelled(tmp_path / "new" / "y", variant="other")
    assert names([old, new]) == ["old/shipped", "new/shipped", "other"]
    assert names([old]) == ["shipped"]
    runs = [tmp_path / "new" / "x" / f"seed{seed}" for seed in (0, 1)]
    assert names(runs) == ["shipped"]  # each a folder that is named, but none with runs in it


def test_find_runs_variants_of_one_name_in_several_studies_stay_apart(tmp_path):
    labelled(tmp_path / "all" / "a", kind="sweep", of="first")
    labelled(tmp_path / "all" / "b", kind="sweep", of="second")
    labelled(tmp_path / "all" / "c", kind="sweep", of="second", variant="trial 3")
    assert names([tmp_path / "all"]) == ["first/shipped", "second/shipped", "trial 3"]
    labelled(tmp_path / "more" / "a", kind="sweep", of="third")
    assert names([tmp_path / "all", tmp_path / "more"]) == [
        "all/first/shipped",
        "all/second/shipped",
        "trial 3",
        "more/shipped",
    ]


def test_find_runs_newest_run_of_a_seed_by_time_not_text(tmp_path):
    write_seeds(tmp_path / "a" / "earlier", [1], created="2026-11-01T23:30:00+09:00")
    write_seeds(tmp_path / "a" / "later", [2], created="2026-11-01T15:30:00+00:00")
    for unknown in ("", "yesterday", "0001-01-01T00:00:00"):
        name = f"unknown{len(unknown)}"
        write_seeds(tmp_path / "a" / name, [3], created=unknown)
    frame, _ = find_runs([tmp_path / "a", write_seeds(tmp_path / "b", [1])])
    assert [run.path.parent.name for run in frame.where(group="a").runs] == ["later"]


@pytest.mark.parametrize(
    ("metric", "share"),
    [
        ("success_rate", True),
        ("success_any_rate", True),
        ("low/goal_share", True),
        ("low/option_share/0", True),
        ("collection/waiting_share", True),
        ("learning_rate", False),
        ("train/learning_rate", False),
        ("heart_rate", False),
        ("reward_mean", False),
    ],
)
def test_is_share_of_known_metrics(metric, share):
    assert is_share(metric) == share
    assert bounds_of(metric, [0.0, 1.0]) == ((0, 1) if share else (-np.inf, np.inf))
    assert bounds_of(metric, [0.5], [3.0]) == (-np.inf, np.inf)
