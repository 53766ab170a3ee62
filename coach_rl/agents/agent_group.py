"""Several agents on one level, each with its own observations, actions, rewards and ends.

AgentGroupParameters(
    members=(
        GroupMember(agent=PPOAgentParameters(name="walker"), actions="legs"),
        GroupMember(agent=DDPGAgentParameters(name="arm"), actions=("shoulder", "elbow")),
    )
)

A group is an agent like any other to its level. To its members it is the level: each gets the
calls of `core.agents.Agent` for the rows in which it has a part.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar, cast

import numpy as np
from gymnasium import spaces

from coach_rl.agents.member_agents import ActionPart, MemberAgents, MemberRows
from coach_rl.core.agents import AgentContext, AgentParameters, AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, RunError, SpaceError, UnknownNameError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import description_of
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.records import (
    REWARD,
    TERMINATED,
    TRUNCATED,
    Action,
    ActionRequest,
    Array,
    BoolArray,
    End,
    FloatArray,
    IntArray,
    Outcome,
    agent_info,
    is_agent_end,
    is_agent_reward,
)
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces, Space, actions_from_uniform, uniform_size
from coach_rl.core.state import State

Record = TypeVar("Record", ActionRequest, Outcome)


@parameter_class
class GroupMember:
    """One agent of a group, and which part of the level is its own."""

    agent: AgentParameters
    """The member's agent; its name is the member's name in logs and files."""
    actions: str | tuple[str, ...]
    """Its keys of the action space. `left` stands for the key `left`, or else for every key
    below `left/`. Several keys make one action, see `ActionPart`. The keys of a flat Box or
    MultiDiscrete are the numbers of its elements: `0`, `1`."""
    observations: tuple[str, ...] | None = None
    """The observation keys it sees, named in the same way; None: all of them."""
    critic_observations: tuple[str, ...] = ()
    """Further observation keys that the critic of its PPO sees, and its policy does not: a central
    critic (MAPPO, Yu et al. 2022, arXiv:2103.01955). Members that share an agent see them as
    `critic/0`, `critic/1` and so on, in this order. Empty: the critic sees what the policy does."""
    reward: str | None = None
    """The info array that holds its own reward; None: it gets the level's reward."""
    terminated: str | None = None
    """The info array that marks terminal states of its own episode; None: the level's. Once it
    has ended the member waits for the next real episode."""
    truncated: str | None = None
    """The info array that marks truncations of its own episode; None: the level's."""
    shares: str | None = None
    """The name of an agent that it shares with the members that give the same name: one set of
    networks, optimisers, statistics and memory, which learns from what all of them do. Their agents
    may differ in nothing but their names. Keys named after a member, `left` and `left/arm`, are
    `observation` and `arm` to the shared agent. None: the member has an agent of its own."""

    @property
    def agent_name(self) -> str:
        """The name of the agent that acts for it."""
        return self.shares or self.agent.name

    @classmethod
    def of(cls, agent: AgentParameters) -> Self:
        """The member that is the environment's agent of the same name.

        It sees and acts under its name, and takes its reward and ends from the infos named in
        `core.agent_info`, which the adapter of PettingZoo's environments fills.
        """
        return cls(
            agent=agent,
            actions=agent.name,
            observations=(agent.name,),
            reward=agent_info(agent.name, REWARD),
            terminated=agent_info(agent.name, TERMINATED),
            truncated=agent_info(agent.name, TRUNCATED),
        )


