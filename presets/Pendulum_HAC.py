"""Hierarchical actor-critic swings up a pendulum, with two or three levels; or one agent does."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from coach_rl.agents.ddpg_agent import DDPGAgentParameters, DDPGAlgorithmParameters
from coach_rl.agents.hac_agent import HACAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.sac_agent import SACAgentParameters, SACAlgorithmParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.architectures.update_engine import AdamParameters, TargetSync
from coach_rl.core.goals import GoalSpace
from coach_rl.core.schedules import ConstantSchedule, LinearSchedule
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.goal_worlds import GoalWorldParameters
from coach_rl.exploration_policies import EpsilonGreedyNoise, GaussianNoise
from coach_rl.graph_managers import (
    GraphManager,
    GraphParameters,
    HACGraphManager,
    HACGraphParameters,
    HRLGraphManager,
    LevelParameters,
    ScheduleParameters,
    ValidationParameters,
)
from coach_rl.memories import ReplayMemoryParameters

Hierarchy = Literal["hac", "none"]

FASTEST = 10.0
"""Velocity of sub-goals at most, in radians per second; falling from upright leads to 8.9."""

HORIZONS = {2: 32, 3: 10}
"""Decisions of a level for one of the level above, by number of levels (Levy et al. 2019)."""

VALIDATION = {
    2: ValidationParameters(reward=-250.0, within=EnvironmentSteps(150_000)),
    3: ValidationParameters(reward=-350.0, within=EnvironmentSteps(200_000)),
}
"""Acceptance tests, by number of levels."""

TARGET_SYNC = TargetSync(rate=0.01)
STARTS = 1_000
"""Decisions before learning starts at the lowest level."""
UPDATES_PER_LEVEL = 4.0
"""How many times the updates per decision a level makes of those of the upper level below it: it
decides more seldom."""


@dataclass(frozen=True, kw_only=True)
class UpperSettings:
    """How the levels above the lowest choose what to ask for: by SAC."""

    entropy: float = -2.0
    """In nats; what is left of chance must fit the thresholds of what is asked for."""
    temperature: float = 1.0
    """At first; more keeps what is asked for wide for longer."""
    temperature_learning_rate: float = 3e-4
    """Adam's step size, of the temperature."""
    starts: int = 1_000
    """Decisions before learning starts: the level below should be able to do something by then."""
    candidates: int = 0
    """Sub-goals of either kind that a decision without exploration chooses among by the critic; 0:
    it takes the policy's mean, which does where there are not several ways."""


UPPER = {
    2: UpperSettings(),
    # Ten steps lead less far than 32: less chance, so that what is asked for can be reached. The
    # top decides once in a hundred steps: it can't wait for a thousand decisions.
    3: UpperSettings(entropy=-5.0, temperature=0.2, temperature_learning_rate=1e-3, starts=100),
}
"""By number of levels; found by hand on the seeds 10 to 12."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How every level of an experiment learns; the panel of its preset says what each means."""

    hindsight: bool
    learning_rate: float
    discount: float
    batch: int
    updates_per_step: float
    upper_updates_per_step: float
    upper: UpperSettings
    epsilon: float
    noise: float
    testing_rate: float
    layers: tuple[int, ...]

    @property
    def ratio(self) -> float:
        """Transitions with hindsight goals for each one with the goal it had."""
        return 3.0 if self.hindsight else 0.0


def graph_manager(
    level: str = "angle_goal_pendulum",
    hierarchy: Hierarchy = "hac",
    levels: Literal[2, 3] = 2,
    hindsight: bool = True,
    num_envs: int = 8,
    steps: int = 200_000,
    learning_rate: float = 1e-3,
    discount: float = 0.98,
    batch: int = 256,
    updates_per_step: float = 0.25,
    upper_updates_per_step: float = 4.0,
    epsilon: float = 0.2,
    noise: float = 0.1,
    testing_rate: float = 0.3,
    layers: tuple[int, ...] = (64, 64, 64),
    evaluation_interval: int = 10_000,
) -> GraphManager:
    """Bring a pendulum upright with a motor too weak to lift it, and slow it down there.

    The inverted pendulum of Levy et al. 2019 (`angle_goal_pendulum`: goals within 16 degrees of
    upright, reached within 9.5 degrees and 0.6 radians per second) or Coach's (`goal_pendulum`);
    1000 steps.

    Args:
        level: angle_goal_pendulum or goal_pendulum.
        hierarchy: hac; none is one agent that acts alone, all else equal.
        levels: Levels of the hierarchy.
        hindsight: Learn from other goals as well; False is the control, all else equal.
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size, of actors and critics.
        discount: Gamma, per decision of a level.
        batch: Transitions per gradient step.
        updates_per_step: Gradient steps per environment step, at the lowest level.
        upper_updates_per_step: Gradient steps per decision of the level above it.
        epsilon: Share of random actions while exploring, at the lowest level.
        noise: Deviation of the others, in halves of the action range.
        testing_rate: Share of sub-goals that are tested.
        layers: Sizes of the hidden layers.
        evaluation_interval: Environment steps between evaluations.
    """
    world = GoalWorldParameters(level=level)
    widest = world.task.subgoal_space
    low, high = (*widest.low[:-1], -FASTEST), (*widest.high[:-1], FASTEST)
    return experiment(
        world,
        Settings(
            hindsight=hindsight,
            learning_rate=learning_rate,
            discount=discount,
            batch=batch,
            updates_per_step=updates_per_step,
            upper_updates_per_step=upper_updates_per_step,
            upper=UPPER[levels],
            epsilon=epsilon,
            noise=noise,
            testing_rate=testing_rate,
            layers=layers,
        ),
        horizons=(HORIZONS[levels],) * levels if hierarchy == "hac" else (),
        subgoals=(replace(widest, low=low, high=high),) * (levels - 1),
        num_envs=num_envs,
        steps=steps,
        evaluation_interval=evaluation_interval,
        validation=VALIDATION[levels],
    )


