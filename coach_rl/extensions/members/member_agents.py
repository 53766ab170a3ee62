"""Several agents as one: who acts, what each agent sees of the level's records, what they save.

To its level a group is an agent like any other; to its agents it is the level. Arrays that have an
entry for each member are [K, N]: K members (and the agent that selects among them), N environments.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

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
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.parts import description_of
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    BoolArray,
    IntArray,
    Observation,
    Outcome,
    take,
)
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import Space, check_counts
from coach_rl.core.state import State
from coach_rl.extensions.members.action_parts import whole_action
from coach_rl.extensions.members.members import AgentView, BoundMember, MemberIndex
from coach_rl.extensions.members.requests import real_starts


@dataclass(kw_only=True)
class MemberRows(Saved):
    """The row state of several agents in one stack of N environments."""

    SAVED: ClassVar[SavedNames] = ("members", "unseen")

    members: dict[str, RowState]
    """Each agent's own row state, by the agent's name."""
    alive: BoolArray
    """[K, N] the member's own episode continues."""
    playing: dict[str, BoolArray]
    """[N] each: the same by the member's name, in the same memory."""
    latest: IntArray
    """[N] the number of the member that acted last; -1 where none has, or all act."""
    unseen: BoolArray
    """[K, N] a real episode has begun, and the member has not acted in it."""
    slots: dict[str, int]
    """Number of members that share each agent, by its name."""

    def decisions(self) -> State:
        made = {name: following(rows, name).decisions() for name, rows in self.members.items()}
        return {
            name: _reshaped(made[name], (-1, slots), 1) if slots > 1 else made[name]
            for name, slots in self.slots.items()  # [N * S, ...] to [N, S, ...]
        }

    def follow(self, decisions: State) -> None:
        for name, slots in self.slots.items():
            made = decisions[name]
            made = _reshaped(made, (-1,), 2) if slots > 1 else made  # [N, S, ...] to [N * S, ...]
            following(self.members[name], name).follow(made)