@parameter_class
class AgentGroupParameters:
    """Agents that act together, each by its own algorithm."""

    members: NonEmpty[tuple[GroupMember, ...]]
    """The members; every action key belongs to exactly one of them."""
    name: NonEmpty[str] = "group"
    """The group's name where it is spoken of as one agent."""

    def __post_init__(self) -> None:
        names = [member.agent.name for member in self.members]
        require(
            len(set(names)) == len(names),
            f"the members of group '{self.name}' need different names, got {names}",
        )
        for member in self.members:
            if member.shares is None:
                continue
            require(
                member.shares not in names,
                f"member '{member.agent.name}' shares '{member.shares}', which is the name of a "
                "member; choose another",
            )
            first = next(each for each in self.members if each.shares == member.shares)
            require(
                _named(member.agent, first.agent.name) == first.agent,
                f"the members '{first.agent.name}' and '{member.agent.name}' share "
                f"'{member.shares}', and their agents differ in more than their names",
            )

    @property
    def info_keys(self) -> tuple[str, ...]:
        """The names under which members find rewards and ends of their own in infos."""
        keys = ((each.reward, each.terminated, each.truncated) for each in self.members)
        return tuple(key for own in keys for key in own if key is not None)

    def build(self, context: AgentContext) -> "AgentGroup":
        """The group.

        Raises:
            UnknownNameError: A member names a key that the level does not have.
            SpaceError: The action has no keys, or one that belongs to no member or to two, or a
                member cannot serve its part.
        """
        whole = context.spaces
        action = _by_part(whole.action)
        parts = self._parts(action)
        if action is not whole.action:  # a member's part is no goal of the level below
            context = replace(context, place=replace(context.place, below=None, agent_below=None))
        own: dict[str, list[EnvironmentSpaces]] = {}
        seen = [_observed(member, whole.observation) for member in self.members]
        for member, keys, part in zip(self.members, seen, parts, strict=True):
            shown = {name: whole.observation[key] for key, name in (keys[0] | keys[1]).items()}
            spaces_of_member = EnvironmentSpaces(observation=spaces.Dict(shown), action=part.space)
            own.setdefault(member.agent_name, []).append(spaces_of_member)
            if spaces_of_member != own[member.agent_name][0]:
                raise SpaceError(
                    f"members that share '{member.shares}' need equal spaces; '{member.agent.name}'"
                    f" has {spaces_of_member}, the first {own[member.agent_name][0]}"
                )
        agents: dict[str, AnyAgent] = {}
        bound: list[BoundMember] = []
        for member, keys, part in zip(self.members, seen, parts, strict=True):
            name = member.agent_name
            count = len(own[name])
            if name not in agents:
                agents[name] = _named(_with_central_critic(member, *keys), name).build(
                    replace(
                        context,
                        spaces=own[name][0],
                        runtime=context.runtime.for_part("member", name, signals=name),
                        num_envs=context.num_envs * count,
                        planned_steps=context.planned_steps * count,
                    )
                )
            place = sum(each.agent_name == name for each in bound)
            bound.append(
                BoundMember(
                    member=member,
                    observations=keys[0] | keys[1],
                    part=part,
                    place=place,
                    places=count,
                )
            )
        return AgentGroup(agents, tuple(bound), whole.action)

    def _parts(self, space: Space) -> list[ActionPart]:
        """Each member's part of the action; every key belongs to exactly one member."""
        if not isinstance(space, spaces.Dict):
            raise SpaceError(
                f"the group '{self.name}' needs actions to give its members parts of: a Dict, a "
                f"flat Box or a flat MultiDiscrete, got {space}; for one agent leave the group out"
            )
        owners: dict[str, str] = {}
        parts = []
        for member in self.members:
            names = (member.actions,) if isinstance(member.actions, str) else member.actions
            keys = _keys(names, space, kind="action key", member=member)
            if not keys:
                raise SpaceError(
                    f"member '{member.agent.name}' has no action keys; "
                    f"allowed: {', '.join(space.spaces)}"
                )
            for key in keys:
                owner = owners.setdefault(key, member.agent.name)
                if owner != member.agent.name:
                    raise SpaceError(
                        f"the action key '{key}' is claimed by the members '{owner}' and "
                        f"'{member.agent.name}'; leave it to one of them"
                    )
            parts.append(ActionPart(keys, space))
        unclaimed = [key for key in space.spaces if key not in owners]
        if unclaimed:
            raise SpaceError(
                f"no member of group '{self.name}' acts under {', '.join(map(repr, unclaimed))}; "
                "add a GroupMember for it"
            )
        return parts


