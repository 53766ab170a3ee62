"""A graph of way-points leads an ant that learns to walk: a study of each world.

    coach study run benchmarks/studies/ant_mazes.py:u12
    coach study report benchmarks/studies/ant_mazes.py:u12

A run's score is the success at the last step of 100 episodes with the goals of evaluations; the
report has success at any step beside it. A million steps take seven minutes to a quarter of an hour
of a core. In the bottleneck the usual grid has no place within the gap.
"""

from collections.abc import Mapping
from dataclasses import replace

from coach_rl import Published, Study, Variant
from coach_rl.core.frozen import FrozenMapping

DHRL = "Lee et al. 2022, DHRL"
HAC = "Levy et al. 2019, HAC"
SEEDS = (140, 141, 142)


def u12() -> Study:
    """A U of 12 m by 12 m."""
    return maze("ant_maze_u12", DHRL, 0.951)


def u24() -> Study:
    """A U of 24 m by 24 m."""
    return maze("ant_maze_u24", DHRL, 0.911)


def bottleneck() -> Study:
    """The same with a gap of 1.6 m."""
    return maze("ant_maze_bottleneck", DHRL, 0.387, changes={"spacing": 1.5})


def reacher() -> Study:
    """HAC's field of 24 m by 24 m."""
    return maze("ant_reacher")


def four_rooms() -> Study:
    """HAC's four rooms."""
    return maze("ant_four_rooms", HAC, 0.64)


def u12_longer() -> Study:
    """A U of 12 m by 12 m, three times as long; one_walker.py takes its walkers elsewhere."""
    study = maze("ant_maze_u12", DHRL, 0.951, steps=3_000_000)
    return replace(study, name=f"{study.name}_longer", seeds=(130, 131, 132))


def stance() -> Study:
    """A U of 12 m by 12 m, legs between the axes; one_walker.py lets its walkers practise gaps."""
    study = maze("ant_maze_u12", DHRL, 0.951, changes={"stance": True})
    return replace(study, name=f"{study.name}_stance", seeds=(150, 151, 152))


def td3_u12() -> Study:
    """A U of 12 m by 12 m, with TD3 below; one_walker.py takes its walkers elsewhere."""
    return td3("ant_maze_u12", 0.951, seeds=(100, 101, 102))


def td3_u24() -> Study:
    """A U of 24 m by 24 m, with TD3 below."""
    return td3("ant_maze_u24", 0.911, seeds=(110, 111, 112))


def td3(level: str, score: float, *, seeds: tuple[int, ...]) -> Study:
    """The study of a maze with TD3 below."""
    study = maze(level, DHRL, score, preset="AntMaze_Graph_TD3", steps=500_000)
    return replace(study, name=f"graph_td3_{level}", seeds=seeds)


def maze(
    level: str,
    source: str = "",
    score: float = 0.0,
    *,
    preset: str = "AntMaze_Graph",
    steps: int = 1_000_000,
    changes: Mapping[str, object] = FrozenMapping(),
) -> Study:
    """The study of a world."""
    return Study(
        name=f"graph_{level}",
        question="Does an ant that follows a graph of way-points get to its goal?",
        variants=(
            Variant(
                name="graph",
                preset=preset,
                level=level,
                changes=changes,
                published=Published(score=score, source=source) if source else None,
            ),
        ),
        seeds=SEEDS,
        steps=steps,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=("../results/ant_mazes.md",),
    )
