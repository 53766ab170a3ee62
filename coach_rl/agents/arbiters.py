"""Groups whose members don't all act at once: who acts in each row, and how long decisions last.

    AgentGroupParameters(members=(...), arbiter=Turns(order=("left", "left", "right")))
    AgentGroupParameters(members=(...), arbiter=EnvironmentTurns())
    AgentGroupParameters(members=(...), arbiter=SelectedTurns(agent=chooser))

A member's decision lasts until it acts again: the rewards until then are added up, and its next
observation is the one that it acts on then. Its own end, and that of the (sub-)episode, close it
before.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from gymnasium import spaces

from coach_rl.agents.agent_rows import write_rows
from coach_rl.agents.member_agents import (
    AgentGroup,
    BoundMember,
    MemberPart,
    MemberRows,
    joined_records,
)
from coach_rl.core.agents import AgentContext, AgentParameters, AnyAgent
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
)
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.spaces import EnvironmentSpaces, Space


@parameter_class
class Turns:
    """Members act in a fixed order, which begins again with each real episode."""

    order: tuple[str, ...] = ()
    """Names of members, each as often as it acts in a round; empty: each once, as they are listed.
    A member whose own episode is over is left out."""

    def build(
        self,
        agents: Mapping[str, AnyAgent],
        bound: tuple[BoundMember, ...],
        context: AgentContext,
        *,
        discount: float,
    ) -> "TurnGroup":
        """The group; errors name a member that the order lacks, or a name that is none."""
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
        arbiter, action = _Order(order, names), context.spaces.action
        return TurnGroup(agents, bound, action, arbiter=arbiter, discount=discount)


@parameter_class
class EnvironmentTurns:
    """The environment shows whose turn it is, as PettingZoo's AEC environments do."""

    key: NonEmpty[str] = "turn"
    """Prefix of observations of one number each: `turn/<member>` is 1 where it is the member's turn
    and 0 elsewhere. Members see these only where they name them."""

    def build(
        self,
        agents: Mapping[str, AnyAgent],
        bound: tuple[BoundMember, ...],
        context: AgentContext,
        *,
        discount: float,
    ) -> "TurnGroup":
        """The group; SpaceError where the environment shows no turns of a member."""
        observed = context.spaces.observation.spaces
        keys = [f"{self.key}/{each.name}" for each in bound]
        for key, each in zip(keys, bound, strict=True):
            if key not in observed or np.prod(observed[key].shape or ()) != 1:
                raise SpaceError(
                    f"member '{each.name}' never acts: the environment shows no '{key}' of one "
                    f"number, whether it is its turn; it shows {', '.join(observed)}"
                )
        arbiter, action = _Shown(keys), context.spaces.action
        return TurnGroup(agents, bound, action, arbiter=arbiter, discount=discount)


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
        self,
        agents: Mapping[str, AnyAgent],
        bound: tuple[BoundMember, ...],
        context: AgentContext,
        *,
        discount: float,
    ) -> "TurnGroup":
        """The group; errors where the agent's name is taken, or it can't see or choose."""
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
                place=replace(context.place, below=None, agent_below=None),
                planned_steps=context.planned_steps // self.every,
                runtime=context.runtime.for_part("member", name, signals=name),
            )
        )
        chooser = BoundMember(
            name=name,
            agent_name=name,
            observations={key: key for key in keys},
            infos=getattr(self.agent, "infos", ()),
        )
        return TurnGroup(
            {**agents, name: agent},
            bound,
            context.spaces.action,
            arbiter=_Chosen(chooser, every=self.every),
            discount=discount,
            chooser=chooser,
        )


