"""Junctions, the environments of levels that form a graph.

routes = Routes(simulators, descriptions, links=links)      # of all levels, lowest built first
junction = Junction(routes, index)
routes.levels[index] = GraphLevel(..., junction=junction)

A row has one active path from the top to the simulators: each level on it has an open directive of
the level above. Everything is found by who sent each open directive.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import SpaceError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.infos import joined
from coach_rl.core.interfaces import Environment
from coach_rl.core.level_parts import LevelPart
from coach_rl.core.levels import LevelDescription
from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    Directive,
    EnvResponse,
    IntArray,
    Observation,
    take,
)
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.spaces import EnvironmentSpaces, check_counts
from coach_rl.extensions.groups.graph_level import GraphLevel
from coach_rl.extensions.members.requests import SWITCHED, GraphRequest
from coach_rl.graph_managers.arrangement import Links

CHOICE = "choice"
"""The part of a selecting level's action that is the number of the level below."""


class Routes(Saved):
    """Carries directives down a graph of levels, and answers up.

    Args:
        simulators: Under the lowest levels.
        described: The levels, top first, each before those below it.
        links: The levels directly below each.
        preempt: Names of the levels that take control back.
    """

    SAVED: ClassVar[SavedNames] = ("_sender", SavedAttribute("_observation", varies=True))

    def __init__(
        self,
        simulators: Environment,
        described: Sequence[LevelDescription],
        *,
        links: Links,
        preempt: Collection[str] = (),
    ) -> None:
        self.simulators = simulators
        self.described = described
        self.links = links
        self.preempts = tuple(level.name in preempt for level in described)
        """True for each level that takes control back after each decision below."""
        self.above = tuple(
            tuple(each for each in range(index) if index in self.links[each])
            for index in range(len(described))
        )
        """The levels directly above each."""
        self.levels: dict[int, GraphLevel] = {}
        """The levels by number, as far as they are built."""
        self.junctions: dict[int, Junction] = {}
        """The environments of these levels."""
        count = len(described)
        n = simulators.num_envs
        self._sender = np.full((count + 1, n), -1, np.int64)
        """[L + 1, N] the level that sent each level its last directive, behind them the simulators;
        -1 before there was one."""
        self._observation: Observation = {}
        """[N, ...] each: what each row acts on next."""
        self.has_acted = np.zeros((count, n), np.bool_)
        """[L, N] the levels that were on the active path at the step before, and so have seen what
        it led to; see `begin_tick`."""
        self._sent: list[tuple[IntArray, Action]] = []
        """Actions for the simulators of this tick; none between ticks."""
        self._answers: list[list[EnvResponse]] = [[] for _ in described]
        """Answers on their way to each level; none between ticks."""
        self._outer = [
            [each for each in self.ancestors(index) if self._goal_space(each) is not None]
            for index in range(count)
        ]

    def ancestors(self, index: int) -> list[int]:
        """The levels from which a level can be reached, the top first."""
        found: set[int] = set()
        for each in self.above[index]:
            found |= {each, *self.ancestors(each)}
        return sorted(found)

    def spaces(self, index: int) -> EnvironmentSpaces:
        """The spaces in which a level observes and acts.

        Raises:
            SpaceError: A level that takes goals has the name that the choice has.
        """
        below = self.links[index]
        seen = self.simulators.spaces
        if not below:
            return seen
        if len(below) == 1:
            return self.levels[below[0]].spaces
        parts: dict[str, spaces.Space[object]] = {CHOICE: spaces.Discrete(len(below))}
        for each in below:
            described = self.described[each]
            if described.goal_space is None:
                continue
            if described.name == CHOICE:
                raise SpaceError(
                    f"level '{described.name}' has the name of the part of the action of level "
                    f"'{self.described[index].name}' that selects it; name it otherwise"
                )
            parts[described.name] = described.goal_space.space
        action = parts[CHOICE] if len(parts) == 1 else spaces.Dict(parts)
        return EnvironmentSpaces(observation=seen.observation, action=action)

    def reset(self, seed: int | Sequence[int] | None) -> EnvResponse:
        """Reset the simulators, and all levels but the top, which resets itself."""
        response = self.simulators.reset(seed)
        self._sender[:] = -1
        self._sent.clear()
        self._observation = {key: np.array(v) for key, v in response.first_observation.items()}
        for index, level in self.levels.items():
            if index:
                level.rows.reset(response)
        return response

    def begin_tick(self) -> None:
        """Note which levels have acted last, before others do."""
        self.has_acted[:] = False
        (rows,) = (self._sender[-1] >= 0).nonzero()
        acting = self._sender[-1, rows]
        while len(rows):
            self.has_acted[acting, rows] = True
            rows = rows[acting > 0]
            acting = acting[acting > 0]
            acting = self._sender[acting, rows]

    def send(self, sender: int, directive: Directive, rows: IntArray) -> None:
        """Hand a level's directive to the levels that it selects, or keep it for the simulators."""
        below = self.links[sender]
        if not below:
            self._sender[-1, rows] = sender
            self._sent.append((rows, directive.action))
            return
        check_counts(directive.action, len(rows), f"level '{self.described[sender].name}': ")
        choice = self._choice(sender, directive.action)
        if choice is None:
            self._hand(sender, below[0], directive, rows)
            return
        if self.preempts[sender]:  # all, before a level below two of them begins
            for place, index in enumerate(below):
                self._switch(index, sender, rows[choice != place])
        for place, index in enumerate(below):
            (here,) = (choice == place).nonzero()
            if len(here):
                self._hand(sender, index, directive.rows_of(here), rows[here])

    def flush(self) -> None:
        """Send the simulators the actions that the levels have sent since the last call."""
        if self._sent:
            self.simulators.send(*_together(self._sent))
            self._sent.clear()

    def deliver(self, response: EnvResponse) -> None:
        """Hand an answer of the simulators to the levels that act on them."""
        rows = response.rows
        for key, values in response.first_observation.items():
            self._observation[key][rows] = values
        over = rows[response.terminated | response.truncated]
        if len(over):
            for level in self.levels.values():  # those that are not on the path, too
                level.rows.episode_start[over] = True
        senders = self._sender[-1, rows]
        for index in np.unique(senders).tolist():
            self._answers[index].append(_of(response, senders == index))

    def answer(self, index: int) -> EnvResponse | None:
        """The answers for a level since the last call, as one; None where none came."""
        parts = self._answers[index]
        self._answers[index] = []
        if len(parts) < 2:
            return parts[0] if parts else None
        faults = next((part.faults for part in parts if part.faults), ())
        whole = joined(parts, faults=faults)
        return _of(whole, whole.rows.argsort(kind="stable"))

    def pass_up(self, index: int) -> None:
        """Let a level process what has come for it, and hand its answer to the level above."""
        answer = self.answer(index)
        if answer is None:
            return
        level = self.levels[index]
        upwards = level.process(answer)
        if self.preempts[index]:
            over = answer.rows[level.rows.starts[answer.rows]]
            for each in self.links[index]:
                self._switch(each, index, over)
        for above in self.above[index]:
            part = _due(answer, upwards) if self.preempts[above] else upwards
            mine = _of(part, self._sender[index, part.rows] == above)
            if len(mine):
                self._answers[above].append(mine)

    def path(self, row: int) -> list[int]:
        """The levels that are, or were last, on the active path of a row, top first."""
        found = list[int]()
        index = int(self._sender[-1, row])
        while index >= 0:
            found.append(index)
            index = int(self._sender[index, row]) if index else -1
        return found[::-1]

    def _choice(self, sender: int, action: Action) -> IntArray | None:
        """The place in `below` of the selected levels, [R]; None where there is only one."""
        if len(self.links[sender]) == 1:
            return None
        choice: IntArray = action[CHOICE] if isinstance(action, dict) else action
        return choice

    def _goal_space(self, index: int) -> GoalSpace | None:
        space = self.described[index].goal_space
        return space if isinstance(space, GoalSpace) else None

    def _hand(self, sender: int, index: int, directive: Directive, rows: IntArray) -> None:
        """Begin sub-episodes of a level, or continue those open under an equal directive."""
        level = self.levels[index]
        described = self.described[index]
        junction = self.junctions[sender]
        junction.note(index, rows)
        action = directive.action
        if isinstance(action, dict):  # of several levels; one that takes nothing has no part
            nothing = np.zeros((len(rows), 0), np.float32)
            action = action.get(described.name, nothing)
        outer = self._outer_goals(sender, index, directive, len(rows))
        mine = replace(directive, action=action, outer_goals=outer)
        is_open = level.rows.open[rows]
        for key, values in take(self._observation, rows[~is_open]).items():
            level.rows.observation[key][rows[~is_open]] = values
        if np.count_nonzero(is_open):  # the sender preempts it
            goal = level.target(action, rows)
            same = is_open & (goal == level.rows.goal[rows]).all(axis=1)
            level.hand_on(rows[same], mine.rows_of(same))
            self._switch(index, sender, rows[is_open & ~same])
            rows = rows[~same]
            mine = mine.rows_of(~same)
        self._sender[index, rows] = sender
        if len(rows):
            level.send(mine, rows)

    def _outer_goals(
        self, sender: int, index: int, directive: Directive, count: int
    ) -> tuple[Array, ...]:
        """The goals above a level; NaN, which nothing reaches, for levels of another path."""
        sending = [*self._outer[sender], *([sender] if self._goal_space(sender) else [])]
        given = dict(zip(sending, directive.outer_goals, strict=True))
        goals = []
        for each in self._outer[index]:
            space = self._goal_space(each)
            assert space is not None
            goals.append(given.get(each, np.full((count, space.sent_size), np.nan, np.float32)))
        return tuple(goals)

    def _switch(self, index: int, sender: int, rows: IntArray) -> None:
        """End what a level does for a sender in rows, if anything, and what is done for it."""
        level = self.levels[index]
        rows = rows[level.rows.open[rows] & (self._sender[index, rows] == sender)]
        if not len(rows):
            return
        level.switch(rows)
        for each in self.links[index]:
            self._switch(each, index, rows)


