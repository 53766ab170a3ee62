"""Groups whose members don't all act at once: who acts in each row, and how long decisions last.

    AgentGroupParameters(members=(...), arbiter=Turns(order=("left", "left", "right")))
    AgentGroupParameters(members=(...), arbiter=EnvironmentTurns())
    AgentGroupParameters(members=(...), arbiter=SelectedTurns(agent=chooser))

A member's decision lasts until it acts again: the rewards until then are added up, and its next
observation is the one that it acts on then. Its own end, and that of the (sub-)episode, close it
before.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from gymnasium import spaces

from coach_rl.agents.agent_rows import write_rows
from coach_rl.core.agents import (
    AgentContext,
    AgentParameters,
    AnyAgent,
    require_own_mask,
)
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import (
    ActionError,
    ConfigurationError,
    RunError,
    SpaceError,
    UnknownNameError,
    require,
)
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import description_of
from coach_rl.core.ranges import NonEmpty, Positive
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    add_infos,
)
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.extensions.groups.member_agents import (
    BoundMember,
    MemberRows,
    OneOfMembers,
    Share,
    in_turn,
)
from coach_rl.extensions.groups.requests import SWITCHED, real_starts


@parameter_class
class Turns:
    """Members act in a fixed order, which begins again with each real episode."""

    order: tuple[str, ...] = ()
    """Names of members, each as often as it acts in a round; empty: each once, as they are listed.
    A member whose own episode is over is left out."""

    def build(
        self, agents: Mapping[str, AnyAgent], bound: tuple[BoundMember, ...], context: AgentContext
    ) -> "Arbiter":
        """The order; errors name a member that it lacks, or a name that is none."""
        names = [each.name for each in bound]
        order = self.order or tuple(names)
        for name in order:
            if name not in names:
                raise UnknownNameError("member", name, names, "named by the order of Turns")
        for name in names:
            if name not in order:
                raise ConfigurationError(
                    f"member '{name}' never acts: the order of Turns is {', '.join(order)}; add it "
                    "there, or leave the member out"
                )
        return Order(order, names)


@parameter_class
class EnvironmentTurns:
    """The environment shows whose turn it is, as PettingZoo's AEC environments do."""

    reads_ends: ClassVar[bool] = False
    """Turns are shown whether or not a member's own episode is over."""

    key: NonEmpty[str] = "turn"
    """Prefix of observations of one number each: `turn/<member>` is 1 where it is the member's turn
    and 0 elsewhere. Members see these only where they name them."""

    def build(
        self, agents: Mapping[str, AnyAgent], bound: tuple[BoundMember, ...], context: AgentContext
    ) -> "Arbiter":
        """The keys that show turns; SpaceError where the environment shows none of a member."""
        observed = context.spaces.observation.spaces
        keys = [f"{self.key}/{each.name}" for each in bound]
        for key, each in zip(keys, bound, strict=True):
            if key not in observed or np.prod(observed[key].shape or ()) != 1:
                raise SpaceError(
                    f"member '{each.name}' never acts: the environment shows no '{key}' of one "
                    f"number, whether it is its turn; it shows {', '.join(observed)}"
                )
        return Shown(keys)


