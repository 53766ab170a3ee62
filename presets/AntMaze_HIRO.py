"""HIRO walks an ant through a maze, pushes blocks aside and bridges gaps; or TD3 alone tries to."""

from dataclasses import dataclass, replace
from typing import Literal

from coach_rl.agents.hiro_agent import HIROAgentParameters, SubGoalCorrectionParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.td3_agent import TD3AgentParameters, TD3AlgorithmParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.architectures.update_engine import AdamParameters
from coach_rl.core.errors import UnknownNameError
from coach_rl.core.filters import InputFilterParameters, OutputFilterParameters
from coach_rl.core.goals import GoalSpace
from coach_rl.core.schedules import ConstantSchedule
from coach_rl.core.spaces import ActionUnit
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.goal_worlds import AntMaze, GoalWorldParameters
from coach_rl.environments.goal_worlds.ant_body import OBSERVED
from coach_rl.exploration_policies import GaussianNoise
from coach_rl.filters import (
    InputFilter,
    LinearBoxToBoxMap,
    ObservationClippingFilter,
    ObservationReductionBySubPartsNameFilter,
    OutputFilter,
    RewardRescaleFilter,
)
from coach_rl.graph_managers import (
    HRLGraphManager,
    HRLGraphParameters,
    LevelParameters,
    ScheduleParameters,
    ValidationParameters,
)
from coach_rl.memories import ReplayMemoryParameters

Hierarchy = Literal["hiro", "none"]
MAZES = ("ant_maze", "ant_push", "ant_fall")

