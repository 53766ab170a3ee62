"""Trials depend on the seed and the trials before them, and are kept in a journal."""

import os
import shutil
import sys

import pytest

from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.studies.sweeps.search_space import parse_search
from coach_rl.studies.sweeps.trials import JOURNAL, SweepSettings, Trials

SPACE = "learning_rate=log(1e-4, 1e-1); noise=uniform(0, 1); layers=choice((64, 64), (256, 256))"


@pytest.fixture
def opened(tmp_path):
    """Opens the sweep of a test, as often as it likes."""
    pytest.importorskip("optuna")
    made = []

    def open_sweep(space=SPACE, name="sweep", **settings):
        description = {"search": space}
        made.append(
            Trials(tmp_path / name, parse_search(space), SweepSettings(**settings), description)
        )
        return made[-1]

    yield open_sweep
    for trials in made:
        trials.close()


def loss(trial):
    return abs(trial.overrides["learning_rate"] - 0.01) + 0.01 * trial.overrides["noise"]


def finish(trials, trial):
    trials.conclude(trial.number, "done", value=-loss(trial))


def tried(trials):
    return [(trial.overrides, trial.state, trial.value) for trial in trials.all()]


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_same_seed_same_trials_also_when_continued(opened, sampler):
    whole = opened(name="whole", sampler=sampler)
    while trial := whole.begin(16):
        finish(whole, trial)
    for count in (3, 12, 16):
        part = opened(name="parts", sampler=sampler)
        while trial := part.begin(count):
            finish(part, trial)
        part.close()
    assert tried(opened(name="parts", sampler=sampler)) == tried(whole)
    assert len({str(trial.overrides) for trial in whole.all()}) == 16
    other = opened(name="other", sampler=sampler, seed=1)
    assert other.begin(16).overrides != whole.all()[0].overrides


def test_trials_of_dead_process_taken_over(opened):
    first = opened()
    trial = first.begin(5)
    first.report(trial.number, [1.0, 2.0])
    second = opened()
    assert second.left_over() == []  # the first holds it
    assert second.begin(5).number == 1
    first.close()
    (left,) = second.left_over()
    assert (left.number, left.overrides, left.evaluations) == (0, trial.overrides, (1.0, 2.0))
    assert second.left_over() == []


def test_trials_copied_by_hard_links_leave_the_original_alone(opened, tmp_path):
    first = opened()
    finish(first, first.begin(5))
    first.close()
    original, lock = tmp_path / "sweep" / JOURNAL, tmp_path / "sweep" / ".journal_lock"
    lock.write_text("kept")
    before = original.read_bytes()
    shutil.copytree(tmp_path / "sweep", tmp_path / "copy", copy_function=os.link)
    copy = opened(name="copy")
    assert len(tried(copy)) == 1
    finish(copy, copy.begin(5))
    assert (original.read_bytes(), lock.read_text()) == (before, "kept")


def test_trials_several_processes_respect_limit(opened):
    first, second = opened(), opened()
    numbers = [trials.begin(3).number for trials in (first, second, first)]
    assert numbers == [0, 1, 2]
    assert first.begin(3) is second.begin(3) is None
    assert second.begin(4).number == 3  # a larger total goes on


def test_trials_median_prunes_below(opened):
    trials = opened()
    for value in (1.0, 2.0, 3.0, 4.0, 5.0):
        trial = trials.begin(9)
        assert not trials.report(trial.number, [value, value, value, value])
        trials.conclude(trial.number, "done", value=value)
    bad, good = trials.begin(9), trials.begin(9)
    assert not trials.report(bad.number, [0.0, 0.0])  # the first two evaluations are spared
    assert trials.report(bad.number, [0.0, 0.0, 0.0, 9.0])
    assert not trials.report(good.number, [0.0, 0.0, 3.5])
    trials.conclude(bad.number, "pruned")
    ended = trials.all()[bad.number]
    assert (ended.state, ended.value, ended.evaluations) == ("pruned", 0.0, (0.0, 0.0, 0.0))


def test_trials_halving_keeps_a_third(opened):
    trials = opened(pruner="halving")
    ended = []
    for value in (1.0, 2.0, 3.0, 4.0, 5.0, 1.5):
        trial = trials.begin(9)
        ended.append(trials.report(trial.number, [value] * 3))
        trials.conclude(
            trial.number, "pruned" if ended[-1] else "done", value=None if ended[-1] else value
        )
    assert ended == [False, False, False, False, False, True]


def test_trials_no_pruner_smallest_best(opened):
    trials = opened(pruner="none", is_largest_best=False)
    for value in (3.0, 1.0, 2.0):
        trial = trials.begin(3)
        assert not trials.report(trial.number, [100.0 * value] * 9)
        trials.conclude(trial.number, "done", value=value)
    assert [trial.value for trial in trials.best()] == [1.0, 2.0, 3.0]


def test_trials_grid_each_combination_once(opened):
    space = "a=int(1, 3); b=choice(x, y)"
    trials = opened(space, sampler="grid")
    assert trials.combinations == 6
    for number in range(6):
        trial = trials.begin(6)
        assert trial.number == number
        trials.conclude(
            number, "failed" if number == 2 else "done", value=None if number == 2 else 1.0
        )
    found = {tuple(sorted(trial.overrides.items())) for trial in trials.all()}
    assert found == {(("a", a), ("b", b)) for a in (1, 2, 3) for b in ("x", "y")}
    with pytest.raises(ConfigurationError, match=r"counted, not a=log\(1.0, 2.0\)"):
        opened("a=log(1, 2)", name="endless", sampler="grid")


def test_trials_other_sweep_in_folder_error(opened):
    opened().close()
    with pytest.raises(ConfigurationError, match=r"begun with seed 0, now it is 3; .*-e NAME"):
        opened(seed=3)
    with pytest.raises(ConfigurationError, match="begun with search"):
        opened(SPACE.replace("1e-4", "1e-5"))


def test_trials_failure_message_kept(opened):
    trials = opened()
    trials.begin(1)
    trials.note_run(0, "line_seed0")
    trials.conclude(0, "failed", error="the loss is NaN")
    (failed,) = opened().all()
    assert (failed.state, failed.error, failed.run) == ("failed", "the loss is NaN", "line_seed0")


def test_trials_importances(opened):
    trials = opened(sampler="random")
    assert trials.importances() == {}
    while trial := trials.begin(30):
        finish(trials, trial)
    shares = trials.importances()
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["learning_rate"] > 0.5


def test_trials_damaged_journal_error(opened, tmp_path):
    trials = opened()
    finish(trials, trials.begin(2))
    before = tried(trials)
    journal = tmp_path / "sweep" / JOURNAL
    with journal.open("a") as file:
        file.write('{"op_code":4,"worker')
    again = opened()
    assert tried(again) == before
    again.begin(2)
    journal.write_text(journal.read_text().replace("{", "", 1))
    with pytest.raises(CheckpointError, match=r"sweep.journal is damaged"):
        opened()


def test_trials_without_optuna_error(monkeypatch, opened):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigurationError, match=r"Optuna, which is not installed; .*\[sweep\]"):
        opened()
