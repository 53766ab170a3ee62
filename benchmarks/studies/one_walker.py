"""Walkers that learned in one maze find their way through others: a study of each.

    coach study run benchmarks/studies/ant_mazes.py:u12_longer
    coach study run benchmarks/studies/one_walker.py:key_chest
    coach study report benchmarks/studies/one_walker.py:key_chest

A walker doesn't see where it is, so that what it learned in one maze serves in any other. Here it
is frozen, and only the graph above it learns, in a maze that the walker has never seen; but in
HESS's worlds, where the ant has half the strength, and where it must pass narrow gaps the walker
goes on learning. Each run has the walker of another seed of the study that trained them, in three
million steps with PPO; for the bottleneck in a million and 600,000 of practice, and for the studies
whose names begin with td3 in 500,000 with TD3 (`ant_mazes.py:td3_u12`). A run's score is the
success at the last step of 100 episodes with the goals of evaluations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coach_rl import Published, Study, Variant
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.frozen import FrozenMapping


@dataclass(frozen=True, kw_only=True)
class Walkers:
    """Walkers of one kind."""

    name: str
    """What names of their studies begin with."""
    preset: str
    """The preset that they were trained with."""
    study: str
    """The study that they were trained in: a file here, and its function."""
    folder: str
    """The folder of its runs, in experiments."""
    seeds: tuple[int, ...]
    """Their seeds."""
    changes: Mapping[str, object] = field(default_factory=FrozenMapping)
    """Settings of their level."""


PPO = Walkers(
    name="one_ppo_walker",
    preset="AntMaze_Graph",
    study="ant_mazes.py:u12_longer",
    folder="graph_ant_maze_u12_longer",
    seeds=(130, 131, 132),
    changes=FrozenMapping({"levels.1.horizon": 60}),
)
TD3 = Walkers(
    name="one_walker",
    preset="AntMaze_Graph_TD3",
    study="ant_mazes.py:td3_u12",
    folder="graph_td3_ant_maze_u12",
    seeds=(100, 101, 102),
    changes=FrozenMapping(
        {
            "levels.1.load_partly": True,  # a statistic of goals of another size
            "levels.1.horizon": 50,
        }
    ),
)
STANCE = Walkers(
    name="stance_walker",
    preset="AntMaze_Graph",
    study="ant_mazes.py:stance",
    folder="graph_ant_maze_u12_stance",
    seeds=(150, 151, 152),
    changes=FrozenMapping({"stance": True}),
)
NARROW = Walkers(
    name="narrow_walker",
    preset="AntMaze_Graph",
    study="one_walker.py:gaps",
    folder="stance_walker_ant_gaps",
    seeds=(1950, 1951, 1952),
    changes=FrozenMapping({"stance": True, "levels.1.horizon": 60}),
)
KEYS = FrozenMapping({"levels.0.agent.exploring": 0.05, "levels.0.agent.forgetting": 0.4})
"""Walls must be learned once more with each key, for which averages take too long."""
BLOCKS = FrozenMapping({"levels.0.agent.forgetting": 0.05, "levels.0.agent.setbacks": True})
"""There are few walls, and a false step costs the episode."""
LEARNS = FrozenMapping(
    {
        **BLOCKS,
        "levels.1.frozen": False,
        "levels.1.horizon": 50,
        "evaluation_interval": 100_000,
    }
)
"""The walker goes on learning, with the preset's own time for a way-point: a step lasts twice as
long in HESS's worlds as elsewhere."""
DHRL = "Lee et al. 2022, DHRL; its walkers learned in the same maze"
HIRO = "Nachum et al. 2018, HIRO; its walkers learned in the same maze"
HLPS = "Wang et al. 2024, HLPS; its walkers learned in the same maze"


def u24() -> Study:
    """A U of 24 m by 24 m."""
    return maze(PPO, "ant_maze_u24", DHRL, 0.911, steps=200_000)


def complex_maze() -> Study:
    """The largest, of 56 m by 56 m."""
    return maze(PPO, "ant_maze_complex", DHRL, 0.401, steps=400_000)


def key_chest() -> Study:
    """SSE's chest that opens only to who has fetched the key."""
    return maze(PPO, "ant_key_chest", steps=400_000, changes=KEYS, graphs=2000)


def double_key_chest() -> Study:
    """The same with two keys, in order."""
    return maze(PPO, "ant_double_key_chest", steps=600_000, changes=KEYS)


def hiro() -> Study:
    """HIRO's maze: a U of 24 m by 24 m in 500 steps."""
    return maze(PPO, "ant_maze", HIRO, 0.99, steps=200_000)


def push() -> Study:
    """HIRO's block that must be pushed aside from its left, and closes the way otherwise."""
    return maze(PPO, "ant_push", HIRO, 0.92, steps=400_000, changes=BLOCKS)