class Selection(LevelPart):
    """Counts the decisions that each level below has carried out, for the log.

    Args:
        names: Of the levels below.
        is_preempted: Whether their level may lose control before its sub-episode is over.
    """

    key = "junction"
    SAVED: ClassVar[SavedNames] = ("_counts",)

    def __init__(self, names: Sequence[str], *, is_preempted: bool) -> None:
        self._names = names
        self._counts = np.zeros(len(names), np.float64)
        """[K]."""
        self._counted: BoolArray | None = None
        if is_preempted:
            self.ended_by = {"switched": SWITCHED}

    def note(self, below: int, rows: IntArray) -> None:
        """Count decisions that a level below carries out, by its place among them."""
        counted = len(rows) if self._counted is None else np.count_nonzero(self._counted[rows])
        self._counts[below] += counted

    def count_only(self, rows: BoolArray) -> None:
        """Leave out decisions of other rows than these, [N], until they are drained."""
        self._counted = rows.copy()

    def metrics(self) -> dict[str, float]:
        """The share of each level below in the decisions since the last call, where it selects."""
        counts = self._counts.copy()
        self._counts[:] = 0.0
        self._counted = None
        if len(self._names) < 2 or not counts.sum():
            return {}
        shares = (counts / counts.sum()).tolist()
        return {
            f"selected_share/{name}": share for name, share in zip(self._names, shares, strict=True)
        }