@parameter_class
class SelectedTurns:
    """An agent chooses which member acts; a `ScriptedAgentParameters` makes it a function."""

    agent: AgentParameters
    """The agent, whose action is the number of a member. It is rewarded by the level."""
    observations: NonEmpty[tuple[str, ...]] | None = None
    """The observation keys it sees; None: all of them."""
    every: Positive[int] = 1
    """Decisions of members from one choice to the next. It chooses earlier where a (sub-)episode
    begins, and where the member's own episode is over."""

    def build(
        self, agents: Mapping[str, AnyAgent], bound: tuple[BoundMember, ...], context: AgentContext
    ) -> "Arbiter":
        """The selector; errors where its name is taken, or it can't see or choose."""
        name, observed = self.agent.name, context.spaces.observation.spaces
        require(
            name not in {*agents, *(each.name for each in bound)},
            f"the selector and a member are called '{name}'; choose another name",
        )
        keys = tuple(observed) if self.observations is None else self.observations
        for key in keys:
            if key not in observed:
                raise UnknownNameError("observation key", key, observed, f"named by '{name}'")
        own = EnvironmentSpaces(
            observation=spaces.Dict({key: observed[key] for key in keys}),
            action=spaces.Discrete(len(bound)),
        )
        agent = self.agent.build(
            replace(
                context,
                spaces=own,
                place=replace(context.place, below=None, agent_below=None, lasting=in_turn(name)),
                planned_steps=context.planned_steps // self.every,
                runtime=context.runtime.for_part("member", name, signals=name),
            )
        )
        require_own_mask(agent, agents.values())
        chooser = BoundMember(
            name=name,
            agent_name=name,
            observations={key: key for key in keys},
            infos=getattr(self.agent, "infos", ()),
        )
        return Selected(chooser, agent, every=self.every)


