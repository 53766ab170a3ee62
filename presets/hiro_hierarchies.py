"""HIRO's two levels in worlds with goals, for presets: plain, guided (HRAC, HIGL), or one agent.

Meant to be imported by presets, the shipped ones and yours.
"""

from dataclasses import dataclass, replace
from typing import Literal

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import ReplayPanel
from coach_rl.presets.panels import hrl


@dataclass(frozen=True, kw_only=True)
class HIROPanel(ReplayPanel):
    """Settings of HIRO."""

    hierarchy: str = "hiro"
    """hiro: two levels. none: TD3 acts alone, all else equal."""
    correction: bool = True
    """If True, sub-goals are corrected; False is the control."""
    upper_updates_per_step: float
    """Gradient steps per decision of the level above it."""
    horizon: int = 10
    """Environment steps that a sub-goal holds for."""
    noise: float
    """Standard deviation of the exploration noise at the lowest level."""
    upper_noise: float
    """Standard deviation of the noise on sub-goals."""
    memory: int
    """Environment steps that are kept, by both levels."""


@dataclass(frozen=True, kw_only=True)
class GuidedPanel(HIROPanel):
    """Settings of HIRO, HRAC and HIGL."""

    hierarchy: Literal["hiro", "hrac", "higl", "none"] = "hiro"
    """hiro: two levels. hrac: their sub-goals are kept adjacent. higl: their sub-goals are near
    landmarks. none: TD3 acts alone, all else equal."""
    landmark_decisions: int = 32
    """HIGL: decisions of a batch that landmarks are planned for; its program: all of them."""
    novelty_updates: float = 0.25
    """HIGL: gradient steps per environment step of the novelty network; its program: 1."""

    def guide(
        self,
        adjacency: "rl.AdjacencyParameters | None" = None,
        landmarks: "rl.LandmarkParameters | None" = None,
    ) -> "tuple[rl.SubGoalGuideParameters, ...]":
        """The terms of the upper actor's loss that guide its sub-goals; none for HIRO.

        HIGL's program has the landmark loss instead of HRAC's penalty, and its adjacent places are
        half as many steps apart.

        Args:
            adjacency: Learning of adjacency; None: the defaults.
            landmarks: HIGL's landmarks, whose `decisions` and `novelty` are the panel's; None: the
                defaults.
        """
        adjacency = adjacency or rl.AdjacencyParameters()
        landmarks = landmarks or rl.LandmarkParameters()
        match self.hierarchy:
            case "hrac":
                return (rl.SubGoalGuideParameters(adjacency=adjacency),)
            case "higl":
                near = replace(adjacency, weight=0.0, steps=max(2, self.horizon // 2))
                novelty = rl.NoveltyParameters(updates_per_step=self.novelty_updates)
                few = replace(landmarks, decisions=self.landmark_decisions, novelty=novelty)
                return (rl.SubGoalGuideParameters(adjacency=near, landmarks=few),)
        return ()


def point_maze_learner(panel: HIROPanel) -> rl.TD3AgentParameters:
    """TD3 for the lower of two levels in a point maze, or for an agent alone."""
    return rl.TD3AgentParameters(
        algorithm=rl.TD3AlgorithmParameters(
            discount=panel.discount, huber=1.0, target_noise=0.2, target_noise_clip=0.5
        ),
        learning=rl.LearningParameters(
            batch=panel.batch,
            updates_per_step=panel.updates_per_step,
            learning_starts=max(panel.batch, 1_000),
        ),
        memory=rl.ReplayMemoryParameters(capacity=panel.memory),
        exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=panel.noise)),
        actor=rl.ActorParameters(torso=panel.torso),
        critic=rl.CriticParameters(torso=panel.torso),
        actor_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
        critic_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
    )


def ways_to_go(places: rl.GoalSpace, reach: float) -> rl.GoalSpace:
    """HIRO's sub-goals as ways to go, as far as `reach` along each axis; all hold to the end."""
    return replace(
        places,
        threshold=(0.0,) * places.size,  # never reached
        reached_within="elements",
        relative=True,
        reach=(reach,) * places.size,
        observed="relative",
        reward="dense",
    )


def hiro_experiment(
    panel: HIROPanel,
    world: "rl.GoalWorldParameters",
    learner: rl.TD3AgentParameters,
    *,
    subgoals: rl.GoalSpace,
    reward_scale: float,
    schedule: rl.ScheduleParameters,
    guide: "tuple[rl.SubGoalGuideParameters, ...]" = (),
    evaluation_world: "rl.GoalWorldParameters | None" = None,
    validation: rl.ValidationParameters | None,
) -> rl.GraphManager:
    """HIRO, HRAC or HIGL in a goal world, or TD3 alone.

    Args:
        panel: The preset's settings.
        world: The goal world.
        learner: The lower level's agent. The upper level learns in the same way from its own
            memory, which reaches back equally far, with the panel's discount.
        subgoals: The goal space of the lower level.
        reward_scale: Multiplies the environment's rewards.
        schedule: The lengths of the phases.
        guide: The guide of sub-goals, for HRAC and HIGL; empty for HIRO.
        evaluation_world: The world of evaluations; None where it is the same.
        validation: The acceptance test, if there is one.
    """
    rewards = rl.InputFilter(reward=(rl.RewardRescaleFilter(factor=reward_scale),))
    learning_starts = learner.learning.learning_starts // panel.horizon
    upper = rl.HIROAgentParameters(
        algorithm=replace(learner.algorithm, discount=panel.discount),
        learning=rl.LearningParameters(
            batch=panel.batch,
            updates_per_step=panel.upper_updates_per_step,
            learning_starts=max(panel.batch, learning_starts),
        ),
        memory=rl.ReplayMemoryParameters(capacity=panel.memory // panel.horizon),
        exploration=rl.GaussianNoise(
            scale=rl.ConstantSchedule(value=panel.upper_noise),
            unit=learner.algorithm.target_noise_unit,
        ),
        actor=learner.actor,
        critic=learner.critic,
        actor_optimizer=learner.actor_optimizer,
        critic_optimizer=learner.critic_optimizer,
        input_filter=rewards,
        correction=rl.SubGoalCorrectionParameters() if panel.correction else None,
        actor_terms=guide,
    )
    top = rl.LevelParameters(name="top", agent=upper)
    low = rl.LevelParameters(name="low", agent=learner, goal_space=subgoals, horizon=panel.horizon)
    alone = rl.LevelParameters(agent=replace(learner, input_filter=rewards))
    return hrl(
        panel,
        (alone,) if panel.hierarchy == "none" else (top, low),
        world,
        schedule,
        evaluation_environment=evaluation_world,
        validation=validation,
    )
