"""Walks of three agents, and random groups of small agents with networks for levels above them."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.goals import GOAL_KEY, TIME_KEY
from coach_rl.core.infos import agent_info
from coach_rl.core.options import OPTION_KEY, OptionSpace
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.hits.timed_goals import TimedGoalSpace
from tests.levels.plain_stack import SPACES, Walk
from tests.levels.scripted_stack import Walks

NAMES = ("a", "b", "c")
STACKED = rl.InputFilter(
    observation={"observation": (rl.ObservationStackingFilter(stack_size=2, axis=0),)}
)


class SharedWalk(Walk):
    """A walk of three agents with rewards and ends of their own, and turns of two or of three."""

    def own(self):
        return {
            name: {
                "reward": math.sin(place * (number + 1)),
                "terminated": bool(place > 3.5),
                "truncated": bool(place < -3.5),
            }
            for number, (name, place) in enumerate(zip(NAMES, self.position, strict=True))
        }

    def turns(self):
        return {
            f"turn{count}/{name}": int(int(abs(self.position[2]) * 5) % count == number)
            for count in (1, 2, 3)
            for number, name in enumerate(NAMES[:count])
        }


class SharedWalks(Walks):
    """These behind the environment contract."""

    spaces = EnvironmentSpaces(
        observation=spaces.Dict(
            {
                **SPACES.observation.spaces,
                **dict.fromkeys(SharedWalk(0).turns(), spaces.Discrete(2)),
            }
        ),
        action=SPACES.action,
    )

    def __init__(self, seeds):
        super().__init__(seeds)
        self.walks = [SharedWalk(seed) for seed in seeds]

    def seen(self, rows):
        turns = [self.walks[row].turns() for row in rows]
        shown = {key: np.array([each[key] for each in turns], np.int64) for key in turns[0]}
        return super().seen(rows) | shown

    def respond(self, rows, steps, duration, faults=()):
        own = [self.walks[row].own() for row in rows]
        info = {
            agent_info(name, what): np.array([each[name][what] for each in own])
            for name in NAMES
            for what in ("reward", "terminated", "truncated")
        }
        return replace(super().respond(rows, steps, duration, faults), info=info)


def keys_of(level):
    """The observation keys of a level's networks."""
    space = level.goal_space
    if space is None:
        return ("observation",)
    if isinstance(space, OptionSpace):
        return ("observation", OPTION_KEY)
    return ("observation", GOAL_KEY, *[TIME_KEY] * isinstance(space, TimedGoalSpace))


def random_agent(rng, name, space, level):
    """Parameters of a small agent that learns fast, by any algorithm that acts in the space."""
    torso = rl.TorsoParameters(middleware=(8,), activation="tanh", keys=keys_of(level))
    fast = rl.AdamParameters(learning_rate=0.02)
    discount, by_duration = float(rng.choice([0.9, 0.97])), bool(rng.random() < 0.5)
    learning = rl.LearningParameters(batch=6, learning_starts=6, report_every=5)
    memory = rl.ReplayMemoryParameters(
        capacity=900, n_step=int(rng.choice([1, 3])), discount_by_duration=by_duration
    )
    common = {
        "name": name,
        "update_mode": "eager",
        "input_filter": STACKED if rng.random() < 0.5 else None,
    }
    replayed = {**common, "learning": learning, "memory": memory}
    kinds = {
        spaces.Box: (rl.PPOAgentParameters, rl.TD3AgentParameters, rl.SACAgentParameters),
        spaces.Discrete: (rl.PPOAgentParameters, rl.DQNAgentParameters, rl.SACAgentParameters),
        spaces.Dict: (rl.PPOAgentParameters,),
    }[type(space)]
    kind = kinds[rng.integers(len(kinds))]
    if kind is rl.PPOAgentParameters:
        algorithm = rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(int(rng.integers(6, 16))),
            minibatch=4,
            epochs=2,
            discount=discount,
            discount_by_duration=by_duration,
            gae_lambda=0.8,
        )
        network = rl.ActorCriticParameters(torso=torso, policy_gain=1.0)
        return kind(**common, algorithm=algorithm, network=network, optimizer=fast)
    if kind is rl.DQNAgentParameters:
        return kind(
            **replayed,
            algorithm=rl.DQNAlgorithmParameters(discount=discount),
            network=rl.QNetworkParameters(torso=torso),
            optimizer=fast,
        )
    nets = {"actor": rl.ActorParameters(torso=torso), "critic": rl.CriticParameters(torso=torso)}
    settings = (
        rl.TD3AlgorithmParameters if kind is rl.TD3AgentParameters else rl.SACAlgorithmParameters
    )
    return kind(
        **replayed,
        **nets,
        algorithm=settings(discount=discount),
        actor_optimizer=fast,
        critic_optimizer=fast,
    )


def box_of(space, elements):
    """Some elements of a Box."""
    return spaces.Box(space.low[elements], space.high[elements], dtype=space.dtype)


def random_group(rng, level, space):
    """One agent, members that act in turn, or members that all act, each on its part."""
    kind = rng.choice(["one", "turns", "order", "environment", "selector", "all"])
    most = space.shape[0] if isinstance(space, spaces.Box) else 1
    if kind == "one" or (kind == "all" and most < 2):
        return rl.AgentGroupParameters(
            members=(rl.GroupMember(agent=random_agent(rng, "a", space, level)),)
        )
    count = int(rng.integers(2 if kind == "all" else 1, 4))
    is_shared = kind != "all" and rng.random() < 0.3
    parts = [None] * count
    if kind == "all":
        cuts = [0, *sorted(rng.choice(range(1, most), min(count, most) - 1, replace=False)), most]
        parts = [tuple(map(str, range(*ends))) for ends in pairwise(cuts)]
    members = []
    for name, part in zip(NAMES, parts, strict=False):
        own = space if part is None else box_of(space, [int(each) for each in part])
        agent = random_agent(rng, name, own, level)
        if is_shared and members:
            agent = replace(members[0].agent, name=name)
        ends = kind != "all" and rng.random() < 0.4
        members.append(
            rl.GroupMember(
                agent=agent,
                actions=part,
                observations=keys_of(level),
                reward=agent_info(name, "reward") if rng.random() < 0.4 else None,
                terminated=agent_info(name, "terminated") if ends else None,
                truncated=agent_info(name, "truncated") if ends else None,
                shares="same" if is_shared else None,
            )
        )
    names = NAMES[: len(members)]
    order = tuple(rng.permutation((*names, *rng.choice(names, 2))).tolist())
    chooser = random_agent(rng, "chooser", spaces.Discrete(len(members)), level)
    arbiter = {
        "all": None,
        "turns": rl.Turns(),
        "order": rl.Turns(order=order),
        "environment": rl.EnvironmentTurns(key=f"turn{len(members)}"),
        "selector": rl.SelectedTurns(
            agent=chooser, observations=keys_of(level), every=int(rng.choice([1, 2, 5]))
        ),
    }[kind]
    discount = float(rng.choice([1.0, 0.9]))
    return rl.AgentGroupParameters(
        members=tuple(members), arbiter=arbiter, discount=discount if arbiter is not None else 1.0
    )
