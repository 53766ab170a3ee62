"""Skills that are discovered without reward (METRA) beside DIAYN's, and goals reached with them.

    coach study run benchmarks/studies/skills.py:discovery
    python benchmarks/skill_coverage.py experiments/skills_discovery/*
    coach study run benchmarks/studies/skills.py:goals
    coach study report benchmarks/studies/skills.py:goals --write

`skill_coverage.py` counts the cells that the skills of the first study visit. The second needs the
runs of METRA of the first, with their checkpoints.
"""

from coach_rl import Study, Variant

SEEDS = range(10, 15)
DISCOVERY, GOALS = 20_000, 20_000
"""Environment steps of discovery, and of learning with skills."""


def discovery() -> Study:
    """How many places do the skills lead to that are discovered from the middle of a hall?"""
    variants: dict[str, dict[str, object]] = {
        "METRA": {},
        "METRA, no constraint": {"constraint": "none"},
        "DIAYN": {"method": "diayn"},
        "random actions": {"method": "random"},
    }
    return Study(
        name="skills_discovery",
        variants=tuple(
            Variant(name=name, preset="PointMaze_METRA", changes=changes)
            for name, changes in variants.items()
        ),
        seeds=SEEDS,
        steps=DISCOVERY,
        device="cpu",
    )


def goals() -> Study:
    """Do skills that were discovered help to reach goals in a hall?

    Skills count: those who choose among them train for so many steps less than the agent alone.
    """
    runs = {seed: f"experiments/skills_discovery/METRA_seed{seed}" for seed in SEEDS}
    return Study(
        name="skills_goals",
        variants=(
            Variant(
                name="METRA's skills",
                preset="PointMaze_METRA",
                changes={"task": "goals"},
                changes_by_seed={seed: {"skills": run} for seed, run in runs.items()},
                steps=GOALS,
            ),
            Variant(
                name="flat",
                preset="PointMaze_METRA",
                changes={"task": "flat"},
                steps=DISCOVERY + GOALS,
            ),
        ),
        seeds=SEEDS,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=("../results/skills.md",),
    )