@dataclass(frozen=True, kw_only=True)
class BoundMember:
    """A group member with its part of the level, and its rows of an agent."""

    member: GroupMember
    observations: Mapping[str, str]
    """The keys it sees, and the names under which its agent does."""
    part: ActionPart
    """The part of the action space that the member controls."""
    place: int = 0
    """Its number among the members that share its agent."""
    places: int = 1
    """Number of members that share its agent."""

    @property
    def name(self) -> str:
        """The member's."""
        return self.member.agent.name

    @property
    def agent_name(self) -> str:
        """The name of the agent that acts for it."""
        return self.member.agent_name

    def rows(self, rows: IntArray) -> IntArray:
        """The agent's rows of the member: those that share it lie side by side in each row."""
        return rows if self.places == 1 else rows * self.places + self.place

    def request(self, request: ActionRequest) -> ActionRequest:
        """The agent's view of a request."""
        seen = {name: request.observation[key] for key, name in self.observations.items()}
        return replace(request, rows=self.rows(request.rows), observation=seen)

    def outcome(self, outcome: Outcome) -> tuple[Outcome, BoolArray]:
        """Return the member's view of an outcome, and where its own episode has ended, [R]."""
        terminated = self._flags(outcome, self.member.terminated)
        truncated = self._flags(outcome, self.member.truncated)
        ended = terminated | truncated
        bits = terminated * np.uint8(End.TERMINATED) | truncated * np.uint8(End.TRUNCATED)
        own = replace(
            outcome,
            rows=self.rows(outcome.rows),
            observation={name: outcome.observation[key] for key, name in self.observations.items()},
            reward=self._reward(outcome),
            terminated=np.where(ended, terminated, outcome.terminated),
            truncated=np.where(ended, truncated & ~terminated, outcome.truncated),
            end=outcome.end | bits,
            next_goal={
                name: outcome.next_goal[key]
                for key, name in self.observations.items()
                if key in outcome.next_goal
            },
        )
        return own, ended

    def _reward(self, outcome: Outcome) -> FloatArray:
        key = self.member.reward
        if key is None:
            return outcome.reward
        self._require_added_up(outcome, key, "a reward", is_agent_reward(key), "reward")
        return self._info(outcome, key).astype(np.float64)

    def _flags(self, outcome: Outcome, key: str | None) -> BoolArray:
        if key is None:
            return np.zeros(len(outcome.rows), np.bool_)
        self._require_added_up(
            outcome, key, "an end", is_agent_end(key), "terminated' or 'truncated"
        )
        return self._info(outcome, key).astype(np.bool_)

    def _require_added_up(
        self, outcome: Outcome, key: str, what: str, is_added_up: bool, names: str
    ) -> None:
        """Raise `RunError` for decisions of several steps: an info covers only the last one."""
        if not is_added_up and (outcome.duration > 1).any():
            raise RunError(
                f"member '{self.name}' has {what} of its own, '{key}', of the last simulator "
                f"step, but its decisions last {int(outcome.duration.max())} steps; let the "
                f"environment report it as 'agents/<name>/{names}', which levels add up"
            )

    def _info(self, outcome: Outcome, key: str) -> Array:
        """An info array of one entry a row, [R]."""
        values = outcome.info.get(key)
        if values is None:
            raise UnknownNameError("info key", key, outcome.info, f"named by member '{self.name}'")
        if values.shape != (len(outcome.rows),):
            raise RunError(
                f"info '{key}' of member '{self.name}' has shape {values.shape}, "
                f"needed is one number for each of {len(outcome.rows)} rows"
            )
        known = outcome.info.get(f"_{key}")
        if known is not None and not known.all():
            row = int(outcome.rows[np.flatnonzero(~known)[0]])
            raise RunError(
                f"the environment left out info '{key}' of member '{self.name}' in row {row}; "
                "it must be there in every row and step"
            )
        return values


@dataclass(kw_only=True)
class GroupRows(MemberRows):
    """The state a group keeps per row of one stack."""

    SAVED = ("playing",)

    playing: dict[str, BoolArray]
    """[N] by member: its own episode continues."""
    places: dict[str, int]
    """Number of members that share each agent, by its name."""

    def decisions(self) -> State:
        made = super().decisions()
        return {
            name: _reshaped(made[name], (-1, places), 1) if places > 1 else made[name]
            for name, places in self.places.items()
        }

    def follow(self, decisions: State) -> None:
        super().follow(
            {
                name: _reshaped(decisions[name], (-1,), 2) if places > 1 else decisions[name]
                for name, places in self.places.items()
            }
        )