@dataclass(kw_only=True)
class OpenDecisions(Saved):
    """Open decisions and their results so far: of K agents, [K, N] each, or of one of them, [N]."""

    SAVED = (
        "open",
        "reward",
        "duration",
        "below",
        "tested",
        "learns",
        SavedAttribute("info", varies=True),
    )

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
        return cls(
            open=np.zeros(shape, np.bool_),
            reward=np.zeros(shape, np.float64),
            duration=np.zeros(shape, np.int64),
            below=np.zeros(shape, np.uint8),
            tested=np.zeros(shape, np.bool_),
            learns=np.zeros(shape, np.bool_),
        )

    def of(self, number: int) -> "OpenDecisions":
        """Those of one agent, which share memory with these."""
        return OpenDecisions(
            open=self.open[number],
            reward=self.reward[number],
            duration=self.duration[number],
            below=self.below[number],
            tested=self.tested[number],
            learns=self.learns[number],
        )

    def begin(self, rows: IntArray, *, learns: bool) -> None:
        """Open decisions of one agent in these rows."""
        self.open[rows], self.learns[rows] = True, learns
        self.reward[rows], self.duration[rows] = 0.0, 0

    def add(
        self,
        numbers: IntArray,
        places: IntArray,
        outcome: Outcome,
        reward: FloatArray,
        discount: float,
    ) -> None:
        """Add a decision of the level to those that are open.

        Args:
            numbers: The agents, [D].
            places: The places of their decisions in the outcome, [D].
            outcome: The level's.
            reward: The agents' own, [D].
            discount: Of rewards, per simulator step.
        """
        index = numbers, outcome.rows[places]
        duration = self.duration[index]
        begun = duration == 0
        if np.count_nonzero(begun):
            first = numbers[begun], index[1][begun]
            self.below[first] = outcome.below[places[begun]]
            self.tested[first] = outcome.tested[places[begun]]
        self.reward[index] += reward if discount == 1.0 else discount**duration * reward
        self.duration[index] = duration + outcome.duration[places]

    def closed(self, each: BoundMember, rows: IntArray, seen: Observation) -> Outcome:
        """The outcome of decisions of one agent, which acts again.

        Args:
            each: The member that it acts for.
            rows: The level's rows, [R].
            seen: What it acts on now, [R, ...] each.
        """
        nowhere, none = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.uint8)
        return Outcome(
            rows=each.rows(rows),
            observation=seen,
            reward=self.reward[rows],
            terminated=nowhere,
            truncated=nowhere,
            duration=self.duration[rows],
            end=none,
            below=self.below[rows],
            tested=self.tested[rows],
            info={name: values[rows] for name, values in self.info.items()},
        )

    def ended(self, rows: IntArray, outcome: Outcome) -> Outcome:
        """The outcome of decisions of one agent that an end closes.

        Args:
            rows: The level's rows, [R].
            outcome: The member's view of the end.
        """
        self.open[rows] = False
        return replace(
            outcome,
            reward=self.reward[rows],
            duration=self.duration[rows],
            below=self.below[rows],
            tested=self.tested[rows],
        )


@dataclass(kw_only=True)
class TurnRows(MemberRows):
    """The state of members that act in turn."""

    SAVED = ("playing", "latest", "decisions_of", "turns")

    decisions: OpenDecisions
    """The open decisions of the members, and of the selector behind them."""
    decisions_of: dict[str, OpenDecisions]
    """The same of each by name."""
    turns: dict[str, Array]
    """The arbiter's, [N, ...] each."""


class Arbiter(Protocol):
    """Chooses the member that acts."""

    description: str
    """A line that names who acts, for people."""

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        """Arrays [N, ...] by name that it keeps."""
        ...

    def turns(
        self,
        group: "TurnGroup",
        row_state: TurnRows,
        request: ActionRequest,
        plays: BoolArray | None,
        clock: Clock,
    ) -> IntArray:
        """The numbers of members, [R].

        Args:
            group: The group.
            row_state: Its rows.
            request: The rows that wait for a decision.
            plays: [M, R] the member's own episode continues; None: all of them do.
            clock: Phase and counters.
        """
        ...


