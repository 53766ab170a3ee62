"""The eleven tasks against Gymnasium's own environments, to the last bit."""

import dataclasses
import importlib
import inspect

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.mujoco import MujocoEnv

from coach_rl.core.records import End
from coach_rl.environments.mujoco import SHORT_NAMES, TASKS, MujocoParameters

IDS = sorted(name for name in TASKS if name.endswith("-v5"))
STEPS = 1000


def assert_same(ours, theirs, what):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape, what
    assert ours.tobytes() == theirs.astype(ours.dtype).tobytes(), (what, ours, theirs)


def gymnasium_class(task):
    module, name = gymnasium.spec(task).entry_point.split(":")
    return getattr(importlib.import_module(module), name)


def compare(
    level, *, rows=1, steps=STEPS, kwargs=None, limit=None, threads=1, dtype=np.float32, seed=3
):
    """Step both with the same actions; returns how many episodes were terminated and truncated."""
    kwargs = kwargs or {}
    batch = MujocoParameters(
        level=level, kwargs=kwargs, max_episode_steps=limit, threads=threads
    ).build(num_envs=rows)
    envs = [gymnasium.make(level, max_episode_steps=limit, **kwargs) for _ in range(rows)]
    assert batch.spaces.observation["observation"] == envs[0].observation_space
    assert batch.spaces.action == envs[0].action_space
    response = batch.reset(seed=seed)
    assert (response.duration == 0).all()
    for row, env in enumerate(envs):
        observation, info = env.reset(seed=seed + row)
        assert_same(response.observation["observation"][row], observation, "first")
        assert set(response.info) == set(info)
        for key, value in info.items():
            assert_same(response.info[key][row], value, key)
    rng = np.random.default_rng(7)
    low, high = batch.spaces.action.low, batch.spaces.action.high
    terminations = truncations = 0
    for step in range(steps):
        # From weak to strong actions, so that falling robots live for a while.
        strength = 0.2 + 0.8 * (step % 100) / 100
        actions = rng.uniform(low * strength, high * strength, (rows, *low.shape)).astype(dtype)
        batch.send(actions)
        response = batch.recv()
        assert response.rows.tolist() == list(range(rows))
        for row, env in enumerate(envs):
            observation, reward, terminated, truncated, info = env.step(actions[row])
            where = (level, step, row)
            assert_same(response.observation["observation"][row], observation, where)
            assert_same(response.reward[row], reward, where)
            assert response.terminated[row] == terminated, where
            assert response.truncated[row] == truncated, where
            assert response.end[row] == End.TERMINATED * terminated + End.TRUNCATED * truncated
            assert set(response.info) == set(info), where
            for key, value in info.items():
                assert response.info[key].dtype == np.asarray(value).dtype, (key, where)
                assert_same(response.info[key][row], value, (key, where))
            if terminated or truncated:
                terminations += terminated
                truncations += truncated
                observation, _ = env.reset()
            assert_same(response.first_observation["observation"][row], observation, where)
    batch.close()
    for env in envs:
        env.close()
    return terminations, truncations


@pytest.mark.drawn(one_of=11)
@pytest.mark.parametrize("level", IDS)
def test_a_thousand_steps_are_equal_to_the_last_bit(level):
    # Every task's episode ends within its first 1,000 steps, by a fall or by its default limit.
    terminations, truncations = compare(level)
    assert terminations + truncations > 0


@pytest.mark.parametrize("level", IDS)
def test_several_rows_threads_and_a_short_limit(level):
    _, truncations = compare(level, rows=3, steps=40, limit=4, threads=2, seed=100)
    assert truncations > 0


