"""Input that studies refuse: a call, the kind of error, and what its one line contains."""

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest

import coach_rl as rl
from coach_rl.core.errors import CheckpointError
from coach_rl.extensions.studies.comparison import compare
from coach_rl.extensions.studies.live import runs_to_watch, watch
from coach_rl.extensions.studies.places import LocalPool, check_place, executor
from coach_rl.extensions.studies.plots import require_matplotlib
from coach_rl.extensions.studies.run_records import unpack_records, write_records
from coach_rl.extensions.studies.runs import find_runs, group_scores
from coach_rl.extensions.studies.scores import read_scores
from coach_rl.extensions.studies.statistics import difference, estimate, probability_of_improvement
from coach_rl.extensions.studies.study import check_study, load_study
from coach_rl.extensions.studies.study_runs import study_runs
from coach_rl.extensions.studies.tables import write_blocks
from tests.extensions.studies.walks import walk
from tests.extensions.studies.written_runs import LOG, write_run, write_seeds
from tests.refusals import check_refused

Call = Callable[[Path], object]


def score(folder: Path, metric: str = "reward_mean", *, log: str = LOG, **at: int) -> object:
    return group_scores(find_runs([write_run(folder / "a", log=log)])[0], metric=metric, **at)


def compared(folder: Path, baseline: str, *levels: str) -> object:
    folders = [write_seeds(folder / level, [1, 2], level=level) for level in levels]
    scored, _ = group_scores(find_runs(folders)[0], metric="reward_mean")
    return compare(scored, baseline, metric="reward_mean")


def damaged(folder: Path) -> Path:
    write_run(folder / "walks/bad").joinpath("summary.json").write_text("{")
    return folder


def study(*variants: rl.Variant, **given: object) -> Call:
    """A call that describes a study, of two variants unless others are given."""
    two = (variant("one"), variant("two", preset="Pendulum_PPO"))
    return lambda _: rl.Study(**{"name": "s", "variants": variants or two, "seeds": (1,), **given})


def variant(name: str = "a", preset: str = "CartPole_PPO", **given: object) -> rl.Variant:
    return rl.Variant(name=name, preset=preset, **given)


def varied(**given: object) -> Call:
    return lambda _: variant(**given)


def checked(*variants: rl.Variant, **given: object) -> Call:
    return lambda folder: check_study(study(*variants, seeds=(3, 4), **given)(folder))


def loaded(body: str) -> Call:
    """A call that loads a study from a file of that text."""

    def call(folder: Path) -> object:
        file = folder / "my_study.py"
        file.write_text("from coach_rl import Study, Variant\n" + body)
        return load_study(str(file))

    return call


def unpacked(text: str | None) -> Call:
    """A call that unpacks an archive of that text, or one without entries."""

    def call(folder: Path) -> object:
        archive = folder / "a.zip"
        if text is None:
            zipfile.ZipFile(archive, "w").close()
        else:
            archive.write_text(text)
        return unpack_records(archive, folder)

    return call


def logged(log: str, **summary: object) -> Call:
    return lambda folder: read_scores(write_run(folder / "run", log=log, summary=summary))


def on_page(text: str) -> Call:
    """A call that writes a study's block into a page of that text."""

    def call(folder: Path) -> object:
        page = folder / "page.md"
        page.write_text(text)
        return write_blocks([page], "one", "text", runs=1)

    return call


def without_matplotlib(_: Path) -> None:
    with patch.dict(sys.modules, {"matplotlib": None}):
        require_matplotlib()


def place(name: str) -> tuple[Call, type[Exception], str]:
    return lambda _: check_place(name), rl.UnknownNameError, f"unknown place to run '{name}'"


