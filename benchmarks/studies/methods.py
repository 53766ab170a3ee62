"""Methods beside each other in the same world, with the same steps, networks and batches.

    coach study run benchmarks/studies/methods.py:point_maze
    coach study report benchmarks/studies/methods.py:point_maze --write

A run's score is the success at the last step of 100 episodes after training, the same for every
run. What else differs between the methods is what their presets set.
"""

from dataclasses import replace

from coach_rl import Study, Variant

FLAT = "flat, with hindsight"
LONGER: dict[str, object] = {"exploration": "epsilon_z_greedy", "epsilon": 0.065}
"""With repetitions that begin less often, a fifth of the actions is random, as without them."""

SEEN = "goal_space.observed"
"""Observation of the goal: its position or, for the ball below a graph, the displacement to it."""


def point_maze() -> Study:
    """A ball in a maze with loops and dead ends, a minute a run: too short to be through with."""
    hiro = {"upper_updates_per_step": 2.0, "heatup": 1_000}
    hac = {"upper_updates_per_step": 4.0}  # for twice the steps of a decision
    return methods(
        "point_maze_medium",
        {
            **{
                name: ("PointMaze_HIRO", {**hiro, "hierarchy": name})
                for name in ("hiro", "hrac", "higl")
            },
            "hac": ("PointMaze_HAC", hac),
            "hac, ways seen": ("PointMaze_HAC", {**hac, f"stack.1.{SEEN}": "relative"}),
            "graph": ("PointMaze_HAC", {**hac, "hierarchy": "graph"}),
            **flat("PointMaze_HAC", hac),
            f"{FLAT}, ways seen": (
                "PointMaze_HAC",
                {**hac, "hierarchy": "none", f"levels.0.{SEEN}": "relative"},
            ),
        },
        question="Which method is the first to find its way from anywhere in a maze to anywhere?",
        same={
            "layers": (128, 128),
            "batch": 128,
            "updates_per_step": 0.25,
            "learning_rate": 1e-3,
            "discount": 0.98,
            "evaluation_interval": 10_000,
        },
        steps=40_000,
        seeds=(110, 111, 112, 113, 114),
    )


def ant_maze() -> Study:
    """An ant in the sparse U of 12 m, up to a quarter of an hour a run."""
    study = methods(
        "ant_maze_u12",
        {
            **{
                name: ("AntMaze_HRAC", {"hierarchy": name, "upper_updates_per_step": 1.0})
                for name in ("hiro", "hrac", "higl")
            },
            "hac": ("AntMaze_HAC", {"upper_updates_per_step": 2.5}),
            "graph, TD3 below": ("AntMaze_Graph_TD3", {}),
            **flat("AntMaze_HAC", {}),
        },
        question="Which method leads an ant to the far end of a maze?",
        same={
            "layers": (256, 256),
            "batch": 128,
            "updates_per_step": 0.5,
            "evaluation_interval": 50_000,
        },
        steps=100_000,
        seeds=(110, 111, 112, 113, 114),
    )
    ppo = Variant(
        name="graph, PPO below",
        preset="AntMaze_Graph",
        level="ant_maze_u12",
        changes={"evaluation_interval": 50_000, "levels.1.agent.update_mode": "compiled"},
    )
    return replace(study, variants=(ppo, *study.variants))


def flat(preset: str, changes: dict[str, object]) -> dict[str, tuple[str, dict[str, object]]]:
    """One agent with hindsight, whose random actions last for one step or longer."""
    alone = {**changes, "hierarchy": "none"}
    return {FLAT: (preset, alone), f"{FLAT} and epsilon-z": (preset, {**alone, **LONGER})}


def methods(
    level: str,
    variants: dict[str, tuple[str, dict[str, object]]],
    *,
    question: str,
    same: dict[str, object],
    steps: int,
    seeds: tuple[int, ...],
) -> Study:
    """The study of a world.

    Args:
        level: The world.
        variants: Each method's preset, and the changes of its settings.
        question: The question that the study answers.
        same: Settings of all methods.
        steps: Environment steps of a run.
        seeds: One for each run of a method.
    """
    return Study(
        name=f"methods_{level}",
        question=question,
        variants=tuple(
            Variant(name=name, preset=preset, level=level, changes={**same, **changes})
            for name, (preset, changes) in variants.items()
        ),
        seeds=seeds,
        steps=steps,
        metric="success_rate",
        episodes=100,
        baseline=FLAT,
        device="cpu",
        pages=("../results/methods.md",),
    )
