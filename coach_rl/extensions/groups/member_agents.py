"""Several agents as one: their parts of actions and outcomes, who acts, what they save."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import commonpath
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from gymnasium import spaces

from coach_rl.agents.flattened_output import DISCRETE, FlatParts
from coach_rl.core.agents import (
    AnyAgent,
    EndingAgent,
    PacedAgent,
    RowState,
    TrainingReport,
    following,
    freeze,
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
    Observation,
    Outcome,
    Over,
    is_agent_end,
    is_agent_reward,
    take,
)
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import (
    Space,
    actions_from_uniform,
    check_counts,
    is_float_box,
    uniform_size,
)
from coach_rl.core.state import State
from coach_rl.extensions.groups.requests import real_starts

WHOLE = ""
"""Key of an action that has no parts."""
Index = IntArray | slice
EVERY_PLACE = slice(None)


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
        self.idle = {key: _idle(part) for key, part in parts.items()}
        """Placeholders [1, ...] by key, where the agent does not act."""
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
    over: Mapping[str, Over] = field(default_factory=dict)
    """Rules by which infos of steps become those of a decision, by name."""
    place: int = 0
    """Its number among the members that share its agent."""
    places: int = 1
    """Number of members that share its agent."""

    def seen(self, observation: dict[str, Any], index: Index = EVERY_PLACE) -> dict[str, Any]:
        """The member's keys of an observation, by its agent's names; those that are there."""
        if self.observations is None:
            return take(observation, index)
        seen = self.observations.items()
        return {name: observation[key][index] for key, name in seen if key in observation}

    def split(self, action: Action) -> dict[str, Array]:
        """The member's actions [R, ...] by key, [R, ...] each; by `WHOLE` as a whole."""
        if self.part is not None:
            return self.part.split(action)
        return action if isinstance(action, dict) else {WHOLE: action}

    @property
    def has_own_end(self) -> bool:
        """True if its own episode may be over before the level's."""
        return self.terminated is not None or self.truncated is not None

    def ends(self, outcome: Outcome) -> tuple[BoolArray, BoolArray]:
        """Return where its own episode was terminated, and where truncated, [R] each."""
        return self._flags(outcome, self.terminated), self._flags(outcome, self.truncated)

    def rewards(self, outcome: Outcome) -> FloatArray:
        """Its rewards, [R]."""
        key = self.reward
        if key is None:
            return outcome.reward
        if not is_agent_reward(key):
            self._require_added_up(outcome, key, "a reward", "sum")
        return self._info(outcome, key).astype(np.float64)

    def _flags(self, outcome: Outcome, key: str | None) -> BoolArray:
        if key is None:
            return np.zeros(len(outcome.rows), np.bool_)
        if not is_agent_end(key):
            self._require_added_up(outcome, key, "an end", "maximum")
        return self._info(outcome, key).astype(np.bool_)

    def _require_added_up(self, outcome: Outcome, key: str, what: str, rule: Over) -> None:
        """Raise `RunError` for decisions of several steps: an info covers only the last one."""
        if self.over.get(key) != rule and (outcome.duration > 1).any():
            raise RunError(
                f"member '{self.name}' has {what} of its own, '{key}', of the last simulator "
                f"step, but its decisions last {int(outcome.duration.max())} steps; set "
                f"GraphParameters(decision_infos={{'{key}': '{rule}'}})"
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
    plays: BoolArray
    """[M, N] a member's own episode continues."""
    playing: dict[str, BoolArray]
    """[N] each: the same by the member's name."""
    latest: IntArray
    """[N] the number of the member that acted last; -1 where none has, or all act."""
    places: dict[str, int]
    """Number of members that share each agent, by its name."""

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


class Share:
    """The part of an agent in a record of R rows: what belongs to each of its members, in turn.

    Args:
        parts: Members that act there, one at least, with their numbers in the group, and their
            places in the record, ascending.
        count: R.
    """

    def __init__(self, parts: list[tuple[int, BoundMember, IntArray]], count: int) -> None:
        self.parts, self.agent = parts, parts[0][1].agent_name
        places = parts[0][2] if len(parts) == 1 else np.concatenate([each for *_, each in parts])
        is_whole = len(parts) == 1 and len(places) == count
        self.index: Index = EVERY_PLACE if is_whole else places
        """The places of all of them."""

    def request(
        self, request: ActionRequest, starts: BoolArray, episode_start: BoolArray
    ) -> ActionRequest:
        """The agent's view of a request, with its own starts [R]."""
        index = self.index
        return ActionRequest(
            rows=self.rows(request.rows),
            observation=self.seen(request.observation),
            starts=starts[index],
            episode_start=episode_start[index],
            greedy=request.greedy[index],
        )

    def outcome(self, outcome: Outcome) -> tuple[Outcome, BoolArray | None]:
        """Return the agent's view of an outcome, and where a member's own episode has ended in it.

        None: no member has an end of its own.
        """
        index, ended = self.index, None
        terminated, truncated = outcome.terminated[index], outcome.truncated[index]
        end = outcome.end[index]
        if any(each.has_own_end for _, each, _ in self.parts):
            by_member = [each.ends(outcome) for _, each, _ in self.parts]
            own_terminated, own_truncated = map(self.joined, zip(*by_member, strict=True))
            ended = own_terminated | own_truncated
            terminated = np.where(ended, own_terminated, terminated)
            truncated = np.where(ended, own_truncated & ~own_terminated, truncated)
            end = end | own_terminated * np.uint8(End.TERMINATED)
            end |= own_truncated * np.uint8(End.TRUNCATED)
        own = Outcome(
            rows=self.rows(outcome.rows),
            observation=self.seen(outcome.observation),
            reward=self.joined([each.rewards(outcome) for _, each, _ in self.parts]),
            terminated=terminated,
            truncated=truncated,
            duration=outcome.duration[index],
            end=end,
            below=outcome.below[index],
            tested=outcome.tested[index],
            next_goal=self.seen(outcome.next_goal),
            info={name: values[index] for name, values in outcome.info.items()},
        )
        return own, ended

    def rows(self, rows: IntArray) -> IntArray:
        """The agent's rows: members that share it lie side by side in each of the level's."""
        first = self.parts[0][1]
        if first.places == 1:
            return rows[self.index]
        return rows[self.index] * first.places + self._of_each(
            [each.place for _, each, _ in self.parts]
        )

    def flat(self, rows: IntArray, num_envs: int) -> IntArray:
        """The places of the level's rows [R] in flat arrays [K * N] of all members."""
        return self._of_each([number for number, *_ in self.parts]) * num_envs + rows[self.index]

    def joined(self, values: Sequence[Array]) -> Array:
        """Each member's part of its own array [R, ...], behind one another."""
        if len(values) == 1:
            return values[0][self.index]
        return np.concatenate([own[part[2]] for own, part in zip(values, self.parts, strict=True)])

    def _of_each(self, numbers: list[int]) -> IntArray | int:
        """A number of each member for all of its places."""
        if len(numbers) == 1:
            return numbers[0]
        return np.repeat(numbers, [len(places) for *_, places in self.parts])

    def seen(self, observation: Observation) -> Observation:
        """The agent's view of an observation, [D, ...] each."""
        if len(self.parts) == 1:
            return self.parts[0][1].seen(observation, self.index)
        by_member = [each.seen(observation, places) for _, each, places in self.parts]
        return {key: np.concatenate([own[key] for own in by_member]) for key in by_member[0]}


def in_turn(name: str) -> str:
    """The reason why decisions of an agent of this name last, see `LevelPlace.lasting`."""
    return f"agent '{name}' acts in turn: its decisions last until it acts again"


@runtime_checkable
class SwitchedAgent(Protocol):
    """An agent whose open decisions end with what the environment shows where control is lost."""

    def switch(
        self, row_state: Any, rows: IntArray, observation: Observation, clock: Clock
    ) -> None:
        """End the sub-episodes of rows [R], truncated where they show [R, ...] each.

        The level above takes control back between two decisions of the level.
        """
        ...


def switch(
    agent: AnyAgent, row_state: RowState, rows: IntArray, observation: Observation, clock: Clock
) -> None:
    """End the sub-episodes of rows [R] of an agent that loses control, see `SwitchedAgent`."""
    if isinstance(agent, SwitchedAgent):
        agent.switch(row_state, rows, observation, clock)
    else:
        agent.cut_off(row_state, rows, clock)


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
        parts = [each.part for each in bound if each.part is not None]
        self.idle = {key: idle for part in parts for key, idle in part.idle.items()}
        self._numbers = np.arange(len(bound))[:, None]
        self._may_end = any(each.has_own_end for each in bound)

    def new_rows(self, num_envs: int, seed: int) -> MemberRows:
        return self.ROWS(**self._new_rows(num_envs, seed))

    def _new_rows(self, num_envs: int, seed: int) -> dict[str, Any]:
        """The fields of `MemberRows`."""
        places = {name: max(1, len(bound)) for name, bound in self._bound_to.items()}
        plays = np.ones((len(self.bound), num_envs), np.bool_)
        return {
            "members": {
                name: agent.new_rows(num_envs * places[name], integer_seed(seed, "member", name))
                for name, agent in self.members.items()
            },
            "plays": plays,
            "playing": {each.name: own for each, own in zip(self.bound, plays, strict=True)},
            "latest": np.full(num_envs, -1, np.int64),
            "places": places,
        }

    def turns(self, row_state: Any, request: ActionRequest, clock: Clock) -> IntArray | None:
        """Return the number of the member that acts in each row, [R], or -1; None: all act."""
        return None

    def act(self, row_state: Any, request: ActionRequest, clock: Clock) -> Action:
        rows = request.rows
        if self._may_end and np.count_nonzero(begins := real_starts(request)):
            row_state.plays[:, rows[begins]] = True
        turns = self.turns(row_state, request, clock)
        starts, first = request.starts, request.episode_start
        if turns is not None:  # to an agent an episode begins where another has acted since
            starts = self._starts(row_state, request, turns)
            first = starts & (first | (row_state.latest[rows] != turns))
            row_state.latest[rows] = turns
        action: dict[str, Array] = {}
        for share in self._shares(self._acting(row_state, rows, turns)):
            own = share.request(request, starts, first)
            chosen = self._chosen(share, own, rows, row_state, clock)
            self._fill(action, share, chosen, len(rows))
        for key, idle in self.idle.items():
            if key not in action:
                action[key] = idle.repeat(len(rows), 0)
        return _whole(action, self.action_space)

    def _acted(self, row_state: Any, rows: IntArray) -> Iterator[Share]:
        """The shares of the agents that made the latest decisions of some rows."""
        return self._shares(self._acting(row_state, rows, None))

    def _acting(self, row_state: Any, rows: IntArray, turns: IntArray | None) -> BoolArray:
        """[K, R] whether each acts: by the numbers of those whose turn it is; None: all that play.

        K counts the members, and the selector behind them.
        """
        acting: BoolArray
        acting = row_state.plays[:, rows] if turns is None else turns == self._numbers
        return acting

    def _shares(self, where: BoolArray) -> Iterator[Share]:
        """The shares of the agents in a record of R rows, by where each has a part, [K, R]."""
        for bound in self._bound_to.values():
            parts = []
            for number, each in bound:
                (places,) = where[number].nonzero()
                if len(places):
                    parts.append((number, each, places))
            if parts:
                yield Share(parts, where.shape[1])

    def _starts(self, row_state: Any, request: ActionRequest, turns: IntArray) -> BoolArray:
        """[R] whether the decision of the member that acts continues no earlier one of it."""
        return request.starts

    def _chosen(
        self, share: Share, own: ActionRequest, rows: IntArray, row_state: Any, clock: Clock
    ) -> Action:
        """The actions of an agent.

        Args:
            share: Its share of a request.
            own: Its view of that.
            rows: The rows of the whole request, [R].
            row_state: The group's.
            clock: Phase and counters.
        """
        agent = self.members[share.agent]
        action = agent.act(row_state.members[share.agent], own, clock)
        owner = f"member '{share.agent}': {type(agent).__name__}.act: "
        check_counts(action, len(own.rows), owner)
        return action

    def _fill(self, action: dict[str, Array], share: Share, chosen: Action, count: int) -> None:
        """Write an agent's actions to the places of its members, by key, [R, ...] each."""
        begin = 0
        for _, each, places in share.parts:
            own = each.split(chosen)
            if len(share.parts) > 1:
                own = take(own, slice(begin, begin + len(places)))
            for key, values in own.items():
                if len(places) == count:
                    action[key] = values
                    continue
                if key not in action:
                    action[key] = self.idle.get(key, values[:1]).repeat(count, 0)
                action[key][places] = values
            begin += len(places)

    def observe(self, row_state: Any, outcome: Outcome, clock: Clock) -> None:
        rows = outcome.rows
        for share in self._acted(row_state, rows):
            own, ended = share.outcome(outcome)
            if ended is not None:
                plays = row_state.plays
                plays.put(share.flat(rows, plays.shape[1])[ended], False)
            self.members[share.agent].observe(row_state.members[share.agent], own, clock)

    def cut_off(self, row_state: Any, rows: IntArray, clock: Clock) -> None:
        for share in self._acted(row_state, rows):
            agent = self.members[share.agent]
            agent.cut_off(row_state.members[share.agent], share.rows(rows), clock)

    def freeze(self, row_state: Any, rows: IntArray, clock: Clock) -> None:
        for share in self._acted(row_state, rows):
            own = row_state.members[share.agent]
            freeze(self.members[share.agent], own, share.rows(rows), clock)

    def restart_rows(self, row_state: Any) -> None:
        for name, agent in self.members.items():
            agent.restart_rows(row_state.members[name])
        row_state.plays[:] = True
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


class OneOfMembers(AgentGroup):
    """Several agents, one of which acts in each row; an `Agent` that names it."""

    def _acted(self, row_state: Any, rows: IntArray) -> Iterator[Share]:
        return self._shares(self._acting(row_state, rows, row_state.latest[rows]))

    def acting(self, row_state: Any, row: int) -> str:
        number = row_state.latest[row]
        return self.bound[number].name if number >= 0 else "none"


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
