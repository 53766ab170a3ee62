"""Three agents of the workshop, trained apart, and a selector above them, beside a flat agent.

    coach study run benchmarks/studies/workshop.py:parts
    coach study run benchmarks/studies/workshop.py:order
    coach study report benchmarks/studies/workshop.py:order --write

A run's score is the success rate of 100 greedy episodes after training. A selector's parts have
learned with its own seed; the flat agent has as many steps as all four together.
"""

from pathlib import Path

from coach_rl import ConfigurationError, Study, Variant

TASKS = ("walk", "press", "push")
"""The tasks that are learned apart."""
PART, SELECTOR = 150_000, 300_000
"""Environment steps of each part, and of the selector."""
SEEDS = range(5)


def parts() -> Study:
    """Does an agent learn each task alone?"""
    return Study(
        name="workshop_parts",
        variants=tuple(
            Variant(name=task, preset="Workshop_PPO", changes={"task": task}) for task in TASKS
        ),
        seeds=SEEDS,
        steps=PART,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=("../results/workshop.md",),
    )


def order() -> Study:
    """Does a selector above them do all three in the order of the episode?"""
    return Study(
        name="workshop_order",
        variants=(
            Variant(
                name="selector",
                preset="Workshop_PPO_Selector",
                steps=SELECTOR,
                changes_by_seed={
                    seed: {task: str(run_of(task, seed)) for task in TASKS} for seed in SEEDS
                },
            ),
            Variant(
                name="flat",
                preset="Workshop_PPO",
                changes={"task": "all"},
                steps=len(TASKS) * PART + SELECTOR,
            ),
        ),
        seeds=SEEDS,
        steps=len(TASKS) * PART + SELECTOR,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=("../results/workshop.md",),
    )


def run_of(task: str, seed: int) -> Path:
    """The newest run that has learned a task with this seed.

    Raises:
        ConfigurationError: There is none.
    """
    runs = sorted(Path("experiments/workshop_parts").glob(f"workshop_{task}_seed{seed}_*"))
    if not runs:
        raise ConfigurationError(
            f"no run has learned to {task} with seed {seed}; train it with `coach study run "
            "benchmarks/studies/workshop.py:parts`"
        )
    return runs[-1]