def experiment(
    world: GoalWorldParameters,
    settings: Settings,
    *,
    horizons: tuple[int, ...],
    subgoals: tuple[GoalSpace, ...],
    num_envs: int,
    steps: int,
    evaluation_interval: int,
    validation: ValidationParameters | None,
) -> GraphManager:
    """HAC on a goal world, or one agent of the same kind alone.

    Args:
        world: The goal world.
        settings: How every level learns.
        horizons: Decisions of each level's sub-episodes at most, top first; () for one agent.
        subgoals: What each level below the top is asked for.
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        evaluation_interval: Environment steps between evaluations.
        validation: The acceptance test.
    """
    goals = world.task.goal_space
    schedule = ScheduleParameters(
        training=EnvironmentSteps(steps),
        evaluation_interval=EnvironmentSteps(evaluation_interval),
        evaluation_episodes=EnvironmentEpisodes(50),
    )
    lowest = lowest_agent(settings, bounded=bool(horizons))
    if not horizons:
        alone = LevelParameters(name="alone", agent=lowest, goal_space=goals)
        return HRLGraphManager(
            GraphParameters(
                levels=(alone,),
                environment=world,
                schedule=schedule,
                num_envs=num_envs,
                validation=validation,
            )
        )
    heights = range(len(horizons) - 1, -1, -1)
    names = ("top", *(f"middle{number or ''}" for number in range(len(horizons) - 2)), "low")
    stack = tuple(
        LevelParameters(
            name=name,
            agent=lowest
            if height == 0
            else upper_agent(settings, UPDATES_PER_LEVEL ** (height - 1)),
            goal_space=space,
            horizon=horizon,
        )
        for height, name, space, horizon in zip(
            heights, names, (goals, *subgoals), horizons, strict=True
        )
    )
    return HACGraphManager(
        HACGraphParameters(
            stack=stack,
            environment=world,
            testing_rate=settings.testing_rate,
            schedule=schedule,
            num_envs=num_envs,
            validation=validation,
        )
    )


def lowest_agent(settings: Settings, *, bounded: bool) -> HACAgentParameters:
    """DDPG, which acts in the simulator.

    Args:
        settings: How it learns.
        bounded: Whether the level's horizon bounds its values; else targets are clipped to what
            rewards of -1 can add up to.
    """
    return HACAgentParameters(
        learner=DDPGAgentParameters(
            algorithm=DDPGAlgorithmParameters(
                discount=settings.discount,
                target_sync=TARGET_SYNC,
                clip_targets=None if bounded else (-1 / (1 - settings.discount), 0.0),
            ),
            exploration=EpsilonGreedyNoise(
                epsilon=ConstantSchedule(value=settings.epsilon),
                noise=GaussianNoise(scale=ConstantSchedule(value=settings.noise)),
            ),
            **learning(settings, settings.updates_per_step, starts=STARTS),
        ),
        ratio=settings.ratio,
        bound_values=bounded,
    )


def upper_agent(settings: Settings, more: float) -> HACAgentParameters:
    """SAC, which asks for sub-goals.

    What is worth asking for lies on narrow ridges of the critic with valleys between them, which a
    deterministic actor does not cross: with DDPG the upper level stays where it first was rewarded.

    Args:
        settings: How it learns.
        more: Factor on its updates per decision.
    """
    upper = settings.upper
    return HACAgentParameters(
        learner=SACAgentParameters(
            algorithm=SACAlgorithmParameters(
                discount=settings.discount,
                target_sync=TARGET_SYNC,
                target_entropy=upper.entropy,
                initial_temperature=upper.temperature,
            ),
            temperature_optimizer=AdamParameters(learning_rate=upper.temperature_learning_rate),
            greedy_candidates=upper.candidates,
            **learning(settings, settings.upper_updates_per_step * more, starts=upper.starts),
        ),
        ratio=settings.ratio,
        bound_values=False,
    )


def learning(settings: Settings, updates: float, *, starts: int) -> dict[str, Any]:
    """What the learners of all levels have in common.

    Args:
        settings: How every level learns.
        updates: Gradient steps per decision.
        starts: Decisions before the first.
    """
    torso = TorsoParameters(middleware=settings.layers, activation="relu", orthogonal=False)
    adam = AdamParameters(learning_rate=settings.learning_rate)
    return {
        "learning": LearningParameters(
            batch=settings.batch, updates_per_step=updates, learning_starts=starts
        ),
        "memory": ReplayMemoryParameters(capacity=1_000_000),
        "actor": ActorParameters(torso=torso),
        "critic": CriticParameters(torso=torso),
        "actor_optimizer": adam,
        "critic_optimizer": adam,
        "learning_rate_schedule": LinearSchedule(start=1.0, end=0.1),
        "normalise_observations": 5.0,
    }