class Junction(Saved):
    """The environment of a level of a graph: the levels below it, or the simulators.

    It implements the environment contract; the stack calls its routes in turn.

    Args:
        routes: Of the graph.
        index: The level's number.
    """

    def __init__(self, routes: Routes, index: int) -> None:
        self._routes = routes
        self._index = index
        names = [routes.described[each].name for each in routes.links[index]]
        above = routes.ancestors(index)
        is_preempted = any(routes.preempts[each] for each in above)
        self.part = Selection(names, is_preempted=is_preempted)
        routes.junctions[index] = self

    @property
    def num_envs(self) -> int:
        return self._routes.simulators.num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        return self._routes.spaces(self._index)

    def request(self, *, rows: IntArray, episode_start: BoolArray, **others: Any) -> GraphRequest:
        """A request of the level; to its agent an episode begins where others have acted since."""
        first = episode_start | ~self._routes.has_acted[self._index, rows]
        return GraphRequest(rows=rows, episode_start=first, real=episode_start, **others)

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        return self._routes.reset(seed)

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        rows = np.arange(self.num_envs) if rows is None else rows
        if not isinstance(directive, Directive):
            directive = Directive(action=directive)
        self._routes.send(self._index, directive, rows)

    def recv(self) -> EnvResponse:
        raise NotImplementedError("the levels of a graph make their ticks together; see Stack.tick")

    def close(self) -> None:
        self._routes.simulators.close()

    def note(self, below: int, rows: IntArray) -> None:
        """Count decisions that a level below carries out."""
        self.part.note(self._routes.links[self._index].index(below), rows)

    def count_only(self, rows: BoolArray) -> None:
        """Leave out decisions of other rows than these, [N], until they are drained."""
        self.part.count_only(rows)


def _of(answer: EnvResponse, index: Array) -> EnvResponse:
    """The answer of some rows, with the faults of all."""
    if index.dtype == np.bool_ and np.count_nonzero(index) == len(index):
        return answer
    return replace(answer.rows_of(index), faults=answer.faults)


def _due(answer: EnvResponse, upwards: EnvResponse) -> EnvResponse:
    """The decision of a level that is preempted, as the answer to the level above.

    Args:
        answer: What its decision led to.
        upwards: What it answers where its sub-episode is over.
    """
    end = np.zeros(int(answer.rows.max()) + 1, np.uint8)
    end[upwards.rows] = upwards.end
    return replace(answer, end=end[answer.rows])


def _together(sent: Sequence[tuple[IntArray, Action]]) -> tuple[Directive, IntArray]:
    """The actions of several levels in the order of their rows."""
    if len(sent) == 1:
        ((rows, action),) = sent
        return Directive(action=action), rows
    rows = np.concatenate([rows for rows, _ in sent])
    order = rows.argsort(kind="stable")
    actions = [action for _, action in sent]
    first = actions[0]
    if isinstance(first, dict):
        parts = [each for each in actions if isinstance(each, dict)]
        whole: Action = {key: np.concatenate([part[key] for part in parts])[order] for key in first}
    else:
        whole = np.concatenate([each for each in actions if not isinstance(each, dict)])[order]
    return Directive(action=whole), rows[order]
