"""The table of ant mazes: those of HIRO, and those on which methods with sparse rewards compare.

Geometry, starts, goals, radii and time limits are those in the authors' code of

- HIRO (Nachum et al. 2018): `AntMaze`, `AntPush`, `AntFall`, with dense rewards;
- DHRL (Lee et al. 2022, "A Graph-Based Approach for Long-Horizon and Sparse Hierarchical
  Reinforcement Learning") and BEAG (Yoon et al. 2024, "Breadth-First Exploration on Adaptive Grid
  for Reinforcement Learning"), also used by NGTE and SSE: `AntMazeU24` to `AntMazeComplex`;
- LESSON and HESS (Li et al. 2021, 2022), also used by HLPS (Wang et al. 2024): half as wide as
  HIRO's, `AntFourRoomsSparse` to `AntFallSparse`; with the noise of HIGL (Kim et al. 2021):
  `AntPushStochastic` and `AntFallStochastic`;
- SSE (Hwang et al. 2026, "Strict Subgoal Execution", `envs/antenv`): `AntKeyChest`,
  `AntDoubleKeyChest`.
"""

from coach_rl.environments.goal_worlds.ant_maze import DenseAntMaze, KeyChestMaze, SparseAntMaze
from coach_rl.environments.goal_worlds.goal_task import variant

_PUSHED = ("x", "y")
_FALLING = ("y", "z")
"""Axes along which blocks slide: over the floor, or to a gap and into it."""
_PUSH_MASS, _FALL_MASS = 0.0002, 0.001
"""Mass of a block, in kilograms."""
_HIRO_PUSH, _HIRO_FALL = ((0.0, 0.0), (19.0, 19.0)), ((0.0, 0.0), (27.0, 27.0), (4.5, 4.5))
_U = (
    "#####",
    "#G..#",
    "###.#",
    "#S..#",
    "#####",
)
"""The U of DHRL (Lee et al. 2022), 12 or 24 m wide; its goal of evaluations is `G`."""
_ROUGH = (2.0, 0.1, 0.002)
_HIGL_NOISE = 0.05
_SMALL = {"cell_size": 4.0, "block_height": 2.0, "goal_radius": 2.5}

AntMaze = variant(
    "AntMaze",
    DenseAntMaze,
    "HIRO's Ant Maze: from one end of a U to the other, with dense rewards.",
    max_episode_steps=500,
    maze=(
        "#####",
        "#...#",
        "###.#",
        "#S..#",
        "#####",
    ),
)
"""The U of HIRO's ants."""
AntPush = variant(
    "AntPush",
    AntMaze,
    "HIRO's Ant Push: a block closes the way up; it must be pushed away from its left.",
    block_moves=_PUSHED,
    block_mass=_PUSH_MASS,
    maze=(
        "#####",
        "##.##",
        "#.B.#",
        "#.S##",
        "#####",
    ),
    training_targets=_HIRO_PUSH,
    evaluation_targets=_HIRO_PUSH,
)
AntFall = variant(
    "AntFall",
    AntMaze,
    "HIRO's Ant Fall: a gap that can be crossed only over the block that was pushed into it.",
    block_moves=_FALLING,
    block_mass=_FALL_MASS,
    mark_height=4.75,  # the floor is raised
    maze=(
        "####",
        "#..#",
        "#~~#",
        "#.B#",
        "#S.#",
        "####",
    ),
    training_targets=_HIRO_FALL,
    evaluation_targets=_HIRO_FALL,
)

