"""Actions repeated within a step: rewards, ends, time limits, workers, saving and frames."""

import gymnasium
import numpy as np
import pytest
from test_gymnasium_saving import seen, walk

from coach_rl.environments.gymnasium import GymnasiumParameters


def build(level="Pendulum-v1", repeat=3, num_envs=2, **options):
    return GymnasiumParameters(level=level, action_repeat=repeat, **options).build(
        num_envs=num_envs
    )


def test_step_sums_rewards_of_the_same_action():
    repeated, single = build(num_envs=1), gymnasium.make("Pendulum-v1")
    repeated.reset(seed=4)
    single.reset(seed=4)
    for value in (0.5, -1.5, 2.0):
        action = np.float32([value])
        repeated.send(action[None])
        answer = repeated.recv()
        steps = [single.step(action) for _ in range(3)]
        assert answer.reward[0] == pytest.approx(sum(step[1] for step in steps))
        np.testing.assert_allclose(answer.observation["observation"][0], steps[-1][0])
        assert answer.duration.tolist() == [1]


@pytest.mark.parametrize(("repeat", "decisions"), [(1, 20), (3, 7), (4, 5), (30, 1)])
def test_time_limit_counts_steps_of_the_environment(repeat, decisions):
    environment = build(repeat=repeat, num_envs=1, max_episode_steps=20)
    environment.reset(seed=0)
    answers = walk(environment, decisions)
    assert [answer.truncated[0] for answer in answers] == [False] * (decisions - 1) + [True]


def test_episode_that_ends_stops_the_repetition():
    environment = build("CartPole-v1", repeat=100, num_envs=1)
    environment.reset(seed=0)
    (answer,) = walk(environment, 1)
    assert answer.terminated[0]
    assert 1 < answer.reward[0] < 100  # one per step of the environment


def test_wrappers_see_one_observation_per_step():
    stack = ("gymnasium.wrappers:FrameStackObservation", {"stack_size": 2})
    environment = build(num_envs=1, wrappers=(stack,))
    start = environment.reset(seed=0).observation["observation"][0, -1]
    (answer,) = walk(environment, 1)
    np.testing.assert_array_equal(answer.observation["observation"][0, 0], start)


def test_workers_give_the_same_answers():
    here, there = (
        build("CartPole-v1", vectorization=kind, **more)
        for kind, more in (("sync", {}), ("subprocess", {"processes": 2, "start_method": "fork"}))
    )
    for environment in (here, there):
        environment.reset(seed=5)
    assert seen(walk(here, 40)) == seen(walk(there, 40))
    there.close()


def test_saved_environment_continues_identically():
    one, other = build("CartPole-v1"), build("CartPole-v1")
    one.reset(seed=5)
    walk(one, 37)
    other.load_state_dict(one.state_dict())
    assert seen(walk(one, 30, seed=1)) == seen(walk(other, 30, seed=1))
    assert GymnasiumParameters(level="CartPole-v1", action_repeat=3).obstacle_to_restoring() is None


def test_frames_show_the_end_of_a_step():
    pytest.importorskip("pygame")
    environment = build("CartPole-v1", num_envs=1, kwargs={"render_mode": "rgb_array"})
    environment.reset(seed=0)
    before = environment.render(0)
    walk(environment, 1)
    assert (environment.render(0) != before).any()