class TurnGroup(AgentGroup):
    """Members one of which acts in each row, by an arbiter; an `Agent`.

    Args:
        agents: The agents by name, that of a selector included.
        bound: The members.
        action_space: Their joint action space.
        arbiter: Chooses who acts.
        discount: Of rewards, per simulator step, while they are added up.
        chooser: The selector, which is no member; None: there is none.
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
        chooser: BoundMember | None = None,
    ) -> None:
        super().__init__(agents, bound, action_space)
        self.arbiter, self.discount = arbiter, discount
        self._deciding = (*bound, *(() if chooser is None else (chooser,)))
        if chooser is not None:
            self._bound_to[chooser.name] = [(len(bound), chooser)]
        self._with_own = [
            (number, each)
            for number, each in enumerate(self._deciding)
            if each.reward is not None or each.has_own_end or each.infos
        ]

    def _new_rows(self, num_envs: int, seed: int) -> dict[str, Any]:
        decisions = OpenDecisions.new((len(self._deciding), num_envs))
        return {
            **super()._new_rows(num_envs, seed),
            "decisions": decisions,
            "decisions_of": {
                each.name: decisions.of(number) for number, each in enumerate(self._deciding)
            },
            "turns": self.arbiter.new_rows(num_envs),
        }

    def turns(self, row_state: TurnRows, request: ActionRequest, clock: Clock) -> IntArray:
        plays = row_state.plays[:, request.rows]
        if plays.all():
            return self.arbiter.turns(self, row_state, request, None, clock)
        turns = self.arbiter.turns(self, row_state, request, plays, clock)
        return np.where(plays[turns, np.arange(len(turns))], turns, -1)

    def begun(
        self, row_state: TurnRows, request: ActionRequest, turns: IntArray, is_new: BoolArray
    ) -> ActionRequest:
        return self._begun(row_state, request, turns, request.episode_start | is_new)

    def _begun(
        self,
        row_state: TurnRows,
        request: ActionRequest,
        numbers: IntArray | int,
        episode_start: BoolArray,
    ) -> ActionRequest:
        """The request as agents see it whose earlier decisions may be open."""
        starts = ~row_state.decisions.open[numbers, request.rows]
        return ActionRequest(
            rows=request.rows,
            observation=request.observation,
            starts=starts,
            episode_start=starts & episode_start,
            greedy=request.greedy,
        )

    def _chosen(
        self,
        name: str,
        parts: list[MemberPart],
        row_state: TurnRows,
        request: ActionRequest,
        clock: Clock,
    ) -> Action:
        """Close the decisions of members that act again, open new ones, and choose."""
        closed, learns = [], []
        for _, each, places in parts:
            decisions, rows = row_state.decisions_of[each.name], request.rows[places]
            again = ~request.starts[places]
            if np.count_nonzero(again):
                seen = each.seen(request.observation, places[again])
                closed.append(decisions.closed(each, rows[again], seen))
                learns.append(decisions.learns[rows[again]])
            decisions.begin(rows, learns=clock.learns)
        self._learn(name, row_state, closed, learns, clock)
        return super()._chosen(name, parts, row_state, request, clock)

    def choose(
        self, each: BoundMember, row_state: TurnRows, request: ActionRequest, clock: Clock
    ) -> Array:
        """The selector's choices [R], numbers of members."""
        number = len(self.bound)
        own = self._begun(row_state, request, number, request.episode_start)
        parts = [(number, each, np.arange(len(request.rows)))]
        chosen = self._chosen(each.name, parts, row_state, own, clock)
        if isinstance(chosen, dict) or ((chosen < 0) | (chosen >= number)).any():
            raise ActionError(
                f"the selector '{each.name}' chose {np.unique(np.asarray(chosen))}; allowed are "
                f"the numbers 0 to {number - 1} of the members "
                f"{', '.join(each.name for each in self.bound)}"
            )
        return chosen

    def observe(self, row_state: TurnRows, outcome: Outcome, clock: Clock) -> None:
        decisions, rows = row_state.decisions, outcome.rows
        numbers, places = decisions.open[:, rows].nonzero()  # [D] each: those that are open
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
            kept = {name: outcome.info[name][here] for name in each.infos if name in outcome.info}
            info = row_state.decisions_of[each.name].info
            write_rows(info, rows[here], kept, decisions.open.shape[1])
        decisions.add(numbers, places, outcome, reward, self.discount)
        if not np.count_nonzero(over):
            return
        numbers, places = numbers[over], places[over]
        for name, bound in self._bound_to.items():
            ended, learns = [], []
            for number, each in bound:
                here = places[numbers == number]
                if len(here):
                    own, _ = each.outcome(outcome, here)
                    learns.append(decisions.learns[number, rows[here]])
                    ended.append(row_state.decisions_of[each.name].ended(rows[here], own))
            self._learn(name, row_state, ended, learns, clock)

    def _learn(
        self,
        name: str,
        row_state: TurnRows,
        outcomes: list[Outcome],
        learns: list[BoolArray],
        clock: Clock,
    ) -> None:
        """Give an agent its outcomes; of those of frozen decisions it learns nothing."""
        if not outcomes:
            return
        agent, rows = self.members[name], row_state.members[name]
        outcome = joined_records(outcomes)
        learn = np.concatenate(learns) if clock.learns else None
        if learn is None or learn.all():
            agent.observe(rows, outcome, clock)
            return
        agent.observe(rows, outcome.rows_of(~learn), replace(clock, phase=Phase.TEST))
        if learn.any():
            agent.observe(rows, outcome.rows_of(learn), clock)

    def cut_off(self, row_state: TurnRows, rows: IntArray, clock: Clock) -> None:
        for number, each in enumerate(self._deciding):
            is_open = row_state.decisions.open[number]
            here = rows[is_open[rows]]
            if len(here):
                own = row_state.members[each.agent_name]
                self.members[each.agent_name].cut_off(own, each.rows(here), clock)
                is_open[here] = False

    def restart_rows(self, row_state: TurnRows) -> None:
        super().restart_rows(row_state)
        row_state.decisions.open[:] = False

    def description(self) -> str:
        """The order, and the members one after the other, for people."""
        lines = [self.arbiter.description, super().description()]
        for each in self._deciding[len(self.bound) :]:
            own = description_of(self.members[each.name]).splitlines()
            lines += [f"selector {each.name}", *(f"  {line}" for line in own)]
        return "\n".join(lines)


