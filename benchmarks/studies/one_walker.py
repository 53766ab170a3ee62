"""Walkers that learned in the small U maze find their way through other mazes: a study of each.

    coach study run benchmarks/studies/ant_mazes.py:u12
    coach study run benchmarks/studies/one_walker.py:u24
    coach study report benchmarks/studies/one_walker.py:u24

A walker doesn't see where it is, so that what it learned in one maze serves in any other. Here it
is frozen, and only the graph above it learns, in a maze that the walker has never seen. Each run
has the walker of another seed of the first study, which took 500,000 steps. A run's score is the
success at the last step of 100 episodes with the goals of evaluations.
"""

from collections.abc import Mapping
from pathlib import Path

from coach_rl import Published, Study, Variant
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.frozen import FrozenMapping

HOME = Path("experiments/graph_ant_maze_u12")
WALKERS = (100, 101, 102)
"""Seeds of the walkers; those of their graphs are 100 higher."""
KEYS = FrozenMapping({"levels.0.agent.forgetting": 0.4, "levels.0.agent.exploring": 0.05})
"""Where most of the graph's edges can't be passed, it pays to learn that quickly."""
DHRL = "Lee et al. 2022, DHRL; its walkers learned in the same maze"
HIRO = "Nachum et al. 2018, HIRO; its walkers learned in the same maze"


def u24() -> Study:
    """A U of 24 m by 24 m."""
    return maze("ant_maze_u24", DHRL, 0.911, steps=200_000)


def complex_maze() -> Study:
    """The largest, of 56 m by 56 m."""
    return maze("ant_maze_complex", DHRL, 0.401, steps=400_000)


def hiro() -> Study:
    """HIRO's maze: a U of 24 m by 24 m in 500 steps."""
    return maze("ant_maze", HIRO, 0.99, steps=200_000)


def s() -> Study:
    """BEAG's S of 40 m by 40 m, of which there are only published curves."""
    return maze("ant_maze_s", steps=400_000)


def w() -> Study:
    """BEAG's W."""
    return maze("ant_maze_w", steps=400_000)


def pi() -> Study:
    """BEAG's Pi."""
    return maze("ant_maze_pi", steps=400_000)


def fall() -> Study:
    """HIRO's gap that only a block fills, which the ant must push into it."""
    return maze("ant_fall", HIRO, 0.66, steps=200_000)


def key_chest() -> Study:
    """SSE's chest that opens only to who has fetched the key."""
    return maze("ant_key_chest", steps=600_000, changes=KEYS)


def double_key_chest() -> Study:
    """The same with two keys, in order."""
    return maze("ant_double_key_chest", steps=1_000_000, changes=KEYS)


def maze(
    level: str,
    source: str = "",
    score: float = 0.0,
    *,
    steps: int,
    changes: Mapping[str, object] = FrozenMapping(),
) -> Study:
    """The study of a maze.

    Raises:
        ConfigurationError: A walker is missing.
    """
    published = Published(score=score, source=source) if source else None
    return Study(
        name=f"one_walker_{level}",
        question="Does a walker from the small U maze get to the far end of another maze?",
        variants=tuple(
            Variant(
                name=f"walker {seed}",
                preset="AntMaze_Graph",
                level=level,
                changes={
                    "levels.1.load": str(walker(seed)),
                    "levels.1.load_partly": True,  # a statistic of goals of another size
                    "levels.1.frozen": True,
                    "levels.1.horizon": 50,
                    "evaluation_interval": 2 * steps,  # only at the end
                    **changes,
                },
                seeds=(seed + 100,),
                published=published,
            )
            for seed in WALKERS
        ),
        seeds=(200,),
        steps=steps,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=("../results/ant_mazes.md",),
    )


def walker(seed: int) -> Path:
    """The newest run of the first study with this seed.

    Raises:
        ConfigurationError: There is none.
    """
    runs = sorted(HOME.glob(f"*_seed{seed}_*"))
    if not runs:
        raise ConfigurationError(
            f"{HOME} has no walker of seed {seed}; train it with "
            "`coach study run benchmarks/studies/ant_mazes.py:u12`"
        )
    return runs[-1]
