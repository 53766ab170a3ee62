"""HIRO walks an ant through a maze, pushes blocks aside and bridges gaps; or TD3 alone tries to.

Settings of Nachum et al. 2018 and of their program; docs/algorithms/hiro.md has the differences.
The mark it is validated by is a guess: it has not been run that long here.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import WITHOUT_POSITION
from coach_rl.presets.hiro_hierarchies import HIROPanel, hiro_experiment

WITHOUT_ANY_POSITION = rl.InputFilter(
    observation={
        **WITHOUT_POSITION.observation,
        "achieved_goal": (rl.ObservationClippingFilter(low=0.0, high=0.0),),
    }
)
"""Hides from the lower level where it is, in `achieved_goal` as well."""


@dataclass(frozen=True, kw_only=True)
class Panel(HIROPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = ("ant_maze", "ant_push", "ant_fall")
    hierarchy: Literal["hiro", "none"] = "hiro"
    """hiro: two levels. none: TD3 acts alone, all else equal. See AntMaze_HRAC for others."""
    level: str = "ant_maze"
    steps: int = 10_000_000
    learning_rate: float = 1e-3
    """Learning rate of critics."""
    actor_learning_rate: float = 1e-4
    """Learning rate of actors."""
    discount: float = 0.99
    batch: int = 100
    updates_per_step: float = 1.0
    upper_updates_per_step: float = 1.0
    noise: float = 1.0
    """Standard deviation of the exploration noise at the lowest level, in newton metres."""
    upper_noise: float = 1.0
    """Standard deviation of the noise on sub-goals, each element in its own unit."""
    layers: tuple[int, ...] = (300, 300)
    memory: int = 1_000_000
    learning_starts: int = 2_500
    """Environment steps of the untrained policy before learning starts."""
    evaluation_interval: int = 50_000


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Walk an ant to anywhere in a maze, behind a block or beyond a gap."""
    world = panel.world()
    task = world.task
    assert isinstance(task, rl.AntMaze)
    learner = rl.TD3AgentParameters(
        algorithm=rl.TD3AlgorithmParameters(
            discount=panel.discount,
            huber=1.0,
            target_noise=0.2,
            target_noise_clip=0.5,
            target_noise_unit="raw",
        ),
        learning=rl.LearningParameters(
            batch=panel.batch,
            updates_per_step=panel.updates_per_step,
            learning_starts=max(panel.batch, panel.learning_starts),
        ),
        memory=rl.ReplayMemoryParameters(capacity=panel.memory),
        exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=panel.noise), unit="raw"),
        actor=rl.ActorParameters(torso=panel.torso, final_bound=3e-3),
        critic=rl.CriticParameters(
            torso=panel.torso, action_layers=(0, 1), action_unit="raw", final_bound=3e-3
        ),
        actor_optimizer=rl.AdamParameters(learning_rate=panel.actor_learning_rate),
        critic_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
        input_filter=WITHOUT_ANY_POSITION,
        # Actions in newton metres; the world's lie between -1 and 1.
        output_filter=rl.OutputFilter(
            action=(rl.LinearBoxToBoxMap(low=-task.gear, high=task.gear),)
        ),
    )
    return hiro_experiment(
        panel,
        world,
        learner,
        subgoals=replace(task.subgoal_space, observed="relative"),
        reward_scale=0.1,
        schedule=panel.schedule(),
        evaluation_world=panel.world(targets="evaluation"),
        validation=None,  # no run of ours has learned it
    )