@dataclass(kw_only=True)
class OpenDecisions(Saved):
    """Open decisions and their results so far: of K agents, [K, N] each, or of one of them, [N]."""

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
    """Simulator steps since then."""
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
        """None is open."""
        arrays: dict[str, Any] = {name: np.zeros(shape, kind) for name, kind in cls.KINDS.items()}
        return cls(**arrays)

    def of(self, number: int) -> "OpenDecisions":
        """Those of one agent, which share memory with these."""
        return OpenDecisions(**{name: getattr(self, name)[number] for name in self.KINDS})

    def begin(self, index: IntArray, *, learns: bool) -> None:
        """Open decisions at flat places [D]."""
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
        """Add a decision of the level to those that are open.

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


Kept = dict[str, Array]
Plays = BoolArray | None
Choose = Callable[[ActionRequest], IntArray]


class Arbiter(Protocol):
    """Chooses the member that acts."""

    description: str
    """A line that names who acts, for people."""
    selector: tuple[BoundMember, AnyAgent] | None = None
    """The agent that chooses, which is no member; None: there is none."""

    def new_rows(self, num_envs: int) -> Kept:
        """Arrays [N, ...] by name that it keeps."""
        ...

    def turns(self, kept: Kept, request: ActionRequest, plays: Plays, choose: Choose) -> IntArray:
        """The numbers of members, [R].

        Args:
            kept: What `new_rows` made.
            request: The rows that wait for a decision.
            plays: [M, R] the member's own episode continues; None: all of them do.
            choose: Returns the selector's choices for a part of the request.
        """
        ...


class TurnGroup(OneOfMembers):
    """Members one of which acts in each row, by an arbiter; an `Agent`.

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
        self.arbiter, self.discount = arbiter, discount
        self._over = {name: how for name, how in bound[0].over.items() if how != "last"}
        self._deciding = (*bound, *choosing)
        self._numbers = np.arange(len(self._deciding))[:, None]
        self._bound_to |= {each.name: [(len(bound), each)] for each in choosing}
        self._with_own = [
            (number, each)
            for number, each in enumerate(self._deciding)
            if each.reward is not None or each.has_own_end or each.infos or self._over
        ]

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
        plays = row_state.plays[:, request.rows] if self._may_end else None
        choose = partial(self._choices, row_state, clock)
        if plays is None or plays.all():
            return self.arbiter.turns(row_state.turns, request, None, choose)
        turns = self.arbiter.turns(row_state.turns, request, plays, choose)
        return np.where(plays[turns, np.arange(len(turns))], turns, -1)

    def _starts(
        self, row_state: TurnRows, request: ActionRequest, turns: IntArray | int
    ) -> BoolArray:
        starts: BoolArray = ~row_state.opened.open[turns, request.rows]
        return starts

    def _chosen(
        self, share: Share, own: ActionRequest, rows: IntArray, row_state: TurnRows, clock: Clock
    ) -> Action:
        """Close the decisions of members that act again, open new ones, and choose."""
        opened, (again,) = row_state.opened, (~own.starts).nonzero()
        index = share.flat(rows, opened.open.shape[1])
        if len(again):
            kept = self._kept(share, row_state, rows)
            closed = opened.closed(index, own.rows, own.observation, kept)
            if len(again) == len(index):
                self._learn(share.agent, row_state, closed, index, clock)
            else:
                self._learn(share.agent, row_state, closed.rows_of(again), index[again], clock)
        opened.begin(index, learns=clock.learns)
        for _, each, places in share.parts if self._over else ():
            for name, total in row_state.decisions_of[each.name].info.items():
                if name.removeprefix("_") in self._over:
                    total[rows[places]] = 0
        return super()._chosen(share, own, rows, row_state, clock)

    def _kept(self, share: Share, row_state: TurnRows, rows: IntArray) -> dict[str, Array]:
        """The infos that an agent keeps of its open decisions, each [D] of its share."""
        if not share.parts[0][1].infos and not self._over:
            return {}
        stores = [row_state.decisions_of[each.name].info for _, each, _ in share.parts]
        names = dict.fromkeys(name for store in stores for name in store)
        none = np.zeros(row_state.opened.open.shape[1])
        return {
            name: share.joined([store.get(name, none)[rows] for store in stores]) for name in names
        }

    def _choices(self, row_state: TurnRows, clock: Clock, request: ActionRequest) -> IntArray:
        """The selector's choices [R], numbers of members."""
        number, each = len(self.bound), self._deciding[-1]
        starts = self._starts(row_state, request, number)
        share = Share([(number, each, np.arange(len(starts)))], len(starts))
        own = share.request(request, starts, starts & request.episode_start)
        chosen = self._chosen(share, own, request.rows, row_state, clock)
        if isinstance(chosen, dict) or ((chosen < 0) | (chosen >= number)).any():
            raise ActionError(
                f"the selector '{each.name}' chose {np.unique(np.asarray(chosen))}; allowed are "
                f"the numbers 0 to {number - 1} of the members "
                f"{', '.join(each.name for each in self.bound)}"
            )
        return chosen

    def observe(self, row_state: TurnRows, outcome: Outcome, clock: Clock) -> None:
        opened, rows, n = row_state.opened, outcome.rows, row_state.plays.shape[1]
        numbers, places = opened.open[:, rows].nonzero()  # [D] each: those that are open
        reward = outcome.reward[places].astype(np.float64, copy=False)
        over = (outcome.terminated | outcome.truncated)[places]
        for number, each in self._with_own:
            mine = numbers == number
            here = places[mine]
            if each.reward is not None:
                reward[mine] = each.rewards(outcome)[here]
            if each.has_own_end:
                ended = np.logical_or(*each.ends(outcome))
                over[mine] |= ended[here]
                row_state.plays[number, rows[ended]] = False
            last = (each.infos & outcome.info.keys()) - self._over.keys()
            store = row_state.decisions_of[each.name].info
            write_rows(store, rows[here], {name: outcome.info[name][here] for name in last}, n)
            add_infos(store, outcome.info, self._over, rows=rows[here], places=here, count=n)
        opened.add(numbers * n + rows[places], places, outcome, reward, self.discount)
        if not np.count_nonzero(over):
            return
        closed = np.zeros((len(self._deciding), len(rows)), np.bool_)
        closed[numbers[over], places[over]] = True
        for share in self._shares(closed):
            index = share.flat(rows, n)
            own = share.outcome(outcome)[0]
            own = replace(own, info={**own.info, **self._kept(share, row_state, rows)})
            ended = opened.ended(index, own)
            self._learn(share.agent, row_state, ended, index, clock)

    def _learn(
        self, name: str, row_state: TurnRows, outcome: Outcome, index: IntArray, clock: Clock
    ) -> None:
        """Give an agent the outcome of decisions; of frozen ones it learns nothing."""
        agent, rows = self.members[name], row_state.members[name]
        if clock.learns:
            learns = row_state.opened.learns.take(index)
            if not learns.all():
                agent.observe(rows, outcome.rows_of(~learns), replace(clock, phase=Phase.TEST))
                if not learns.any():
                    return
                outcome = outcome.rows_of(learns)
        agent.observe(rows, outcome, clock)

    def _acted(self, row_state: TurnRows, rows: IntArray) -> Iterator[Share]:
        """The shares of the agents whose decisions are open in some rows."""
        return self._shares(row_state.opened.open[:, rows])

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
        for share in self._acted(row_state, rows):
            index, kept = share.flat(rows, opened.open.shape[1]), self._kept(share, row_state, rows)
            closed = opened.closed(index, share.rows(rows), share.seen(observation), kept)
            everywhere = np.ones(len(index), np.bool_)
            switched = replace(closed, truncated=everywhere, end=everywhere * np.uint8(SWITCHED))
            self._learn(share.agent, row_state, switched, index, clock)
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


