"""Groups whose members act in turn: open decisions, and the outcomes that close them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from coach_rl.agents.agent_rows import write_rows
from coach_rl.core.agents import AnyAgent
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ActionError
from coach_rl.core.infos import add_infos
from coach_rl.core.parts import description_of
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
)
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.spaces import Space
from coach_rl.extensions.groups.arbiters import Arbiter
from coach_rl.extensions.members.member_agents import MemberRows, OneOfMembers
from coach_rl.extensions.members.members import AgentView, BoundMember, MemberIndex
from coach_rl.extensions.members.requests import SWITCHED, real_starts


@dataclass(kw_only=True)
class OpenDecisions(Saved):
    """Open decisions and their results so far: of K members, [K, N] each, or of one of them, [N].

    Methods take flat places [D] in these arrays: number * N + row.
    """

    KINDS: ClassVar[Mapping[str, type]] = {
        "open": np.bool_,
        "reward": np.float64,
        "duration": np.int64,
        "below": np.uint8,
        "tested": np.bool_,
        "learns": np.bool_,
    }
    """The dtypes of the arrays."""
    SAVED = (*KINDS, SavedAttribute("info", varies=True))

    open: BoolArray
    """It has decided, and neither acted again nor come to an end."""
    reward: FloatArray
    """Rewards since then, discounted."""
    duration: IntArray
    """Simulator steps since then, the power of the discount."""
    below: Array
    """Bits of `End` that the level below reported of the decision."""
    tested: BoolArray
    """The decision was tested."""
    learns: BoolArray
    """The agent was not frozen when it decided."""
    info: dict[str, Array] = field(default_factory=dict)
    """[N] each, of one agent: the infos reported last of those that it keeps."""

    @classmethod
    def new(cls, shape: tuple[int, int]) -> "OpenDecisions":
        """Arrays of that shape, in which no decision is open."""
        arrays: dict[str, Any] = {name: np.zeros(shape, kind) for name, kind in cls.KINDS.items()}
        return cls(**arrays)

    def of(self, number: int) -> "OpenDecisions":
        """Those of one member by its number, in the same memory."""
        return OpenDecisions(**{name: getattr(self, name)[number] for name in self.KINDS})

    def begin(self, index: IntArray, *, learns: bool) -> None:
        """Open decisions at flat places [D].

        Args:
            index: Their flat places.
            learns: Whether their agents learn from them.
        """
        self.open.put(index, True)
        self.learns.put(index, learns)
        self.reward.put(index, 0.0)
        self.duration.put(index, 0)

    def add(
        self,
        index: IntArray,
        places: IntArray,
        outcome: Outcome,
        reward: FloatArray,
        discount: float,
    ) -> None:
        """Add what one decision of the level led to.

        Args:
            index: Their flat places, [D].
            places: Their places in the outcome, [D].
            outcome: The level's.
            reward: The agents' own, [D].
            discount: Of rewards, per simulator step.
        """
        duration = self.duration.take(index)
        begun = duration == 0
        if np.count_nonzero(begun):
            self.below.put(index[begun], outcome.below[places[begun]])
            self.tested.put(index[begun], outcome.tested[places[begun]])
        if discount != 1.0:
            reward = discount**duration * reward
        self.reward.put(index, self.reward.take(index) + reward)
        self.duration.put(index, duration + outcome.duration[places])

    def closed(
        self, index: IntArray, rows: IntArray, observation: Observation, info: dict[str, Array]
    ) -> Outcome:
        """The outcome of decisions whose agent acts again.

        Args:
            index: Their flat places, [D].
            rows: The agent's, [D].
            observation: What it sees now, [D, ...] each.
            info: The infos that it keeps, [D] each.
        """
        nowhere, none = np.zeros(len(index), np.bool_), np.zeros(len(index), np.uint8)
        return Outcome(
            rows=rows,
            observation=observation,
            reward=self.reward.take(index),
            terminated=nowhere,
            truncated=nowhere,
            duration=self.duration.take(index),
            end=none,
            below=self.below.take(index),
            tested=self.tested.take(index),
            info=info,
        )

    def ended(self, index: IntArray, outcome: Outcome) -> Outcome:
        """The outcome of decisions that an end closes.

        Args:
            index: Their flat places, [D].
            outcome: The agent's view of the end, of D rows.
        """
        self.open.put(index, False)
        return replace(
            outcome,
            reward=self.reward.take(index),
            duration=self.duration.take(index),
            below=self.below.take(index),
            tested=self.tested.take(index),
        )


@dataclass(kw_only=True)
class TurnRows(MemberRows):
    """The state of members that act in turn."""

    SAVED = ("playing", "latest", "decisions_of", "turns")

    opened: OpenDecisions
    """The open decisions of the members, and of the selector behind them."""
    decisions_of: dict[str, OpenDecisions]
    """The same of each by name."""
    turns: dict[str, Array]
    """The arbiter's, [N, ...] each."""


