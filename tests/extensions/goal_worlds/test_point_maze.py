"""The point mazes: maps, walls, motion, and a way to every goal."""

import numpy as np
import pytest

from coach_rl.environments import parameters
from coach_rl.environments.goal_worlds import GOAL_WORLDS, MazeMap, PointMaze

MAZES = sorted(level for level in GOAL_WORLDS if level.startswith("point_maze"))
CORRIDOR = ("#####", "#S.G#", "#####")
HALL = ("#######", *["#.....#"] * 5, "#######")


def build(rows=1, level="point_maze_u", **kwargs):
    return parameters(level, threads=1, kwargs=kwargs).build(num_envs=rows)


def steered(task, observation, ways):
    """Towards the next cell on the way to the goal, then to the goal itself, with little speed."""
    actions = np.zeros((len(observation["observation"]), 2), np.float32)
    for row, (here, goal) in enumerate(
        zip(observation["observation"], observation["desired_goal"], strict=True)
    ):
        cell, last = cell_of(task, here[:2]), cell_of(task, goal)
        target = goal
        if cell != last:
            if last not in ways:
                ways[last] = task.map.distances(last)
            far = ways[last]
            around = [(cell[0] + a, cell[1] + b) for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1))]
            target = task.place(min(around, key=lambda one: far.get(one, 999)))
        actions[row] = np.clip(2 * (target - here[:2]) - 0.5 * here[2:], -1, 1)
    return actions


def cell_of(task, place):
    rows, columns = len(task.maze), len(task.maze[0])
    x, y = place / task.cell_size
    return (round((rows - 1) / 2 - y), round(x + (columns - 1) / 2))


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("level", MAZES)
def test_goals_are_reachable_within_the_limit(level):
    task = GOAL_WORLDS[level]()
    cells = task.map.starts
    longest = max(max(task.map.distances(cell).values()) for cell in cells)
    # At full speed a cell takes ten steps; the limit leaves more than twice that.
    assert 20 * longest < task.max_episode_steps
    batch, ways = build(20, level), {}
    answer = batch.reset(seed=0)
    open_rows = np.ones(20, np.bool_)
    successes = np.zeros(20, np.bool_)
    while open_rows.any():
        batch.send(steered(task, answer.first_observation, ways))
        answer = batch.recv()
        successes |= open_rows & answer.info["is_success"]
        open_rows &= answer.end == 0
    assert successes.all()


@pytest.mark.parametrize("level", MAZES)
def test_starts_and_goals_cover_different_free_cells(level):
    task = GOAL_WORLDS[level]()
    seen = build(400, level).reset(seed=0).observation
    starts = [cell_of(task, place) for place in seen["achieved_goal"]]
    goals = [cell_of(task, place) for place in seen["desired_goal"]]
    free = set(task.map.starts)
    assert all(task.maze[row][column] == "." for row, column in free)
    assert set(starts) == free
    assert set(goals) == free
    away = [task.map.distances(start)[goal] for start, goal in zip(starts, goals, strict=True)]
    assert min(away) == task.min_path
    worth = task.compute_reward(seen["achieved_goal"], seen["desired_goal"])
    assert (worth == -1).all()
    assert (seen["observation"][:, 2:] == 0).all()


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("level", MAZES)
def test_ball_does_not_enter_walls(level):
    task = GOAL_WORLDS[level]()
    batch = build(10, level, terminate=False)
    batch.reset(seed=0)
    rng = np.random.default_rng(0)
    for step in range(120):
        if step % 10 == 0:  # run into whatever is there, at full speed
            push = rng.choice([-1, 1], (10, 2)).astype(np.float32)
        batch.send(push)
        places = batch.recv().observation["achieved_goal"]
        for side in ((0.0, 0.0), (0.07, 0), (-0.07, 0), (0, 0.07), (0, -0.07)):
            for place in places + np.array(side):
                row, column = cell_of(task, place)
                assert task.maze[row][column] != "#", place


def test_speed_follows_the_force():
    # Damped motion of 1 kg, dv/dt = (2 u - v) / 0.25, in steps of 10 ms with the damping implicit.
    batch = build(maze=HALL, noise=0.0, goal_radius=0.1)
    start = batch.reset(seed=0).observation["observation"][0]
    x, v = start[0], 0.0
    direction = -1.0 if x > 0 else 1.0
    for _ in range(8):
        batch.send(np.float32([[direction, 0]]))
        seen = batch.recv().observation["observation"][0]
        for _ in range(5):
            v = (v + 0.01 * 2 * direction / 0.25) / (1 + 0.01 / 0.25)
            x += 0.01 * v
        assert seen == pytest.approx([x, start[1], v, 0], abs=1e-9)


def test_walls_are_frictionless():
    batch = build(maze=("#######", "#S...G#", "#######"), noise=0.0)
    batch.reset(seed=0)
    for _ in range(30):
        batch.send(np.float32([[0.5, 1]]))  # leaning on the wall
        seen = batch.recv().observation["observation"][0]
    assert seen[2] == pytest.approx(1.0, abs=0.02)  # half of 2 m/s


def test_signs_on_the_map():
    task = PointMaze(maze=CORRIDOR, noise=0.0)
    assert (task.map.starts, task.map.goals) == (((1, 1),), ((1, 3),))
    assert task.place((1, 1)).tolist() == [-1, 0]
    assert task.map.runs("#") == [(0, 0, 5), (1, 0, 1), (1, 4, 1), (2, 0, 5)]
    assert task.map.runs("SG") == [(1, 1, 1), (1, 3, 1)]
    assert task.map.distances((1, 1)) == {(1, 1): 0, (1, 2): 1, (1, 3): 2}
    assert MazeMap(("####", "#SS#", "####")).goals == ((1, 1), (1, 2))
    seen = build(3, maze=CORRIDOR, noise=0.0).reset(seed=0).observation
    assert seen["achieved_goal"].tolist() == [[-1, 0]] * 3
    assert seen["desired_goal"].tolist() == [[1, 0]] * 3


def test_four_rooms_goal_is_in_another_room():
    task = GOAL_WORLDS["point_maze_four_rooms"]()
    rooms = {
        cell: (cell[0] < 5, cell[1] < 5) for cell in task.map.starts if 5 not in cell
    }  # 5: walls and doors
    pairs = task.pairs
    assert all(rooms[start] != rooms[goal] for start, goal in pairs if {start, goal} <= {*rooms})
    others = {cell for cell, room in rooms.items() if room != (True, True)}
    too_near, far_doors = {(6, 2)}, {(5, 7), (8, 5)}
    assert {goal for start, goal in pairs if start == (1, 1)} == others - too_near | far_doors


def test_goal_is_a_disc():
    task = PointMaze()
    places = np.array([[0.45, 0], [0.3, 0.3], [0.33, 0.33], [0, -0.46]])
    assert task.reached(places, np.zeros(2)).tolist() == [True, True, False, False]
    assert task.compute_reward(places[:, None], np.zeros(2)).tolist() == [[0], [0], [-1], [-1]]


def test_larger_cells():
    seen = build(50, maze=CORRIDOR, cell_size=4.0).reset(seed=0).observation
    assert np.abs(seen["achieved_goal"] - [-4, 0]).max() <= 1.0
    assert np.abs(seen["achieved_goal"] - [-4, 0]).max() > 0.5
