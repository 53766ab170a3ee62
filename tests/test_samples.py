"""Cases of tests that are marked `drawn`: which are left out."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import samples


class Case:
    """A collected test, as far as a draw reads it."""

    def __init__(self, number, *marks, **params):
        self.path, self.originalname = Path("tests/test_x.py"), "test_x"
        self.nodeid = f"tests/test_x.py::test_x[{number}]"
        self.marks = [*marks]
        self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name):
        return next((each.mark for each in self.marks if each.name == name), None)

    def add_marker(self, mark):
        self.marks.append(mark)


def run(cases, seed, monkeypatch):
    """The numbers of the cases that a seed does not leave out."""
    monkeypatch.setattr(samples, "SEED", seed)
    samples.leave_out(cases)
    return [place for place, case in enumerate(cases) if not case.get_closest_marker("slow")]


def cases(count, **settings):
    return [Case(number, pytest.mark.drawn(**settings), kind=number % 3) for number in range(count)]


def test_drawn_cases_are_one_of_so_many_and_differ_by_seed(monkeypatch):
    drawn = {tuple(run(cases(10, one_of=4), str(seed), monkeypatch)) for seed in range(40)}
    assert {len(each) for each in drawn} == {3}
    assert set().union(*drawn) == set(range(10))


def test_drawn_cases_of_one_seed_are_the_same_each_time(monkeypatch):
    assert run(cases(10, one_of=4), "1", monkeypatch) == run(cases(10, one_of=4), "1", monkeypatch)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_drawn_test_with_few_cases_has_one_each_time(count, monkeypatch):
    for seed in range(20):
        assert len(run(cases(count, one_of=3), str(seed), monkeypatch)) == 1


def test_drawn_cases_have_one_of_each_value(monkeypatch):
    for seed in range(20):
        kept = run(cases(9, one_of=3, each="kind"), str(seed), monkeypatch)
        assert Counter(place % 3 for place in kept) == {0: 1, 1: 1, 2: 1}


def test_every_case_is_run_if_wanted(monkeypatch):
    assert run(cases(10, one_of=4), "every", monkeypatch) == [*range(10)]


def test_slow_cases_stay_slow_and_count_for_nothing(monkeypatch):
    slow = [Case(number, pytest.mark.drawn(one_of=3), pytest.mark.slow) for number in range(9)]
    kept = run([*slow, *cases(3, one_of=3)], "0", monkeypatch)
    assert len(kept) == 1
    assert kept[0] >= 9


def test_tests_without_the_mark_are_all_run(monkeypatch):
    assert run([Case(number) for number in range(5)], "0", monkeypatch) == [*range(5)]