class TurnGroup(OneOfMembers):
    """Members one of which acts in each row, as an arbiter chooses; an `Agent`.

    A member's decision stays open until the member acts again, its own episode is over or the
    (sub-)episode is. Then its agent observes one outcome: the rewards since then, discounted and
    added up, and the observation of that moment.

    Args:
        agents: The members' agents by name.
        bound: The members.
        action_space: Their joint action space.
        arbiter: Chooses who acts.
        discount: Of rewards, per simulator step, while they are added up.
    """

    ROWS = TurnRows

    def __init__(
        self,
        agents: Mapping[str, AnyAgent],
        bound: tuple[BoundMember, ...],
        action_space: Space,
        *,
        arbiter: Arbiter,
        discount: float,
    ) -> None:
        selector = arbiter.selector
        choosing = () if selector is None else (selector[0],)
        more = {} if selector is None else {selector[0].name: selector[1]}
        super().__init__({**agents, **more}, bound, action_space)
        self.arbiter = arbiter
        self.discount = discount
        self._over = {name: how for name, how in bound[0].over.items() if how != "last"}
        """Rules for infos of a decision that are not the last step's, by name."""
        self._deciding = (*bound, *choosing)
        """The K members, and the selector behind them."""
        self._numbers = np.arange(len(self._deciding))[:, None]  # [K, 1]
        self._members_of |= {each.name: [(len(bound), each)] for each in choosing}
        self._with_own = [
            (number, each)
            for number, each in enumerate(self._deciding)
            if each.reward is not None or each.has_own_end or each.infos or self._over
        ]
        """Numbers and members whose outcomes differ from the level's."""

    def _new_rows(self, num_envs: int, seed: int) -> dict[str, Any]:
        opened = OpenDecisions.new((len(self._deciding), num_envs))
        return {
            **super()._new_rows(num_envs, seed),
            "opened": opened,
            "decisions_of": {
                each.name: opened.of(number) for number, each in enumerate(self._deciding)
            },
            "turns": self.arbiter.new_rows(num_envs),
        }

    def most_outcomes(self, name: str) -> int:
        return super().most_outcomes(name) + 1  # one acts again, and an end closes all

    def turns(self, row_state: TurnRows, request: ActionRequest, clock: Clock) -> IntArray:
        alive = row_state.alive[:, request.rows] if self._may_end else None
        choose = partial(self._choices, row_state, clock)
        if alive is None or alive.all():
            return self.arbiter.turns(row_state.turns, request, None, choose)
        turns = self.arbiter.turns(row_state.turns, request, alive, choose)
        return np.where(alive[turns, np.arange(len(turns))], turns, -1)  # -1: its episode is over

    def _starts(
        self, row_state: TurnRows, request: ActionRequest, turns: IntArray | int
    ) -> BoolArray:
        starts: BoolArray = ~row_state.opened.open[turns, request.rows]
        return starts

    def _chosen(
        self,
        view: AgentView,
        own: ActionRequest,
        rows: IntArray,
        row_state: TurnRows,
        clock: Clock,
    ) -> Action:
        """The actions [D, ...] of an agent, whose open decisions end with what it sees now."""
        opened = row_state.opened
        (again,) = (~own.starts).nonzero()  # of D: those that have an open decision
        index = view.flat_index(rows, opened.open.shape[1])
        if len(again):
            kept = self._kept(view, row_state, rows)
            closed = opened.closed(index, own.rows, own.observation, kept)
            if len(again) == len(index):
                self._learn(view.agent, row_state, closed, index, clock)
            else:
                self._learn(view.agent, row_state, closed.rows_of(again), index[again], clock)
        opened.begin(index, learns=clock.learns)
        for _, each, places in view.parts if self._over else ():
            for name, total in row_state.decisions_of[each.name].info.items():
                if name.removeprefix("_") in self._over:
                    total[rows[places]] = 0
        return super()._chosen(view, own, rows, row_state, clock)

    def _kept(self, view: AgentView, row_state: TurnRows, rows: IntArray) -> dict[str, Array]:
        """The infos that an agent keeps of its open decisions, [D] each."""
        if not view.parts[0].member.infos and not self._over:
            return {}
        stores = [row_state.decisions_of[each.member.name].info for each in view.parts]
        names = dict.fromkeys(name for store in stores for name in store)
        none = np.zeros(row_state.opened.open.shape[1])
        return {
            name: view.joined([store.get(name, none)[rows] for store in stores]) for name in names
        }

    def _choices(self, row_state: TurnRows, clock: Clock, request: ActionRequest) -> IntArray:
        """The selector's choices [R], numbers of members."""
        number = len(self.bound)
        each = self._deciding[-1]
        starts = self._starts(row_state, request, number)
        view = AgentView([MemberIndex(number, each, np.arange(len(starts)))], len(starts))
        first = starts & request.episode_start
        own = view.request(request, starts, first, real_starts(request))
        chosen = self._chosen(view, own, request.rows, row_state, clock)
        if isinstance(chosen, dict) or ((chosen < 0) | (chosen >= number)).any():
            raise ActionError(
                f"the selector '{each.name}' chose {np.unique(np.asarray(chosen))}; allowed are "
                f"the numbers 0 to {number - 1} of the members "
                f"{', '.join(each.name for each in self.bound)}"
            )
        return chosen

    def observe(self, row_state: TurnRows, outcome: Outcome, clock: Clock) -> None:
        # Decisions are kept by member and row, [K, N]. Here D of them are open in the R rows of the
        # outcome: decision d is of member numbers[d], in row rows[places[d]], and lies at the flat
        # index numbers[d] * N + rows[places[d]]. One outcome may be that of several members.
        opened = row_state.opened
        rows = outcome.rows
        n = row_state.alive.shape[1]
        self._pass_ends(row_state, outcome, ~opened.open[:, rows])
        numbers, places = opened.open[:, rows].nonzero()  # [D] each: members with open decisions
        reward = outcome.reward[places].astype(np.float64, copy=False)
        over = (outcome.terminated | outcome.truncated)[places]
        for number, each in self._with_own:
            mine = numbers == number  # [D]
            here = places[mine]  # their positions in the outcome
            if each.reward is not None:
                reward[mine] = each.rewards(outcome)[here]
            if each.has_own_end:
                ended = np.logical_or(*each.ends(outcome))
                over[mine] |= ended[here]
                row_state.alive[number, rows[ended]] = False
            last = (each.infos & outcome.info.keys()) - self._over.keys()
            store = row_state.decisions_of[each.name].info
            write_rows(store, rows[here], {name: outcome.info[name][here] for name in last}, n)
            add_infos(store, outcome.info, self._over, rows=rows[here], places=here, count=n)
        opened.add(numbers * n + rows[places], places, outcome, reward, self.discount)
        if not np.count_nonzero(over):
            return
        closed = np.zeros((len(self._deciding), len(rows)), np.bool_)  # [K, R]
        closed[numbers[over], places[over]] = True
        for view in self._views(closed):
            index = view.flat_index(rows, n)
            own, _ = view.outcome(outcome)
            own = replace(own, info={**own.info, **self._kept(view, row_state, rows)})
            ended = opened.ended(index, own)
            self._learn(view.agent, row_state, ended, index, clock)

    def _learn(
        self, name: str, row_state: TurnRows, outcome: Outcome, index: IntArray, clock: Clock
    ) -> None:
        """Pass an agent the outcome of its decisions; it learns nothing from frozen ones.

        Args:
            name: The agent's name.
            row_state: The group's.
            outcome: Of D decisions, with the agent's rows.
            index: Their flat places in the arrays of open decisions, [D].
            clock: Phase and counters.
        """
        agent = self.members[name]
        rows = row_state.members[name]
        if clock.learns:
            learns = row_state.opened.learns.take(index)
            if not learns.all():
                agent.observe(rows, outcome.rows_of(~learns), replace(clock, phase=Phase.TEST))
                if not learns.any():
                    return
                outcome = outcome.rows_of(learns)
        agent.observe(rows, outcome, clock)

    def _deciders(self, row_state: TurnRows, rows: IntArray) -> Iterator[AgentView]:
        """The views of the agents whose decisions are open in rows [R]."""
        return self._views(row_state.opened.open[:, rows])

    def cut_off(self, row_state: TurnRows, rows: IntArray, clock: Clock) -> None:
        super().cut_off(row_state, rows, clock)
        row_state.opened.open[:, rows] = False

    def freeze(self, row_state: TurnRows, rows: IntArray, clock: Clock) -> None:
        super().freeze(row_state, rows, clock)
        row_state.opened.learns[:, rows] = False  # they stay open: what they lead to is observed

    def switch(
        self, row_state: TurnRows, rows: IntArray, observation: Observation, clock: Clock
    ) -> None:
        opened = row_state.opened
        for view in self._deciders(row_state, rows):
            index = view.flat_index(rows, opened.open.shape[1])
            kept = self._kept(view, row_state, rows)
            closed = opened.closed(index, view.rows(rows), view.seen(observation), kept)
            everywhere = np.ones(len(index), np.bool_)
            switched = replace(closed, truncated=everywhere, end=everywhere * np.uint8(SWITCHED))
            self._learn(view.agent, row_state, switched, index, clock)
        opened.open[:, rows] = False

    def acting(self, row_state: TurnRows, row: int) -> str:
        """The member, and the selector that chose it."""
        chosen = [f" (by {chooser.name})" for chooser in self._deciding[len(self.bound) :]]
        return "".join([super().acting(row_state, row), *chosen])

    def restart_rows(self, row_state: TurnRows) -> None:
        super().restart_rows(row_state)
        row_state.opened.open[:] = False

    def description(self) -> str:
        """The order, and the members one after the other, for people."""
        lines = [self.arbiter.description, super().description()]
        for each in self._deciding[len(self.bound) :]:
            own = description_of(self.members[each.name]).splitlines()
            lines += [f"selector {each.name}", *(f"  {line}" for line in own)]
        return "\n".join(lines)
