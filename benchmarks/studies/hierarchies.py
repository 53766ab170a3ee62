"""Hierarchies beside the flat agent, with and without hindsight: a study of each task.

    coach study run benchmarks/studies/hierarchies.py:medium
    coach study report benchmarks/studies/hierarchies.py:medium --write

A run's score is the success over 100 episodes on starts and goals that training has not seen, the
same for every run.
"""

from dataclasses import replace

from coach_rl import Study, Variant

FLAT = (
    ("flat, with hindsight", {"hierarchy": "none"}),
    ("flat, without hindsight", {"hierarchy": "none", "hindsight": False}),
)


def pendulum() -> Study:
    """Angles of a pendulum, with two and three levels."""
    return Study(
        name="hac_pendulum",
        question="Do hierarchies learn to hold a pendulum at an angle faster than one agent?",
        variants=variants(
            "Pendulum_HAC",
            "angle_goal_pendulum",
            ("two levels", {"levels": 2}),
            ("three levels", {"levels": 3}),
            more_seeds=("two levels",),
        ),
        seeds=(20, 21, 22),
        steps=100_000,
        metric="success_rate",
        episodes=100,
        baseline="flat, with hindsight",
        device="cpu",
        pages=("../results/hac.md",),
    )


def pendulum_longer() -> Study:
    """The same for twice as long, with three levels."""
    return replace(
        pendulum(),
        name="hac_pendulum_longer",
        question="And in runs of twice the length, whose learning rate falls more slowly?",
        variants=variants(
            "Pendulum_HAC",
            "angle_goal_pendulum",
            ("three levels", {"levels": 3}),
            more_seeds=("three levels",),
        ),
        steps=200_000,
    )


def medium() -> Study:
    """From anywhere in a maze to anywhere else."""
    return replace(
        pendulum(),
        name="hac_medium",
        question="Do two levels find the way through a maze faster than one agent?",
        variants=variants("PointMaze_HAC", "point_maze_medium", ("two levels", {})),
        steps=120_000,
    )


def medium_far() -> Study:
    """The same maze, with goals that are at least six cells away."""
    far = {"min_path": 6, "evaluation_interval": 10_000}
    return replace(
        medium(),
        name="hac_medium_far",
        question="And where the goal is at least six cells away?",
        variants=tuple(
            replace(variant, changes={**variant.changes, **far}) for variant in medium().variants
        ),
        steps=80_000,
    )


def four_rooms() -> Study:
    """From one room to another."""
    return replace(
        medium(),
        name="hac_four_rooms",
        question="Do two levels find the way into another room faster than one agent?",
        variants=variants("PointMaze_HAC", "point_maze_four_rooms", ("two levels", {})),
    )


def ant_reacher() -> Study:
    """HAC's ant."""
    return replace(
        pendulum(),
        name="hac_ant_reacher",
        question="Does HAC reach places with its paper's ant?",
        variants=(
            Variant(
                name="two levels",
                preset="AntReacher_HAC",
                level="ant_reacher",
                matmul_precision="medium",
            ),
        ),
        seeds=(20, 21),
        steps=400_000,
        baseline=None,
    )


def variants(
    preset: str,
    level: str,
    *levels: tuple[str, dict[str, object]],
    more_seeds: tuple[str, ...] = (),
) -> tuple[Variant, ...]:
    """Hierarchies, and the flat agents beside them.

    Args:
        preset: The preset.
        level: The task.
        levels: Names and changes of the hierarchies.
        more_seeds: Names of those that five seeds were run of.
    """
    return tuple(
        Variant(
            name=name,
            preset=preset,
            level=level,
            changes=changes,
            seeds=range(20, 25) if name in more_seeds else None,
        )
        for name, changes in (*levels, *FLAT)
    )