PLACELESS = InputFilter(
    observation={
        "observation": (
            ObservationReductionBySubPartsNameFilter(
                names=OBSERVED, sub_parts=("x", "y"), method="discard"
            ),
        ),
        "achieved_goal": (ObservationClippingFilter(low=0.0, high=0.0),),
    }
)
"""Hides from the level below where it is: a step to the left is the same everywhere."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What both levels, or the one agent, learn with."""

    learning_rate: float
    """Adam's, of critics."""
    actor_learning_rate: float
    """Adam's, of actors."""
    discount: float
    """Gamma, per decision of a level."""
    batch: int
    """Transitions per gradient step."""
    updates_per_step: float
    """Gradient steps per environment step, at the lowest level."""
    upper_updates_per_step: float
    """Gradient steps per decision of the upper level."""
    learning_starts: int
    """Environment steps before learning starts, at the least a batch of decisions."""
    action_unit: ActionUnit
    """What the three kinds of noise are measured in, and what critics see actions in."""
    noise: float
    """Deviation of the exploration at the lowest level."""
    upper_noise: float
    """The same of sub-goals."""
    target_noise: float
    """Deviation of the noise on the targets' actions."""
    target_noise_clip: float
    """Largest size of that noise."""
    layers: tuple[int, ...]
    """Sizes of the hidden layers."""
    action_layers: tuple[int, ...]
    """Layers of the critics whose input the action is part of."""
    final_bound: float | None
    """The last layers' initial weights lie within +- this; None: as usual."""
    memory: int
    """Environment steps that are kept, by both levels."""
    reward_scale: float
    """Multiplies the environment's rewards."""

    def level(self, *, upper: bool, horizon: int = 1) -> TD3AgentParameters:
        """An agent's settings but for those of HIRO; memories reach back equally far."""
        torso = TorsoParameters(middleware=self.layers, activation="relu", orthogonal=False)
        noise = self.upper_noise if upper else self.noise
        return TD3AgentParameters(
            algorithm=TD3AlgorithmParameters(
                discount=self.discount,
                huber=1.0,
                target_noise=self.target_noise,
                target_noise_clip=self.target_noise_clip,
                target_noise_unit=self.action_unit,
            ),
            learning=LearningParameters(
                batch=self.batch,
                updates_per_step=self.upper_updates_per_step if upper else self.updates_per_step,
                learning_starts=max(self.batch, self.learning_starts // horizon),
            ),
            memory=ReplayMemoryParameters(capacity=self.memory // horizon),
            exploration=GaussianNoise(scale=ConstantSchedule(value=noise), unit=self.action_unit),
            actor=ActorParameters(torso=torso, final_bound=self.final_bound),
            critic=CriticParameters(
                torso=torso,
                action_layers=self.action_layers,
                action_unit=self.action_unit,
                final_bound=self.final_bound,
            ),
            actor_optimizer=AdamParameters(learning_rate=self.actor_learning_rate),
            critic_optimizer=AdamParameters(learning_rate=self.learning_rate),
        )


def graph_manager(
    level: str = "ant_maze",
    hierarchy: Hierarchy = "hiro",
    correction: bool = True,
    num_envs: int = 8,
    steps: int = 10_000_000,
    horizon: int = 10,
    learning_rate: float = 1e-3,
    actor_learning_rate: float = 1e-4,
    discount: float = 0.99,
    batch: int = 100,
    updates_per_step: float = 1.0,
    upper_updates_per_step: float = 1.0,
    noise: float = 1.0,
    upper_noise: float = 1.0,
    layers: tuple[int, ...] = (300, 300),
    memory: int = 1_000_000,
    learning_starts: int = 2_500,
    evaluation_interval: int = 50_000,
) -> HRLGraphManager:
    """Walk an ant to anywhere in a maze, behind a block or beyond a gap.

    Settings of Nachum et al. 2018 and of their program; docs/algorithms/hiro.md says where they
    differ. The mark it is validated by is a guess: it has not been run that long here.

    Args:
        level: ant_maze, ant_push or ant_fall.
        hierarchy: hiro; none is TD3 alone, all else equal.
        correction: Whether sub-goals are corrected; False is the control.
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        horizon: Environment steps that a sub-goal holds for.
        learning_rate: Adam's step size, of critics.
        actor_learning_rate: Adam's step size, of actors.
        discount: Gamma, per decision of a level.
        batch: Transitions per gradient step.
        updates_per_step: Gradient steps per environment step, at the lowest level.
        upper_updates_per_step: Gradient steps per decision of the upper level.
        noise: Deviation of the exploration at the lowest level, in newton metres.
        upper_noise: The same of sub-goals, each element in its own unit.
        layers: Sizes of the hidden layers.
        memory: Environment steps that are kept, by both levels.
        learning_starts: Environment steps of the untrained policy before learning starts.
        evaluation_interval: Environment steps between evaluations.
    """
    if level not in MAZES:
        raise UnknownNameError("ant maze", level, MAZES)
    world = GoalWorldParameters(level=level)
    task = world.task
    assert isinstance(task, AntMaze)
    return experiment(
        world,
        Settings(
            learning_rate=learning_rate,
            actor_learning_rate=actor_learning_rate,
            discount=discount,
            batch=batch,
            updates_per_step=updates_per_step,
            upper_updates_per_step=upper_updates_per_step,
            learning_starts=learning_starts,
            action_unit="raw",
            noise=noise,
            upper_noise=upper_noise,
            target_noise=0.2,
            target_noise_clip=0.5,
            layers=layers,
            action_layers=(0, 1),
            final_bound=3e-3,
            memory=memory,
            reward_scale=0.1,
        ),
        subgoals=replace(task.subgoal_space, observed="relative"),
        hierarchy=hierarchy,
        correction=correction,
        horizon=horizon,
        low_filter=PLACELESS,
        low_actions=_torques(task.gear),
        tested_in=replace(world, kwargs={"targets": "evaluation"}),
        num_envs=num_envs,
        schedule=ScheduleParameters(
            training=EnvironmentSteps(steps),
            evaluation_interval=EnvironmentSteps(evaluation_interval),
            evaluation_episodes=EnvironmentEpisodes(50),
        ),
        # A guess: standing still is worth about -6800 in `ant_maze`.
        validation=ValidationParameters(reward=-3_500.0, within=EnvironmentSteps(10_000_000)),
    )


def experiment(
    world: GoalWorldParameters,
    settings: Settings,
    *,
    subgoals: GoalSpace,
    hierarchy: Hierarchy,
    correction: bool,
    horizon: int,
    low_filter: InputFilterParameters | None,
    low_actions: OutputFilterParameters | None,
    tested_in: GoalWorldParameters | None,
    num_envs: int,
    schedule: ScheduleParameters,
    validation: ValidationParameters | None,
) -> HRLGraphManager:
    """Two levels in a world with goals, or one.

    Args:
        world: The world.
        settings: What the levels learn with.
        subgoals: What the upper level asks for.
        hierarchy: hiro or none.
        correction: Whether sub-goals are corrected.
        horizon: Environment steps that a sub-goal holds for.
        low_filter: What the lower level sees.
        low_actions: What its actions are, or those of the one agent.
        tested_in: The world of evaluations; None where it is the same.
        num_envs: Environments in parallel.
        schedule: When what happens.
        validation: The acceptance test; None where there is no mark.
    """
    rewards = InputFilter(reward=(RewardRescaleFilter(factor=settings.reward_scale),))
    if hierarchy == "none":
        alone = replace(
            settings.level(upper=False), input_filter=rewards, output_filter=low_actions
        )
        levels: tuple[LevelParameters, ...] = (LevelParameters(agent=alone),)
    else:
        plain = settings.level(upper=True, horizon=horizon)
        upper = HIROAgentParameters(
            algorithm=plain.algorithm,
            learning=plain.learning,
            memory=plain.memory,
            exploration=plain.exploration,
            actor=plain.actor,
            critic=plain.critic,
            actor_optimizer=plain.actor_optimizer,
            critic_optimizer=plain.critic_optimizer,
            input_filter=rewards,
            correction=SubGoalCorrectionParameters() if correction else None,
        )
        lower = replace(
            settings.level(upper=False), input_filter=low_filter, output_filter=low_actions
        )
        levels = (
            LevelParameters(name="top", agent=upper),
            LevelParameters(name="low", agent=lower, goal_space=subgoals, horizon=horizon),
        )
    return HRLGraphManager(
        HRLGraphParameters(
            levels=levels,
            environment=world,
            evaluation_environment=tested_in,
            schedule=schedule,
            num_envs=num_envs,
            validation=validation,
        )
    )


def _torques(largest: float) -> OutputFilter:
    """Actions in newton metres; the world's lie between -1 and 1."""
    return OutputFilter(action=(LinearBoxToBoxMap(low=-largest, high=largest),))
