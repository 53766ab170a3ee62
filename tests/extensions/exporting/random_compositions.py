"""Random agents, groups and levels on `Composed`."""

from dataclasses import dataclass, replace

import numpy as np
from gymnasium import spaces

import coach_rl as rl
from coach_rl.environments.gymnasium.layout import layout_of
from tests.builders import graph
from tests.extensions.exporting.composed_world import NAMES, SPACES
from tests.random_graphs import KEY, STACKED, ppo, random_levels, random_space, to_the_left

EVERY = [*SPACES]
KINDS = ("flat", "group", "chain", "graph")
"""Of compositions, by what their seed leaves divided by four."""


@dataclass
class Composition:
    levels: tuple
    world: dict
    is_function: bool
    """A selector is a script of a user's."""
    arrangement: object = rl.LevelChain()

    @property
    def members(self):
        """Names of the members of all groups."""
        return {name for level in self.levels for name in getattr(level.agent, "own_ends", {})}

    def graph_manager(self):
        def world(**more):
            kwargs = {**self.world, **more}
            return rl.GymnasiumParameters(
                level="tests.extensions.exporting.composed_world:Composed", kwargs=kwargs
            )

        return rl.GraphManager(
            graph(
                *self.levels,
                environment=world(),
                arrangement=self.arrangement,
                evaluation_environment=world(records=True),
                num_envs=2,
                training=72,
                evaluation_episodes=3,
            )
        )


def composition(seed):
    """A flat agent, a group, a chain or a graph of levels."""
    rng = np.random.default_rng(seed)
    kind = KINDS[seed % 4]
    space = EVERY[rng.integers(len(EVERY))]
    world, flat = {"kind": space}, flat_space(space)
    lowest, is_function = None, False
    if kind == "flat" or rng.random() < 0.4:
        world["masks"] = bool(rng.random() < 0.5) and not any(
            isinstance(part, spaces.Box)
            for part in (flat.values() if isinstance(flat, spaces.Dict) else [flat])
        )
        lowest = random_agent(rng, flat, "agent", flat_only=kind == "flat")
    if kind == "flat":
        levels = (rl.LevelParameters(name="main", agent=lowest),)
        return Composition(levels, world, is_function)
    if lowest is None or kind == "group":
        world = {"kind": space, "members": int(rng.integers(2, 4))}
        lowest, world["turns"], is_function = random_group(rng, flat, world["members"])
    if kind == "group":
        levels = (rl.LevelParameters(name="main", agent=lowest),)
    elif kind == "chain":
        goals = random_space(rng) or rl.OptionSpace(count=2)
        top = ppo("above", remembers=remembering(rng), action_mask=None)
        if isinstance(goals, rl.GoalSpace) and "members" in world and rng.random() < 0.4:
            top, _, is_function_above = random_group(
                rng, goals.space, world["members"], environment=False
            )
            is_function |= is_function_above
        levels = (
            rl.LevelParameters(name="top", agent=top),
            rl.LevelParameters(
                name="low", agent=lowest, goal_space=goals, horizon=int(rng.integers(2, 5))
            ),
        )
    else:
        world["masks"] = False
        graph = random_levels(rng)
        levels, arrangement = list(graph["levels"]), graph["arrangement"]
        lowest_levels = [n for n, below in enumerate(arrangement.links(levels)) if not below]
        place = lowest_levels[rng.integers(len(lowest_levels))]
        levels[place] = replace(levels[place], agent=lowest)
        return Composition(tuple(levels), world, is_function, arrangement)
    return Composition(tuple(levels), world, is_function)


def flat_space(name):
    box = spaces.Dict({KEY: spaces.Box(-1, 1, (1,))})
    return layout_of(box, SPACES[name], level="composed").spaces.action


def remembering(rng):
    return [None, "episode", "sub_episode"][rng.integers(3)]


