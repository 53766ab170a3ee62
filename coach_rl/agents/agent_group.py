"""Several agents on one level, each with its part of what is seen, done, earned and ended.

AgentGroupParameters(
    members=(
        GroupMember(agent=PPOAgentParameters(name="walker"), actions="legs"),
        GroupMember(agent=DDPGAgentParameters(name="arm"), actions=("shoulder", "elbow")),
    )
)

A group is an agent like any other to its level. To its members it is the level: each gets the
calls of `core.agents.Agent` for the rows in which it has a part.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from gymnasium import spaces

from coach_rl.agents.action_part import ActionPart
from coach_rl.agents.member_agents import MemberAgents, MemberRows
from coach_rl.core.agent_info import REWARD, TERMINATED, TRUNCATED, agent_info
from coach_rl.core.agents import AgentContext, AgentParameters, AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.errors import RunError, SpaceError, UnknownNameError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    BoolArray,
    End,
    FloatArray,
    IntArray,
    Outcome,
)
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces, Space, actions_from_uniform, uniform_size
from coach_rl.core.state import State


@parameter_class
class GroupMember:
    """One agent of a group, and which part of the level is its own."""

    agent: AgentParameters
    """The member's agent; its name is the member's name in logs and files."""
    actions: str | tuple[str, ...]
    """Its keys of the Dict action space. `left` stands for the key `left`, or else for every key
    below `left/`. Several keys make one action, see `ActionPart`."""
    observations: tuple[str, ...] | None = None
    """The observation keys it sees, named in the same way; None: all of them."""
    reward: str | None = None
    """The info array that holds its own reward; None: it gets the level's reward."""
    terminated: str | None = None
    """The info array that says where its own episode has come to a final state; None: with the
    level's. Once it has ended the member waits for the next real episode."""
    truncated: str | None = None
    """The info array that says where its own episode was cut off; None: with the level's."""

    @classmethod
    def of(cls, agent: AgentParameters) -> Self:
        """The member that is the environment's agent of the same name.

        It sees and acts under its name, and takes its reward and ends from where
        `core.agent_info` says: what PettingZoo's environments offer through their adapter.
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
    name: str = "group"
    """The group's name where it is spoken of as one agent."""

    def __post_init__(self) -> None:
        names = [member.agent.name for member in self.members]
        require(
            len(set(names)) == len(names),
            f"the members of group '{self.name}' need different names, got {names}",
        )

    def build(self, context: AgentContext) -> "AgentGroup":
        """The group.

        Raises:
            UnknownNameError: A member names a key that the level does not have.
            SpaceError: The action has no keys, or one that belongs to nobody or to two, or a
                member cannot serve its part.
        """
        whole, seats = context.spaces, []
        for member, part in zip(self.members, self._parts(whole.action), strict=True):
            name = member.agent.name
            seen = _observed(member, whole.observation)
            own = EnvironmentSpaces(
                observation=spaces.Dict({key: whole.observation[key] for key in seen}),
                action=part.space,
            )
            seed = integer_seed(context.seed, "member", name)
            signals = context.signals.of(name)
            agent = member.agent.build(replace(context, spaces=own, seed=seed, signals=signals))
            seats.append(Seat(member=member, agent=agent, observations=seen, part=part))
        return AgentGroup(tuple(seats), whole.action)

    def _parts(self, space: Space) -> list[ActionPart]:
        """Each member's part of the action; the keys are all given out, once each."""
        if not isinstance(space, spaces.Dict):
            raise SpaceError(
                f"the group '{self.name}' needs a Dict action space to give its members parts of, "
                f"got {space}; for one agent leave the group out"
            )
        owners: dict[str, str] = {}
        parts = []
        for member in self.members:
            asked = (member.actions,) if isinstance(member.actions, str) else member.actions
            keys = _keys(asked, space, kind="action key", member=member)
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
class Seat:
    """A member at work."""

    member: GroupMember
    agent: AnyAgent
    observations: tuple[str, ...]
    """The keys it sees."""
    part: ActionPart
    """The part of the action space that the member controls."""

    @property
    def name(self) -> str:
        """The member's."""
        return self.member.agent.name

    def outcome(self, outcome: Outcome) -> tuple[Outcome, BoolArray]:
        """Return the member's view of an outcome, and where its own episode has ended, [R]."""
        terminated = self._flags(outcome, self.member.terminated)
        truncated = self._flags(outcome, self.member.truncated)
        ended = terminated | truncated
        bits = terminated * np.uint8(End.TERMINATED) | truncated * np.uint8(End.TRUNCATED)
        own = replace(
            outcome,
            observation={key: outcome.observation[key] for key in self.observations},
            reward=self._reward(outcome),
            terminated=np.where(ended, terminated, outcome.terminated),
            truncated=np.where(ended, truncated & ~terminated, outcome.truncated),
            end=outcome.end | bits,
            next_goal={
                key: goal for key, goal in outcome.next_goal.items() if key in self.observations
            },
        )
        return own, ended

    def _reward(self, outcome: Outcome) -> FloatArray:
        key = self.member.reward
        if key is None:
            return outcome.reward
        if (outcome.duration > 1).any():
            raise RunError(
                f"member '{self.name}' has a reward of its own, '{key}', of the last simulator "
                f"step, but its decisions last {int(outcome.duration.max())} steps; put the group "
                "on the lowest level, or let the member have the level's reward"
            )
        return self._info(outcome, key).astype(np.float64)

    def _flags(self, outcome: Outcome, key: str | None) -> BoolArray:
        if key is None:
            return np.zeros(len(outcome.rows), np.bool_)
        return self._info(outcome, key).astype(np.bool_)

    def _info(self, outcome: Outcome, key: str) -> Array:
        """An info array of one entry a row, [R]."""
        values = outcome.info.get(key)
        if values is None:
            raise UnknownNameError(
                "info key", key, outcome.info, f"asked for by member '{self.name}'"
            )
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

    playing: dict[str, BoolArray]
    """[N] by member: its own episode continues."""

    def state_dict(self) -> State:
        """Everything."""
        playing = {name: playing.copy() for name, playing in self.playing.items()}
        return {**super().state_dict(), "playing": playing}

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        super().load_state_dict(state)
        for name, playing in self.playing.items():
            playing[:] = state["playing"][name]