class GroupRows(MemberRows):
    """The row state of members that all act at every decision."""

    SAVED = ("playing",)


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
    """Several agents that act together as one; an `Agent`.

    A member whose own episode is over makes no decisions and gets no transitions until the real
    episode is over: its keys carry a filler action, as those of members that do not act.

    Args:
        agents: The agents by name.
        bound: The members in the order of their numbers; several may share an agent.
        action_space: Their joint action space; None where each decision is one member's, whole.

    Attributes:
        members: The agents by name.
        bound: The members.
        is_inner: True if it acts for another group, which passes on real episodes that begin, and
            ends that come while others act.
    """

    is_inner = False
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
        self.bound = bound
        self.action_space = action_space
        self._members_of = {
            name: [(number, each) for number, each in enumerate(bound) if each.agent_name == name]
            for name in self.members
        }
        """Numbers and members that each agent acts for, by its name."""
        parts = [each.part for each in bound if each.part is not None]
        self.idle = {key: idle for part in parts for key, idle in part.idle.items()}
        """Filler actions [1, ...] by key."""
        self._inner = {name: each for name, each in agents.items() if isinstance(each, AgentGroup)}
        """Agents that are groups themselves, by name."""
        for each in self._inner.values():
            each.is_inner = True
        self._numbers = np.arange(len(bound))[:, None]  # [K, 1]
        self._may_end = any(each.has_own_end for each in bound)

    def new_rows(self, num_envs: int, seed: int) -> MemberRows:
        return self.ROWS(**self._new_rows(num_envs, seed))

    def _new_rows(self, num_envs: int, seed: int) -> dict[str, Any]:
        """The fields of `ROWS`, by name."""
        slots = {name: max(1, len(members)) for name, members in self._members_of.items()}
        alive = np.ones((len(self.bound), num_envs), np.bool_)  # [K, N]
        return {
            "members": {
                name: agent.new_rows(num_envs * slots[name], integer_seed(seed, "member", name))
                for name, agent in self.members.items()
            },
            "alive": alive,
            "playing": {each.name: own for each, own in zip(self.bound, alive, strict=True)},
            "latest": np.full(num_envs, -1, np.int64),
            "unseen": np.zeros_like(alive),
            "slots": slots,
        }

    def turns(self, row_state: Any, request: ActionRequest, clock: Clock) -> IntArray | None:
        """The number of the member that acts in each row of the request, [R]; -1 where none does.

        None: all members act.
        """
        return None

    def act(self, row_state: Any, request: ActionRequest, clock: Clock) -> Action:
        rows = request.rows
        if not self.is_inner and np.count_nonzero(begins := real_starts(request)):
            self.begin_episodes(row_state, rows[begins])
        turns = self.turns(row_state, request, clock)
        starts = request.starts
        first = request.episode_start
        if turns is not None:  # to an agent an episode begins where another has acted since
            starts = self._starts(row_state, request, turns)
            first = starts & (first | (row_state.latest[rows] != turns))
            row_state.latest[rows] = turns
        action: dict[str, Array] = {}
        for view in self._views(self._acting(row_state, rows, turns)):
            index = view.flat_index(rows, row_state.unseen.shape[1])
            own = view.request(request, starts, first, row_state.unseen.take(index))
            row_state.unseen.put(index, False)
            chosen = self._chosen(view, own, rows, row_state, clock)
            self._write(action, view, chosen, len(rows))
        for key, idle in self.idle.items():
            if key not in action:
                action[key] = idle.repeat(len(rows), 0)
        return whole_action(action, self.action_space)

    def begin_episodes(self, row_state: Any, rows: IntArray) -> None:
        """Note that real episodes begin in rows [R]: no member is over, and none has acted."""
        row_state.alive[:, rows] = True
        row_state.unseen[:, rows] = True
        for name, group in self._inner.items():
            slots = np.arange(row_state.slots[name])
            own = (rows[:, None] * len(slots) + slots).reshape(-1)
            group.begin_episodes(row_state.members[name], own)

    def note_ends(self, row_state: Any, outcome: Outcome) -> None:
        """Note whose own episodes are over by an outcome in which the group has no part."""
        for number, each in enumerate(self.bound):
            if each.has_own_end:
                ended = np.logical_or(*each.ends(outcome))
                row_state.alive[number, outcome.rows[ended]] = False
        self._pass_ends(row_state, outcome, self._numbers >= np.zeros(len(outcome.rows)))

    def _pass_ends(self, row_state: Any, outcome: Outcome, idle: BoolArray) -> None:
        """Let the groups among the agents note ends where they have no open decision, [K, R]."""
        for view in self._views(idle) if self._inner else ():
            if view.agent in self._inner:
                own, _ = view.outcome(outcome)
                self._inner[view.agent].note_ends(row_state.members[view.agent], own)

    def _deciders(self, row_state: Any, rows: IntArray) -> Iterator[AgentView]:
        """The views of the agents that made the latest decisions of rows [R]."""
        return self._views(self._acting(row_state, rows, None))

    def _acting(self, row_state: Any, rows: IntArray, turns: IntArray | None) -> BoolArray:
        """Mask of the members that act in rows [R], [K, R].

        Args:
            row_state: The group's.
            rows: [R].
            turns: The number of the member whose turn it is, [R]; None: all that are alive act.
        """
        acting: BoolArray
        acting = row_state.alive[:, rows] if turns is None else turns == self._numbers
        return acting

    def _views(self, where: BoolArray) -> Iterator[AgentView]:
        """Each agent's view of a record, by where its members have a part in it, [K, R]."""
        for members in self._members_of.values():
            parts = []
            for number, each in members:
                (places,) = where[number].nonzero()
                if len(places):
                    parts.append(MemberIndex(number, each, places))
            if parts:
                yield AgentView(parts, where.shape[1])

    def _starts(self, row_state: Any, request: ActionRequest, turns: IntArray) -> BoolArray:
        """Mask of rows in which the member that acts continues no earlier decision, [R]."""
        return request.starts

    def _chosen(
        self, view: AgentView, own: ActionRequest, rows: IntArray, row_state: Any, clock: Clock
    ) -> Action:
        """The actions [D, ...] of an agent.

        Args:
            view: Its view of a request.
            own: Its request, of D rows.
            rows: The rows of the group's request, [R].
            row_state: The group's.
            clock: Phase and counters.
        """
        agent = self.members[view.agent]
        action = agent.act(row_state.members[view.agent], own, clock)
        owner = f"member '{view.agent}': {type(agent).__name__}.act: "
        check_counts(action, len(own.rows), owner)
        return action

    def _write(self, action: dict[str, Array], view: AgentView, chosen: Action, count: int) -> None:
        """Write an agent's actions [D, ...] to those of the group by key, [R, ...] each.

        Args:
            action: The group's so far; changed.
            view: The agent's view of the request.
            chosen: Its actions.
            count: R.
        """
        begin = 0
        for _, each, places in view.parts:
            own = each.split(chosen)
            if len(view.parts) > 1:
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
        alive = row_state.alive
        for view in self._deciders(row_state, rows):
            own, ended = view.outcome(outcome)
            if ended is not None:
                alive.put(view.flat_index(rows, alive.shape[1])[ended], False)
            self.members[view.agent].observe(row_state.members[view.agent], own, clock)

    def cut_off(self, row_state: Any, rows: IntArray, clock: Clock) -> None:
        for view in self._deciders(row_state, rows):
            agent = self.members[view.agent]
            agent.cut_off(row_state.members[view.agent], view.rows(rows), clock)

    def freeze(self, row_state: Any, rows: IntArray, clock: Clock) -> None:
        for view in self._deciders(row_state, rows):
            own = row_state.members[view.agent]
            freeze(self.members[view.agent], own, view.rows(rows), clock)

    def restart_rows(self, row_state: Any) -> None:
        for name, agent in self.members.items():
            agent.restart_rows(row_state.members[name])
        row_state.alive[:] = True
        row_state.unseen[:] = False
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
        """The most outcomes that an agent of that name may get for each decision of the group."""
        return max(1, len(self._members_of[name]))

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
                f"member {each.name}" + (f" (shares {each.agent_name})" * (each.slots > 1))
            )
            if each.observations is not None and each.part is not None:
                lines += [
                    f"  observes {', '.join(each.observations)}",
                    f"  acts under {', '.join(filter(None, each.part.keys)) or 'all keys'} in "
                    f"{each.part.space}",
                ]
            lines.append(f"  reward: {each.reward or 'the level'}")
            if each.slot == each.slots - 1:
                agent = self.members[each.agent_name]
                lines += [f"  {line}" for line in description_of(agent).splitlines()]
        return "\n".join(lines)


class OneOfMembers(AgentGroup):
    """Several agents, one of which acts in each row; an `Agent` that names the latest."""

    def _deciders(self, row_state: Any, rows: IntArray) -> Iterator[AgentView]:
        return self._views(self._acting(row_state, rows, row_state.latest[rows]))

    def observe(self, row_state: Any, outcome: Outcome, clock: Clock) -> None:
        super().observe(row_state, outcome, clock)
        rows = outcome.rows
        idle = ~self._acting(row_state, rows, row_state.latest[rows])
        self._pass_ends(row_state, outcome, idle)

    def acting(self, row_state: Any, row: int) -> str:
        number = row_state.latest[row]
        return self.bound[number].name if number >= 0 else "none"


def _reshaped(tree: State, leading: tuple[int, ...], axes: int) -> State:
    """A tree of arrays whose first axes have another shape.

    Args:
        tree: Arrays by name, or trees of such.
        leading: The shape of the new first axes.
        axes: Number of first axes that they replace.
    """
    return {
        name: _reshaped(part, leading, axes)
        if isinstance(part, dict)
        else part.reshape(*leading, *part.shape[axes:])
        for name, part in tree.items()
    }
