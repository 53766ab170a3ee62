"""Workers that collect for graphs of levels and for members that act in turn."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint
from tests.extensions.workers.test_collection import (
    EVERY,
    finished,
    manager_of,
    off_policy,
    on_policy,
    planning,
    two_levels,
    with_workers,
)
from tests.graph_managers.small_runs import parameters
from tests.random_graphs import ppo, random_levels, to_the_left

STEPS = rl.EnvironmentSteps(150)
SAC = rl.SACAgentParameters(
    name="b",
    learning=rl.LearningParameters(batch=8, learning_starts=20, report_every=10),
    update_mode="eager",
)


def graph(seed):
    """Random levels on three point masses."""
    return rl.GraphParameters(
        **random_levels(np.random.default_rng(seed)),
        environment=rl.PointMassParameters(max_episode_steps=20),
        num_envs=3,
        schedule=rl.ScheduleParameters(training=STEPS, evaluation_interval=None),
    )


CHOOSER = ppo("chooser", remembers="episode")
BY_FUNCTION = rl.SelectedTurns(
    agent=rl.ScriptedAgentParameters(name="chooser", policy=to_the_left), every=2
)
SHARING = ppo("a", remembers="episode"), ppo("b", remembers="episode")
GROUPS = {
    "turns": (rl.Turns(order=("a", "b", "b")), (ppo("a"), SAC), None),
    "turns of one agent": (rl.Turns(), SHARING, "both"),
    "selector": (rl.SelectedTurns(agent=CHOOSER, every=3), (ppo("a"), SAC), None),
    "selector of one agent": (rl.SelectedTurns(agent=CHOOSER, every=2), SHARING, "both"),
    "function": (BY_FUNCTION, (ppo("a"), SAC), None),
}


def group(name):
    """Members that act in turn, alone on their level."""
    arbiter, members, shares = GROUPS[name]
    agent = rl.AgentGroupParameters(
        members=tuple(rl.GroupMember(agent=each, shares=shares) for each in members),
        arbiter=arbiter,
    )
    small = parameters(training=STEPS)
    return replace(small, agent=agent, environment=rl.PointMassParameters(max_episode_steps=20))


CASES = {
    **{f"graph {n}": partial(graph, n) for n in range(8)},
    **{name: partial(group, name) for name in GROUPS},
}
COLLECTED = {
    **CASES,
    "filters": lambda: on_policy(input_filter=EVERY),
    "filters, off-policy": lambda: off_policy(input_filter=EVERY),
    "two levels": two_levels,
    "planning": planning,
}
MANY = {**CASES, **{f"graph {n}": partial(graph, n) for n in range(8, 60)}}
EACH_TIME = {"graph 4", "graph 7", "turns of one agent", "selector", "filters", "planning"}


def cases(names):
    """Names as parameters of tests, of which few run each time."""
    return [pytest.param(n, marks=() if n in EACH_TIME else pytest.mark.slow) for n in names]


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("case", cases(MANY))
def test_one_worker_makes_the_numbers_of_a_run_without_workers(case):
    alone, collected = finished(MANY[case]()), finished(with_workers(MANY[case](), workers=1))
    assert alone[0] == collected[0]
    assert_same_state(alone[1], collected[1])


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("case", cases(COLLECTED))
def test_numbers_do_not_depend_on_where_the_workers_are(case):
    inline, local = (
        finished(with_workers(COLLECTED[case](), on=place)) for place in ("inline", "local")
    )
    assert inline[0] == local[0]
    assert_same_state(inline[1], local[1])


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize("case", cases(COLLECTED))
def test_run_with_workers_resumed_in_mid_decision_continues_bit_for_bit(case, tmp_path):
    params = with_workers(COLLECTED[case]())
    with manager_of(params) as whole, manager_of(params) as resumed:
        list(whole.train_and_act(rl.EnvironmentSteps(71)))
        write_checkpoint(tmp_path / "half", whole.state_dict(), {})
        resumed.load_state_dict(read_checkpoint(tmp_path / "half").state)
        for manager in (whole, resumed):
            list(manager.train_and_act(rl.EnvironmentSteps(60)))
        assert_same_state(whole.state_dict(), resumed.state_dict())


@pytest.mark.parametrize("case", ["turns of one agent", "selector of one agent"])
def test_rollout_of_members_that_share_an_agent_is_made_by_one_policy(case):
    short = rl.PointMassParameters(max_episode_steps=3)  # an end closes several decisions
    with manager_of(with_workers(replace(CASES[case](), environment=short), ticks=100)) as manager:
        trained, stack = 0, manager.graph.training
        for _ in range(60):
            list(manager.train_and_act(rl.EnvironmentSteps(2)))
            if manager.graph.clock.training_steps > trained:
                trained = manager.graph.clock.training_steps
                assert not any(block.made for block in stack.simulators.blocks)
        assert trained
