"""Walkers that learned in one maze find their way through others: a study of each.

    coach study run benchmarks/studies/ant_mazes.py:u12
    coach study run benchmarks/studies/one_walker.py:push_stochastic
    coach study report benchmarks/studies/one_walker.py:push_stochastic --write

A walker doesn't see where it is, so that what it learned in one maze serves in any other. Here it
is frozen, and only the graph above it learns, in a maze that the walker has never seen; but in
HESS's worlds, where the ant has half the strength, it continues to learn. Each run has the walker
of another seed of the study that trained them, in 300,000 steps in the U of 12 m. A run's score is
the success at the last step of 100 episodes with the goals of evaluations; the report has success
at any step beside it.
"""

from collections.abc import Mapping
from pathlib import Path

from coach_rl import Published, Study, Variant
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.typed_values import FrozenMapping

WALKERS = (160, 161, 162, 163, 164)
"""Their seeds; those of the graphs above them are 100 higher, or 200."""
TRAINED = "ant_mazes.py:u12"
"""The study that they were trained in: a file here, and its function."""
FOLDER = "graph_ant_maze_u12"
"""The folder of its runs, in experiments."""
LEARNS = FrozenMapping(
    {
        "levels.1.frozen": False,
        "levels.1.agent.update_mode": "compiled",
    }
)
"""For blocks to push: a walker that continues to learn."""
DHRL = "Lee et al. 2022, DHRL; its walkers learned in the same maze; BEAG and SSE: curves only"
HIRO = "Nachum et al. 2018, HIRO; its walkers learned in the same maze"
HLPS = "Wang et al. 2024, HLPS; its walkers learned in the same maze"


def u24() -> Study:
    """A U of 24 m by 24 m."""
    return maze("ant_maze_u24", DHRL, 0.911, steps=100_000)


def complex_maze() -> Study:
    """The largest, of 56 m by 56 m."""
    return maze("ant_maze_complex", DHRL, 0.401, steps=300_000)


def hiro() -> Study:
    """HIRO's maze: a U of 24 m by 24 m in 500 steps."""
    return maze("ant_maze", HIRO, 0.99, steps=100_000)


def push_stochastic() -> Study:
    """HESS's Ant Push: a weaker ant that acts half as often, half of HIRO's width, and noise."""
    return maze("ant_push_stochastic", HLPS, 0.91, steps=400_000, changes=LEARNS, above=200)


def fall_stochastic() -> Study:
    """HESS's Ant Fall, likewise."""
    return maze("ant_fall_stochastic", HLPS, 0.79, steps=200_000, changes=LEARNS)


def w() -> Study:
    """BEAG's W of 40 m by 40 m, of which there are only published curves."""
    return maze("ant_maze_w", steps=300_000)


def s() -> Study:
    """BEAG's S."""
    return maze("ant_maze_s", steps=300_000)


def pi() -> Study:
    """BEAG's Pi."""
    return maze("ant_maze_pi", steps=300_000)


def ogbench_medium() -> Study:
    """OGBench's medium maze; all its five tasks."""
    return maze("ogbench_ant_maze_medium", steps=200_000)


def ogbench_large() -> Study:
    """OGBench's large maze."""
    return maze("ogbench_ant_maze_large", steps=200_000)


def ogbench_giant() -> Study:
    """OGBench's giant maze."""
    return maze("ogbench_ant_maze_giant", steps=400_000)


def maze(
    level: str,
    source: str = "",
    score: float = 0.0,
    *,
    steps: int,
    changes: Mapping[str, object] = FrozenMapping(),
    above: int = 100,
) -> Study:
    """The study of a maze, with the walkers of all seeds.

    Args:
        level: The maze.
        source: The publication of a score to compare with; empty for none.
        score: The published score.
        steps: Length of each run.
        changes: Changes of the preset, by path.
        above: Difference between the seeds of graphs and those of their walkers.

    Raises:
        ConfigurationError: A walker is missing.
    """
    published = Published(score=score, source=source) if source else None
    return Study(
        name=f"one_walker_{level}",
        question="Does a walker from one maze get to the far end of another?",
        variants=(
            Variant(
                name="graph",
                preset="AntMaze_Graph",
                level=level,
                changes={
                    "levels.1.frozen": True,
                    "evaluation_interval": steps // 2,
                    **changes,
                },
                changes_by_seed={
                    seed + above: {"levels.1.load": str(run_of(seed))} for seed in WALKERS
                },
                published=published,
            ),
        ),
        seeds=tuple(seed + above for seed in WALKERS),
        steps=steps,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=("../results/ant_mazes.md",),
    )


def run_of(seed: int) -> Path:
    """The newest run that has trained a walker with this seed.

    Raises:
        ConfigurationError: There is none.
    """
    home = Path("experiments") / FOLDER
    runs = sorted(home.glob(f"*_seed{seed}_*"))
    if not runs:
        raise ConfigurationError(
            f"{home} has no walker of seed {seed}; train it with "
            f"`coach study run benchmarks/studies/{TRAINED}`"
        )
    return runs[-1]
