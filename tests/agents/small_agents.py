"""Small agents, and small stacks of two levels on a point mass."""

from functools import partial

import coach_rl as rl
from tests import builders
from tests.builders import created, graph

SMALL = rl.TorsoParameters(middleware=(8,))


def ppo(name="agent", rollout=24, *, normalised=True):
    seen = {"observation": (rl.ObservationNormalizationFilter(),)}
    return builders.ppo(
        rollout,
        name=name,
        epochs=2,
        minibatch=8,
        network=rl.ActorCriticParameters(torso=SMALL),
        input_filter=rl.InputFilter(observation=seen) if normalised else None,
    )


def ddpg(name="agent", learning_starts=30, capacity=2_000):
    return builders.ddpg(
        torso=SMALL,
        name=name,
        learning_starts=learning_starts,
        report_every=10,
        memory=rl.ReplayMemoryParameters(capacity=capacity),
    )


def stack(agent, space, *, top=None, horizon=5, seed=2, **given):
    steps = {"training": 360, "evaluation_interval": 200}
    given = {"environment": rl.PointMassParameters(max_episode_steps=13), "num_envs": 5, **given}
    params = graph(
        rl.LevelParameters(name="top", agent=top or rl.UniformAgentParameters()),
        rl.LevelParameters(name="low", agent=agent, goal_space=space, horizon=horizon),
        **steps | given,
    )
    return created(params, seed)


def low_agent(graph_manager):
    return graph_manager.graph.agents["low"]


learning_top = partial(ppo, rollout=12)
