"""Tasks of the Control Suite: what they show, pay, and how their episodes end."""

import os
import subprocess
import sys
from unittest.mock import Mock

import mujoco
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.seeding import np_random

import coach_rl as rl
from coach_rl import environments
from coach_rl.core.errors import RunError
from coach_rl.core.records import End
from coach_rl.environments.dm_control.tasks import load_suite, require_task, usual_repeat
from coach_rl.extensions.testing import EnvironmentContract
from tests.environments.walks import walk
from tests.extensions.dm_control.tasks_for_tests import build, task


@pytest.mark.drawn(one_of=3)
class TestContract(EnvironmentContract):
    steps = 20

    def build(self, num_envs):
        return build(num_envs, level="reacher-easy", max_episode_steps=8)


def bare(name, seed):
    """The suite's own environment, and its first observation, with an episode's seed."""
    domain, _, of_domain = name.partition("-")
    suite_task = load_suite().load(domain, of_domain, task_kwargs={"random": 0})
    rng, _ = np_random(seed)
    suite_task.task.random.seed(int(rng.integers(2**32)))
    return suite_task, suite_task.reset()


def as_vector(observation):
    return np.concatenate([np.ravel(part) for part in observation.values()]).astype(np.float32)


def test_benchmark_tasks_are_those_of_the_suite():
    suite = load_suite()
    assert sorted("-".join(each) for each in suite.BENCHMARKING) == sorted(rl.BENCHMARK_TASKS)
    named = {f"dm_control:{'-'.join(each)}" for each in suite.ALL_TASKS}
    known = {each for each in environments.level_names() if each.startswith("dm_control:")}
    assert known == named


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize("name", rl.BENCHMARK_TASKS)
def test_benchmark_task_steps_as_the_suite_does(name):
    environment = environments.make(f"dm_control:{name}")
    answer = environment.reset(seed=7)
    suite_task, expected = bare(name, 7)
    np.testing.assert_array_equal(
        answer.observation["observation"][0], as_vector(expected.observation)
    )
    rng = np.random.default_rng(0)
    for _ in range(25):
        action = rng.uniform(-1, 1, environment.spaces.action.shape).astype(np.float32)
        environment.send(action[None])
        answer = environment.recv()
        expected = suite_task.step(action)
        found = answer.observation["observation"][0]
        np.testing.assert_array_equal(found, as_vector(expected.observation))
        assert answer.reward[0] == expected.reward
        assert not answer.end.any()
    environment.close()


def test_time_limit_truncates_and_shows_the_true_last_observation():
    environment = build(level="cartpole-balance")
    environment.reset(seed=3)
    suite_task, _ = bare("cartpole-balance", 3)
    rng = np.random.default_rng(0)
    for step in range(1, 1001):
        action = rng.uniform(-1, 1, 1).astype(np.float32)
        environment.send(action[None])
        answer = environment.recv()
        expected = suite_task.step(action)
        assert answer.end.any() == expected.last() == (step == 1000)
    assert answer.end.tolist() == [End.TRUNCATED]
    assert answer.truncated.all()
    assert not answer.terminated.any()
    last = as_vector(expected.observation)
    np.testing.assert_array_equal(answer.observation["observation"][0], last)
    assert not np.array_equal(answer.first_observation["observation"][0], last)


@pytest.mark.parametrize(("discount", "ends"), [(0.0, (True, False)), (1.0, (False, True))])
def test_task_that_ends_by_itself_terminates_by_its_discount(discount, ends, monkeypatch):
    shown = task()
    monkeypatch.setattr(shown._env.task, "get_termination", lambda _: discount)
    *_, terminated, truncated, _ = shown.step(np.zeros(1, np.float32))
    assert (terminated, truncated) == ends


def test_repeated_actions_sum_rewards_and_stop_at_the_end():
    repeated = task(action_repeat=3)
    single = task()
    rng = np.random.default_rng(1)
    for number in range(1, 335):
        action = rng.uniform(-1, 1, 1).astype(np.float32)
        observation, reward, _, truncated, _ = repeated.step(action)
        total = 0.0
        for _ in range(3 if number < 334 else 1):
            expected, one, _, is_last, _ = single.step(action)
            total += one
        assert reward == total
        np.testing.assert_array_equal(observation, expected)
        assert truncated == is_last == (number == 334)  # 333 x 3 and one more are 1,000


def test_parts_are_shown_by_name():
    shown = task("finger-spin", shows="parts")
    assert isinstance(shown.observation_space, spaces.Dict)
    assert list(shown.observation_space) == ["position", "touch", "velocity"]
    observation, *_ = shown.step(np.zeros(2, np.float32))
    assert shown.observation_space.contains(observation)


