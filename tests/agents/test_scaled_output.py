"""PPO acts in [-1, 1], which is mapped to the bounds of its Box of actions."""

from dataclasses import replace

import numpy as np
import pytest
from decisions import context, request
from gymnasium import spaces

import coach_rl as rl
from coach_rl.agents.own_filters import ScaledOutput, UnfilteredOutput
from coach_rl.core.clock import Clock, Phase
from coach_rl.extensions.testing.states import assert_same_state

SEEN = spaces.Dict({"x": spaces.Box(-9, 9, (1,))})
FAR = spaces.Box(np.float32([0, -4, 10]), np.float32([100, 52, 10.5]))
UNIT = spaces.Box(-1, 1, (2,))
WIDEST = np.finfo(np.float32).max
PARTLY = spaces.Box(np.float32([-1, 0, -np.inf, -WIDEST]), np.float32([1, 100, np.inf, WIDEST]))


def built(box, **changes):
    algorithm = rl.PPOAlgorithmParameters(rollout=rl.EnvironmentSteps(8), epochs=2, minibatch=4)
    params = rl.PPOAgentParameters(algorithm=algorithm, update_mode="eager")
    return replace(params, **changes).build(context(SEEN, box, num_envs=4, seed=3))


def sent(agent, decisions=1, *, greedy=False, phase=Phase.TRAIN):
    """Actions for the environment, [decisions, 4, A]."""
    state, seen = agent.new_rows(4, seed=0), {"x": np.linspace(-2, 2, 4, dtype=np.float32)[:, None]}
    asked = request(seen, greedy=greedy)
    return np.array([agent.act(state, asked, Clock(phase=phase)) for _ in range(decisions)])


def test_ends_and_middle_by_hand():
    scaled = ScaledOutput(UnfilteredOutput(FAR), FAR)
    assert list(scaled.parts()) == ["inner"]
    assert scaled.agent_space == spaces.Box(-1, 1, (3,))
    own = np.float32([[-1, -1, -1], [0, 0, 0], [1, 1, 1], [0.2, -0.5, 0.5]])
    expected = np.float32([[0, -4, 10], [50, 24, 10.25], [100, 52, 10.5], [60, 10, 10.375]])
    np.testing.assert_allclose(scaled.apply(own), expected, rtol=1e-6)
    np.testing.assert_allclose(scaled.inverse(expected), own, atol=1e-6)


def test_only_elements_with_a_finite_width_are_scaled():
    scaled = ScaledOutput(UnfilteredOutput(PARTLY), PARTLY)
    np.testing.assert_array_equal(scaled.agent_space.low, [-1, -1, -np.inf, -WIDEST])
    own = np.float32([[0.123456789, 0.5, 7.7, 1e30]])
    np.testing.assert_array_equal(scaled.apply(own), np.float32([[0.123456789, 75, 7.7, 1e30]]))
    np.testing.assert_array_equal(scaled.inverse(scaled.apply(own)), own)


@pytest.mark.parametrize(
    ("box", "inner"),
    [
        (FAR, ()),
        (spaces.Box(-0.3, 0.1, (2,), np.float64), ()),
        (spaces.Box(-np.inf, np.inf, (2,)), (rl.BoxMasking(low=0.0, high=(5.0, 9.0)),)),
    ],
    ids=["uneven", "doubles", "behind a filter"],
)
def test_scaling_equals_a_linear_map_in_the_output_filter(box, inner):
    scaled = built(box, output_filter=rl.OutputFilter(action=inner) if inner else None)
    mapped = rl.OutputFilter(action=(*inner, rl.LinearBoxToBoxMap(low=-1, high=1)))
    filtered = built(box, output_filter=mapped, scale_actions=False)
    for options in ({}, {"greedy": True}, {"phase": Phase.HEATUP}, {"phase": Phase.TEST}):
        found, expected = (sent(each, 5, **options) for each in (scaled, filtered))
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == box.dtype
    saved, same = scaled.policy_state_dict(), filtered.policy_state_dict()
    assert_same_state(saved["network"], same["network"])


def test_a_box_of_unit_width_and_switched_off_scaling_change_nothing():
    for agent in (built(UNIT), built(FAR, scale_actions=False)):
        assert isinstance(agent.output_filter, UnfilteredOutput)
    old = sent(built(FAR, scale_actions=False), 300).reshape(-1, 3)
    assert np.median(old[:, 0]) < 0.2  # N(0, 1) in the Box's own units
    new = sent(built(FAR), 300).reshape(-1, 3)
    np.testing.assert_allclose(np.median(new, axis=0), [50, 24, 10.25], rtol=0.1)
    assert (new == FAR.low).any(axis=0).all()
    assert (new == FAR.high).any(axis=0).all()


def test_elements_without_a_finite_width_are_warned_of():
    with pytest.warns(rl.CoachWarning) as caught:
        agent = built(PARTLY)
    assert len(caught) == 1
    assert sent(agent, 50)[..., 1].max() > 50
    built(PARTLY, scale_actions=False)  # chosen so: warnings are errors


def test_policy_of_the_same_units_loads():
    saved = built(FAR).policy_state_dict()
    built(FAR).load_policy(saved)
    earlier = {key: each for key, each in saved.items() if key != "action_units"}
    built(FAR, scale_actions=False).load_policy(earlier)
    for scales in (True, False):  # of an earlier release, in the same units
        built(UNIT, scale_actions=scales).load_policy(built(UNIT).policy_state_dict())