class AgentGroup(MemberAgents):
    """Several agents as one; an `Agent`.

    A member whose own episode is over takes no decisions and gets no transitions until the real
    episode is: its keys carry a constant filler action.

    Args:
        agents: The agents by name.
        bound: The members, several of which may share an agent.
        action_space: Their joint action space.
    """

    def __init__(
        self, agents: Mapping[str, AnyAgent], bound: tuple[BoundMember, ...], action_space: Space
    ) -> None:
        super().__init__(agents)
        by_part = _by_part(action_space)
        assert isinstance(by_part, spaces.Dict)
        self.action_space = action_space
        self.bound = bound
        self._bound_to = {
            name: [each for each in bound if each.agent_name == name] for name in agents
        }
        self._idle = {key: _idle(part) for key, part in by_part.spaces.items()}

    def new_rows(self, num_envs: int, seed: int) -> GroupRows:
        places = {name: len(bound) for name, bound in self._bound_to.items()}
        return GroupRows(
            members={
                name: agent.new_rows(num_envs * places[name], integer_seed(seed, "member", name))
                for name, agent in self.members.items()
            },
            playing={each.name: np.ones(num_envs, np.bool_) for each in self.bound},
            places=places,
        )

    def act(self, row_state: GroupRows, request: ActionRequest, clock: Clock) -> Action:
        action: dict[str, Array] = {}
        for name, agent in self.members.items():
            acting, requests = [], []
            for each in self._bound_to[name]:
                playing = row_state.playing[each.name]
                playing[request.rows[request.episode_start]] = True
                here = playing[request.rows]
                if not here.all():
                    count = len(here)
                    action |= {key: self._idle[key].repeat(count, 0) for key in each.part.keys}
                if here.any():
                    acting.append((each, here))
                    requests.append(each.request(request).rows_of(here))
            if not acting:
                continue
            chosen = agent.act(row_state.members[name], _joined(requests), clock)
            begin = 0
            for (each, here), own in zip(acting, requests, strict=True):
                end = begin + len(own.rows)
                for key, values in each.part.split(_part_of(chosen, slice(begin, end))).items():
                    if here.all():
                        action[key] = values
                    else:
                        action[key][here] = values
                begin = end
        return _whole(action, self.action_space)

    def observe(self, row_state: GroupRows, outcome: Outcome, clock: Clock) -> None:
        for name, agent in self.members.items():
            outcomes = []
            for each in self._bound_to[name]:
                playing = row_state.playing[each.name]
                here = playing[outcome.rows]
                if not here.any():
                    continue
                own, ended = each.outcome(outcome)
                playing[outcome.rows[ended]] = False
                outcomes.append(own if here.all() else own.rows_of(here))
            if outcomes:
                agent.observe(row_state.members[name], _joined(outcomes), clock)

    def cut_off(self, row_state: GroupRows, rows: IntArray, clock: Clock) -> None:
        for each in self.bound:
            here = rows[row_state.playing[each.name][rows]]
            if len(here):
                agent, name = self.members[each.agent_name], each.agent_name
                agent.cut_off(row_state.members[name], each.rows(here), clock)

    def restart_rows(self, row_state: GroupRows) -> None:
        for name, agent in self.members.items():
            agent.restart_rows(row_state.members[name])
        for playing in row_state.playing.values():
            playing[:] = True

    def description(self) -> str:
        """The members one after the other, for people."""
        lines = []
        for each in self.bound:
            lines += [
                f"member {each.name}" + (f" (shares {each.agent_name})" * (each.places > 1)),
                f"  observes {', '.join(each.observations)}",
                f"  acts under {', '.join(each.part.keys)} in {each.part.space}",
                f"  reward: {each.member.reward or 'the level'}",
            ]
            if each.place == each.places - 1:
                agent = self.members[each.agent_name]
                lines += [f"  {line}" for line in description_of(agent).splitlines()]
        return "\n".join(lines)


def _observed(member: GroupMember, space: spaces.Dict) -> tuple[dict[str, str], dict[str, str]]:
    """The keys that a member sees and those of its critic alone, with its agent's names of them."""
    keys = tuple(space.spaces)
    if member.observations is not None:
        keys = _keys(member.observations, space, kind="observation key", member=member)
    if not keys:
        raise SpaceError(
            f"member '{member.agent.name}' has no observation keys; "
            f"allowed: {', '.join(space.spaces)}; None for all"
        )
    critic = _keys(member.critic_observations, space, kind="observation key", member=member)
    if again := [key for key in critic if key in keys]:
        raise SpaceError(
            f"member '{member.agent.name}' has '{again[0]}' among its critic_observations, and its "
            "policy sees it already; leave it out there, or name its `observations`"
        )
    if member.shares is None:
        return {key: key for key in keys}, {key: key for key in critic}
    own = member.agent.name
    names = {key: "observation" if key == own else key.removeprefix(f"{own}/") for key in keys}
    twice = [key for key, name in names.items() if list(names.values()).count(name) > 1]
    if twice:
        raise SpaceError(
            f"member '{own}' sees {' and '.join(map(repr, twice))}, which are both "
            f"'{names[twice[0]]}' to the agent '{member.shares}' that it shares; leave one of them "
            "out of its observations"
        )
    return names, {key: f"critic/{number}" for number, key in enumerate(critic)}