def test_own_time_limit_truncates():
    environment = build(level="cheetah-run", max_episode_steps=5)
    environment.reset(seed=0)
    ends = [answer.end.tolist() for answer in walk(environment, 10)]
    assert ends == ([[0]] * 4 + [[End.TRUNCATED]]) * 2


def test_episodes_of_one_row_differ():
    reached = task("reacher-hard")
    starts = [reached.reset()[0] for _ in range(3)]
    assert len({start.tobytes() for start in starts}) == 3


def test_unknown_tasks_and_settings_are_refused():
    with pytest.raises(rl.UnknownNameError, match=r"cheetah-walk.*did you mean 'cheetah-run'"):
        rl.DMControlParameters(level="cheetah-walk")
    with pytest.raises(rl.ParameterError, match="kwargs and action_mask have no meaning"):
        rl.DMControlParameters(kwargs={"time_limit": 3})


def test_prefix_is_left_out_of_the_parameters():
    assert rl.DMControlParameters(level="dm_control:walker-run") == rl.DMControlParameters(
        level="walker-run"
    )


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_control.suite", None)
    with pytest.raises(rl.ConfigurationError, match=r"need dm_control.*\[dm_control\]"):
        require_task("lqr-lqr_2_1")


def test_repeats_with_pictures_are_those_of_planet():
    names = ("cartpole-swingup", "finger-spin", "walker-walk", "cheetah-run", "reacher-easy")
    assert [usual_repeat(name) for name in names] == [8, 2, 2, 4, 4]
    assert usual_repeat("dm_control:ball_in_cup-catch") == 4


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("name", ["cartpole-swingup", "cheetah-run"])
def test_pictures_are_those_of_the_suite(name):
    shown = task(name, shows="picture")
    assert shown.observation_space == spaces.Box(0, 255, (84, 84, 3), np.uint8)
    code = (
        "import sys, numpy as np; from tests.extensions.dm_control.test_control_task import bare;"
        "task, _ = bare(sys.argv[1], 0); task.step(np.full(task.action_spec().shape, 0.5));"
        "sys.stdout.buffer.write(task.physics.render(84, 84, camera_id=0).tobytes())"
    )
    action = np.full(shown.action_space.shape, 0.5, np.float32)
    picture, *_ = shown.step(action)
    answer = subprocess.run(
        [sys.executable, "-c", code, name],
        capture_output=True,
        env={**os.environ, "MUJOCO_GL": "egl"},
        check=False,
    )
    if answer.returncode:
        pytest.skip(answer.stderr.decode()[-200:])
    expected = np.frombuffer(answer.stdout, np.uint8).reshape(picture.shape)
    np.testing.assert_array_equal(picture, expected)
    assert len(np.unique(picture)) > 20
    assert shown.render().shape == (480, 480, 3)
    shown.close()


def test_ground_and_sensors_are_drawn_as_the_suite_does():
    code = """
from tests.extensions.dm_control.tasks_for_tests import task
tasks = [task("quadruped-escape", shows="picture") for _ in range(2)]
for seed in (1, 2):
    for each in tasks:
        seen, _ = each.reset(seed=seed)
        expected = each._env.physics.render(84, 84, camera_id=0)
        print(int((seen != expected).sum()))
"""
    answer = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "MUJOCO_GL": "egl"},
        check=False,
    )
    if "cannot draw" in answer.stderr or "cannot be imported" in answer.stderr:
        pytest.skip(answer.stderr[-200:])
    assert answer.stdout.split() == ["0"] * 4, answer.stderr


def test_task_that_draws_its_ground_needs_opengl(monkeypatch):
    made = task("quadruped-walk")
    error = mujoco.FatalError("an OpenGL platform library has not been loaded")
    monkeypatch.setattr(made._env, "reset", Mock(side_effect=error))
    with pytest.raises(RunError, match=r"quadruped-walk needs OpenGL.*MUJOCO_GL to egl"):
        made.reset()


def test_camera_that_the_model_does_not_have_is_refused():
    environment = rl.DMControlParameters(level="cheetah-run", shows="picture", camera=7)
    with pytest.raises(rl.ConfigurationError, match=r"camera 7 is not .* has 2: 0 side, 1 back"):
        environment.build(num_envs=1)


def test_pictures_without_opengl_are_refused(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "off")
    environment = rl.DMControlParameters(level="cartpole-swingup", shows="picture")
    with pytest.raises(RunError, match="cannot draw: MUJOCO_GL=off turns drawing off"):
        environment.build(num_envs=1)
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    monkeypatch.setitem(sys.modules, "mujoco.osmesa", None)
    with pytest.raises(RunError, match=r"no OpenGL on this machine \(osmesa: .*EGL or OSMesa"):
        environment.build(num_envs=1)


def test_state_needs_no_opengl(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "off")
    environment = build(level="cartpole-swingup")
    environment.reset(seed=0)
    assert len(walk(environment, 3)) == 3
