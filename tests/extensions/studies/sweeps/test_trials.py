"""Trials depend on the seed and the trials before them, and are kept in a journal."""

import os
import shutil
import sys

import pytest

from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.core.runtime import Runtime
from coach_rl.extensions.studies.sweeps.search_space import drawn_overrides, parse_search
from coach_rl.extensions.studies.sweeps.sweep import Metric, Sweep
from coach_rl.extensions.studies.sweeps.trials import JOURNAL, Trials
from tests.extensions.studies.walks import WALK

SPACE = "learning_rate=log(1e-4, 1e-1); noise=uniform(0, 1); layers=choice((64, 64), (256, 256))"


@pytest.fixture
def opened(tmp_path):
    """Opens the sweep of a test, as often as it likes."""
    pytest.importorskip("optuna")
    made = []

    def open_sweep(space=SPACE, name="sweep", *, trials=16, seed=0, best="largest", **chosen):
        sweep = Sweep(
            preset=WALK, name=name, root=tmp_path, trials=trials, task=Runtime(seed=seed), **chosen
        )
        metric = Metric(name="reward_mean", best=best)
        made.append(Trials(sweep, parse_search(space), metric))
        return made[-1]

    yield open_sweep
    for trials in made:
        trials.close()


def loss(trial):
    return abs(trial.params["learning_rate"] - 0.01) + 0.01 * trial.params["noise"]


def finish(trials, trial):
    trials.conclude(trial.number, value=-loss(trial))


def tried(trials):
    return [(trial.params, trial.state, trial.value) for trial in trials.all()]


def ended(trial):
    return trial.state.name, trial.value, list(trial.intermediate_values.values())


@pytest.mark.parametrize("sampler", ["tpe", "random"])
def test_same_seed_same_trials_also_when_continued(opened, sampler):
    whole = opened(name="whole", sampler=sampler)
    while trial := whole.begin():
        finish(whole, trial)
    for count in (3, 12, 16):
        part = opened(name="parts", sampler=sampler, trials=count)
        while trial := part.begin():
            finish(part, trial)
        part.close()
    assert tried(opened(name="parts", sampler=sampler)) == tried(whole)
    assert len({str(trial.params) for trial in whole.all()}) == 16
    other = opened(name="other", sampler=sampler, seed=1)
    assert other.begin().params != whole.all()[0].params


def test_trials_of_dead_process_taken_over(opened):
    first = opened()
    trial = first.begin()
    first.report(trial.number, [1.0, 2.0])
    second = opened()
    assert second.left_over() == []  # the first holds it
    assert second.begin().number == 1
    first.close()
    (left,) = second.left_over()
    assert (left.number, left.params) == (0, trial.params)
    assert left.intermediate_values == {1: 1.0, 2: 2.0}
    assert second.left_over() == []


def test_trials_copied_by_hard_links_leave_the_original_alone(opened, tmp_path):
    first = opened()
    finish(first, first.begin())
    first.close()
    original, lock = tmp_path / "sweep" / JOURNAL, tmp_path / "sweep" / ".journal_lock"
    lock.write_text("kept")
    before = original.read_bytes()
    shutil.copytree(tmp_path / "sweep", tmp_path / "copy", copy_function=os.link)
    copy = opened(name="copy")
    assert len(tried(copy)) == 1
    finish(copy, copy.begin())
    assert (original.read_bytes(), lock.read_text()) == (before, "kept")


def test_trials_several_processes_respect_limit(opened):
    first, second = opened(trials=3), opened(trials=3)
    numbers = [trials.begin().number for trials in (first, second, first)]
    assert numbers == [0, 1, 2]
    assert first.begin() is second.begin() is None
    assert opened(trials=4).begin().number == 3  # a larger total continues


def test_trials_repeated_values_share_the_end(opened):
    trials = opened("a=choice(1, 2)")
    first = trials.begin()
    second = trials.begin()
    assert {first.params["a"], second.params["a"]} == {"1", "2"}  # a running one isn't repeated
    assert trials.begin() is None
    trials.report(first.number, [0.5])
    trials.note(first.number, "run", "line_seed0")
    trials.conclude(first.number, value=3.0)
    again = trials.begin()
    assert (again.number, again.params) == (2, first.params)
    assert ended(again) == ended(trials.all()[0]) == ("COMPLETE", 3.0, [0.5])
    assert again.user_attrs == {"run": "line_seed0"}
    assert trials.running() == [trials.all()[1]]


