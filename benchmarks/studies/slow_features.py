"""Sub-goals in a space of slow features (LESSON) beside HIRO's, and a flat agent.

    coach study run benchmarks/studies/slow_features.py:u
    coach study report benchmarks/studies/slow_features.py:u --write

A run's score is the success at the last step of 100 greedy episodes after training.
"""

from coach_rl import Study, Variant


def u() -> Study:
    """A ball around one wall."""
    return maze("u", steps=30_000)


def medium() -> Study:
    """A ball in the medium maze."""
    return maze("medium", steps=60_000)


def maze(size: str, *, steps: int) -> Study:
    """The study of a maze."""
    level = f"point_maze_{size}"
    lesson: dict[str, dict[str, object]] = {
        name: {"validation": None, **changes}  # the preset's target is from these runs
        for name, changes in {
            "slow features": {},
            "slow features, rewards as stored": {"recomputed": False},
            "random features": {"features": "random"},
        }.items()
    }
    hiro: dict[str, dict[str, object]] = {
        "HIRO": {},
        "HIRO without correction": {"correction": False},
        "flat": {"hierarchy": "none"},
    }
    return Study(
        name=f"slow_features_{size}",
        question="Is a space of slow features as good as places that are given?",
        variants=tuple(
            Variant(
                name=name,
                preset=preset,
                level=level,
                changes={"evaluation_interval": 5_000, **changes},
            )
            for preset, variants in (("PointMaze_LESSON", lesson), ("PointMaze_HIRO", hiro))
            for name, changes in variants.items()
        ),
        seeds=range(10, 15),
        steps=steps,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=("../results/slow_features.md",),
    )