class AgentGroup(MemberAgents):
    """Several agents as one; an `Agent`.

    A member whose own episode is over takes no decisions and gets no transitions until the real
    episode is: its keys carry an action that nobody chose, the same at any time.

    Args:
        seats: The members.
        action_space: What they act in together.
    """

    def __init__(self, seats: tuple[Seat, ...], action_space: Space) -> None:
        assert isinstance(action_space, spaces.Dict)
        super().__init__({seat.name: seat.agent for seat in seats})
        self._seats = seats
        self._idle = {key: _idle(part) for key, part in action_space.spaces.items()}

    def new_rows(self, num_envs: int, seed: int) -> GroupRows:
        """Row state for a stack of that many environments."""
        return GroupRows(
            members={
                name: agent.new_rows(num_envs, integer_seed(seed, "member", name))
                for name, agent in self.members.items()
            },
            playing={name: np.ones(num_envs, np.bool_) for name in self.members},
        )

    def act(self, row_state: GroupRows, request: ActionRequest, clock: Clock) -> Action:
        """Let each member choose where it is playing; see `core.agents.Agent`."""
        action: dict[str, Array] = {}
        for seat in self._seats:
            playing = row_state.playing[seat.name]
            playing[request.rows[request.episode_start]] = True
            here = playing[request.rows]
            if not here.all():
                count = len(here)
                action |= {key: self._idle[key].repeat(count, 0) for key in seat.part.keys}
            if not here.any():
                continue
            seen = {key: request.observation[key] for key in seat.observations}
            own = replace(request, observation=seen).rows_of(here)
            chosen = seat.agent.act(row_state.members[seat.name], own, clock)
            for key, values in seat.part.split(chosen).items():
                if here.all():
                    action[key] = values
                else:
                    action[key][here] = values
        return action

    def observe(self, row_state: GroupRows, outcome: Outcome, clock: Clock) -> None:
        """Tell each member what came of its decisions; nothing where it made none."""
        for seat in self._seats:
            playing = row_state.playing[seat.name]
            here = playing[outcome.rows]
            if not here.any():
                continue
            own, ended = seat.outcome(outcome)
            playing[outcome.rows[ended]] = False
            if not here.all():
                own = own.rows_of(here)
            seat.agent.observe(row_state.members[seat.name], own, clock)

    def cut_off(self, row_state: GroupRows, rows: IntArray, clock: Clock) -> None:
        """Let the members' episodes end in these rows, where they still continue."""
        for seat in self._seats:
            here = rows[row_state.playing[seat.name][rows]]
            if len(here):
                seat.agent.cut_off(row_state.members[seat.name], here, clock)

    def restart_rows(self, row_state: GroupRows) -> None:
        """Let every member give up the open episodes of all rows; all are playing again."""
        for name, agent in self.members.items():
            agent.restart_rows(row_state.members[name])
            row_state.playing[name][:] = True

    @property
    def info_keys(self) -> tuple[str, ...]:
        """The names under which members find rewards and ends of their own."""
        members = (seat.member for seat in self._seats)
        keys = ((each.reward, each.terminated, each.truncated) for each in members)
        return tuple(key for own in keys for key in own if key is not None)

    def description(self) -> str:
        """The members one after the other, for people."""
        lines = []
        for seat in self._seats:
            lines += [
                f"member {seat.name}",
                f"  observes {', '.join(seat.observations)}",
                f"  acts under {', '.join(seat.part.keys)} in {seat.part.space}",
                f"  reward: {seat.member.reward or 'the level'}",
                *(f"  {line}" for line in seat.agent.description().splitlines()),
            ]
        return "\n".join(lines)


def _observed(member: GroupMember, space: spaces.Dict) -> tuple[str, ...]:
    if member.observations is None:
        return tuple(space.spaces)
    keys = _keys(member.observations, space, kind="observation key", member=member)
    if not keys:
        raise SpaceError(
            f"member '{member.agent.name}' has no observation keys; "
            f"allowed: {', '.join(space.spaces)}; None for all"
        )
    return keys


def _keys(
    asked: tuple[str, ...], space: spaces.Dict, *, kind: str, member: GroupMember
) -> tuple[str, ...]:
    """The keys of a space that are asked for by name or by what they stand below, once each."""
    found: list[str] = []
    for name in asked:
        below = [key for key in space.spaces if key.startswith(f"{name}/")]
        keys = [name] if name in space.spaces else below
        if not keys:
            allowed = {*space.spaces, *(key.partition("/")[0] for key in space.spaces)}
            raise UnknownNameError(
                kind, name, allowed, f"asked for by member '{member.agent.name}'"
            )
        found += keys
    return tuple(dict.fromkeys(found))


def _idle(space: Space) -> Array:
    """An action for whoever takes none, [1, ...]."""
    action = actions_from_uniform(space, np.full((1, uniform_size(space)), 0.5))
    assert not isinstance(action, dict), "an environment's action space is flat"
    return action
