"""Skills are discovered in a square without any reward: they come to differ in where they lead."""

from dataclasses import dataclass

from coach_rl import (
    ActorParameters,
    CriticParameters,
    DIAYNAgentParameters,
    DiscriminatorParameters,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GraphManager,
    GraphParameters,
    HRLGraphManager,
    LearningParameters,
    LevelParameters,
    OptionSpace,
    PointMassParameters,
    ReplayMemoryParameters,
    ScheduleParameters,
    TorsoParameters,
    UniformAgentParameters,
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Settings to change with -cp."""

    skills: int = 6
    """Skills to discover."""
    num_envs: int = 8
    """Environments in parallel."""
    steps: int = 20_000
    """Environment steps to train for."""
    batch: int = 128
    """Transitions per gradient step."""
    updates_per_step: float = 0.25
    """Gradient steps per environment step."""
    layers: tuple[int, ...] = (64, 64)
    """Hidden layers of actor, critics and discriminator."""


def graph_manager(panel: Panel) -> GraphManager:
    """A mass in a square finds skills by itself, which lead to different places.

    The upper level draws one of the skills for each episode. Its agent is rewarded for being where
    a discriminator, which sees the position alone, can tell which skill it was given.
    """
    torso = TorsoParameters(middleware=panel.layers, activation="relu", orthogonal=False)
    low = LevelParameters(
        name="low",
        agent=DIAYNAgentParameters(
            name="skills",
            actor=ActorParameters(torso=torso),
            critic=CriticParameters(torso=torso),
            discriminator=DiscriminatorParameters(elements=(0, 1), torso=torso),
            learning=LearningParameters(batch=panel.batch, updates_per_step=panel.updates_per_step),
            memory=ReplayMemoryParameters(capacity=100_000),
        ),
        goal_space=OptionSpace(count=panel.skills),
    )
    return HRLGraphManager(
        GraphParameters(
            levels=(LevelParameters(name="top", agent=UniformAgentParameters()), low),
            environment=PointMassParameters(),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(panel.steps),
                evaluation_interval=EnvironmentSteps(10_000),
                evaluation_episodes=EnvironmentEpisodes(20),
            ),
            num_envs=panel.num_envs,
        )
    )
