"""`coach maze_data`: a data set of a point maze from a scripted solver."""

from pathlib import Path

from coach_rl.cli.parser import Flag, Given

MAZE_DATA = (
    Flag(
        "KIND",
        "navigate, stitch or explore: see docs/goals_from_data.md",
        choices=("navigate", "stitch", "explore"),
    ),
    Flag("FILE", "the file that is written; it ends with .npz", Path),
    Flag("--maze NAME", "the maze (default: point_maze_medium)"),
    Flag("--episodes N", "number of episodes (default: for a million transitions)", int),
    Flag("--steps N", "steps of each episode (default: the kind's own)", int),
    Flag("--noise X", "standard deviation of the noise on actions (default: 0.5)", float),
    Flag("--seed SEED", "random seed (default: 0)", int),
)


def write_maze_data(given: Given) -> int:
    """Make a data set of a maze and write it; the exit code."""
    from coach_rl.extensions.data.files import write_file
    from coach_rl.extensions.goals_from_data.point_mazes import MazeDataParameters, maze_data

    chosen = {"level": given.maze, "noise": given.noise}
    params = MazeDataParameters(
        kind=given.kind,
        episodes=given.episodes,
        steps=given.steps,
        **{name: value for name, value in chosen.items() if value is not None},
    )
    recorded, spaces = maze_data(params, given.seed or 0)
    path = write_file(recorded, given.file, spaces)
    print(f"{path}: {len(recorded):,} transitions of {len(recorded.begins):,} episodes")
    return 0