KWARGS = {
    "HalfCheetah-v5": {
        "frame_skip": 3,
        "forward_reward_weight": 0.7,
        "ctrl_cost_weight": 0.3,
        "reset_noise_scale": 0.3,
        "exclude_current_positions_from_observation": False,
    },
    "Hopper-v5": {
        "healthy_state_range": (-8.0, 8.0),
        "healthy_z_range": (0.9, 1.6),
        "healthy_angle_range": (-0.1, 0.3),
        "healthy_reward": 2,
        "exclude_current_positions_from_observation": False,
    },
    "Walker2d-v5": {
        "xml_file": "walker2d.xml",
        "terminate_when_unhealthy": False,
        "forward_reward_weight": 3,
    },
    "Ant-v5": {
        "main_body": "aux_1",
        "include_cfrc_ext_in_observation": False,
        "contact_force_range": (-0.5, 2.0),
        "contact_cost_weight": 0.1,
        "healthy_z_range": (0.4, 0.9),
        "exclude_current_positions_from_observation": False,
    },
    "Humanoid-v5": {
        "include_cinert_in_observation": False,
        "include_qfrc_actuator_in_observation": False,
        "contact_cost_weight": 1e-3,
        "contact_cost_range": (0.01, 0.5),
        "healthy_z_range": (1.2, 2.0),
    },
    "HumanoidStandup-v5": {
        "include_cvel_in_observation": False,
        "include_cfrc_ext_in_observation": False,
        "impact_cost_weight": 1e-3,
        "impact_cost_range": (-1.0, 0.5),
        "uph_cost_weight": 5,
        "exclude_current_positions_from_observation": False,
    },
    "Swimmer-v5": {"frame_skip": 2, "exclude_current_positions_from_observation": False},
    "Reacher-v5": {"reward_dist_weight": 2.5, "reward_control_weight": 0.3},
    "Pusher-v5": {"reward_near_weight": 0.1, "reward_dist_weight": 2, "frame_skip": 2},
    "InvertedPendulum-v5": {"reset_noise_scale": 0.1, "frame_skip": 4},
    "InvertedDoublePendulum-v5": {"healthy_reward": 3.5, "reset_noise_scale": 0.02},
}


@pytest.mark.parametrize("level", IDS)
def test_other_keyword_arguments(level):
    compare(level, rows=2, steps=60, kwargs=KWARGS[level], limit=25)


def test_double_precision_actions_are_kept():
    compare("HalfCheetah-v5", rows=2, steps=20, dtype=np.float64)


def pushed(limit):
    """Answers to the first steps of a pendulum that is pushed over."""
    batch = MujocoParameters(level="inverted_pendulum", max_episode_steps=limit, threads=1)
    batch = batch.build(num_envs=1)
    batch.reset(seed=0)
    for _ in range(limit):
        batch.send(np.full((1, 1), 3.0))
        yield batch.recv()
    batch.close()


def test_terminated_and_truncated_in_one_step():
    lasted = next(step for step, answer in enumerate(pushed(6), start=1) if answer.end[0])
    *_, last = pushed(lasted)
    assert last.end[0] == End.TERMINATED | End.TRUNCATED
    assert last.terminated[0]
    assert last.truncated[0]


@pytest.mark.parametrize("level", IDS)
def test_arguments_and_limits_equal_gymnasium(level):
    theirs = inspect.signature(gymnasium_class(level).__init__).parameters
    base = inspect.signature(MujocoEnv.__init__).parameters
    names = {*theirs, *base} - {"self", "kwargs", "model_path", "observation_space"}
    task = MujocoParameters(level=level).task
    fields = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
    assert set(fields) == names
    for name, parameter in theirs.items():
        if name in fields and name != "default_camera_config":
            assert fields[name] == parameter.default, name
    camera = theirs["default_camera_config"].default or {}
    ours = fields["default_camera_config"] or {}
    assert set(ours) == set(camera)
    for key, value in camera.items():
        assert np.array_equal(ours[key], value)
    assert task.max_episode_steps == gymnasium.spec(level).max_episode_steps


def test_short_names_are_the_same_tasks():
    assert len(SHORT_NAMES) == 11
    for short, task in SHORT_NAMES.items():
        assert MujocoParameters(level=short).task == task()
        assert TASKS[f"{task.__name__}-v5"] is task
