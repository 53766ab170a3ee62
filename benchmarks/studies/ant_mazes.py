"""A graph of way-points leads an ant that learns to walk: a study of each world.

    coach study run benchmarks/studies/ant_mazes.py:u12
    coach study report benchmarks/studies/ant_mazes.py:u12 --write

Both levels learn from nothing, in the world that they are tested in. A run's score is the success
at the last step of 100 episodes with the goals of evaluations; the report has success at any step
beside it. A run takes five to thirty minutes of a core.
"""

from dataclasses import replace

from coach_rl import Published, Study, Variant

DHRL = "Lee et al. 2022, DHRL"
LATER = f"{DHRL}; BEAG and SSE: curves only"
"""For mazes on which these later methods were run as well."""
HAC = "the end of the one run logged in the repository of Levy et al. 2019, HAC; its best test 64 %"
HIRO = "Nachum et al. 2018, HIRO"
SEEDS = (160, 161, 162, 163, 164)
LONG_SEEDS = (170, 171, 172, 173, 174)
"""Those above were used with other settings in Pi, S and the complex maze."""
KEY_SEEDS = (180, 181, 182, 183, 184)
"""Those above were used with other settings where keys are fetched."""


def u12() -> Study:
    """A U of 12 m by 12 m."""
    return maze("ant_maze_u12", DHRL, 0.951, steps=300_000)


def u24() -> Study:
    """A U of 24 m by 24 m."""
    return maze("ant_maze_u24", LATER, 0.911, steps=400_000)


def bottleneck() -> Study:
    """The same with a gap of 1.6 m, through which an ant fits with its legs between the axes."""
    return maze("ant_maze_bottleneck", LATER, 0.387, steps=1_000_000)


def complex_maze() -> Study:
    """The largest, of 56 m by 56 m."""
    return maze("ant_maze_complex", LATER, 0.401, steps=400_000, seeds=LONG_SEEDS)


def reacher() -> Study:
    """HAC's field of 24 m by 24 m."""
    return maze("ant_reacher", steps=300_000)


def four_rooms() -> Study:
    """HAC's four rooms, of which the paper has curves only."""
    return maze("ant_four_rooms", HAC, 0.57, steps=400_000)


def hiro() -> Study:
    """HIRO's maze: a U of 24 m by 24 m in 500 steps."""
    return maze("ant_maze", HIRO, 0.99, steps=300_000)


def key_chest() -> Study:
    """SSE's chest that opens only to who has fetched the key."""
    return maze("ant_key_chest", steps=400_000, seeds=KEY_SEEDS)


def double_key_chest() -> Study:
    """The same with two keys, in order."""
    return maze("ant_double_key_chest", steps=500_000, seeds=KEY_SEEDS, evaluations=5)


def w() -> Study:
    """BEAG's W of 40 m by 40 m, of which there are only published curves."""
    return maze("ant_maze_w", steps=1_000_000, seeds=LONG_SEEDS)


def s() -> Study:
    """BEAG's S."""
    return maze("ant_maze_s", steps=1_000_000, seeds=LONG_SEEDS)


def pi() -> Study:
    """BEAG's Pi."""
    return maze("ant_maze_pi", steps=500_000, seeds=LONG_SEEDS)


def symmetry() -> Study:
    """Benefit of the ant's symmetry, and of the mirror within it."""
    study = u12()
    (graph,) = study.variants
    variants = (
        replace(graph, name="symmetric"),
        replace(
            graph,
            name="without mirror",
            changes={**graph.changes, "levels.1.agent.symmetry.mirrored": False},
        ),
        replace(graph, name="without", changes={**graph.changes, "symmetry": False}),
    )
    return replace(
        study,
        name=f"{study.name}_symmetry",
        question="How much faster does an ant learn that knows that its legs are alike?",
        variants=variants,
        seeds=SEEDS[:3],
        baseline="without",
    )


def without_graph_u12() -> Study:
    """The same walker without a graph: towards the goal itself, and alone."""
    study = u12()
    (graph,) = study.variants
    interval = graph.changes["evaluation_interval"]
    alone = {"evaluation_interval": interval, "levels.0.agent.update_mode": "compiled"}
    return replace(
        study,
        name=f"{study.name}_without",
        question="What does the graph bring, and what its walker?",
        variants=(
            graph,
            replace(graph, name="straight", changes={**graph.changes, "hierarchy": "straight"}),
            replace(graph, name="alone", changes={**alone, "hierarchy": "none"}),
        ),
        baseline="graph",
    )


def td3_u12() -> Study:
    """A U of 12 m by 12 m, with TD3 below; one_walker.py takes its walkers elsewhere."""
    return td3("ant_maze_u12", DHRL, 0.951, seeds=(100, 101, 102))


def td3_u24() -> Study:
    """A U of 24 m by 24 m, with TD3 below."""
    return td3("ant_maze_u24", LATER, 0.911, seeds=(110, 111, 112))


def td3(level: str, source: str, score: float, *, seeds: tuple[int, ...]) -> Study:
    """The study of a maze with TD3 below."""
    study = maze(level, source, score, steps=500_000, seeds=seeds)
    (graph,) = study.variants
    td3 = replace(graph, preset="AntMaze_Graph_TD3", changes={})
    return replace(study, name=f"graph_td3_{level}", variants=(td3,))


def maze(
    level: str,
    source: str = "",
    score: float = 0.0,
    *,
    steps: int,
    seeds: tuple[int, ...] = SEEDS,
    evaluations: int = 4,
) -> Study:
    """The study of a world, with compiled gradient steps, which are faster by a quarter here."""
    return Study(
        name=f"graph_{level}",
        question="Does an ant that follows a graph of way-points get to its goal?",
        variants=(
            Variant(
                name="graph",
                preset="AntMaze_Graph",
                level=level,
                changes={
                    "evaluation_interval": steps // evaluations,
                    "levels.1.agent.update_mode": "compiled",
                },
                published=Published(score=score, source=source) if source else None,
            ),
        ),
        seeds=seeds,
        steps=steps,
        metric="success_rate",
        episodes=100,
        device="cpu",
        pages=("../results/ant_mazes.md",),
    )
