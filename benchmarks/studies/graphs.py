"""Where the places of a graph are, and what its edges cost: a study of point mazes.

coach study run benchmarks/studies/graphs.py
coach study report benchmarks/studies/graphs.py
"""

from coach_rl import CriticSteps, FarthestPoints, Study, Variant

PLACES, COSTS = "stack.0.agent.places", "stack.0.agent.costs"
FARTHEST = {PLACES: FarthestPoints(count=100)}
VARIANTS = {
    "grid": {},
    "farthest": FARTHEST,
    "farthest, critic": FARTHEST | {COSTS: CriticSteps(), "stack.0.agent.forgetting": 0.0},
    "farthest, both": FARTHEST | {COSTS: CriticSteps()},
}
"""Changes by variant: edges cost their lengths, or steps by the critic below; both learns besides
how often they are passed, as the first two do."""


def study() -> Study:
    """A ball in the U maze, minutes a run."""
    return Study(
        name="graphs_point_maze",
        question="Is a graph of visited places, or one by the critic below, as good as a grid?",
        variants=tuple(
            Variant(
                name=name,
                preset="PointMaze_HAC",
                level="point_maze_u",
                changes={
                    "hierarchy": "graph",
                    "evaluation_interval": 100_000,
                    "layers": (64, 64),
                    **changes,
                },
            )
            for name, changes in VARIANTS.items()
        ),
        seeds=(21, 22, 23),
        steps=4_000,
        metric="success_rate",
        episodes=40,
        baseline="grid",
        device="cpu",
    )