def test_trials_median_prunes_below(opened):
    trials = opened()
    for value in (1.0, 2.0, 3.0, 4.0, 5.0):
        trial = trials.begin()
        assert not trials.report(trial.number, [value, value, value, value])
        trials.conclude(trial.number, value=value)
    bad, good = trials.begin(), trials.begin()
    assert not trials.report(bad.number, [0.0, 0.0])  # the first two evaluations are spared
    assert trials.report(bad.number, [0.0, 0.0, 0.0, 9.0])
    assert not trials.report(good.number, [0.0, 0.0, 3.5])
    trials.conclude(bad.number)
    assert ended(trials.all()[bad.number]) == ("PRUNED", 0.0, [0.0, 0.0, 0.0])


def test_trials_halving_keeps_a_third(opened):
    trials = opened(pruner="halving")
    pruned = []
    for value in (1.0, 2.0, 3.0, 4.0, 5.0, 1.5):
        trial = trials.begin()
        pruned.append(trials.report(trial.number, [value] * 3))
        trials.conclude(trial.number, value=None if pruned[-1] else value)
    assert pruned == [False, False, False, False, False, True]


def test_trials_no_pruner_smallest_best(opened):
    trials = opened(pruner="none", best="smallest")
    for value in (3.0, 1.0, 2.0):
        trial = trials.begin()
        assert not trials.report(trial.number, [100.0 * value] * 9)
        trials.conclude(trial.number, value=value)
    assert [trial.value for trial in trials.best()] == [1.0, 2.0, 3.0]


def test_trials_grid_each_combination_once(opened):
    space = "a=int(1, 3); b=choice(x, y)"
    trials = opened(space, sampler="grid", trials=None)
    for number in range(6):
        trial = trials.begin()
        assert trial.number == number
        trials.conclude(number, error="the loss is NaN" if number == 2 else "")
    assert trials.begin() is None
    found = {tuple(sorted(drawn_overrides(trial.params).items())) for trial in trials.all()}
    assert found == {(("a", a), ("b", b)) for a in (1, 2, 3) for b in ("x", "y")}


def test_trials_other_sweep_in_folder_error(opened):
    opened().close()
    with pytest.raises(ConfigurationError, match=r"begun with seed 0, now it is 3; .*-e NAME"):
        opened(seed=3)
    with pytest.raises(ConfigurationError, match="begun with search"):
        opened(SPACE.replace("1e-4", "1e-5"))


def test_trials_importances(opened):
    trials = opened(sampler="random", trials=30)
    assert trials.importances() == {}
    while trial := trials.begin():
        finish(trials, trial)
    shares = trials.importances()
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["learning_rate"] > 0.5


def test_trials_best_and_importances_leave_out_repetitions(opened):
    trials = opened("learning_rate=choice(1e-4, 3e-4, 1e-3)", trials=20)
    values = {"0.0001": 1.0, "0.0003": 2.0, "0.001": 3.0}
    while trial := trials.begin():
        if not trial.state.is_finished():
            trials.conclude(trial.number, value=values[trial.params["learning_rate"]])
    assert len(trials.all()) == 20
    assert [trial.value for trial in trials.best()] == [3.0, 2.0, 1.0]
    numbers = [trial.number for trial in trials.best()]
    assert numbers == [
        min(each.number for each in trials.all() if each.value == value) for value in (3, 2, 1)
    ]
    assert trials.importances() == {}  # of three different trials


def test_trials_damaged_journal_error(opened, tmp_path):
    trials = opened()
    finish(trials, trials.begin())
    before = tried(trials)
    journal = tmp_path / "sweep" / JOURNAL
    with journal.open("a") as file:
        file.write('{"op_code":4,"worker')
    again = opened()
    assert tried(again) == before
    again.begin()
    journal.write_text(journal.read_text().replace("{", "", 1))
    with pytest.raises(CheckpointError, match=r"sweep.journal is damaged"):
        opened()


def test_trials_without_optuna_error(monkeypatch, opened):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigurationError, match=r"Optuna, which is not installed; .*\[sweep\]"):
        opened()