class _Order:
    """Members in a fixed order."""

    def __init__(self, order: tuple[str, ...], names: list[str]) -> None:
        self._order = np.array([names.index(name) for name in order])  # [L]
        self.description = f"acts: {', '.join(order)}, in this order"

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        return {"place": np.zeros(num_envs, np.int64)}

    def turns(
        self,
        group: "TurnGroup",
        row_state: TurnRows,
        request: ActionRequest,
        plays: BoolArray | None,
        clock: Clock,
    ) -> IntArray:
        """The first from the row's place on whose member plays."""
        place, rows, count = row_state.turns["place"], request.rows, len(self._order)
        if np.count_nonzero(request.episode_start):
            place[rows[request.episode_start]] = 0
        places = place[rows]
        turns: IntArray = self._order[places]
        if plays is not None:
            for _ in range(count):
                waits = ~plays[turns, np.arange(len(rows))]
                places[waits] += 1
                turns = self._order[places % count]
        place[rows] = (places + 1) % count
        return turns


class _Shown:
    """The members that observations name, by these keys."""

    def __init__(self, keys: list[str]) -> None:
        self._keys = keys
        self.description = f"acts: the member whose turn is shown by {', '.join(keys)}"

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        return {}

    def turns(
        self,
        group: "TurnGroup",
        row_state: TurnRows,
        request: ActionRequest,
        plays: BoolArray | None,
        clock: Clock,
    ) -> IntArray:
        """The one that is named; RunError where none is, or several are."""
        shown = np.empty((len(self._keys), len(request.rows)), np.bool_)
        for number, key in enumerate(self._keys):
            np.greater(request.observation[key].reshape(-1), 0, out=shown[number])
        named = np.add.reduce(shown, axis=0, dtype=np.int64)
        if np.count_nonzero(named != 1):
            place = int(np.flatnonzero(named != 1)[0])
            raise RunError(
                f"row {request.rows[place]} shows a turn of {named[place]} members, and one acts; "
                f"exactly one of {', '.join(self._keys)} must be 1"
            )
        turns: IntArray = shown.argmax(axis=0)
        return turns


class _Chosen:
    """The members that a selector chooses."""

    def __init__(self, chooser: BoundMember, *, every: int) -> None:
        self._chooser, self._every = chooser, every
        self.description = f"acts: the member that {chooser.name} chooses, every {every} decisions"

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        return {"choice": np.zeros(num_envs, np.int64), "since": np.zeros(num_envs, np.int64)}

    def turns(
        self,
        group: "TurnGroup",
        row_state: TurnRows,
        request: ActionRequest,
        plays: BoolArray | None,
        clock: Clock,
    ) -> IntArray:
        """The choice, made where it is due."""
        choice, since = row_state.turns["choice"], row_state.turns["since"]
        rows = request.rows
        due = request.starts | (since[rows] >= self._every)
        if plays is not None:
            due |= ~plays[choice[rows], np.arange(len(rows))]
        if np.count_nonzero(due):
            chooses = rows[due]
            choice[chooses] = group.choose(self._chooser, row_state, request.rows_of(due), clock)
            since[chooses] = 0
        since[rows] += 1
        turns: IntArray = choice[rows]
        return turns