class Order(Arbiter):
    """Members in a fixed order."""

    def __init__(self, order: tuple[str, ...], names: list[str]) -> None:
        self.order = np.array([names.index(name) for name in order])  # [L]
        self.description = f"acts: {', '.join(order)}, in this order"

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        return {"place": np.zeros(num_envs, np.int64)}

    def turns(self, kept: Kept, request: ActionRequest, plays: Plays, choose: Choose) -> IntArray:
        """The first from the row's place on whose member plays."""
        place, rows, count = kept["place"], request.rows, len(self.order)
        begins = real_starts(request)
        if np.count_nonzero(begins):
            place[rows[begins]] = 0
        places = place[rows]
        turns: IntArray = self.order[places]
        if plays is not None:
            for _ in range(count):
                waits = ~plays[turns, np.arange(len(rows))]
                places[waits] += 1
                turns = self.order[places % count]
        place[rows] = (places + 1) % count
        return turns


class Shown(Arbiter):
    """The members that observations name, by these keys."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        self.description = f"acts: the member whose turn is shown by {', '.join(keys)}"

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        return {}

    def turns(self, kept: Kept, request: ActionRequest, plays: Plays, choose: Choose) -> IntArray:
        """The one that is named; RunError where none is, or several are."""
        shown = np.empty((len(self.keys), len(request.rows)), np.bool_)
        for number, key in enumerate(self.keys):
            np.greater(request.observation[key].reshape(-1), 0, out=shown[number])
        named = np.add.reduce(shown, axis=0, dtype=np.int64)
        if np.count_nonzero(named != 1):
            place = int(np.flatnonzero(named != 1)[0])
            raise RunError(
                f"row {request.rows[place]} shows a turn of {named[place]} members, and one acts; "
                f"exactly one of {', '.join(self.keys)} must be 1"
            )
        turns: IntArray = shown.argmax(axis=0)
        return turns


class Selected(Arbiter):
    """The members that a selector chooses."""

    def __init__(self, chooser: BoundMember, agent: AnyAgent, *, every: int) -> None:
        self.chooser, self.selector, self.every = chooser, (chooser, agent), every
        self.description = f"acts: the member that {chooser.name} chooses, every {every} decisions"

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        return {"choice": np.zeros(num_envs, np.int64), "since": np.zeros(num_envs, np.int64)}

    def turns(self, kept: Kept, request: ActionRequest, plays: Plays, choose: Choose) -> IntArray:
        """The choice, made where it is due."""
        choice, since = kept["choice"], kept["since"]
        rows = request.rows
        due = request.starts | (since[rows] >= self.every)
        if plays is not None:
            due |= ~plays[choice[rows], np.arange(len(rows))]
        if np.count_nonzero(due):
            choice[rows[due]] = choose(request.rows_of(due))
            since[rows[due]] = 0
        since[rows] += 1
        turns: IntArray = choice[rows]
        return turns
