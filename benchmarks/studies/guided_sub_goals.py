"""Sub-goals that stay adjacent, or are led to landmarks, beside HIRO's: a study of each task.

coach study run benchmarks/studies/guided_sub_goals.py:point_maze
coach study report benchmarks/studies/guided_sub_goals.py:point_maze
"""

from coach_rl import Study, Variant

METHODS = ("hiro", "hrac", "higl")


def point_maze() -> Study:
    """A ball in a U, minutes a run."""
    return Study(
        name="guided_point_maze",
        question="Do adjacent sub-goals, or landmarks, help HIRO find the way around a wall?",
        variants=variants("PointMaze_HIRO", "point_maze_u"),
        seeds=(30, 31, 32),
        steps=15_000,
        metric="success_rate",
        episodes=100,
        baseline="hiro",
        device="cpu",
    )


def ant_maze() -> Study:
    """An ant in the sparse U of 24 m, hours a run."""
    return Study(
        name="guided_ant_maze",
        question="Do adjacent sub-goals, or landmarks, lead an ant to the far end of a maze?",
        variants=variants("AntMaze_HRAC", "ant_maze_u24"),
        seeds=(30, 31, 32),
        steps=1_000_000,
        metric="success_rate",
        episodes=100,
        baseline="hiro",
        device="cpu",
    )


def variants(preset: str, level: str) -> tuple[Variant, ...]:
    """The same preset with each of the methods."""
    return tuple(
        Variant(name=method, preset=preset, level=level, changes={"hierarchy": method})
        for method in METHODS
    )
