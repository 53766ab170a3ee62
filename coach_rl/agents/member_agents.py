"""Several agents as one: their parts of actions and outcomes, who acts, what they save."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from posixpath import commonpath
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from gymnasium import spaces

from coach_rl.agents.flattened_output import DISCRETE, FlatParts
from coach_rl.core.agents import (
    AgentContext,
    AnyAgent,
    EndingAgent,
    PacedAgent,
    RowState,
    TrainingReport,
    following,
)
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, RunError, SpaceError, UnknownNameError
from coach_rl.core.parts import description_of
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    BoolArray,
    End,
    FloatArray,
    IntArray,
    Outcome,
    is_agent_end,
    is_agent_reward,
)
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import Space, actions_from_uniform, is_float_box, uniform_size
from coach_rl.core.state import State

Record = TypeVar("Record", ActionRequest, Outcome)
Values = TypeVar("Values")
WHOLE = ""
"""Key of an action that has no parts."""


class ActionPart:
    """Some keys of a Dict action space as the space one agent acts in.

    One key is the agent's space unchanged. Several keys become one space that any agent can
    act in, with the elements of the keys in a row: Boxes of floats a flat Box; Discrete,
    MultiDiscrete and MultiBinary a flat MultiDiscrete. Keys of both kinds stay a Dict, which is
    for agents that can act in one, by their names without a prefix that all share.

    Args:
        keys: Which, in this order; one at least.
        whole: The space they belong to.
    """

    def __init__(self, keys: tuple[str, ...], whole: spaces.Dict) -> None:
        self.keys = keys
        parts: dict[str, Space] = {key: whole[key] for key in keys}
        self.names: dict[str, str] = {}
        """The agent's names of keys that stay a Dict."""
        self.flat: FlatParts | None = None
        """The form of keys that become one array."""
        if len(keys) == 1:
            self.space = parts[keys[0]]
        elif all(isinstance(part, DISCRETE) for part in parts.values()) or all(
            map(is_float_box, parts.values())
        ):
            self.flat = FlatParts(parts, {})
            self.space = self.flat.space
        else:
            prefix = f"{commonpath(keys)}/"
            self.names = {key: key.removeprefix(prefix) for key in keys}
            self.space = spaces.Dict({self.names[key]: part for key, part in parts.items()})

    def split(self, action: Action) -> dict[str, Array]:
        """The agent's actions [R, ...] by key, [R, ...] each."""
        if isinstance(action, dict):
            return {key: action[name] for key, name in self.names.items()}
        return {self.keys[0]: action} if self.flat is None else self.flat.split(action)


