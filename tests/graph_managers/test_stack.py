"""A stack hears its simulators at every tick, and counts the sub-episodes it is asked to count."""

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.graph_managers.episode_tracker import EpisodeTracker
from tests.graph_managers.walkers import experiment


def build(described, num_envs=3):
    levels = described.levels
    stack = rl.LevelChain().build_stack(
        levels,
        described.environment.build(num_envs=num_envs),
        agent=lambda index, spaces: levels[index].agent.build(
            AgentContext(spaces=spaces, num_envs=num_envs)
        ),
        clock=Clock(),
        seed=0,
        purpose="training",
    )
    stack.reset(0)
    return stack


def test_a_tick_is_recv_of_the_top_level():
    ticked, received = build(experiment("middle")), build(experiment("middle"))
    for _ in range(40):
        ticked.tick()
        received.levels[0].recv()
    assert_same_state(ticked.state_dict()["top"], received.state_dict()["top"])
    for stack in (ticked, received):
        stack.close()


def test_a_restored_stack_continues_with_the_same_answers():
    stack, other = build(experiment("middle")), build(experiment("middle"))
    for _ in range(10):
        stack.tick()
    other.load_state_dict(stack.state_dict())
    assert other.clock.environment_steps == 30
    mine, theirs = EpisodeTracker(3), EpisodeTracker(3)
    for _ in range(100):
        one, same = stack.tick(), other.tick()
        np.testing.assert_array_equal(
            one.observation["observation"], same.observation["observation"]
        )
        assert (mine.note(one) is None) == (theirs.note(same) is None)
    for each in (stack, other):
        each.close()


@pytest.mark.parametrize("episodes", [2, 5])
def test_an_evaluation_counts_the_sub_episodes_of_its_own_episodes_alone(episodes):
    """Rows whose share is played go on beside the others, and beyond what is counted."""
    with rl.GraphManager(experiment()) as manager:
        manager.create_graph(rl.Runtime(seed=1))
        for _ in range(2):
            record = manager.evaluate(rl.EnvironmentEpisodes(episodes))
            high, low = record.levels
            length = record.arrays["episode/length"]
            assert high.scalars["evaluation_level/sub_episodes"] == episodes
            counted = low.scalars["evaluation_level/sub_episodes"]
            decisions = counted * low.scalars["evaluation_level/decisions"]
            assert decisions == pytest.approx(length.sum())
