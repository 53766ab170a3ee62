"""Methods beside each other in the same world, with the same steps, networks and batches.

    coach study run benchmarks/studies/methods.py:point_maze
    coach study report benchmarks/studies/methods.py:point_maze --write

A run's score is the success at the last step of 100 episodes on starts and goals that training has
not seen. What differs between the methods beside their levels is what their presets set.
"""

from coach_rl import Study, Variant

SEEDS = (100, 101, 102)
SAME: dict[str, object] = {
    "layers": (128, 128),
    "batch": 128,
    "updates_per_step": 0.25,
    "learning_rate": 1e-3,
    "discount": 0.98,
    "evaluation_interval": 10_000,
}
"""What all methods share in the point maze; an upper level that learns has 0.2 updates per step."""
FLAT: dict[str, object] = {"hierarchy": "none"}
LONGER: dict[str, object] = {"exploration": "epsilon_z_greedy", "epsilon": 0.065}
"""With repetitions that begin less often, random actions are a fifth of all, as without them."""
GUIDED = ("hiro", "hrac")
"""HIRO, and HIRO with sub-goals that are kept adjacent."""


def point_maze() -> Study:
    """A ball in a maze with loops and dead ends, a minute a run: too short to be through with."""
    hiro = {**SAME, "upper_updates_per_step": 2.0, "heatup": 1_000}
    hac = {**SAME, "upper_updates_per_step": 4.0}
    variants = {
        **{name: ("PointMaze_HIRO", {**hiro, "hierarchy": name}) for name in GUIDED},
        "hac": ("PointMaze_HAC", hac),
        "graph": ("PointMaze_HAC", {**hac, "hierarchy": "graph"}),
        "flat, with hindsight": ("PointMaze_HAC", {**hac, **FLAT}),
        "flat, with hindsight and epsilon-z": ("PointMaze_HAC", {**hac, **FLAT, **LONGER}),
    }
    return Study(
        name="methods_point_maze",
        question="Which method is the first to find its way from anywhere in a maze to anywhere?",
        variants=tuple(
            Variant(name=name, preset=preset, level="point_maze_medium", changes=changes)
            for name, (preset, changes) in variants.items()
        ),
        seeds=SEEDS,
        steps=20_000,
        metric="success_rate",
        episodes=100,
        baseline="flat, with hindsight",
        device="cpu",
        pages=("../results/methods.md",),
    )
