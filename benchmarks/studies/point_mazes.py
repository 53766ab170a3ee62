"""A graph of way-points leads a ball through OGBench's larger mazes: a study of each.

    coach study run benchmarks/studies/point_mazes.py:large
    coach study report benchmarks/studies/point_mazes.py:large --write

A run's score is the success at the last step of 100 episodes with the goals of evaluations.
"""

from coach_rl import EdgeLengths, Study, Variant


def large() -> Study:
    """OGBench's large maze, 36 m by 48 m with its walls."""
    return maze("ogbench_point_maze_large", steps=60_000)


def giant() -> Study:
    """OGBench's giant maze, 48 m by 64 m with its walls."""
    return maze("ogbench_point_maze_giant", steps=160_000)


def maze(level: str, *, steps: int) -> Study:
    """The study of a maze."""
    return Study(
        name=f"graph_{level}",
        question="Does a ball that follows a graph of way-points get to each goal of the maze?",
        variants=(
            Variant(
                name="graph",
                preset="PointMaze_HAC",
                level=level,
                changes={
                    "hierarchy": "graph",
                    "spacing": 2.0,
                    "stack.0.agent.costs": EdgeLengths(missed=4.0),
                    "stack.1.agent.learner.update_mode": "compiled",
                    "layers": (128, 128),
                    "batch": 256,
                    "evaluation_interval": steps // 4,
                },
            ),
        ),
        seeds=(110, 111, 112, 113, 114),
        steps=steps,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=("../results/point_mazes.md",),
    )
