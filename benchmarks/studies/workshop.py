"""Three agents of the workshop, trained apart, and a selector above them, beside a flat agent.

    coach study run benchmarks/studies/workshop.py:parts
    coach study run benchmarks/studies/workshop.py:order
    coach study report benchmarks/studies/workshop.py:order --write

`ant_parts` and `ant_order` are the same with an ant. A run's score is the success rate of 100
greedy episodes after training. A selector's parts have learned with its own seed; the flat agent
has as many steps as all four together.
"""

from collections.abc import Mapping
from pathlib import Path

from coach_rl import ConfigurationError, Study, Variant

TASKS = ("walk", "press", "push")
"""The tasks that are learned apart."""
PART, SELECTOR = 150_000, 300_000
"""Environment steps of each part, and of the selector."""
SEEDS = tuple(range(5))
PAGES = ("../results/workshop.md",)


ANT_PART, ANT_SELECTOR = 150_000, 150_000
"""The same for the ant."""
ANT = {"robot": "ant"}


def parts() -> Study:
    """Does an agent learn each task alone?"""
    return _parts("workshop_parts", PART, {})


def ant_parts() -> Study:
    """Does an ant learn each task alone?"""
    return _parts("ant_workshop_parts", ANT_PART, ANT)


def order() -> Study:
    """Does a selector above them do all three in the order of the episode?"""
    return _order("workshop_order", "workshop_parts", PART, SELECTOR, {}, {"flat": {}})


def ant_order() -> Study:
    """Does a selector above an ant's parts do all three in the order of the episode?"""
    flats = {"flat": {}, "flat, due task ahead": {"due_ahead": True}}
    return _order("ant_workshop_order", "ant_workshop_parts", ANT_PART, ANT_SELECTOR, ANT, flats)


def _parts(name: str, steps: int, changes: Mapping[str, object]) -> Study:
    return Study(
        name=name,
        variants=tuple(
            Variant(name=task, preset="Workshop_PPO", changes={**changes, "task": task})
            for task in TASKS
        ),
        seeds=SEEDS,
        steps=steps,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=PAGES,
    )


def _order(
    name: str,
    parts: str,
    part: int,
    selector: int,
    changes: Mapping[str, object],
    flats: Mapping[str, Mapping[str, object]],
) -> Study:
    """A selector, and flat agents with the steps of all.

    Args:
        name: Name of the study.
        parts: Name of that of the parts.
        part: Environment steps of each part.
        selector: Those of the selector.
        changes: Settings of all.
        flats: Further settings of the flat agents, by name.
    """
    return Study(
        name=name,
        variants=(
            Variant(
                name="selector",
                preset="Workshop_PPO_Selector",
                steps=selector,
                changes=changes,
                changes_by_seed={
                    seed: {task: str(run_of(task, seed, parts)) for task in TASKS} for seed in SEEDS
                },
            ),
            *(
                Variant(
                    name=flat,
                    preset="Workshop_PPO",
                    changes={**changes, **more, "task": "all"},
                    steps=len(TASKS) * part + selector,
                )
                for flat, more in flats.items()
            ),
        ),
        seeds=SEEDS,
        steps=len(TASKS) * part + selector,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=PAGES,
    )


def run_of(task: str, seed: int, study: str) -> Path:
    """The newest run of a study that has learned a task with this seed.

    Raises:
        ConfigurationError: There is none.
    """
    runs = sorted(Path("experiments", study).glob(f"*{task}_seed{seed}_*"))
    if not runs:
        name = study.removeprefix("workshop_").replace("ant_workshop_", "ant_")
        raise ConfigurationError(
            f"no run has learned to {task} with seed {seed}; train it with `coach study run "
            f"benchmarks/studies/workshop.py:{name}`"
        )
    return runs[-1]
