"""Acting at random: over the whole space, in every phase, by streams that are saved."""

import numpy as np
import pytest
from decisions import context, request
from gymnasium import spaces

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import SpaceError
from coach_rl.extensions.scripts.scripted_agent import UniformAgentParameters


def build(space):
    observed = {"x": spaces.Box(-1, 1, (1,), np.float32)}
    return UniformAgentParameters().build(context(observed, space, num_envs=4))


def act(agent, rows, number, phase=Phase.TRAIN):
    seen = {"x": np.zeros((number, 1), np.float32)}
    return agent.act(rows, request(seen, greedy=True), Clock(phase=phase))


@pytest.mark.parametrize("phase", Phase)
def test_choices_are_equally_likely(phase):
    agent = build(spaces.Discrete(4))
    rows = agent.new_rows(10, seed=0)
    drawn = np.concatenate([act(agent, rows, 10, phase) for _ in range(200)])
    np.testing.assert_allclose(np.bincount(drawn) / 2_000, 0.25, atol=0.03)


def test_draws_of_other_processes_are_followed():
    agent = build(spaces.Discrete(50))
    elsewhere, here = agent.new_rows(5, seed=1), agent.new_rows(5, seed=2)
    made = act(agent, elsewhere, 5)
    here.follow(elsewhere.decisions())
    np.testing.assert_array_equal(act(agent, here, 5), made)


def masked(space, size):
    observed = {"x": spaces.Box(-1, 1, (1,), np.float32), "action_mask": spaces.MultiBinary(size)}
    return UniformAgentParameters().build(context(observed, space, num_envs=4))


def test_mask_is_named_as_one_of_its_own_choices():
    assert masked(spaces.MultiDiscrete([2, 3]), 5).own_keys == {"action_mask"}
    assert not build(spaces.Discrete(4)).own_keys


def test_mask_of_other_choices_is_refused():
    with pytest.raises(SpaceError, match=r"'action_mask'.* which has 2 entries .*None for no mask"):
        masked(spaces.Discrete(2), 9)
