"""Flags of studies accept only metrics, states and keys that exist."""

from coach_rl.extensions.studies import runs as runs_module
from coach_rl.extensions.studies.flags import COMPARE, MOMENTS, SORT_KEYS, STATES
from coach_rl.extensions.studies.statistics import STATISTICS


def test_choices_of_flags_are_those_of_what_they_choose() -> None:
    assert STATES == runs_module.STATES
    assert tuple(runs_module.sort_keys()) == SORT_KEYS
    assert tuple(runs_module.MOMENTS) == MOMENTS
    assert next(each.choices for each in COMPARE if each.dest == "statistic") == tuple(STATISTICS)
