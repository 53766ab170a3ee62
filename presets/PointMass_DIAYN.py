"""Skills are discovered in a square without any reward: they come to differ in where they lead."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import RunPanel, hrl


@dataclass(frozen=True, kw_only=True)
class Panel(RunPanel):
    """Settings to change with -cp."""

    skills: int = 6
    """Skills to discover."""
    steps: int = 20_000
    batch: int = 128
    """Transitions per gradient step."""
    updates_per_step: float = 0.25
    """Gradient steps per environment step."""
    layers: tuple[int, ...] = (64, 64)
    """Hidden layers of actor, critics and discriminator."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A mass in a square finds skills by itself, which lead to different places.

    The upper level draws one of the skills for each episode. Its agent is rewarded for being where
    a discriminator of positions recognises the skill that it was given.
    """
    torso = rl.TorsoParameters(middleware=panel.layers, activation="relu", orthogonal=False)
    low = rl.LevelParameters(
        name="low",
        agent=rl.DIAYNAgentParameters(
            name="skills",
            actor=rl.ActorParameters(torso=torso),
            critic=rl.CriticParameters(torso=torso),
            discriminator=rl.DiscriminatorParameters(elements=(0, 1), torso=torso),
            learning=rl.LearningParameters(
                batch=panel.batch, updates_per_step=panel.updates_per_step
            ),
            memory=rl.ReplayMemoryParameters(capacity=100_000),
        ),
        goal_space=rl.OptionSpace(count=panel.skills),
    )
    return hrl(
        panel,
        (rl.LevelParameters(name="top", agent=rl.UniformAgentParameters()), low),
        rl.PointMassParameters(),
        panel.schedule(evaluation_interval=10_000, evaluation_episodes=20),
        validation=None,
    )
