"""Switches of hierarchies beside runs without them: a study of each.

    coach study run benchmarks/studies/switches.py:timed
    coach study report benchmarks/studies/switches.py:timed --write

A run's score is the success of 100 episodes after training, the same for every run.
"""

from coach_rl import CriticSteps, FarthestPoints, Study, Variant

PLACES, COSTS = "stack.0.agent.places", "stack.0.agent.costs"
FARTHEST = {PLACES: FarthestPoints(count=100)}
FEW = FarthestPoints(count=20)


def timed() -> Study:
    """Sub-goals with a time, where gates open and close by themselves."""
    return switches(
        "gates",
        preset="Gates_HiTS",
        level="gates",
        question="Do timed sub-goals bring a mass through gates more often?",
        variants={
            "timed (HiTS)": {"hierarchy": "hits"},
            "without a time (HAC)": {"hierarchy": "hac"},
            "flat, with hindsight": {"hierarchy": "none"},
        },
        baseline="without a time (HAC)",
        steps=80_000,
    )


def stopping() -> Study:
    """Stopping where a sub-goal is missed, and hindsight actions, which take its place in HAC."""
    without = {"stack.0.agent.actions": None}
    return switches(
        "stopping",
        preset="PointMaze_HAC",
        level="point_maze_u",
        question="Which makes better use of sub-goals that were missed?",
        variants={
            "hindsight actions (HAC)": {},
            "stops on failure (SSE)": {**without, "stack.0.parts": "(StopOnFailure(),)"},
            "neither": without,
        },
        baseline="neither",
        steps=30_000,
    )


def graphs() -> Study:
    """Placement of a graph's nodes, and its edge costs.

    Edges cost their lengths, or steps by the critic of the level below; "both" learns besides how
    often they are passed, as graphs whose edges cost lengths do.
    """
    return switches(
        "graphs",
        preset="PointMaze_HAC",
        level="point_maze_u",
        question="Is a graph of visited places, or one by the critic below, as good as a grid?",
        variants={
            name: {"hierarchy": "graph", **changes}
            for name, changes in {
                "grid": {},
                "farthest": FARTHEST,
                "farthest, critic": FARTHEST
                | {COSTS: CriticSteps(), "stack.0.agent.forgetting": 0.0},
                "farthest, both": FARTHEST | {COSTS: CriticSteps()},
                "farthest, 20 places": {PLACES: FEW},
            }.items()
        },
        baseline="grid",
        steps=8_000,
    )


def switches(
    name: str,
    *,
    preset: str,
    level: str,
    question: str,
    variants: dict[str, dict[str, object]],
    baseline: str,
    steps: int,
) -> Study:
    """The study of a switch; `variants` are changes by name."""
    return Study(
        name=f"switch_{name}",
        question=question,
        variants=tuple(
            Variant(
                name=each,
                preset=preset,
                level=level,
                changes={"layers": (64, 64), "evaluation_interval": steps // 4, **changes},
            )
            for each, changes in variants.items()
        ),
        seeds=(110, 111, 112, 113, 114),
        steps=steps,
        metric="success_rate",
        episodes=100,
        baseline=baseline,
        device="cpu",
        pages=("../results/switches.md",),
    )
