"""Observations of several agents in another dtype than their space: kept, refused, or rounded."""

import pytest

from coach_rl.environments.pettingzoo import PettingZooParameters
from tests.environments import test_casts as casts


def build(**kwargs):
    parameters = PettingZooParameters(level="agents_casting:ShowsAgents", kwargs=kwargs)
    return parameters.build(num_envs=2)


@pytest.mark.parametrize(("given", "number", "declared", "message"), casts.WRONG)
def test_agents_observation_that_its_dtype_lacks_stops_run(given, number, declared, message):
    casts.check_that_its_dtype_lacks_stops_run(build, given, number, declared, message)


def test_agents_observation_integers_are_compared_at_every_step():
    casts.check_integers_are_compared_at_every_step(build)


@pytest.mark.parametrize(("given", "number", "declared"), casts.KEPT)
def test_agents_observation_that_its_dtype_has_is_shown(given, number, declared):
    casts.check_that_its_dtype_has_is_shown(build, given, number, declared)


def test_agents_observation_rounded_by_more_than_millionth_of_range_warns_once():
    casts.check_rounded_by_more_than_millionth_of_range_warns_once(build)


@pytest.mark.parametrize(
    ("at", "length", "is_noted"), [(60, 10**6, True), (80, 10**6, False), (80, 20, True)]
)
def test_agents_observation_floats_are_compared_early_and_at_starts(at, length, is_noted):
    casts.check_floats_are_compared_early_and_at_starts(build, at, length, is_noted)


def test_agents_observation_that_float32_makes_infinite_stops_run_without_another_warning():
    casts.check_that_float32_makes_infinite_stops_run_without_another_warning(build)
