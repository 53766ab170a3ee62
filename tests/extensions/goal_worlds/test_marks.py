"""Marks in the scene: where goals lie, and that drawing them changes nothing."""

import mujoco
import numpy as np
import pytest
from every_goal_world import every_goal_world

from coach_rl.core.errors import RunError
from coach_rl.core.interfaces import DrawableParameters, Mark, MarkRenderable, Renderable
from coach_rl.environments import parameters
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.mujoco import Scene
from coach_rl.environments.pettingzoo import PettingZooParameters

RED = (1.0, 0.0, 0.0, 1.0)


def build(level, rows=2, **options):
    environment = parameters(level, **options).build(num_envs=rows)
    environment.reset(seed=4)
    return environment


def drawn(environment, *arguments):
    try:
        return environment.render(*arguments)
    except RunError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("level", every_goal_world())
def test_goal_place_is_that_of_the_own_mark(level):
    """Worlds put a mark of their own at the goal: sub-goals must be drawn by the same measure."""
    task = parameters(level).task
    environment = build(level, rows=1)
    for seed in range(5):
        goal = environment.reset(seed=seed).observation["desired_goal"][0]
        place = environment.goal_place("achieved_goal", None, goal)
        scene = Scene(task.load(), task.frame_skip)
        data = mujoco.MjData(scene.model)
        task.reset(scene, data, np.random.default_rng(seed))
        np.testing.assert_allclose(place[:2], data.mocap_pos[0][:2], atol=1e-9)
    environment.close()


@pytest.mark.parametrize("level", every_goal_world())
def test_goal_place_of_observation_elements(level):
    environment = build(level, rows=1)
    observation = environment.reset(seed=1).observation
    seen = observation["observation"][0]
    if level.startswith("robotics_ant"):  # which holds neither x nor y
        assert environment.goal_place("observation", (0, 1), seen[[0, 1]]) is None
        return
    whole = environment.goal_place("achieved_goal", None, observation["achieved_goal"][0])
    assert environment.goal_place("observation", (0, 1), seen[[0, 1]])[:2] == pytest.approx(
        whole[:2]
    )
    turned = environment.goal_place("observation", (1, 0), seen[[1, 0]])
    assert turned[:2] == pytest.approx(whole[:2])
    last = len(seen) - 1
    assert environment.goal_place("observation", (last,), seen[[last]]) is None
    environment.close()


@pytest.mark.parametrize("level", ["goal_pendulum", "angle_goal_pendulum"])
def test_goal_place_of_pendulum_is_the_tip(level):
    environment = build(level)
    angle = np.pi / 2
    level_goal = [angle, 0.0] if level.startswith("angle") else [np.sin(angle), np.cos(angle), 0.0]
    place = environment.goal_place("achieved_goal", None, np.array(level_goal))
    assert place == pytest.approx((0.5, 0.0, 0.6))
    environment.close()


def test_goal_place_without_goals_is_none():
    environment = build("half_cheetah")
    assert environment.goal_place("observation", (0, 1), np.zeros(2)) is None
    environment.close()


def test_mark_renderable_environments():
    batch, toy = build("point_maze_u"), parameters("goal_point_mass").build(num_envs=1)
    assert isinstance(batch, MarkRenderable)
    assert isinstance(batch, Renderable)
    assert not isinstance(toy, Renderable)
    batch.close()
    plain = GymnasiumParameters(level="CartPole-v1", kwargs={"sutton_barto_reward": True})
    assert isinstance(plain, DrawableParameters)
    assert plain.drawable().kwargs == {"render_mode": "rgb_array", "sutton_barto_reward": True}
    game = PettingZooParameters(level="pettingzoo.classic.tictactoe.tictactoe")
    assert game.drawable().kwargs == {"render_mode": "rgb_array"}
    chosen = GymnasiumParameters(level="CartPole-v1", kwargs={"render_mode": "human"})
    assert chosen.drawable() == chosen