@dataclass(frozen=True, kw_only=True)
class BoundMember:
    """A member of a group: its part of the level, and its rows of an agent."""

    name: str
    """The member's name."""
    agent_name: str
    """The name of the agent that acts for it."""
    observations: Mapping[str, str] | None = None
    """The keys it sees, and the names under which its agent does; None: all as they are."""
    part: ActionPart | None = None
    """The part of the action space that the member controls; None: all of it."""
    reward: str | None = None
    """The info array that holds its own reward; None: it gets the level's reward."""
    terminated: str | None = None
    """The info array that marks terminal states of its own episode; None: the level's."""
    truncated: str | None = None
    """The info array that marks truncations of its own episode; None: the level's."""
    infos: tuple[str, ...] = ()
    """Names of the infos that its agent keeps with transitions."""
    place: int = 0
    """Its number among the members that share its agent."""
    places: int = 1
    """Number of members that share its agent."""

    def rows(self, rows: IntArray) -> IntArray:
        """The agent's rows of the member: those that share it lie side by side in each row."""
        return rows if self.places == 1 else rows * self.places + self.place

    def request(self, request: ActionRequest) -> ActionRequest:
        """The agent's view of a request."""
        seen = self.seen(request.observation)
        return replace(request, rows=self.rows(request.rows), observation=seen)

    def seen(self, observation: dict[str, Values]) -> dict[str, Values]:
        """The member's keys of an observation, by its agent's names; those that are there."""
        if self.observations is None:
            return observation
        names = self.observations.items()
        return {name: observation[key] for key, name in names if key in observation}

    def split(self, action: Action) -> dict[str, Array]:
        """The member's actions [R, ...] by key, [R, ...] each; by `WHOLE` as a whole."""
        if self.part is not None:
            return self.part.split(action)
        return action if isinstance(action, dict) else {WHOLE: action}

    def outcome(self, outcome: Outcome) -> tuple[Outcome, BoolArray]:
        """Return the member's view of an outcome, and where its own episode has ended, [R]."""
        terminated = self._flags(outcome, self.terminated)
        truncated = self._flags(outcome, self.truncated)
        ended = terminated | truncated
        bits = terminated * np.uint8(End.TERMINATED) | truncated * np.uint8(End.TRUNCATED)
        own = replace(
            outcome,
            rows=self.rows(outcome.rows),
            observation=self.seen(outcome.observation),
            reward=self._reward(outcome),
            terminated=np.where(ended, terminated, outcome.terminated),
            truncated=np.where(ended, truncated & ~terminated, outcome.truncated),
            end=outcome.end | bits,
            next_goal=self.seen(outcome.next_goal),
        )
        return own, ended

    def _reward(self, outcome: Outcome) -> FloatArray:
        key = self.reward
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
class MemberRows(Saved):
    """The state that agents keep together per row of one stack."""

    SAVED: ClassVar[SavedNames] = ("members",)

    members: dict[str, RowState]
    """Each agent's own row state."""
    playing: dict[str, BoolArray]
    """[N] by member: its own episode continues."""
    latest: IntArray
    """[N] the number of the member that acted last; -1 where none has, or all act."""
    places: dict[str, int]
    """Number of members that share each agent, by its name."""

    def acted(self, number: int, name: str, rows: IntArray) -> BoolArray:
        """[R] whether the latest decision of these rows was the member's.

        Args:
            number: The member's, in the group.
            name: The member's.
            rows: [R].
        """
        acted: BoolArray = self.playing[name][rows] & (self.latest[rows] == number)
        return acted

    def decisions(self) -> State:
        made = {name: following(rows, name).decisions() for name, rows in self.members.items()}
        return {
            name: _reshaped(made[name], (-1, places), 1) if places > 1 else made[name]
            for name, places in self.places.items()
        }

    def follow(self, decisions: State) -> None:
        for name, places in self.places.items():
            made = decisions[name]
            made = _reshaped(made, (-1,), 2) if places > 1 else made
            following(self.members[name], name).follow(made)


class GroupRows(MemberRows):
    """The state of members that all act at every decision."""

    SAVED = ("playing",)

    def acted(self, number: int, name: str, rows: IntArray) -> BoolArray:
        return self.playing[name][rows]


class ArbiterParameters(Protocol):
    """A frozen description of who acts, where not all members do; see `agents.arbiters`."""

    def build(
        self,
        agents: Mapping[str, AnyAgent],
        bound: tuple[BoundMember, ...],
        context: AgentContext,
        *,
        discount: float,
    ) -> "AgentGroup":
        """The group.

        Args:
            agents: The members' agents, by name.
            bound: The members.
            context: The group's.
            discount: Of rewards, per simulator step, while they are added up.
        """
        ...


