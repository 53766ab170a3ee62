"""Acting at random: over the whole space, in every phase, by streams that are saved."""

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.agents.scripted_agent import UniformAgentParameters
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.records import ActionRequest
from coach_rl.core.spaces import EnvironmentSpaces


def build(space):
    observed = spaces.Dict({"x": spaces.Box(-1, 1, (1,), np.float32)})
    spaces_of_level = EnvironmentSpaces(observation=observed, action=space)
    return UniformAgentParameters().build(AgentContext(spaces=spaces_of_level, num_envs=4))


def act(agent, rows, number, phase=Phase.TRAIN):
    flags = np.ones(number, np.bool_)
    request = ActionRequest(
        rows=np.arange(number),
        observation={"x": np.zeros((number, 1), np.float32)},
        starts=flags,
        episode_start=flags,
        greedy=flags,
    )
    return agent.act(rows, request, Clock(phase=phase))


@pytest.mark.parametrize("phase", Phase)
def test_choices_are_equally_likely(phase):
    agent = build(spaces.Discrete(4))
    rows = agent.new_rows(10, seed=0)
    drawn = np.concatenate([act(agent, rows, 10, phase) for _ in range(200)])
    np.testing.assert_allclose(np.bincount(drawn) / 2_000, 0.25, atol=0.03)


def test_a_row_draws_the_same_alone_and_among_many_and_goes_on_where_it_was_saved():
    agent = build(spaces.Box(-2, 3, (2,), np.float32))
    alone, many = agent.new_rows(1, seed=0), agent.new_rows(5, seed=0)
    first = [act(agent, alone, 1)[0] for _ in range(5)]
    np.testing.assert_array_equal(first, [act(agent, many, 5)[0] for _ in range(5)])
    restored = agent.new_rows(5, seed=9)
    restored.load_state_dict(many.state_dict())
    np.testing.assert_array_equal(act(agent, restored, 5), act(agent, many, 5))


def test_draws_of_other_processes_are_followed():
    agent = build(spaces.Discrete(50))
    elsewhere, here = agent.new_rows(5, seed=1), agent.new_rows(5, seed=2)
    made = act(agent, elsewhere, 5)
    here.follow(elsewhere.decisions())
    np.testing.assert_array_equal(act(agent, here, 5), made)
