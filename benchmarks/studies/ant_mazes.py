"""A graph of way-points leads an ant through sparse mazes: a study of each, beside DHRL's rates.

    coach study run benchmarks/studies/ant_mazes.py:u12
    coach study report benchmarks/studies/ant_mazes.py:u12

A run's score is the success at the last step of 100 episodes with the goals of evaluations; the
report has success at any step beside it. A million steps take an hour of a core. Seeds 40 to 60
were looked at while settings were chosen. In the bottleneck the usual grid has no place within the
gap.
"""

from collections.abc import Mapping

from coach_rl import Published, Study, Variant

DHRL = "Lee et al. 2022, DHRL"
SEEDS = (100, 101, 102)


def u12() -> Study:
    """A U of 12 m by 12 m."""
    return maze("ant_maze_u12", score=0.951, steps=500_000)


def u24() -> Study:
    """A U of 24 m by 24 m."""
    return maze("ant_maze_u24", score=0.911, steps=500_000)


def bottleneck() -> Study:
    """The same with a gap of 1.6 m."""
    return maze("ant_maze_bottleneck", score=0.387, steps=1_000_000, changes={"spacing": 1.5})


def complex_maze() -> Study:
    """The largest, of 56 m by 56 m."""
    return maze("ant_maze_complex", score=0.401, steps=4_000_000)


def maze(
    level: str, *, score: float, steps: int, changes: Mapping[str, object] | None = None
) -> Study:
    """The study of a maze; DHRL took a million steps, and four in the complex maze."""
    return Study(
        name=f"graph_{level}",
        question="Does an ant that follows a graph of way-points get to the far end of the maze?",
        variants=(
            Variant(
                name="graph",
                preset="AntMaze_Graph",
                level=level,
                changes=changes or {},
                published=Published(score=score, source=DHRL),
            ),
        ),
        seeds=SEEDS,
        steps=steps,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=("../results/ant_mazes.md",),
    )
