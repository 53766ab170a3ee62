"""PPO in action spaces of every kind and shape."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.agents.own_filters import ScaledOutput, UnfilteredOutput
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.spaces import check_actions
from coach_rl.extensions.mixed_actions import MixedSpace
from coach_rl.extensions.mixed_actions.flattened_output import FlattenedOutput
from tests.agents.decisions import context, request

SEEN = spaces.Dict({"x": spaces.Box(-9, 9, (3,))})
SPACES = {
    "bits": spaces.MultiBinary((2, 3)),
    "numbers": spaces.Box(-3, np.float64([[1, 2], [3, 4]]), dtype=np.float64),
    "one number": spaces.Box(0, 5, ()),
    "choices": spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[1, -1], [0, 7]]),
    "all choices": spaces.Dict({"b": spaces.MultiBinary(2), "a": spaces.Discrete(3, start=5)}),
    "all numbers": spaces.Dict({"b": spaces.Box(-1, 1, (2, 1)), "a": spaces.Box(0, 9, ())}),
    "one choice": spaces.Dict({"a": spaces.Discrete(3, start=5)}),
    "mixed": spaces.Dict(
        {
            "kind": spaces.Discrete(3, start=4),
            "run": spaces.Box(0, 30, (1,)),
            "arm": spaces.Box(-1, 1, (2, 2), np.float64),
            "bits": spaces.MultiBinary((2, 1)),
            "gears": spaces.MultiDiscrete([[2, 3]], start=[[1, 0]], dtype=np.int32),
        }
    ),
}
MIXED = SPACES["mixed"]
ARGUMENTS = {"run": ("kind", 6)}


def built(action=MIXED, *, num_envs=4, **changes):
    algorithm = rl.PPOAlgorithmParameters(
        rollout=rl.EnvironmentSteps(8), epochs=2, minibatch=4, entropy_coefficient=0.01
    )
    params = rl.PPOAgentParameters(algorithm=algorithm, update_mode="eager")
    return replace(params, **changes).build(context(SEEN, action, num_envs=num_envs, seed=3))


def drawn(action, count, seed=0):
    """Random actions of a space, [count, ...] each."""
    action.seed(seed)
    each = [action.sample() for _ in range(count)]
    if isinstance(action, spaces.Dict):
        return {key: np.array([one[key] for one in each]) for key in action}
    return np.array(each)


def parts(actions):
    return actions if isinstance(actions, dict) else {"": actions}


@pytest.mark.parametrize("scales", [True, False])
@pytest.mark.parametrize("name", SPACES)
def test_own_filter_inverse_restores_actions(name, scales):
    action = SPACES[name]
    agent = built(action, scale_actions=scales)
    given = drawn(action, 50)
    flat = agent.output_filter.inverse(given)
    greedy, _ = agent.sampler.greedy(np.zeros((1, agent.distribution.parameter_size), np.float32))
    assert flat.shape == (50, *greedy.shape[1:])
    again = agent.output_filter.apply(flat)
    for key, values in parts(given).items():
        restored = parts(again)[key]
        assert restored.dtype == values.dtype
        np.testing.assert_allclose(restored, values, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SPACES)
def test_actions_lie_in_the_space_in_every_phase(name):
    action, seen = SPACES[name], {"x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)}
    agent = built(action, arguments=ARGUMENTS if name == "mixed" else {})
    state = agent.new_rows(4, seed=0)
    for phase in [Phase.HEATUP] * 20 + [Phase.TRAIN] * 20 + [Phase.TEST]:
        for values in parts(agent.act(state, request(seen), Clock(phase=phase))).values():
            assert isinstance(values, np.ndarray)
        check_actions(action, agent.act(state, request(seen), Clock(phase=phase)))


def test_random_actions_of_heatup_cover_the_space():
    agent, seen = built(num_envs=200), {"x": np.zeros((200, 3), np.float32)}
    state = agent.new_rows(200, seed=0)
    found = [agent.act(state, request(seen), Clock(phase=Phase.HEATUP)) for _ in range(10)]
    found = {key: np.concatenate([each[key] for each in found]) for key in MIXED}
    shares = [(found["kind"] == kind).mean() for kind in (4, 5, 6)]
    np.testing.assert_allclose(shares, 1 / 3, atol=0.05)  # five standard errors
    np.testing.assert_allclose(found["run"].mean(), 15, atol=1)
    assert found["run"].max() > 29
    np.testing.assert_allclose(found["gears"].mean(axis=0), [[1.5, 1]], atol=0.1)


def test_flat_space_has_choices_first_and_numbers_in_units():
    agent = built(arguments=ARGUMENTS)
    space = agent.action_space
    assert isinstance(space, MixedSpace)
    assert space.choices == spaces.MultiDiscrete([2, 2, 2, 3, 3])  # bits, gears, kind
    assert (space.numbers.low == -1).all()
    assert (space.numbers.high == 1).all()
    assert space.groups == ((4, None), (1, (4, 2)))  # arm; run, of the third kind
    flat = np.float32([[1, 0, 1, 2, 2, 0.5, -0.5, 1, -1, 0]])
    sent = agent.output_filter.apply(flat)
    assert {key: values[0].tolist() for key, values in sent.items()} == {
        "arm": [[0.5, -0.5], [1, -1]],
        "bits": [[1], [0]],
        "gears": [[2, 2]],
        "kind": 6,
        "run": [15],
    }


def test_network_has_deviations_of_numbers_alone():
    agent = built()
    assert agent.model.policy_head.out_features == 12 + 5
    assert agent.model.log_std.shape == (5,)
    assert built(SPACES["bits"]).model.log_std is None
    assert built(SPACES["all numbers"]).model.log_std.shape == (3,)


def test_boxes_of_a_dict_without_width_are_warned_of_by_name():
    action = spaces.Dict({"kind": spaces.Discrete(2), "far": spaces.Box(-np.inf, np.inf, (2,))})
    with pytest.warns(rl.CoachWarning) as caught:
        agent = built(action)
    assert "draws elements [0, 1] of its actions 'far' from N(0, 1)" in str(caught[0].message)
    assert isinstance(agent.output_filter, FlattenedOutput)
    assert not isinstance(agent.output_filter.parts()["inner"], ScaledOutput)


def test_filter_below_sees_actions_of_the_space():
    inner = UnfilteredOutput(MIXED)
    filtered = FlattenedOutput(inner, MIXED, {}, agent="agent")
    given = drawn(MIXED, 3)
    np.testing.assert_array_equal(filtered.apply(filtered.inverse(given))["run"], given["run"])
    assert filtered.parts() == {"inner": inner}
