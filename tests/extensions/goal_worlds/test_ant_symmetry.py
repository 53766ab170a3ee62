"""An ant's symmetry: what it sees stands for all that look alike, and its actions fit each."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.agents import AgentContext, LevelPlace
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import SpaceError
from coach_rl.core.levels import LevelDescription
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.goal_worlds.ant import STANDING, add_ant, ground
from tests.agents import decisions

GOAL = rl.GoalSpace(
    low=(-9.0, -12.0, -1.0),
    high=(9.0, 12.0, 1.0),
    threshold=(0.5, 0.5, 1.0),
    key="pose",
    observed="relative",
    reward="dense",
)
MOTORS = spaces.Box(-1, 1, (8,), np.float32)
TRAIN, TEST = Clock(phase=Phase.TRAIN), Clock(phase=Phase.TEST)
HIPS, ANKLES = slice(7, 15, 2), slice(8, 15, 2)
BENDS = np.array([1, -1, -1, 1])
"""Directions in which the ankles of legs 1 to 4 bend down."""


def context(*, goal=GOAL, action=MOTORS, seen=29):
    box = spaces.Box(-np.inf, np.inf, (seen,), np.float64)
    observation = {"observation": box, "pose": spaces.Box(-99, 99, (3,), np.float64)}
    shown = GOAL.shown if goal is None else goal.shown
    return AgentContext(
        spaces=EnvironmentSpaces(observation=spaces.Dict({**observation, **shown}), action=action),
        num_envs=4,
        planned_steps=10_000,
        place=LevelPlace(level=LevelDescription(name="low", goal_space=goal)),
    )


def ants(rng, rows=4, goals=None):
    """What `rows` ants in any position see."""
    motion = rng.normal(size=(rows, 29))
    motion[:, 3:7] /= np.linalg.norm(motion[:, 3:7], axis=1, keepdims=True)
    left = rng.normal(size=(rows, 3)) if goals is None else goals
    return {
        "observation": motion,
        "pose": np.column_stack([motion[:, :2], np.zeros(rows)]),
        "desired_goal": left.astype(np.float32),
    }


@pytest.fixture(scope="module")
def model():
    spec = ground("ant", timestep=0.02, half_side=40, impedance=None)
    add_ant(spec, height=0.0, gear=30)
    return spec.compile()


@pytest.fixture
def falling(model):
    """An ant that tumbles, some way from the origin."""
    rng = np.random.default_rng(3)
    data = mujoco.MjData(model)
    data.qpos[:] = STANDING
    data.qpos[:2] = 1.0, -0.4
    data.qpos[3:7] = 1.0, 0.1, 0.15, 0.7
    data.qpos[3:7] /= np.linalg.norm(data.qpos[3:7])
    data.qpos[7:15] += 0.1 * rng.normal(size=8)
    data.qvel[:] = 0.3 * rng.normal(size=14)
    mujoco.mj_forward(model, data)
    return data


def after(model, data, turned):
    """Another simulator, in the state that `turned` makes of this one."""
    other = mujoco.MjData(model)
    other.qpos[:], other.qvel[:] = turned(data.qpos.copy(), data.qvel.copy())
    mujoco.mj_forward(model, other)
    return other


def bent(values):
    """Joints as hips and how far ankles bend down, by leg [4, 2], and back."""
    return values.reshape(4, 2) * np.column_stack([np.ones(4), BENDS])


def other_legs(position, velocity):
    """The same ant, whose front is said to be where its left was."""
    quarter = np.array([np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    turned = np.zeros(4)
    mujoco.mju_mulQuat(turned, position[3:7], quarter)
    position[3:7] = turned
    x, y = velocity[3:5]
    velocity[3:5] = y, -x
    for joints in (position[7:15], velocity[6:14]):
        joints[:] = bent(bent(joints)[[1, 2, 3, 0]]).ravel()
    return position, velocity


def mirror(position, velocity):
    """What the ant looks like in a mirror along the x axis."""
    position[1] *= -1
    position[3:7] *= 1, -1, 1, -1
    velocity[:6] *= 1, -1, 1, -1, 1, -1
    for joints in (position[7:15], velocity[6:14]):
        joints[:] = bent(bent(joints)[[3, 2, 1, 0]] * (-1, 1)).ravel()
    return position, velocity


def world_turned(position, velocity):
    """The ant, a third of a turn about the origin from here."""
    angle = 2 * np.pi / 3
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    orientation = np.zeros(4)
    third = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
    mujoco.mju_mulQuat(orientation, third, position[3:7])
    position[:2], velocity[:2] = turn @ position[:2], turn @ velocity[:2]
    position[3:7] = orientation
    return position, velocity


def place(turned, xy):
    """Where a place is after `turned`."""
    position = np.array([*xy, 0, 1, 0, 0, 0, *np.zeros(8)])
    return turned(position, np.zeros(14))[0][:2]


def seen(data, goal):
    motion = np.concatenate([data.qpos, data.qvel])[None]
    left = np.array([[*(goal - data.qpos[:2]), 0.3]])
    return {"observation": motion, "pose": motion[:, :3], "desired_goal": left}


@pytest.mark.parametrize("turned", [other_legs, mirror, world_turned])
def test_equal_canonical_views_move_alike(model, falling, turned):
    """Under any policy on what stands for both, one simulator follows the other."""
    weights = np.random.default_rng(0).normal(size=(29, 8))
    symmetry = rl.AntSymmetry().build(context())
    goal = np.array([3.0, 1.3])
    other = after(model, falling, turned)
    pairs = ((falling, goal), (other, place(turned, goal)))
    for _ in range(30):
        shown = []
        for data, wanted in pairs:
            observed = seen(data, wanted)
            alike = symmetry.canonical(observed)
            both = np.concatenate([alike["observation"][:, 2:], alike["desired_goal"]], axis=1)
            policy = np.tanh(0.3 * both[:, :29] @ weights)
            data.ctrl[:] = symmetry.restored(policy, observed)[0]
            shown.append(both)
            mujoco.mj_step(model, data, 5)
        np.testing.assert_allclose(*shown, atol=1e-7)
    np.testing.assert_allclose(place(turned, falling.qpos[:2]), other.qpos[:2], atol=1e-7)
    assert np.linalg.norm(falling.qpos[:2] - (1.0, -0.4)) > 0.05  # it has moved


@pytest.mark.parametrize("mirrored", [True, False])
def test_canonical_way_point_lies_ahead(mirrored):
    observed = ants(np.random.default_rng(1), rows=500)
    shown = rl.AntSymmetry(mirrored=mirrored).build(context()).canonical(observed)
    x, y, rest = shown["desired_goal"].T
    np.testing.assert_allclose(
        np.hypot(x, y), np.hypot(*observed["desired_goal"][:, :2].T), rtol=1e-5
    )
    np.testing.assert_array_equal(rest, observed["desired_goal"][:, 2])
    assert (np.abs(y) <= x + 1e-6).all()
    assert (y >= 0).all() if mirrored else (y < 0).any()


def test_canonical_view_facing_way_point_is_unchanged():
    observed = ants(np.random.default_rng(2), rows=3, goals=np.tile([2.0, 1.0, 0.5], (3, 1)))
    observed["observation"][:, 3:7] = STANDING[3:7]
    symmetry = rl.AntSymmetry().build(context())
    for key, values in symmetry.canonical(observed).items():
        np.testing.assert_allclose(values, observed[key], err_msg=key)
    motors = np.arange(24.0).reshape(3, 8)
    np.testing.assert_array_equal(symmetry.restored(motors, observed), motors)


def test_canonical_view_does_not_change_its_input():
    observed = ants(np.random.default_rng(3))
    before = {key: values.copy() for key, values in observed.items()}
    rl.AntSymmetry().build(context()).canonical(observed)
    for key, values in before.items():
        np.testing.assert_array_equal(observed[key], values)


def test_canonical_view_keeps_further_elements():
    observed = ants(np.random.default_rng(4))
    observed["observation"] = np.column_stack([observed["observation"], [1, 2, 3, 4]])
    shown = rl.AntSymmetry().build(context(seen=30)).canonical(observed)
    np.testing.assert_array_equal(shown["observation"][:, 29], [1, 2, 3, 4])


def test_heading_is_hidden_by_default():
    angle = np.array([0.1, 0.1 + np.pi / 2, -0.1, 0.3])
    observed = ants(np.random.default_rng(5))
    upright = [np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)]
    observed["observation"][:, 3:7] = np.column_stack(upright)
    goals = np.column_stack([np.cos(angle + 0.2), np.sin(angle + 0.2), 0 * angle])  # to the left
    observed["desired_goal"] = goals
    hidden = rl.AntSymmetry().build(context()).canonical(observed)["observation"][:, 3:7]
    np.testing.assert_allclose(hidden, np.tile([1.0, 0, 0, 0], (4, 1)), atol=1e-12)
    axes = rl.AntSymmetry(shows_axes=True).build(context()).canonical(observed)["observation"][:, 6]
    np.testing.assert_allclose(axes, np.sin(4 * angle), atol=1e-12)
    observed["desired_goal"] = goals * (1, -1, 1)  # of the first and second, to the right
    axes = rl.AntSymmetry(shows_axes=True).build(context()).canonical(observed)["observation"][:, 6]
    np.testing.assert_allclose(axes[0], -np.sin(0.4), atol=1e-12)


def test_heading_upside_down_is_undefined():
    observed = ants(np.random.default_rng(6))
    observed["observation"][:, 3:7] = 0.0, 1.0, 0.0, 0.0
    shown = rl.AntSymmetry().build(context()).canonical(observed)
    assert all(np.isfinite(values).all() for values in shown.values())


def test_goal_bounds_are_equal_in_all_directions():
    space = rl.AntSymmetry().build(context()).observation_space["desired_goal"]
    np.testing.assert_allclose(space.high, [np.hypot(18, 24), np.hypot(18, 24), 2], rtol=1e-6)
    np.testing.assert_array_equal(space.low, -space.high)


class TestAgents:
    """A PPO agent behind a symmetry, with a normaliser that goes on learning."""

    @pytest.fixture
    def agent(self):
        normalised = rl.InputFilter(
            observation={"observation": (rl.ObservationNormalizationFilter(),)}
        )
        params = rl.PPOAgentParameters(symmetry=rl.AntSymmetry(), input_filter=normalised)
        network = replace(params.network, policy_gain=1.0)
        return replace(params, network=network).build(context())

    def act(self, agent, rows, observation, *, starts, episode_start):
        flags = {"starts": starts, "episode_start": episode_start}
        return agent.act(rows, decisions.request(observation, greedy=True, **flags), TEST)

    def begin(self, agent, observation):
        """The rows of episodes that begin here, and their greedy actions."""
        rows = agent.new_rows(4, 0)
        everywhere = np.ones(4, np.bool_)
        return rows, self.act(agent, rows, observation, starts=everywhere, episode_start=everywhere)

    def answer(self, observation, **changes):
        return decisions.outcome(observation, **{"reward": 0.0, **changes})

    def test_equal_canonical_views_act_alike(self, agent):
        observed = ants(np.random.default_rng(7))
        motion = observed["observation"]
        position, velocity = other_legs(motion[1, :15].copy(), motion[1, 15:].copy())
        motion[0] = *position, *velocity
        for key in ("pose", "desired_goal"):
            observed[key][0] = observed[key][1]
        _, action = self.begin(agent, observed)
        legs = action.reshape(4, 4, 2)[:, [1, 2, 3, 0]]  # in the order of joints, from motors'
        bend = np.column_stack([np.ones(4), BENDS])
        np.testing.assert_allclose((legs[1] * bend)[[1, 2, 3, 0]], legs[0] * bend, atol=1e-6)

    def test_new_goal_changes_the_canonical_view(self, agent):
        rng = np.random.default_rng(8)
        first, following = ants(rng), ants(rng)
        rows, _ = self.begin(agent, first)
        agent.observe(rows, self.answer(following), TEST)
        other = {**following, "desired_goal": ants(rng)["desired_goal"]}
        given = np.array([True, False, True, True])
        expected = np.where(
            given[:, None], self.begin(agent, other)[1], self.begin(agent, following)[1]
        )
        shown = {**following}
        shown["desired_goal"] = np.where(
            given[:, None], other["desired_goal"], following["desired_goal"]
        )
        nowhere = np.zeros(4, np.bool_)
        action = self.act(agent, rows, shown, starts=given, episode_start=nowhere)
        np.testing.assert_allclose(action, expected, atol=1e-6)

    def test_moving_goal_changes_the_canonical_view(self, agent):
        rng = np.random.default_rng(9)
        first, following = ants(rng), ants(rng)
        rows, _ = self.begin(agent, first)
        moved = {**following, "desired_goal": ants(rng)["desired_goal"]}
        goal = {"desired_goal": moved["desired_goal"]}
        agent.observe(rows, self.answer(following, next_goal=goal), TEST)
        nowhere = np.zeros(4, np.bool_)
        action = self.act(agent, rows, moved, starts=nowhere, episode_start=nowhere)
        np.testing.assert_allclose(action, self.begin(agent, moved)[1], atol=1e-6)

    def test_load_policy_of_other_symmetry_error(self, agent):
        plain = replace(agent.params, symmetry=None).build(context())
        mirrorless = replace(agent.params, symmetry=rl.AntSymmetry(mirrored=False)).build(context())
        state = agent.policy_state_dict()
        for other in (plain, mirrorless):
            with pytest.raises(SpaceError):
                other.load_policy(state)
        with pytest.raises(SpaceError):
            agent.load_policy(plain.policy_state_dict())
        replace(agent.params).build(context()).load_policy(state)

    def test_symmetry_with_stacking_filter_error(self):
        stacked = rl.InputFilter(
            observation={"observation": (rl.ObservationStackingFilter(stack_size=2),)}
        )
        with pytest.raises(rl.ConfigurationError):
            rl.PPOAgentParameters(symmetry=rl.AntSymmetry(), input_filter=stacked).build(context())