def random_agent(rng, space, name, *, flat_only=False):
    """PPO, or another algorithm that acts in the space."""
    is_flat = len(getattr(space, "shape", None) or ()) == 1
    kinds = ["PPO", "PPO", "BC"]
    if isinstance(space, spaces.Discrete) or (is_flat and isinstance(space, spaces.MultiDiscrete)):
        kinds += ["DQN", "SAC"]
    elif is_flat and isinstance(space, spaces.Box):
        kinds += ["SAC", "TD3", "DDPG"]
    kind = kinds[rng.integers(len(kinds))] if flat_only else "PPO"
    remembers, filters = remembering(rng), STACKED if rng.random() < 0.5 else None
    if kind == "PPO":
        return ppo(name, remembers=remembers, input_filter=filters)
    common = {
        "name": name,
        "update_mode": "eager",
        "learning": rl.LearningParameters(batch=8, learning_starts=20, updates_per_step=0.2),
        "memory": rl.ReplayMemoryParameters(
            capacity=500,
            draws=rl.SequenceParameters(length=4) if remembers else rl.SingleTransitions(),
        ),
        "input_filter": filters,
    }
    torso = [torso_of(remembers), torso_of(None)]
    if kind == "BC":
        return rl.BCAgentParameters(**common, policy=rl.PolicyParameters(torso=torso[0]))
    if kind == "DQN":
        network = rl.QNetworkParameters(torso=torso[0], dueling=bool(rng.random() < 0.5))
        return rl.DQNAgentParameters(**common, network=network)
    actor, critic = torso if rng.random() < 0.5 else torso[::-1]
    nets = {"actor": rl.ActorParameters(torso=actor), "critic": rl.CriticParameters(torso=critic)}
    if kind == "SAC" and isinstance(space, spaces.Box):
        nets["greedy_candidates"] = int(rng.choice([0, 3]))
    return getattr(rl, f"{kind}AgentParameters")(**common, **nets)


def torso_of(remembers):
    kind = None if remembers is None else rl.GRU(size=4, reset=remembers)
    return rl.TorsoParameters(middleware=(8,), recurrence=kind)


def random_group(rng, space, count, *, environment=True):
    """A group, whether its world shows turns, and whether a function of Python selects."""
    parts = [*space.spaces] if isinstance(space, spaces.Dict) else []
    if isinstance(space, spaces.Box | spaces.MultiDiscrete) and len(space.shape) == 1:
        parts = [str(number) for number in range(space.shape[0])]
    kinds = ["turns", "order", "selected", "environment"][: 4 if environment else 3]
    kinds += ["all"] * 2 if len(parts) > 1 else []
    kind = kinds[rng.integers(len(kinds))]
    names, by_part = NAMES[:count], kind == "all" or (parts and rng.random() < 0.5)
    actions = dict.fromkeys(names)
    if by_part:
        names = names[: len(parts)] if kind == "all" else names
        split = {name: tuple(parts[number :: len(names)]) for number, name in enumerate(names)}
        actions = {name: split[name] or (parts[0],) for name in names}
    shares = "both" if not by_part and rng.random() < 0.3 else None
    remembers, filters = remembering(rng), STACKED if rng.random() < 0.5 else None
    members = tuple(
        rl.GroupMember(
            agent=ppo(name, remembers=remembers, input_filter=filters),
            actions=actions[name],
            observations=(KEY,) if shares else None,
            reward=f"agents/{name}/reward" if rng.random() < 0.5 else None,
            terminated=f"agents/{name}/terminated" if ends == "a" and name != "b" else None,
            truncated=f"agents/{name}/truncated" if ends else None,
            shares=shares,
        )
        for name, ends in zip(names, rng.choice(["", "a", "b", "b"], len(names)), strict=True)
    )
    is_function = kind == "selected" and rng.random() < 0.15
    chooser = ppo("chooser", remembers=remembering(rng))
    if is_function:
        chooser = rl.ScriptedAgentParameters(name="chooser", policy=to_the_left)
    arbiter = {
        "turns": rl.Turns(),
        "order": rl.Turns(order=(*names, names[0], *reversed(names))),
        "selected": rl.SelectedTurns(agent=chooser, every=int(rng.choice([1, 3, 30]))),
        "environment": rl.EnvironmentTurns(),
        "all": None,
    }[kind]
    return (
        rl.AgentGroupParameters(members=members, arbiter=arbiter),
        kind == "environment",
        is_function,
    )
