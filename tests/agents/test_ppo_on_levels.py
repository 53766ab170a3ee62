"""PPO on levels: its first sub-goals, and the room of its rollout."""

from dataclasses import replace

import numpy as np
import pytest
import small_agents
from decisions import stored_by
from small_agents import ddpg

from coach_rl.core.goals import GoalSpace
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.scripts.scripted_agent import ScriptedAgentParameters
from tests.builders import agents_of

PLACES = GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.2, 0.2), elements=(0, 1))


def ppo(**algorithm):
    plain = small_agents.ppo()
    return replace(plain, algorithm=replace(plain.algorithm, **algorithm))


def go(observation, space):
    """Push to the lower right, whatever the order."""
    return np.tile(np.array([[0.9, -0.4]], np.float32), (len(observation["observation"]), 1))


@pytest.mark.parametrize("relative", [False, True])
def test_the_first_sub_goals_cover_the_whole_goal_space(relative):
    """Not N(0, 1) in goal units, of which -4 to 52 would see a corner."""
    low, high = np.float32([-4, 10]), np.float32([52, 10.5])
    goals = GoalSpace(
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        threshold=(0.2, 0.2),
        elements=(0, 1),
        relative=relative,
    )
    upper = ppo(rollout=EnvironmentSteps(1000))
    graph_manager = small_agents.stack(ddpg(), goals, top=upper, horizon=1)
    top, asked = agents_of(graph_manager)[0], []
    act = top.act
    top.act = lambda *given: asked.append(act(*given)) or asked[-1]
    list(graph_manager.train_and_act(EnvironmentSteps(400)))
    sent = np.concatenate(asked)
    first, last = (low - high, high - low) if relative else (low, high)
    share = (sent - first) / (last - first)
    np.testing.assert_allclose(share.mean(axis=0), 0.5, atol=0.06)
    quarters = [((share >= q / 4) & (share <= (q + 1) / 4)).mean(axis=0) for q in range(4)]
    assert np.min(quarters) > 0.12  # N(0, 1) clipped to [-1, 1]: 0.31, 0.19, 0.19, 0.31
    stored = stored_by(top)
    list(graph_manager.train_and_act(EnvironmentSteps(20)))
    drawn = np.concatenate([each.action for each in stored])
    assert abs(drawn.mean()) < 0.5  # in the policy's own units
    graph_manager.close()


@pytest.mark.parametrize("horizon", [1, 3])
def test_the_rollout_has_room_for_whatever_a_tick_brings(horizon):
    """Also where acting turns random and back with decisions open."""
    num_envs, rollout = 7, 9
    graph_manager = small_agents.stack(
        ScriptedAgentParameters(policy=go),
        PLACES,
        top=ppo(rollout=EnvironmentSteps(rollout)),
        horizon=horizon,
        num_envs=num_envs,
    )
    agent, rng, most = agents_of(graph_manager)[0], np.random.default_rng(0), 0
    stored = stored_by(agent)
    for _ in range(40):
        for phase in (graph_manager.train_and_act, graph_manager.heatup):
            list(phase(EnvironmentSteps(num_envs * int(rng.integers(1, 6)))))
            most = max(most, len(agent.memory))
    assert sum(len(transition.rows) for transition in stored) > 100
    assert horizon == 1 or most >= rollout, (
        "the test wants decisions that come in while acting is random"
    )
    graph_manager.close()
