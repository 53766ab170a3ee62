"""Wrong levels and fields of environments: each is one line that has the value and the rule."""

from functools import partial

import numpy as np
import pytest

from coach_rl.core.errors import ConfigurationError, ParameterError, UnknownNameError
from coach_rl.environments import make, parameters
from coach_rl.environments.goal_worlds import GoalPendulum, GoalWorldParameters, PointMaze
from coach_rl.environments.mujoco import MujocoParameters, MujocoTask
from coach_rl.environments.pettingzoo import PettingZooParameters
from coach_rl.environments.toy import (
    BitFlipParameters,
    ChainParameters,
    GatesParameters,
    GoalPointMassParameters,
    OneStepParameters,
    PointMassParameters,
    SteadyPayParameters,
)

U, P = UnknownNameError, ParameterError
CORRIDOR = ("#####", "#S.G#", "#####")
FIELDS = [  # level, fields of its description, kind of error, message
    ("point_mass", {"max_episode_step": 7}, P, "did you mean 'max_episode_steps'"),
    ("hopper", {"vectorization": "sync"}, P, "'hopper' has no parameter 'vectorization'"),
    ("one_step_continuous", {"continuous": False}, P, "no parameter 'continuous'; allowed: size"),
    ("CartPole-v1", {"max_steps": 5}, P, "its parameters are the fields of GymnasiumParameters"),
    ("bit_flip", {"max_episode_steps": 3}, P, "has no parameter"),
    ("half_cheeta", {}, U, "did you mean 'half_cheetah'"),
    ("halfcheetah-v5", {}, U, "'HalfCheetah-v5'"),
    ("CartPole", {}, U, "'CartPole-v1'"),
    ("pointmass", {}, U, "'point_mass'"),
    ("pointmass", {}, U, "module:Class"),
    ("goal_pendulm", {}, U, "goal_pendulum"),
    ("ALE/Pong-v5", {}, U, "install it and write ale_py:ALE/Pong-v5"),
    (MujocoParameters, {}, P, "task must be a name"),
]
KWARGS = [  # level, fields of its world or task, kind of error, message
    ("goal_pendulum", {"lengths": 1.0}, U, "'lengths' of GoalPendulum; did you mean 'length'"),
    ("goal_pendulum", {"mass": 0.0}, P, "GoalPendulum.mass must be float > 0, got 0"),
    ("goal_pendulum", {"damping": -1.0}, P, "damping must be float >= 0"),
    ("goal_pendulum", {"start_angle": (1.0, 0.0)}, P, "low <= high"),
    ("goal_pendulum", {"threshold": (0.1, 0.1)}, P, "must have 3 numbers, got (0.1, 0.1)"),
    ("angle_goal_pendulum", {"threshold": (0.1, 0.0)}, P, "must be tuple[float > 0, ...]"),
    ("point_maze_u", {"reward_type": "denser"}, P, "'sparse' or 'dense', got 'denser'"),
    ("point_maze_u", {"noise": 0.5}, P, "noise must be float in [0, 0.5), got 0.5"),
    ("point_maze_u", {"ball_radius": 0.25}, P, "less than (0.5 - noise) * cell_size = 0.25"),
    ("point_maze_u", {"goal_radius": 0.5}, P, "= 0.5, or episodes would start at the goal"),
    ("point_maze_u", {"goal_radius": 0.0}, P, "goal_radius must be float > 0"),
    ("point_maze_u", {"max_speed": 11.0}, P, "pass through walls, got 0.11 and 0.1"),
    ("point_maze_u", {"response_time": 0.0}, P, "response_time must be float > 0"),
    ("point_maze_u", {"min_path": 0}, P, "min_path must be int > 0, got 0"),
    ("point_maze_u", {"maze": CORRIDOR, "noise": 0.0, "min_path": 3}, P, "longer than any way"),
    ("point_maze_u", {"maze": ()}, P, "3 or more rows"),
    ("point_maze_u", {"maze": ("####", "#..#", "###")}, P, "equally many"),
    ("point_maze_u", {"maze": ("####", "#.x#", "####")}, P, "'S' and 'G' only, got ['x']"),
    ("point_maze_u", {"maze": ("####", "#...", "####")}, P, "walls '#' all around"),
    ("point_maze_u", {"maze": ("###", "#.#", "###")}, P, "a free cell to start in and another"),
    ("point_maze_u", {"maze": ("####", "#G##", "####")}, P, "a free cell to start in and another"),
    ("point_maze_u", {"maze": ("#####", "#S#G#", "#####")}, P, "no way from row 1, column 1 to"),
    ("ant_reacher", {"gear": 0.0}, P, "AntReacher.gear must be float > 0, got 0"),
    ("ant_reacher", {"field": 11.0}, P, "field must be at most half_side - 1.5 = 10.5"),
    ("ant_reacher", {"min_distance": 9.6}, P, "at most field = 9.5, or there might be no start"),
    ("ant_reacher", {"threshold": (0.5, 0.5)}, P, "threshold must have 3 numbers"),
    ("ant_reacher", {"wall_height": -1.0}, P, "wall_height must be float > 0"),
    ("ant_four_rooms", {"room": (1.0, 6.0)}, P, "room must lie in [1.75, 6.75]"),
    ("ant_four_rooms", {"door": (3.5, 9.0)}, P, "door must lie between 0 and half_side - 0.25 = 8"),
    ("ant_four_rooms", {"inner_wall": 0.0}, P, "inner_wall must be float > 0"),
    ("ant_four_rooms", {"subgoal_velocity_threshold": 0.0}, P, "threshold must be float > 0"),
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
    ("hopper", {"ctrl_cost": 1}, U, "ctrl_cost_weight"),
    ("hopper", {"healthy_z_range": (2, 1)}, P, "low <= high"),
    ("hopper", {"healthy_reward": "much"}, P, "healthy_reward must be float | int"),
    ("hopper", {"terminate_when_unhealthy": 1}, P, "terminate_when_unhealthy must be bool"),
    ("hopper", {"frame_skip": 0}, P, "frame_skip must be int > 0"),
    ("hopper", {"reset_noise_scale": -0.1}, P, ">= 0"),
    ("hopper", {"render_mode": "human"}, P, "rgb_array"),
    ("hopper", {"camera_id": 0, "camera_name": "track"}, P, "got both"),
]
hunt = partial(PettingZooParameters, level="little_parallel:Hunt")
CLASSES = [  # what is built, its arguments, kind of error, message
    (OneStepParameters, {"size": 0}, P, "OneStepParameters.size"),
    (ChainParameters, {"length": 1}, P, "ChainParameters.length"),
    (ChainParameters, {"slip": 1.0}, P, "ChainParameters.slip"),
    (ChainParameters, {"observation": "picture"}, P, "ChainParameters.observation"),
    (ChainParameters, {"max_episode_steps": 0}, P, "max_episode_steps"),
    (PointMassParameters, {"max_episode_steps": 0}, P, "max_episode_steps"),
    (GoalPointMassParameters, {"max_episode_steps": 0}, P, "max_episode_steps"),
    (GoalPointMassParameters, {"threshold": 0}, P, "threshold"),
    (GoalPointMassParameters, {"reward": "shaped"}, P, "reward"),
    (GatesParameters, {"open_steps": 40}, P, "open_steps must be less than period (40)"),
    (BitFlipParameters, {"bits": 0}, P, "BitFlipParameters.bits must be int > 0, got 0"),
    (SteadyPayParameters, {"max_episode_steps": 0}, P, "max_episode_steps must be int > 0"),
    (SteadyPayParameters, {"low": 3}, P, "got 3.0 and 3.0"),
    (SteadyPayParameters, {"high": np.inf}, P, "both be finite"),
    (GoalWorldParameters, {"level": "goal_pendulm"}, U, "goal_pendulum"),
    (GoalWorldParameters, {"level": GoalPendulum}, P, "got the class"),
    (GoalPendulum, {"xml_file": "a.xml"}, P, "leave xml_file empty"),
    (PointMaze, {"maze": ("####", "#G##", "####")}, P, "a free cell to start in and another"),
    (MujocoParameters, {"level": "halfcheetah"}, U, "half_cheetah"),
    (MujocoParameters, {"level": "HalfCheetah-v4"}, U, "HalfCheetah-v5"),
    (MujocoParameters, {"level": MujocoTask}, P, "the class MujocoTask; write 'coach_rl.env"),
    (MujocoParameters, {"level": "hopper", "max_episode_steps": 0}, P, "max_episode_steps"),
    (MujocoParameters, {"level": "hopper", "threads": 0}, P, "threads"),
    (MujocoParameters, {"level": "hopper", "render_width": -5}, P, "render_width"),
    (hunt, {"vectorization": "vector"}, P, "must be 'sync' or 'subprocess', got 'vector'"),
    (hunt, {"start_method": "thread"}, P, "'forkserver' or 'fork', got 'thread'"),
    (hunt, {"max_episode_steps": 0}, P, "must be int > 0 | -1 | None, got 0"),
    (hunt, {"processes": 0}, P, "processes must be int > 0 | None, got 0"),
]
ERRORS = [
    *[(partial(make, level), *rest) for level, *rest in FIELDS],
    *[(partial(parameters, level), {"kwargs": given}, *rest) for level, given, *rest in KWARGS],
    *CLASSES,
]


@pytest.mark.parametrize(("build", "given", "kind", "message"), ERRORS)
def test_wrong_environment_error_names_value_and_rule(build, given, kind, message):
    with pytest.raises(ConfigurationError) as caught:
        build(**given)
    assert isinstance(caught.value, kind)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
