"""Skills are learned in four rooms, and with them the way to a goal in another room."""

from dataclasses import dataclass, replace
from typing import Literal

from coach_rl import (
    OPTION_KEY,
    ActorCriticParameters,
    AdamParameters,
    AgentParameters,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GoalWorldParameters,
    GraphManager,
    GraphParameters,
    HRLGraphManager,
    InputFilter,
    LevelParameters,
    Observation,
    ObservationNormalizationFilter,
    OptionCriticAgentParameters,
    OptionSpace,
    PPOAgentParameters,
    PPOAlgorithmParameters,
    ScheduleParameters,
    SkillAgentsParameters,
    TorsoParameters,
    ValidationParameters,
)
from coach_rl.core.records import FloatArray


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Settings to change with -cp."""

    skills: Literal["own", "one", "option_critic"] = "own"
    """own: a network for each skill, rewarded for going its way. one: a network for all of them,
    the same rewards. option_critic: a network for all of them, the environment's reward, and ends
    that are learned."""
    horizon: int = 8
    """Steps a skill lasts, unless it ends before."""
    num_envs: int = 16
    """Environments in parallel."""
    steps: int = 1_000_000
    """Environment steps to train for."""
    rollout: int = 2048
    """Decisions collected by each agent before each round of updates."""
    learning_rate: float = 1e-3
    """Learning rate."""
    discount: float = 0.99
    """Discount factor per environment step, however long a decision lasts."""


def right(before: Observation, after: Observation, given: FloatArray) -> FloatArray:  # noqa: ARG001 - as every reward
    """The way made to the right, in metres."""
    return _way(before, after)[:, 0]


def up(before: Observation, after: Observation, given: FloatArray) -> FloatArray:  # noqa: ARG001
    """The way made upwards."""
    return _way(before, after)[:, 1]


def left(before: Observation, after: Observation, given: FloatArray) -> FloatArray:  # noqa: ARG001
    """The way made to the left."""
    return -_way(before, after)[:, 0]


def down(before: Observation, after: Observation, given: FloatArray) -> FloatArray:  # noqa: ARG001
    """The way made downwards."""
    return -_way(before, after)[:, 1]


def _way(before: Observation, after: Observation) -> FloatArray:
    """The way that the ball has made, [R, 2]."""
    way: FloatArray = (after["observation"] - before["observation"])[:, :2]
    return way


def graph_manager(panel: Panel) -> GraphManager:
    """A ball finds its way to a goal in another of four rooms by four skills that it learns.

    Each skill is rewarded for the way made in its direction, and knows nothing of the goal. The
    upper level chooses among skills, and is rewarded by the world: a step costs 1 until the goal is
    reached, at most 400.
    """
    keys = ("observation", "desired_goal")
    top = PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(
            rollout=EnvironmentSteps(panel.rollout),
            minibatch=256,
            discount=panel.discount,
            discount_by_duration=True,
            entropy_coefficient=0.01,
            scale_returns=True,
        ),
        network=ActorCriticParameters(torso=TorsoParameters(middleware=(128, 128))),
        optimizer=AdamParameters(
            learning_rate=panel.learning_rate, epsilon=1e-5, max_gradient_norm=0.5
        ),
        input_filter=InputFilter(
            observation={key: (ObservationNormalizationFilter(),) for key in keys}
        ),
    )
    skill = PPOAgentParameters(
        name="skill",
        algorithm=PPOAlgorithmParameters(
            rollout=EnvironmentSteps(panel.rollout), minibatch=256, discount=0.95
        ),
        network=ActorCriticParameters(torso=TorsoParameters(keys=("observation",))),
        optimizer=top.optimizer,
        input_filter=InputFilter(observation={"observation": (ObservationNormalizationFilter(),)}),
    )
    rewards = (right, up, left, down)
    match panel.skills:
        case "own":
            agent: AgentParameters = SkillAgentsParameters.of(skill, count=len(rewards))
        case "one":
            torso = TorsoParameters(keys=("observation", OPTION_KEY))
            agent = replace(skill, name="skills", network=ActorCriticParameters(torso=torso))
        case "option_critic":
            rewards = ()
            agent = OptionCriticAgentParameters(
                name="skills",
                algorithm=replace(top.algorithm, discount_by_duration=False),
                network=top.network,
                optimizer=top.optimizer,
                input_filter=top.input_filter,
            )
    return HRLGraphManager(
        GraphParameters(
            levels=(
                LevelParameters(name="top", agent=top),
                LevelParameters(
                    name="low",
                    agent=agent,
                    goal_space=OptionSpace(count=4, rewards=rewards),
                    horizon=panel.horizon,
                ),
            ),
            environment=GoalWorldParameters(level="point_maze_four_rooms"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(panel.steps),
                evaluation_interval=EnvironmentSteps(100_000),
                evaluation_episodes=EnvironmentEpisodes(50),
            ),
            num_envs=panel.num_envs,
            reward_discount=panel.discount,
            validation=ValidationParameters(reward=-160.0, within=EnvironmentSteps(1_000_000)),
        )
    )