def fall() -> Study:
    """HIRO's gap that only a block fills, which the ant must push into it."""
    return maze(PPO, "ant_fall", HIRO, 0.66, steps=400_000, changes=BLOCKS)


def push_stochastic() -> Study:
    """HESS's Ant Push: a weaker ant that acts half as often, half the width, and noise."""
    return maze(PPO, "ant_push_stochastic", HLPS, 0.91, steps=400_000, changes=LEARNS)


def fall_stochastic() -> Study:
    """HESS's Ant Fall, likewise."""
    changes = {**LEARNS, "spacing": 1.0}  # a place to stop at in front of the gap
    return maze(PPO, "ant_fall_stochastic", HLPS, 0.79, steps=300_000, changes=changes, graphs=2200)


def four_rooms() -> Study:
    """HESS's four rooms."""
    return maze(PPO, "ant_four_rooms_sparse", steps=300_000, changes=LEARNS)


def w() -> Study:
    """BEAG's W of 40 m by 40 m, of which there are only published curves."""
    return maze(PPO, "ant_maze_w", steps=400_000)


def s() -> Study:
    """BEAG's S."""
    return maze(PPO, "ant_maze_s", steps=400_000)


def pi() -> Study:
    """BEAG's Pi."""
    return maze(PPO, "ant_maze_pi", steps=400_000)


def gaps() -> Study:
    """A corridor with narrow gaps, where walkers practise."""
    changes: dict[str, object] = {
        "levels.1.frozen": False,
        "spacing": 4 / 3,  # a place within each gap
        "evaluation_interval": 100_000,
    }
    return maze(STANCE, "ant_gaps", steps=600_000, changes=changes)


def bottleneck() -> Study:
    """A U of 24 m by 24 m with a gap of 1.6 m, for walkers that have practised."""
    changes: dict[str, object] = {
        "levels.1.frozen": False,
        "spacing": 1.6,  # a place within the gap
        "evaluation_interval": 100_000,
    }
    return maze(NARROW, "ant_maze_bottleneck", DHRL, 0.387, steps=700_000, changes=changes)


def td3_u24() -> Study:
    """A U of 24 m by 24 m."""
    return maze(TD3, "ant_maze_u24", DHRL, 0.911, steps=200_000)


def td3_complex_maze() -> Study:
    """The largest, of 56 m by 56 m."""
    return maze(TD3, "ant_maze_complex", DHRL, 0.401, steps=400_000)


def td3_hiro() -> Study:
    """HIRO's maze: a U of 24 m by 24 m in 500 steps."""
    return maze(TD3, "ant_maze", HIRO, 0.99, steps=200_000)


def td3_w() -> Study:
    """BEAG's W."""
    return maze(TD3, "ant_maze_w", steps=400_000)


def td3_fall() -> Study:
    """HIRO's gap that only a block fills, which the ant must push into it."""
    return maze(TD3, "ant_fall", HIRO, 0.66, steps=200_000)


def td3_key_chest() -> Study:
    """SSE's chest that opens only to who has fetched the key."""
    return maze(TD3, "ant_key_chest", steps=600_000, changes=KEYS)


def maze(
    walkers: Walkers,
    level: str,
    source: str = "",
    score: float = 0.0,
    *,
    steps: int,
    changes: Mapping[str, object] = FrozenMapping(),
    graphs: int = 1800,
) -> Study:
    """The study of a maze; seeds are `graphs` higher than those of the walkers.

    Raises:
        ConfigurationError: A walker is missing.
    """
    published = Published(score=score, source=source) if source else None
    return Study(
        name=f"{walkers.name}_{level}",
        question="Does a walker from one maze get to the far end of another?",
        variants=tuple(
            Variant(
                name=f"walker {seed}",
                preset=walkers.preset,
                level=level,
                changes={
                    "levels.1.load": str(run_of(walkers, seed)),
                    "levels.1.frozen": True,
                    "evaluation_interval": 2 * steps,  # only at the end
                    **walkers.changes,
                    **changes,
                },
                seeds=(seed + graphs,),
                published=published,
            )
            for seed in walkers.seeds
        ),
        seeds=(200,),
        steps=steps,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=("../results/ant_mazes.md",),
    )


def run_of(walkers: Walkers, seed: int) -> Path:
    """The newest run that has trained such a walker with this seed.

    Raises:
        ConfigurationError: There is none.
    """
    home = Path("experiments") / walkers.folder
    runs = sorted(home.glob(f"*_seed{seed}_*"))
    if not runs:
        raise ConfigurationError(
            f"{home} has no walker of seed {seed}; train it with "
            f"`coach study run benchmarks/studies/{walkers.study}`"
        )
    return runs[-1]