class AgentGroup(Saved):
    """Several agents as one; an `Agent`.

    A member whose own episode is over takes no decisions and gets no transitions until the real
    episode is: its keys carry a constant filler action, as those of members that do not act.

    Args:
        agents: The agents by name.
        bound: The members, several of which may share an agent.
        action_space: Their joint action space; None where each decision is one member's, whole.
    """

    SAVED: ClassVar[SavedNames] = (SavedAttribute("members", inline=True),)
    ROWS: ClassVar[type[MemberRows]] = GroupRows
    """The kind of row state."""

    def __init__(
        self,
        agents: Mapping[str, AnyAgent],
        bound: tuple[BoundMember, ...],
        action_space: Space | None = None,
    ) -> None:
        self.members = dict(agents)
        for name, agent in self.members.items():
            if isinstance(agent, EndingAgent):
                raise ConfigurationError(
                    f"member '{name}' ends its own options ({type(agent).__name__}.ends), which "
                    "is for an agent that has its level alone; choose another agent"
                )
        self.bound, self.action_space = bound, action_space
        self._bound_to = {
            name: [(number, each) for number, each in enumerate(bound) if each.agent_name == name]
            for name in self.members
        }
        parts = {} if action_space is None else by_part(action_space).spaces
        self.idle = {key: _idle(part) for key, part in parts.items()}

    def new_rows(self, num_envs: int, seed: int) -> MemberRows:
        return self.ROWS(**self._new_rows(num_envs, seed))

    def _new_rows(self, num_envs: int, seed: int) -> dict[str, Any]:
        """The fields of `MemberRows`."""
        places = {name: max(1, len(bound)) for name, bound in self._bound_to.items()}
        return {
            "members": {
                name: agent.new_rows(num_envs * places[name], integer_seed(seed, "member", name))
                for name, agent in self.members.items()
            },
            "playing": {each.name: np.ones(num_envs, np.bool_) for each in self.bound},
            "latest": np.full(num_envs, -1, np.int64),
            "places": places,
        }

    def turns(self, row_state: Any, request: ActionRequest, clock: Clock) -> IntArray | None:
        """Return the number of the member that acts in each row, [R], or -1; None: all act."""
        return None

    def act(self, row_state: Any, request: ActionRequest, clock: Clock) -> Action:
        for playing in row_state.playing.values():
            playing[request.rows[request.episode_start]] = True
        turns = self.turns(row_state, request, clock)
        if turns is not None:
            is_new = row_state.latest[request.rows] != turns
            request = self.begun(row_state, request, turns, is_new)
            row_state.latest[request.rows] = turns
        action: dict[str, Array] = {}
        for name in self.members:
            acting = []
            for number, each in self._bound_to[name]:
                here = row_state.playing[each.name][request.rows]
                if turns is not None:
                    here &= turns == number
                if not here.all() and each.part is not None:
                    count = len(here)
                    idle = {key: self.idle[key].repeat(count, 0) for key in each.part.keys}
                    action = idle | action
                if here.any():
                    acting.append((each, here))
            if acting:
                self._act_for(acting, row_state, request, action, clock)
        return _whole(action, self.action_space)

    def _act_for(
        self,
        acting: list[tuple[BoundMember, BoolArray]],
        row_state: Any,
        request: ActionRequest,
        action: dict[str, Array],
        clock: Clock,
    ) -> None:
        """Choose for members that share an agent, in one call of it.

        Args:
            acting: The members, and in which places of the request they act, [R].
            row_state: The group's.
            request: All rows.
            action: Gets their actions by key, [R, ...] each.
            clock: Phase and counters.
        """
        name, begin = acting[0][0].agent_name, 0
        requests = [each.request(request).rows_of(here) for each, here in acting]
        chosen = self.members[name].act(row_state.members[name], joined_records(requests), clock)
        for (each, here), own in zip(acting, requests, strict=True):
            end = begin + len(own.rows)
            for key, values in each.split(_part_of(chosen, slice(begin, end))).items():
                if here.all():
                    action[key] = values
                    continue
                if key not in action:
                    action[key] = np.zeros((len(here), *values.shape[1:]), values.dtype)
                action[key][here] = values
            begin = end

    def begun(
        self, row_state: Any, request: ActionRequest, turns: IntArray, is_new: BoolArray
    ) -> ActionRequest:
        """The request as the members see it that act in its rows.

        To an agent a row begins a new episode where another one has acted there since.

        Args:
            row_state: The group's.
            request: The level's.
            turns: The members that act, [R].
            is_new: [R] another member acted last.
        """
        return replace(request, episode_start=request.episode_start | is_new)

    def observe(self, row_state: Any, outcome: Outcome, clock: Clock) -> None:
        for name, agent in self.members.items():
            outcomes = []
            for number, each in self._bound_to[name]:
                playing = row_state.playing[each.name]
                here = row_state.acted(number, each.name, outcome.rows)
                if not here.any():
                    continue
                own, ended = each.outcome(outcome)
                playing[outcome.rows[ended]] = False
                outcomes.append(own if here.all() else own.rows_of(here))
            if outcomes:
                agent.observe(row_state.members[name], joined_records(outcomes), clock)

    def cut_off(self, row_state: Any, rows: IntArray, clock: Clock) -> None:
        for number, each in enumerate(self.bound):
            here = rows[row_state.acted(number, each.name, rows)]
            if len(here):
                agent, name = self.members[each.agent_name], each.agent_name
                agent.cut_off(row_state.members[name], each.rows(here), clock)

    def restart_rows(self, row_state: Any) -> None:
        for name, agent in self.members.items():
            agent.restart_rows(row_state.members[name])
        for playing in row_state.playing.values():
            playing[:] = True
        row_state.latest[:] = -1

    @property
    def is_on_policy(self) -> bool:
        """True if any member is."""
        agents = self.members.values()
        return any(isinstance(agent, PacedAgent) and agent.is_on_policy for agent in agents)

    def parts(self) -> dict[str, AnyAgent]:
        return self.members

    def decisions_until_training(self) -> int:
        return min(
            -(-agent.decisions_until_training() // self.most_outcomes(name))
            if isinstance(agent, PacedAgent)
            else 1
            for name, agent in self.members.items()
        )

    def most_outcomes(self, name: str) -> int:
        """The most outcomes that an agent may get for each decision of the group."""
        return max(1, len(self._bound_to[name]))

    def train(self, clock: Clock) -> TrainingReport | None:
        reports = {name: agent.train(clock) for name, agent in self.members.items()}
        learned = {name: report for name, report in reports.items() if report is not None}
        if not learned:
            return None
        return TrainingReport(
            training_steps=sum(report.training_steps for report in learned.values()),
            metrics={},
            members={name: report.metrics for name, report in learned.items()},
        )

    def policy_state_dict(self) -> State:
        return {name: agent.policy_state_dict() for name, agent in self.members.items()}

    def load_policy(self, state: State) -> None:
        for name, agent in self.members.items():
            if name not in state:
                raise SpaceError(
                    f"the saved policy has no member '{name}'; it has {', '.join(sorted(state))}"
                )
            if state[name]:  # a script has nothing to load
                agent.load_policy(state[name])

    def description(self) -> str:
        """The members one after the other, for people."""
        lines = []
        for each in self.bound:
            lines.append(
                f"member {each.name}" + (f" (shares {each.agent_name})" * (each.places > 1))
            )
            if each.observations is not None and each.part is not None:
                lines += [
                    f"  observes {', '.join(each.observations)}",
                    f"  acts under {', '.join(filter(None, each.part.keys)) or 'all keys'} in "
                    f"{each.part.space}",
                ]
            lines.append(f"  reward: {each.reward or 'the level'}")
            if each.place == each.places - 1:
                agent = self.members[each.agent_name]
                lines += [f"  {line}" for line in description_of(agent).splitlines()]
        return "\n".join(lines)


def by_part(space: Space) -> spaces.Dict:
    """The elements of a flat Box or MultiDiscrete as parts named by their numbers, a Dict as it is.

    Any other space is one part, `WHOLE`.
    """
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
        case spaces.Dict():
            return space
    return spaces.Dict({WHOLE: space})


def _whole(action: dict[str, Array], space: Space | None) -> Action:
    """The action in its own space from the parts of `by_part`."""
    if WHOLE in action:
        return action[WHOLE]
    if space is None or isinstance(space, spaces.Dict):
        return action
    parts = [action[str(i)] for i in range(len(action))]
    whole = np.stack([part.reshape(len(part)) for part in parts], axis=1)
    return whole.astype(space.dtype, copy=False)


def _part_of(action: Action, index: slice) -> Action:
    """The actions of some rows."""
    if isinstance(action, dict):
        return {key: values[index] for key, values in action.items()}
    return action[index]


def joined_records(parts: list[Record]) -> Record:
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
