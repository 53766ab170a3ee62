"""Wrong levels and fields of goal worlds: each is one line that has the value and the rule."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import test_ant_symmetry as ant_symmetry
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.errors import SpaceError
from coach_rl.environments import make, parameters
from coach_rl.environments.goal_worlds import GoalPendulum, ant_elements
from tests.refusals import check_refused

C, P, S, U = rl.ConfigurationError, rl.ParameterError, SpaceError, rl.UnknownNameError
CORRIDOR = ("#####", "#S.G#", "#####")
UNEVEN = spaces.Box(np.float32([-1] * 7 + [-2]), np.float32([1] * 7 + [2]))
FIELDS = [  # level, fields of its description, kind of error, message
    ("goal_pendulm", {}, U, "goal_pendulum"),
]
KWARGS = [  # level, fields of its world, kind of error, message
    ("goal_pendulum", {"lengths": 1.0}, U, "'lengths' of GoalPendulum; did you mean 'length'"),
    ("goal_pendulum", {"threshold": (0.1, 0.1)}, P, "must have 3 numbers, got (0.1, 0.1)"),
    ("point_maze_u", {"ball_radius": 0.25}, P, "less than (0.5 - noise) * cell_size = 0.25"),
    ("point_maze_u", {"goal_radius": 0.5}, P, "= 0.5, or episodes would start at the goal"),
    ("point_maze_u", {"max_speed": 11.0}, P, "pass through walls, got 0.11 and 0.1"),
    ("point_maze_u", {"maze": CORRIDOR, "noise": 0.0, "min_path": 3}, P, "longer than any way"),
    ("point_maze_u", {"maze": ()}, P, "3 or more rows"),
    ("point_maze_u", {"maze": ("####", "#..#", "###")}, P, "equally many"),
    ("point_maze_u", {"maze": ("####", "#.x#", "####")}, P, "'S' and 'G' only, got ['x']"),
    ("point_maze_u", {"maze": ("####", "#...", "####")}, P, "walls '#' all around"),
    ("point_maze_u", {"maze": ("###", "#.#", "###")}, P, "a free cell to start in and another"),
    ("point_maze_u", {"maze": ("####", "#G##", "####")}, P, "a free cell to start in and another"),
    ("point_maze_u", {"maze": ("#####", "#S#G#", "#####")}, P, "no way from row 1, column 1 to"),
    ("ant_reacher", {"field": 11.0}, P, "field must be at most half_side - 1.5 = 10.5"),
    ("ant_reacher", {"min_distance": 9.6}, P, "at most field = 9.5, or there might be no start"),
    ("ant_reacher", {"threshold": (0.5, 0.5)}, P, "threshold must have 3 numbers"),
    ("ant_four_rooms", {"room": (1.0, 6.0)}, P, "room must lie in [1.75, 6.75]"),
    ("ant_four_rooms", {"door": (3.5, 9.0)}, P, "door must lie between 0 and half_side - 0.25 = 8"),
    ("ant_maze", {"targets": "test"}, P, "must be 'training' or 'evaluation', got 'test'"),
    ("ant_maze", {"cell_size": 2.0}, P, "cell_size must be more than 2.5"),
    ("ant_maze", {"maze": ("#####", "#S.B#", "#####")}, P, "'G' only, got ['B']"),
    ("ant_maze", {"training_targets": ((0.0, 1.0),)}, P, "must both have 2 or 3 ranges"),
    ("ant_maze", {"training_targets": ((1.0, 0.0), (0.0, 1.0))}, P, "with low <= high"),
    ("ant_maze", {"goal_radius": 0.0}, P, "goal_radius must be float > 0"),
    ("ant_maze", {"reward_type": "shaped"}, P, "reward_type must be 'sparse' or 'dense'"),
    ("ant_push", {"maze": ("#####", "#S~B#", "#####")}, P, "'B' only, got ['~']"),
    ("ant_fall", {"maze": ("#####", "#..B#", "#####")}, P, "one start 'S', got 0"),
    ("ant_fall", {"maze": ("#####", "#SSB#", "#####")}, P, "one start 'S', got 2"),
    ("ant_fall", {"evaluation_targets": ((0.0, 0.0), (1.0, 1.0))}, P, "got 3 and 2"),
    ("ant_maze_u24", {"reward_radius": 6.0}, P, "must be at most goal_radius = 5, got 6.0"),
    ("ant_maze_u24", {"maze": ("####", "#S.#", "####")}, P, "maze must have goals 'G'"),
    ("ant_gaps", {"shows_stance": True}, P, "AntGaps.shows_stance needs shows_pose=True"),
    (
        "ant_key_chest",
        {"maze": ("####", "#SG#", "####")},
        P,
        "'1', '2' and so on, each once, got []",
    ),
    ("ant_key_chest", {"maze": ("#####", "#S2G#", "#####")}, P, "got ['2']"),
    ("ant_key_chest", {"maze": ("######", "#S11G#", "######")}, P, "got ['1', '1']"),
]
CLASSES = [  # what is built, its arguments, kind of error, message
    (rl.GoalWorldParameters, {"level": "goal_pendulm"}, U, "goal_pendulum"),
    (rl.GoalWorldParameters, {"level": GoalPendulum}, P, "got the class"),
    (GoalPendulum, {"xml_file": "a.xml"}, P, "leave xml_file empty"),
    (rl.PointMaze, {"maze": ("####", "#G##", "####")}, P, "a free cell to start in and another"),
]
ERRORS = [
    *[(partial(make, level), *rest) for level, *rest in FIELDS],
    *[(partial(parameters, level), {"kwargs": given}, *rest) for level, given, *rest in KWARGS],
    *CLASSES,
]


def symmetry(**given):
    return lambda: rl.AntSymmetry().build(ant_symmetry.context(**given))


BUILDS = [
    (partial(ant_elements, "x_speed"), U, "'x_speed'"),
    (symmetry(goal=None), C, "got no goals"),
    (symmetry(goal=replace(ant_symmetry.GOAL, observed="absolute")), C, "observed='absolute'"),
    (
        symmetry(goal=replace(ant_symmetry.GOAL, key="observation", elements=(0, 1, 2))),
        C,
        "key='observation'",
    ),
    (symmetry(seen=28), C, "29 elements"),
    (symmetry(action=spaces.Box(-1, 1, (6,))), C, "8 motors"),
    (symmetry(action=spaces.Discrete(4)), C, "8 motors"),
    (symmetry(action=UNEVEN), C, "same"),
]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [*((partial(build, **given), *rest) for build, given, *rest in ERRORS), *BUILDS],
)
def test_goal_worlds_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
