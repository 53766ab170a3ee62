"""The runs whose policies are shipped as trained agents (docs/trained.md); quick ones first.

    coach study run benchmarks/studies/trained.py --jobs 1 -ep RUNS
    python benchmarks/pack_trained.py RUNS

A variant's name is the agent's name after `trained:`.
"""

from collections.abc import Mapping
from dataclasses import replace

from coach_rl import Study, Variant

CHEETAH_SEEDS = (1,)
"""The policy of seed 0 falls onto its back in a tenth of its episodes."""
SMALL = {"layers": (64, 64)}
"""Layers of off-policy agents on easy tasks: an actor with two critics and their targets is large
otherwise."""


def study() -> Study:
    """Which policies are shipped?"""
    return Study(
        name="trained",
        variants=(
            Variant(name="CartPole_PPO", preset="CartPole_PPO"),
            _mujoco("Mujoco_PPO", "inverted_pendulum", 200_000),
            Variant(name="TMaze_PPO", preset="TMaze_PPO"),
            Variant(name="CartPole_DQN", preset="CartPole_DQN"),
            replace(_mujoco("Mujoco_PPO", "half_cheetah", 1_000_000), seeds=CHEETAH_SEEDS),
            Variant(
                name="PointMaze_HIRO/point_maze_u",
                preset="PointMaze_HIRO",
                level="point_maze_u",
                steps=60_000,
            ),
            _mujoco("Mujoco_PPO", "hopper", 1_000_000),
            Variant(name="Pendulum_SAC", preset="Pendulum_SAC", changes=SMALL),
            _mujoco("Mujoco_PPO", "walker2d", 1_000_000),
            _mujoco("Mujoco_SAC", "reacher", 50_000, SMALL),
            Variant(
                name="AntMaze_Graph/ant_maze_u12",
                preset="AntMaze_Graph",
                level="ant_maze_u12",
                steps=300_000,
            ),
            _mujoco("Mujoco_SAC", "half_cheetah", 300_000),
        ),
        seeds=(0,),
        device="cpu",
        threads=1,
    )


def _mujoco(
    preset: str, level: str, steps: int, changes: Mapping[str, object] | None = None
) -> Variant:
    name = f"{preset}/{level}"
    return Variant(name=name, preset=preset, level=level, steps=steps, changes=changes or {})
