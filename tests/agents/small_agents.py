"""Small agents, and small stacks of two levels on a point mass."""

from functools import partial

from coach_rl.architectures.actor_critic import ActorCriticParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.environments.toy import PointMassParameters
from coach_rl.extensions.scripts.scripted_agent import UniformAgentParameters
from coach_rl.filters import InputFilter, ObservationNormalizationFilter
from coach_rl.graph_managers import (
    LevelParameters,
)
from coach_rl.memories import ReplayMemoryParameters
from tests import builders
from tests.builders import created, graph

SMALL = TorsoParameters(middleware=(8,))


def ppo(name="agent", rollout=24, *, normalised=True):
    seen = {"observation": (ObservationNormalizationFilter(),)}
    return builders.ppo(
        rollout,
        name=name,
        epochs=2,
        minibatch=8,
        network=ActorCriticParameters(torso=SMALL),
        input_filter=InputFilter(observation=seen) if normalised else None,
    )


def ddpg(name="agent", learning_starts=30, capacity=2_000):
    return builders.ddpg(
        torso=SMALL,
        name=name,
        learning_starts=learning_starts,
        report_every=10,
        memory=ReplayMemoryParameters(capacity=capacity),
    )


def stack(agent, space, *, top=None, horizon=5, seed=2, **given):
    steps = {"training": 360, "evaluation_interval": 200}
    given = {"environment": PointMassParameters(max_episode_steps=13), "num_envs": 5, **given}
    params = graph(
        LevelParameters(name="top", agent=top or UniformAgentParameters()),
        LevelParameters(name="low", agent=agent, goal_space=space, horizon=horizon),
        **steps | given,
    )
    return created(params, seed)


def low_agent(graph_manager):
    return graph_manager.graph.agents["low"]


learning_top = partial(ppo, rollout=12)