def reddish(frame):
    """Where a frame is red, as row and column, [..., 2]."""
    colours = frame.astype(int)
    return np.argwhere((colours[..., 0] > 120) & (colours[..., 1:] < 60).all(axis=-1))


def test_mark_is_drawn_in_one_frame_only():
    environment = build("point_maze_medium", kwargs={"width": 80, "height": 80})
    plain = drawn(environment)
    assert not len(reddish(plain))
    x, y = 1.5, -2.5
    mark = Mark(place=(x, y, 0.2), colour=RED, size=0.3, label="low")
    red = reddish(environment.render(0, (mark,)))
    # The map is 8 m wide and fills the frame, seen from above.
    expected = (40 - 10 * y, 40 + 10 * x)
    np.testing.assert_allclose(red.mean(axis=0), expected, atol=2)
    small = reddish(environment.render(0, (Mark(place=(x, y, 0.2), colour=RED),)))
    assert 0 < len(small) < len(red)
    np.testing.assert_array_equal(environment.render(0), plain)
    environment.close()


def test_render_does_not_change_the_run():
    options = {"kwargs": {"width": 32, "height": 32}, "max_episode_steps": 7}
    watched, alone = (build("point_maze_u", **options) for _ in range(2))
    mark = Mark(place=(0.0, 0.0, 0.0), colour=RED)
    rng = np.random.default_rng(0)
    drawn(watched)
    for step in range(20):
        action = rng.uniform(-1, 1, (2, 2)).astype(np.float32)
        for environment in (watched, alone):
            environment.send(action)
        ours, theirs = watched.recv(), alone.recv()
        watched.render(step % 2, (mark,))
        if step > 8:
            watched.render_ended(0, (mark,))
        for key, values in theirs.first_observation.items():
            np.testing.assert_array_equal(ours.first_observation[key], values)
        np.testing.assert_array_equal(ours.reward, theirs.reward)
    ours, theirs = watched.state_dict(), alone.state_dict()
    np.testing.assert_array_equal(ours["simulators"], theirs["simulators"])
    assert ours["generators"] == theirs["generators"]
    for environment in (watched, alone):
        environment.close()


def test_render_ended_shows_the_last_state():
    environment = build(
        "point_maze_u", kwargs={"width": 48, "height": 48}, max_episode_steps=3, rows=1
    )
    drawn(environment)
    with pytest.raises(RunError):
        environment.render_ended()
    for _ in range(3):
        before = environment.render()
        environment.send(np.ones((1, 2), np.float32))
        answer = environment.recv()
    assert answer.truncated.all()
    ended, begun = environment.render_ended(), environment.render()
    assert np.abs(ended.astype(int) - before).sum() < np.abs(ended.astype(int) - begun).sum()
    environment.close()


def test_line_mark_connects_its_ends():
    environment = build("point_maze_medium", kwargs={"width": 80, "height": 80})
    drawn(environment)
    line = Mark(place=(-1.5, -2.5, 0.2), line_to=(1.5, -2.5, 0.2), colour=RED, size=0.1)
    red = reddish(environment.render(0, (line,)))
    # The map is 8 m wide and fills the frame, seen from above: 10 pixels a metre.
    np.testing.assert_allclose(red.mean(axis=0), (65, 40), atol=2)
    np.testing.assert_allclose(np.ptp(red[:, 1]), 30, atol=4)
    assert np.ptp(red[:, 0]) <= 4
    environment.close()


def test_render_any_number_of_marks():
    options = {"kwargs": {"width": 80, "height": 80}}
    environment = build("point_maze_medium", **options)
    drawn(environment)
    line = {"colour": RED, "size": 0.05}
    far = [Mark(place=(1.5, -2.5, -9.0), line_to=(1.5, -2.6, -9.0), **line) for _ in range(5_000)]
    frame = environment.render(0, [*far, Mark(place=(1.5, -2.5, 0.2), colour=RED, size=0.3)])
    np.testing.assert_allclose(reddish(frame).mean(axis=0), (65, 55), atol=2)
    environment.close()
