"""Input that studies refuse: a call, the kind of error, and what its one line contains."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from coach_rl import Study, Variant
from coach_rl.core.errors import (
    CheckpointError,
    ConfigurationError,
    ParameterError,
    UnknownNameError,
)
from coach_rl.studies.comparison import compare
from coach_rl.studies.live import runs_to_watch, watch
from coach_rl.studies.places import check_place, executor
from coach_rl.studies.runs import find_runs, group_scores
from coach_rl.studies.statistics import difference, estimate, probability_of_improvement
from coach_rl.studies.study import load_study
from coach_rl.studies.tables import write_blocks
from tests.studies.walks import walk
from tests.studies.written_runs import LOG, write_run, write_seeds


def score(folder: Path, metric: str = "reward_mean", *, log: str = LOG, **at: int) -> object:
    return group_scores(find_runs([write_run(folder / "a", log=log)])[0], metric=metric, **at)


def compared(folder: Path, baseline: str, *levels: str) -> object:
    folders = [write_seeds(folder / level, [1, 2], level=level) for level in levels]
    scored, _ = group_scores(find_runs(folders)[0], metric="reward_mean")
    return compare(scored, baseline, metric="reward_mean")


def damaged(folder: Path) -> Path:
    write_run(folder / "walks/bad").joinpath("summary.json").write_text("{")
    return folder


def seeds_twice() -> Study:
    return Study(name="s", variants=(Variant(name="a", preset="p", seeds=(3, 3)),), seeds=(1,))


def place(name: str) -> tuple[Callable[[Path], object], type[Exception], str]:
    return lambda _: check_place(name), UnknownNameError, f"unknown place to run '{name}'"


CASES: list[tuple[Callable[[Path], object], type[Exception], str]] = [
    *map(place, ("moon", "local:2", "ray:", "slurm:", "")),
    (lambda path: executor("slurm", [walk(path)], at_once=2), ConfigurationError, "--jobs counts"),
    (lambda path: find_runs([path]), ConfigurationError, "holds no runs ... give a run's folder"),
    (lambda path: find_runs([path / "no"]), ConfigurationError, "no does not exist ... give a run"),
    (lambda path: find_runs([damaged(path)]), CheckpointError, "summary.json"),
    (score, ConfigurationError, "reward_mean ... have one with --at last"),
    (lambda path: score(path, at=7), ConfigurationError, "at environment step 7"),
    (lambda path: score(path, "rewards"), UnknownNameError, "metric 'rewards' ... did you mean"),
    (lambda path: score(path, log=""), ConfigurationError, "none of the runs has been evaluated"),
    (lambda path: compared(path, "b", "a", "b"), ConfigurationError, "environments ... a on a; b"),
    (lambda path: compared(path, "trial", "a"), ConfigurationError, "only one group ... trial"),
    (lambda path: compared(path, "c", "a"), UnknownNameError, "unknown group 'c' as baseline"),
    (watch, ConfigurationError, "is not a run's folder"),
    (lambda path: runs_to_watch([path / "no"]), ConfigurationError, "does not exist; name a run's"),
    (lambda path: runs_to_watch([path]), ConfigurationError, "holds no runs"),
    (lambda path: load_study(f"{path}/no.py"), ConfigurationError, "no study file ... no.py"),
    (lambda _: load_study("small_study"), ConfigurationError, "no study file 'small_study'"),
    (lambda _: Variant(name="a | b", preset="p"), ParameterError, "one line of text ... 'a | b'"),
    (lambda _: seeds_twice(), ParameterError, "has the seed 3 2 times"),
    (
        lambda path: write_blocks([path / "no"], "s", "", runs=1),
        ConfigurationError,
        "no page",
    ),
    (lambda _: estimate([]), ParameterError, "give at least one score"),
    (lambda _: difference([1], [1], confidence=95), ParameterError, "between 0 and 1, got 95"),
    (lambda _: probability_of_improvement([]), ParameterError, "over no environments"),
]
"""Calls with a folder of their own, kinds of error, and parts of the message in their order."""


@pytest.mark.parametrize(("call", "kind", "message"), CASES, ids=[each[2] for each in CASES])
def test_studies_invalid_input_error(tmp_path, call, kind, message):
    with pytest.raises(kind) as caught:
        call(tmp_path)
    text = str(caught.value)
    assert "\n" not in text
    assert re.search(".*".join(map(re.escape, message.split(" ... "))), text), text
