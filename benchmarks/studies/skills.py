"""Skills that are discovered without reward (METRA) beside DIAYN's, and goals reached with them.

    coach study run benchmarks/studies/skills.py:discovery
    python benchmarks/skill_coverage.py experiments/skills_discovery/*
    coach study run benchmarks/studies/skills.py:goals
    coach study report benchmarks/studies/skills.py:goals --write

`skill_coverage.py` counts the cells that the skills of the first study visit. The second needs the
runs of METRA of the first, with their checkpoints: the newest of each seed.
"""

import json
from pathlib import Path

from coach_rl import Study, Variant

SEEDS = range(10, 15)
RUNS = Path("experiments/skills_discovery")
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
    skills = {seed: {"skills": run} for seed in SEEDS if (run := discovered(seed)) is not None}
    return Study(
        name="skills_goals",
        variants=(
            Variant(
                name="METRA's skills",
                preset="PointMaze_METRA",
                changes={"task": "goals"},
                changes_by_seed=skills,
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


def discovered(seed: int) -> str | None:
    """The run of METRA in the first study with this seed; None: it has not been made."""
    for file in sorted(RUNS.glob(f"*_seed{seed}_*/manifest.json"), reverse=True):
        if json.loads(file.read_text())["job"]["labels"]["variant"] == "METRA":
            return str(file.parent)
    return None
