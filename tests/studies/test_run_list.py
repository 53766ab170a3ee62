import os

import pytest

from coach_rl.studies.run_list import list_runs, selected, sort_keys
from tests.studies.written_runs import LOG, SUMMARY, write_run


@pytest.fixture
def runs(tmp_path):
    write_run(tmp_path / "a", log=LOG, summary=SUMMARY, created="2026-11-20T10:00:00+00:00")
    labels = {"study": "question", "variant": "flat"}
    write_run(tmp_path / "b", seed=1, level="ant", job={"labels": labels})
    write_run(tmp_path / "c", seed=2, preset=None)
    (tmp_path / "c" / "manifest.json").write_text("{")
    return list_runs(tmp_path)


def test_runs_are_listed_with_state_scores_and_size(runs, tmp_path):
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


def test_filters_combine(runs):
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
def test_lists_are_sorted(runs, key, expected):
    assert [run.path.name for run in sorted(runs, key=sort_keys()[key])] == list(expected)


def test_the_youngest_come_first_by_age(runs):
    ordered = sorted(runs[:2], key=sort_keys()["age"])
    assert [run.path.name for run in ordered] == ["b", "a"]
