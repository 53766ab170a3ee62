"""What a run learns from the decisions of workers is what it learns from its own."""

from contextlib import closing

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.extensions.testing.states import assert_same_state
from tests.agents import test_bonuses
from tests.docs import test_research_programs
from tests.extensions.groups import test_decision_infos_of_members as of_members
from tests.extensions.hiro import test_relabelling_units
from tests.extensions.level_phases import test_level_phases
from tests.extensions.workers.test_collection import finished, with_workers
from tests.graph_managers import test_policies
from tests.levels import test_decision_infos

ASYNCHRONOUS = rl.CollectionParameters(workers=3, mode="asynchronous", ticks=2, staleness=8)
ONE = rl.CollectionParameters(workers=1, on="inline", ticks=7)


STACKS = {
    **{
        name: {"levels": stack(test_decision_infos.agent(**test_decision_infos.OWN))}
        for name, stack in test_decision_infos.STACKS.items()
    },
    **of_members.STACKS,
}


@pytest.mark.drawn(one_of=2)
@pytest.mark.filterwarnings("ignore:.*would learn nothing")
@pytest.mark.parametrize("stack", STACKS)
def test_infos_of_long_decisions_are_what_the_parameter_says(stack):
    test_decision_infos.check_infos_of_long_decisions(**STACKS[stack], source=ONE)


@pytest.mark.parametrize(
    ("level", "agent"),
    [
        pytest.param(*each, marks=pytest.mark.slow if each[0] == "top" else ())
        for each in test_bonuses.WITH_BONUS.items()
    ],
)
def test_bonus_is_added_to_stored_rewards_before_filters(level, agent, monkeypatch):
    test_bonuses.check_stored_rewards(level, agent, monkeypatch, source=ASYNCHRONOUS)


@pytest.mark.slow
def test_won_episodes_are_stored_as_plain_lists_hold_them(monkeypatch):
    test_bonuses.check_won_episodes(monkeypatch, training=2_000, source=ASYNCHRONOUS)


RELABELLING = test_relabelling_units.stack(
    test_relabelling_units.above(rl.SACAgentParameters),
)
WITH_STATE_IN_THE_POLICY = test_policies.experiment(test_policies.ShiftedParameters)


@pytest.mark.parametrize("on", ["inline", pytest.param("local", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "params",
    [
        RELABELLING,
        pytest.param(test_bonuses.WINNING, marks=pytest.mark.slow),
        WITH_STATE_IN_THE_POLICY,
    ],
    ids=["relabelling", "stored episodes", "state in the policy"],
)
def test_one_worker_makes_the_numbers_of_a_run_without_workers(params, on):
    alone, collected = finished(params), finished(with_workers(params, 1, on=on))
    assert alone[0] == collected[0]
    assert_same_state(alone[1], collected[1])


def test_workers_collect_the_same_in_every_phase():
    """But for the rounding of matrix products of other sizes."""
    turns = test_level_phases.SCHEDULES["turns"]
    params = test_level_phases.parameters(training=240, heatup=30, **turns)
    found = []
    for chosen in (params, with_workers(params)):
        manager = test_level_phases.built(chosen)
        test_level_phases.until(manager, 240)
        found.append(
            {name: each.memory.trajectories() for name, each in manager.graph.agents.items()}
        )
        manager.close()
    for level in ("top", "low"):
        mine, other = (each[level] for each in found)
        np.testing.assert_array_equal(mine["/mask"], other["/mask"])
        for path in ("/observations/observation", "/agents/agent/actions"):
            np.testing.assert_allclose(mine[path], other[path], atol=1e-4)


def programs():
    """All research programs; the few that run each time differ most from each other."""
    each_time = {"learned_latent", "map_of_goals", "planner_with_notes", "won_episodes"}
    for name in test_research_programs.PROGRAMS:
        yield pytest.param(name, marks=() if name in each_time else pytest.mark.slow)


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize("name", [*programs()])
def test_research_program_with_a_worker_equals_one_without(name, monkeypatch):
    monkeypatch.syspath_prepend(test_research_programs.FOLDER)
    found = []
    for changes in ({}, {"source": ONE}):
        with closing(test_research_programs.short_run_of(name, **changes)) as manager:
            records = test_research_programs.figures(manager.improve())
            found.append((records, manager.state_dict()["agents"]))
    assert found[0][0] == found[1][0]
    assert_same_state(found[0][1], found[1][1])
