"""Small agents, and small stacks of two levels on a point mass."""

from functools import partial

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.architectures.actor_critic import ActorCriticParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy import PointMassParameters
from coach_rl.extensions.scripts.scripted_agent import UniformAgentParameters
from coach_rl.filters import InputFilter, ObservationNormalizationFilter
from coach_rl.graph_managers import (
    GraphManager,
    GraphParameters,
    LevelParameters,
    ScheduleParameters,
)
from coach_rl.memories import ReplayMemoryParameters

SMALL = TorsoParameters(middleware=(8,))


def ppo(name="agent", rollout=24, *, normalised=True):
    seen = {"observation": (ObservationNormalizationFilter(),)}
    return PPOAgentParameters(
        name=name,
        algorithm=PPOAlgorithmParameters(rollout=EnvironmentSteps(rollout), epochs=2, minibatch=8),
        network=ActorCriticParameters(torso=SMALL),
        input_filter=InputFilter(observation=seen) if normalised else None,
        update_mode="eager",
    )


def ddpg(name="agent", learning_starts=30, capacity=2_000):
    return DDPGAgentParameters(
        name=name,
        actor=ActorParameters(torso=SMALL),
        critic=CriticParameters(torso=SMALL),
        learning=LearningParameters(
            batch=8, learning_starts=learning_starts, updates_per_step=0.25, report_every=10
        ),
        memory=ReplayMemoryParameters(capacity=capacity),
        update_mode="eager",
    )


def stack(
    agent,
    space,
    *,
    top=None,
    horizon=5,
    num_envs=5,
    seed=2,
    environment=None,
    reward_discount=1.0,
    **schedule,
):
    graph_manager = GraphManager(
        GraphParameters(
            levels=(
                LevelParameters(name="top", agent=top or UniformAgentParameters()),
                LevelParameters(name="low", agent=agent, goal_space=space, horizon=horizon),
            ),
            environment=environment or PointMassParameters(max_episode_steps=13),
            num_envs=num_envs,
            reward_discount=reward_discount,
            schedule=ScheduleParameters(
                **{
                    "training": EnvironmentSteps(360),
                    "evaluation_interval": EnvironmentSteps(200),
                    "evaluation_episodes": EnvironmentEpisodes(2),
                    **schedule,
                }
            ),
        )
    )
    graph_manager.create_graph(Runtime(seed=seed, device="cpu"))
    return graph_manager


def low_agent(graph_manager):
    return graph_manager.graph.agents["low"]


learning_top = partial(ppo, rollout=12)
