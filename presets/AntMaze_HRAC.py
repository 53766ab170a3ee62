"""HRAC walks an ant through mazes: sub-goals stay adjacent; or HIGL, HIRO, or TD3 alone.

`hierarchy=higl` leads sub-goals to landmarks. Settings of both papers' programs; docs/algorithms/
hrac.md lists the differences.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import ANT_MAZES, WITHOUT_POSITION
from coach_rl.presets.hiro_hierarchies import GuidedPanel, hiro_experiment, ways_to_go
from coach_rl.presets.panels import arrives

PUBLISHED = {
    ("hrac", "ant_maze_u12"): arrives(0.884, within=1_000_000),
    ("hrac", "ant_maze_u24"): arrives(0.489, within=1_000_000),
    ("higl", "ant_maze_u24"): arrives(0.603, within=1_000_000),
}
"""Success rates after a million steps in DHRL's tables (Lee et al. 2022), by method and world."""
TORQUE = 30.0
"""A full action in newton metres, the unit of the programs; the worlds' lie between -1 and 1."""


@dataclass(frozen=True, kw_only=True)
class Panel(GuidedPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = (*ANT_MAZES, "ant_maze")
    level: str = "ant_maze_u24"
    hierarchy: Literal["hiro", "hrac", "higl", "none"] = "hrac"
    """hrac: sub-goals are kept adjacent. higl: they are near landmarks. hiro: neither. none: TD3
    acts alone, all else equal."""
    steps: int = 1_000_000
    learning_rate: float = 1e-3
    """Learning rate of critics."""
    actor_learning_rate: float = 1e-4
    """Learning rate of actors."""
    discount: float = 0.99
    lower_discount: float = 0.95
    """Discount factor per decision of the lower level."""
    batch: int = 128
    updates_per_step: float = 1.0
    upper_updates_per_step: float = 1.0
    reach: float = 10.0
    """Largest distance of a sub-goal along x and y, in metres."""
    noise: float = 1.0
    """Standard deviation of the exploration noise at the lowest level, in newton metres."""
    upper_noise: float = 1.0
    """Standard deviation of the noise on sub-goals, in metres."""
    layers: tuple[int, ...] = (300, 300)
    memory: int = 200_000
    evaluation_interval: int = 50_000


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Walk an ant through a maze with sparse rewards, or HIRO's with dense ones."""
    world = panel.world()
    places = world.task.goal_space
    seen = replace(panel.torso, keys=("observation", "desired_goal"))
    learner = rl.TD3AgentParameters(
        algorithm=rl.TD3AlgorithmParameters(
            discount=panel.lower_discount,
            huber=1.0,
            policy_delay=1,
            target_noise=0.2,
            target_noise_clip=0.5,
            target_noise_unit="raw",
        ),
        learning=rl.LearningParameters(
            batch=panel.batch, updates_per_step=panel.updates_per_step, learning_starts=500
        ),
        memory=rl.ReplayMemoryParameters(capacity=panel.memory),
        exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=panel.noise), unit="raw"),
        actor=rl.ActorParameters(torso=seen),
        critic=rl.CriticParameters(torso=seen, action_unit="raw"),
        actor_optimizer=rl.AdamParameters(learning_rate=panel.actor_learning_rate),
        critic_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate, l2=1e-4),
        input_filter=WITHOUT_POSITION,
        output_filter=rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-TORQUE, high=TORQUE),)),
    )
    return hiro_experiment(
        panel,
        world,
        learner,
        # Wide enough never to clip one.
        subgoals=ways_to_go(
            replace(
                places,
                low=tuple(low - panel.reach for low in places.low),
                high=tuple(high + panel.reach for high in places.high),
            ),
            panel.reach,
        ),
        reward_scale=0.1,
        schedule=panel.schedule(),
        guide=panel.guide(),
        evaluation_world=panel.world(targets="evaluation"),
        validation=PUBLISHED.get((panel.hierarchy, panel.level)),
    )