AntMazeU24 = variant(
    "AntMazeU24",
    SparseAntMaze,
    "DHRL's AntMaze: a U of 24 m by 24 m.",
    max_episode_steps=600,
    maze=_U,
)
AntMazeU12 = variant(
    "AntMazeU12",
    SparseAntMaze,
    "DHRL's AntMazeSmall: a U of 12 m by 12 m.",
    max_episode_steps=600,
    maze=_U,
    **_SMALL,
)
AntMazeS = variant(
    "AntMazeS",
    SparseAntMaze,
    "BEAG's AntMazeS: two bends, 40 m by 40 m.",
    maze=(
        "#######",
        "#....G#",
        "#.#####",
        "#.....#",
        "#####.#",
        "#S....#",
        "#######",
    ),
)
AntMazeW = variant(
    "AntMazeW",
    SparseAntMaze,
    "BEAG's AntMazeW: a way around three sides, with a blind alley inside, 40 m by 40 m.",
    maze=(
        "#######",
        "#.....#",
        "#G###.#",
        "###...#",
        "#S###.#",
        "#.....#",
        "#######",
    ),
)
AntMazePi = variant(
    "AntMazePi",
    SparseAntMaze,
    "BEAG's AntMazeP: up one leg of a Pi and down the other, 40 m by 40 m.",
    maze=(
        "#######",
        "#.....#",
        "##.#.##",
        "#..#..#",
        "#.###.#",
        "#.S#G.#",
        "#######",
    ),
)
AntMazeBottleneck = variant(
    "AntMazeBottleneck",
    SparseAntMaze,
    "DHRL's AntMazeBottleneck: the U of 24 m, with a gap of 1.6 m in the middle of the way.",
    max_episode_steps=600,
    maze=_U,
    more_walls=((13.5, 8.0, 3.8, 2.0), (18.5, 8.0, 3.0, 2.0)),
    wall_friction=_ROUGH,
)
AntGaps = variant(
    "AntGaps",
    AntMazeBottleneck,
    """A corridor with three gaps like the bottleneck's, of no paper: for practice.

    In the bottleneck an ant walks 23 m before its first attempt to pass, here 2.5 m, and has no
    reason to run at walls.
    """,
    maze=(
        "###",
        "#G#",
        "#.#",
        "#.#",
        "#.#",
        "#.#",
        "#S#",
        "###",
    ),
    more_walls=tuple((side, ahead, 1.2, 2.0) for ahead in (3.5, 8.5, 13.5) for side in (-1.4, 1.4)),
    **_SMALL,
)
AntMazeComplex = variant(
    "AntMazeComplex",
    SparseAntMaze,
    "DHRL's AntMazeComplex: rooms and blind alleys, 56 m by 56 m.",
    max_episode_steps=2000,
    maze=(
        "#########",
        "#.#G#.G.#",
        "#.....#.#",
        "#.#G#.###",
        "#.###..##",
        "#...##.##",
        "###.#.G.#",
        "#S..#...#",
        "#########",
    ),
)

AntFourRoomsSparse = variant(
    "AntFourRoomsSparse",
    SparseAntMaze,
    "HESS's Ant FourRooms: from one of four rooms to the opposite one, 18 m by 18 m.",
    frame_skip=10,
    gear=16.0,
    maze=(
        "###########",
        "#....#...G#",
        "#.........#",
        "#....#....#",
        "#....#....#",
        "##.#####.##",
        "#....#....#",
        "#.........#",
        "#.S..#....#",
        "#....#....#",
        "###########",
    ),
    cell_size=2.0,
    block_height=1.0,
    goal_radius=1.5,
    reward_radius=1.5,
)
AntPushSparse = variant(
    "AntPushSparse",
    AntFourRoomsSparse,
    "HESS's Ant Push: HIRO's in half the size, with sparse rewards.",
    max_episode_steps=500,
    block_moves=_PUSHED,
    block_mass=_PUSH_MASS,
    maze=(
        "#####",
        "##G##",
        "#.B.#",
        "#.S##",
        "#####",
    ),
    cell_size=4.0,
    block_height=2.0,
)
AntFallSparse = variant(
    "AntFallSparse",
    AntPushSparse,
    "HESS's Ant Fall: HIRO's in half the size, with sparse rewards; a goal is (x, y, z).",
    block_moves=_FALLING,
    block_mass=_FALL_MASS,
    goal_size=3,
    maze=(
        "####",
        "#G.#",
        "#~~#",
        "#.B#",
        "#S.#",
        "####",
    ),
)
AntPushStochastic = variant(
    "AntPushStochastic",
    AntPushSparse,
    "Ant Push with the noise of HIGL's stochastic mazes.",
    position_noise=_HIGL_NOISE,
)
AntFallStochastic = variant(
    "AntFallStochastic",
    AntFallSparse,
    "Ant Fall with the noise of HIGL's stochastic mazes.",
    position_noise=_HIGL_NOISE,
)

AntKeyChest = variant(
    "AntKeyChest",
    KeyChestMaze,
    """SSE's AntMazeKeyChest: fetch the key from a side way, then go to the chest, 40 m by 40 m.

    A goal is (x, y, keys): a place, and how many keys must have been taken.
    """,
    max_episode_steps=3000,
    maze=(
        "#######",
        "#G....#",
        "#####.#",
        "#1....#",
        "#####.#",
        "#S....#",
        "#######",
    ),
)
AntDoubleKeyChest = variant(
    "AntDoubleKeyChest",
    AntKeyChest,
    "SSE's AntMazeDoubleKeyChest: a key, another one that counts only after it, the chest.",
    maze=(
        "#######",
        "#..1###",
        "#.#####",
        "#.....#",
        "#.#.#.#",
        "#S#2#G#",
        "#######",
    ),
)