def _with_central_critic(
    member: GroupMember, policy: Mapping[str, str], critic: Mapping[str, str]
) -> AgentParameters:
    """The member's agent, whose critic alone sees some keys.

    Args:
        member: The member.
        policy: The keys that policy and critic see, and the agent's names of them.
        critic: The same of those that the critic alone sees.
    """
    if not critic:
        return member.agent
    described: Any = member.agent
    network = getattr(described, "network", None)
    if not hasattr(network, "critic_torso") or network.shared_torso:
        raise ConfigurationError(
            f"member '{member.agent.name}' has critic_observations, which need an agent whose "
            f"network has a torso for the critic alone, as PPO's, got {type(described).__name__}"
            f"{' with shared_torso' * hasattr(network, 'critic_torso')}; leave them out"
        )
    own = tuple(policy.values())
    of_policy, of_critic = network.torso, network.critic_torso or network.torso
    split = replace(
        network,
        torso=replace(of_policy, keys=of_policy.keys or own),
        critic_torso=replace(of_critic, keys=of_critic.keys or (*own, *critic.values())),
    )
    return cast(AgentParameters, replace(described, network=split))


def _keys(
    names: tuple[str, ...], space: spaces.Dict, *, kind: str, member: GroupMember
) -> tuple[str, ...]:
    """The keys of a space with these names or below these prefixes, once each."""
    found: list[str] = []
    for name in names:
        below = [key for key in space.spaces if key.startswith(f"{name}/")]
        keys = [name] if name in space.spaces else below
        if not keys:
            allowed = {*space.spaces, *(key.partition("/")[0] for key in space.spaces)}
            raise UnknownNameError(kind, name, allowed, f"named by member '{member.agent.name}'")
        found += keys
    return tuple(dict.fromkeys(found))


def _named(agent: AgentParameters, name: str) -> AgentParameters:
    """The same agent under another name."""
    described: Any = agent
    return described if agent.name == name else cast(AgentParameters, replace(described, name=name))


def _by_part(space: Space) -> Space:
    """The elements of a flat Box or MultiDiscrete as parts named by their numbers; others as is."""
    match space:
        case spaces.Box() if len(space.shape) == 1:
            return spaces.Dict(
                {
                    str(i): spaces.Box(
                        space.low[i : i + 1], space.high[i : i + 1], dtype=space.dtype.type
                    )
                    for i in range(space.shape[0])
                }
            )
        case spaces.MultiDiscrete() if len(space.shape) == 1:
            return spaces.Dict(
                {
                    str(i): spaces.Discrete(int(n), start=int(start))
                    for i, (n, start) in enumerate(zip(space.nvec, space.start, strict=True))
                }
            )
    return space


def _whole(action: dict[str, Array], space: Space) -> Action:
    """The action in its own space from the parts of `_by_part`."""
    if isinstance(space, spaces.Dict):
        return action
    parts = [action[str(i)] for i in range(len(action))]
    whole = np.stack([part.reshape(len(part)) for part in parts], axis=1)
    return whole.astype(space.dtype, copy=False)


def _part_of(action: Action, index: slice) -> Action:
    """The actions of some rows."""
    if isinstance(action, dict):
        return {key: values[index] for key, values in action.items()}
    return action[index]


def _joined(parts: list[Record]) -> Record:
    """Records of different rows, with the same keys, as one."""
    if len(parts) == 1:
        return parts[0]

    def joined(values: list[Any]) -> Any:
        if isinstance(values[0], Mapping):
            return {key: np.concatenate([each[key] for each in values]) for key in values[0]}
        return np.concatenate(values)

    first = parts[0]
    whole = {
        each.name: joined([getattr(part, each.name) for part in parts]) for each in fields(first)
    }
    return type(first)(**whole)


def _reshaped(tree: State, leading: tuple[int, ...], axes: int) -> State:
    """A tree of arrays whose first axes, so many, have become those of another shape."""
    return {
        name: _reshaped(part, leading, axes)
        if isinstance(part, dict)
        else part.reshape(*leading, *part.shape[axes:])
        for name, part in tree.items()
    }


def _idle(space: Space) -> Array:
    """A filler action for members that take none, [1, ...]."""
    action = actions_from_uniform(space, np.full((1, uniform_size(space)), 0.5))
    assert not isinstance(action, dict), "an environment's action space is flat"
    return action