SEEDS = {1: {"load": "x"}, 7: {"load": "y"}}
OTHER_STEPS = {4: {"environment.level": "CartPole-v77"}}
LATER = {4: {"steps": 3}}
C, P, U = rl.ConfigurationError, rl.ParameterError, rl.UnknownNameError
STUDIES: list[tuple[Call, type[Exception], str]] = [
    (study(variant(), variant()), P, "has the variant 'a' 2 times; rename"),
    (study(seeds=5), P, "got 5; write range(5) for so many"),
    (study(seeds=(1, 2, 1)), P, "has the seed 1 2 times; name it once"),
    (study(variant(seeds=(3, 3))), P, "has the seed 3 2 times"),
    (study(baseline="tow"), U, "'tow' ... did you mean 'two'"),
    (study(name="a/b"), C, "'a/b' cannot name a folder"),
    (study(metrics="x"), U, "did you mean 'metric'"),
    (
        study(variant(changes_by_seed=SEEDS)),
        P,
        "variant 'a' names seeds ... of: 7; its seeds are 1",
    ),
    (
        varied(changes={"load": "x"}, changes_by_seed={7: {"load": "y"}}),
        P,
        "'a' changes load twice, ... for seed 7; name it in",
    ),
    (varied(name="a | b"), P, "one line of text ... 'a | b'"),
    (lambda path: load_study(f"{path}/no.py"), C, "no study file ... no.py"),
    (lambda _: load_study("small_study"), C, "no study file 'small_study'"),
    (loaded("def study(): return 3"), C, "must return a Study, got int"),
    (loaded("def study(): return 1 / 0"), C, "study ... my_study.py:2: ZeroDivisionError"),
    (loaded("1 / 0"), C, "study ... my_study.py:2: ZeroDivisionError"),
    (loaded("def study(): raise SystemExit(0)"), C, "study ... my_study.py:2: SystemExit: 0"),
    (loaded("raise SystemExit(0)"), C, "study ... my_study.py:2: SystemExit: 0"),
    (loaded("x = 3"), C, "defines no study: a function that returns a Study"),
    (
        loaded("def first() -> Study: return None"),
        U,
        "name one of its studies: ... my_study.py:first",
    ),
    (checked(variant(preset="CartPol_PPO")), C, "'a' ... did you mean 'CartPole_PPO'"),
    (checked(variant(changes={"learning_rat": 1})), C, "'a' ... did you mean ... learning_rate"),
    (checked(variant(preset="Mujoco_PPO", level="hoper")), C, "did you mean 'hopper'"),
    (checked(variant(level="CartPole-v77")), C, "variant 'a' of the study 's': ... CartPole"),
    (checked(variant(changes={"steps": 3}), steps=5), C, "steps is given twice, by steps and"),
    (checked(variant(changes_by_seed={4: {"learning_rat": 1}})), C, "mean ... learning_rate"),
    (checked(variant(changes_by_seed=OTHER_STEPS)), C, "variant 'a' ... CartPole"),
    (checked(variant(changes_by_seed=LATER), steps=5), C, "steps is given twice"),
    (
        checked(*(variant(name, changes_by_seed={3: {"discount": 0.9}}) for name in "ab")),
        C,
        "'a' and 'b' of the study 's' have the same parameters",
    ),
    (
        checked(variant(), variant("b", changes={"discount": 0.98})),
        C,
        "'a' and 'b' of the study 's' have the same parameters",
    ),
    (checked(variant(), metric="reward_men"), C, "metric ... did you mean 'reward_mean'"),
    (checked(variant(), metric="low/goal_share"), C, "'low/goal_share' in the study 's'"),
    (
        lambda path: study_runs(study()(path), root=path, earlier=[path / "none"]),
        C,
        "there is no folder",
    ),
]
CASES: list[tuple[Call, type[Exception], str]] = [
    (lambda path: executor("ray:127.0.0.1:1", [walk(path)]), C, "no Ray cluster answers"),
    (lambda _: LocalPool(0), P, "slots must be 1 or more, got 0"),
    (without_matplotlib, C, "plots need matplotlib; ... [plot]"),
    (lambda path: unpack_records(path / "no.zip", path), C, "no.zip: No such file"),
    (unpacked("text"), C, "it is not a zip file"),
    (unpacked(None), C, "holds no records"),
    (lambda path: write_records(path / "no/a.zip", "a", []), C, "cannot write ... No such file"),
    (
        logged(LOG.replace('"kind": "evaluation"', '"kind": evaluation')),
        CheckpointError,
        "log.jsonl is damaged: line 4 is no record",
    ),
    (logged(LOG, levels=[1]), CheckpointError, "run is damaged"),
    (on_page("nothing"), C, "has a block of the study 'one'; put the lines <!-- study: one"),
    (on_page("<!-- study: one -->"), C, "has no end; put <!-- /study --> after it"),
    (on_page("<!-- study: one --><!-- study: two --><!-- /study -->"), C, "has no end"),
    *map(place, ("moon", "local:2", "ray:", "slurm:", "")),
    (lambda path: executor("slurm", [walk(path)], at_once=2), C, "--jobs counts"),
    (lambda path: find_runs([path]), C, "holds no runs ... give a run's folder"),
    (lambda path: find_runs([path / "no"]), C, "no does not exist ... give a run"),
    (lambda path: find_runs([damaged(path)]), CheckpointError, "summary.json"),
    (score, C, "reward_mean ... have one with --at last"),
    (lambda path: score(path, at=7), C, "reward_mean at step 7"),
    (lambda path: score(path, "rewards"), U, "metric 'rewards' ... did you mean"),
    (lambda path: score(path, log=""), C, "none of the runs has been evaluated"),
    (lambda path: compared(path, "b", "a", "b"), C, "environments ... a on a; b"),
    (lambda path: compared(path, "trial", "a"), C, "only one group ... trial"),
    (lambda path: compared(path, "c", "a"), U, "unknown group 'c' as baseline"),
    (watch, C, "is not a run's folder"),
    (lambda path: runs_to_watch([path / "no"]), C, "does not exist; name a run's"),
    (lambda path: runs_to_watch([path]), C, "holds no runs"),
    (
        lambda path: write_blocks([path / "no"], "s", "", runs=1),
        C,
        "no page",
    ),
    (lambda _: estimate([]), P, "give at least one score"),
    (lambda _: difference([1], [1], confidence=95), P, "between 0 and 1, got 95"),
    (lambda _: probability_of_improvement([]), P, "over no environments"),
]
"""Calls with a folder of their own, kinds of error, and parts of the message in their order."""


@pytest.mark.parametrize(("call", "kind", "message"), [*STUDIES, *CASES])
def test_studies_invalid_input_error(tmp_path, monkeypatch, call, kind, message):
    monkeypatch.chdir(tmp_path)
    check_refused(lambda: call(tmp_path), kind, message)
