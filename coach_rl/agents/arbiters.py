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
from coach_rl.agents.member_agents import AgentGroup, BoundMember, MemberRows, joined_records
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
from coach_rl.core.records import ActionRequest, Array, BoolArray, FloatArray, IntArray, Outcome
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
        arbiter, action = Order(order, names), context.spaces.action
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
        arbiter, action = Shown(keys), context.spaces.action
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
            arbiter=Selected(chooser, every=self.every),
            discount=discount,
            chooser=chooser,
        )


@dataclass(kw_only=True)
class OpenDecisions(Saved):
    """One member's open decisions and their results so far; the first axis of every array is N."""

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
    """[N] it has decided, and neither acted again nor come to an end."""
    reward: FloatArray
    """[N] rewards since then, discounted."""
    duration: IntArray
    """[N] simulator steps since then."""
    below: Array
    """[N] bits of `End` that the level below reported of the decision."""
    tested: BoolArray
    """[N] the decision was tested."""
    learns: BoolArray
    """[N] the agent was not frozen when it decided."""
    info: dict[str, Array] = field(default_factory=dict)
    """[N] each: the infos reported last of those that the agent keeps."""

    @classmethod
    def new(cls, num_envs: int) -> "OpenDecisions":
        """None is open."""
        return cls(
            open=np.zeros(num_envs, np.bool_),
            reward=np.zeros(num_envs, np.float64),
            duration=np.zeros(num_envs, np.int64),
            below=np.zeros(num_envs, np.uint8),
            tested=np.zeros(num_envs, np.bool_),
            learns=np.zeros(num_envs, np.bool_),
        )

    def begin(self, rows: IntArray, *, learns: bool) -> None:
        """Open decisions in these rows."""
        self.open[rows], self.learns[rows] = True, learns
        self.reward[rows], self.duration[rows] = 0.0, 0

    def add(
        self, rows: IntArray, outcome: Outcome, discount: float, infos: tuple[str, ...]
    ) -> None:
        """Add a decision of the level to those that are open.

        Args:
            rows: The level's rows, [R].
            outcome: The member's view of them.
            discount: Of rewards, per simulator step.
            infos: Names of the infos that the agent keeps.
        """
        begun = rows[self.duration[rows] == 0]
        self.below[begun] = outcome.below[self.duration[rows] == 0]
        self.tested[begun] = outcome.tested[self.duration[rows] == 0]
        self.reward[rows] += discount ** self.duration[rows] * outcome.reward
        self.duration[rows] += outcome.duration
        kept = {name: outcome.info[name] for name in infos if name in outcome.info}
        write_rows(self.info, rows, kept, len(self.open))

    def closed(self, each: BoundMember, rows: IntArray, request: ActionRequest) -> Outcome:
        """The outcome of decisions whose member acts again.

        Args:
            each: The member.
            rows: The level's rows, [R].
            request: The request of these rows.
        """
        self.open[rows] = False
        return Outcome(
            rows=each.rows(rows),
            observation=each.seen(request.observation),
            reward=self.reward[rows],
            terminated=np.zeros(len(rows), np.bool_),
            truncated=np.zeros(len(rows), np.bool_),
            duration=self.duration[rows],
            end=np.zeros(len(rows), np.uint8),
            below=self.below[rows],
            tested=self.tested[rows],
            info={name: values[rows] for name, values in self.info.items()},
        )

    def ended(self, rows: IntArray, outcome: Outcome) -> Outcome:
        """The outcome of decisions that an end closes; `outcome` is the member's view of it."""
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

    decisions_of: dict[str, OpenDecisions]
    """The open decisions of each member and of the selector, by name."""
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
        playing: BoolArray,
        clock: Clock,
    ) -> IntArray:
        """The numbers of members, [R].

        Args:
            group: The group.
            row_state: Its rows.
            request: The rows that wait for a decision.
            playing: [M, R] the member's own episode continues.
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

    def _new_rows(self, num_envs: int, seed: int) -> dict[str, Any]:
        return {
            **super()._new_rows(num_envs, seed),
            "decisions_of": {each.name: OpenDecisions.new(num_envs) for each in self._deciding},
            "turns": self.arbiter.new_rows(num_envs),
        }

    def most_outcomes(self, name: str) -> int:
        return super().most_outcomes(name) + 1  # one acts again, and an end closes all

    def turns(self, row_state: TurnRows, request: ActionRequest, clock: Clock) -> IntArray:
        playing = np.stack([row_state.playing[each.name][request.rows] for each in self.bound])
        turns = self.arbiter.turns(self, row_state, request, playing, clock)
        return np.where(playing[turns, np.arange(len(turns))], turns, -1)

    def begun(
        self, row_state: TurnRows, request: ActionRequest, turns: IntArray, is_new: BoolArray
    ) -> ActionRequest:
        was_open = np.zeros(len(turns), np.bool_)
        for number, each in enumerate(self.bound):
            mine = turns == number
            was_open[mine] = row_state.decisions_of[each.name].open[request.rows[mine]]
        return replace(
            request,
            starts=~was_open,
            episode_start=~was_open & (request.episode_start | is_new),
        )

    def _act_for(
        self,
        acting: list[tuple[BoundMember, BoolArray]],
        row_state: TurnRows,
        request: ActionRequest,
        action: dict[str, Array],
        clock: Clock,
    ) -> None:
        self._begin(acting, row_state, request, clock)
        super()._act_for(acting, row_state, request, action, clock)

    def choose(
        self, each: BoundMember, row_state: TurnRows, request: ActionRequest, clock: Clock
    ) -> Array:
        """The selector's choices [R], numbers of members."""
        was_open = row_state.decisions_of[each.name].open[request.rows]
        own = replace(request, starts=~was_open, episode_start=~was_open & request.episode_start)
        everywhere = np.ones(len(was_open), np.bool_)
        self._begin([(each, everywhere)], row_state, own, clock)
        agent = self.members[each.name]
        chosen = agent.act(row_state.members[each.name], each.request(own), clock)
        if isinstance(chosen, dict) or ((chosen < 0) | (chosen >= len(self.bound))).any():
            raise ActionError(
                f"the selector '{each.name}' chose {np.unique(np.asarray(chosen))}; allowed are "
                f"the numbers 0 to {len(self.bound) - 1} of the members "
                f"{', '.join(member.name for member in self.bound)}"
            )
        return chosen

    def _begin(
        self,
        acting: list[tuple[BoundMember, BoolArray]],
        row_state: TurnRows,
        request: ActionRequest,
        clock: Clock,
    ) -> None:
        """Close the decisions of those that act again, and open new ones."""
        closed, learns = [], []
        for each, here in acting:
            own = row_state.decisions_of[each.name]
            again = here & ~request.starts
            if again.any():
                rows = request.rows[again]
                learns.append(own.learns[rows])
                closed.append(own.closed(each, rows, request.rows_of(again)))
            own.begin(request.rows[here], learns=clock.learns)
        self._learn(acting[0][0].agent_name, row_state, closed, learns, clock)

    def observe(self, row_state: TurnRows, outcome: Outcome, clock: Clock) -> None:
        rows = outcome.rows
        by_agent: dict[str, tuple[list[Outcome], list[BoolArray]]] = {}
        for each in self._deciding:
            decisions = row_state.decisions_of[each.name]
            own, ended = each.outcome(outcome)
            if each.name in row_state.playing:
                row_state.playing[each.name][rows[ended]] = False
            (here,) = decisions.open[rows].nonzero()
            if not len(here):
                continue
            own = own.rows_of(here)
            decisions.add(rows[here], own, self.discount, each.infos)
            over = own.terminated | own.truncated
            if over.any():
                outcomes, learns = by_agent.setdefault(each.agent_name, ([], []))
                learns.append(decisions.learns[rows[here][over]])
                outcomes.append(decisions.ended(rows[here][over], own.rows_of(over)))
        for name, (outcomes, learns) in by_agent.items():
            self._learn(name, row_state, outcomes, learns, clock)

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
        outcome, learn = joined_records(outcomes), np.concatenate(learns)
        if not clock.learns or learn.all():
            agent.observe(rows, outcome, clock)
            return
        agent.observe(rows, outcome.rows_of(~learn), replace(clock, phase=Phase.TEST))
        if learn.any():
            agent.observe(rows, outcome.rows_of(learn), clock)

    def cut_off(self, row_state: TurnRows, rows: IntArray, clock: Clock) -> None:
        for each in self._deciding:
            decisions = row_state.decisions_of[each.name]
            here = rows[decisions.open[rows]]
            if len(here):
                own = row_state.members[each.agent_name]
                self.members[each.agent_name].cut_off(own, each.rows(here), clock)
                decisions.open[here] = False

    def restart_rows(self, row_state: TurnRows) -> None:
        super().restart_rows(row_state)
        for decisions in row_state.decisions_of.values():
            decisions.open[:] = False

    def description(self) -> str:
        """The order, and the members one after the other, for people."""
        lines = [self.arbiter.description, super().description()]
        for each in self._deciding[len(self.bound) :]:
            own = description_of(self.members[each.name]).splitlines()
            lines += [f"selector {each.name}", *(f"  {line}" for line in own)]
        return "\n".join(lines)


class Order:
    """Members in a fixed order."""

    def __init__(self, order: tuple[str, ...], names: list[str]) -> None:
        self.order = np.array([names.index(name) for name in order])  # [L]
        self.description = f"acts: {', '.join(order)}, in this order"

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        return {"place": np.zeros(num_envs, np.int64)}

    def turns(
        self,
        group: "TurnGroup",
        row_state: TurnRows,
        request: ActionRequest,
        playing: BoolArray,
        clock: Clock,
    ) -> IntArray:
        """The first from the row's place on whose member plays."""
        place, count = row_state.turns["place"], len(self.order)
        place[request.rows[request.episode_start]] = 0
        each = np.arange(len(request.rows))
        places = (place[request.rows][:, None] + np.arange(count)) % count  # [R, L]
        plays = playing[self.order[places], each[:, None]]  # [R, L]
        chosen = places[each, plays.argmax(axis=1)]
        some = plays.any(axis=1)
        place[request.rows[some]] = (chosen[some] + 1) % count
        turns: IntArray = self.order[chosen]
        return turns


class Shown:
    """The members that observations name, by these keys."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        self.description = f"acts: the member whose turn is shown by {', '.join(keys)}"

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        return {}

    def turns(
        self,
        group: "TurnGroup",
        row_state: TurnRows,
        request: ActionRequest,
        playing: BoolArray,
        clock: Clock,
    ) -> IntArray:
        """The one that is named; RunError where none is, or several are."""
        rows = len(request.rows)
        shown = np.stack([request.observation[key].reshape(rows) for key in self.keys]) > 0
        named = np.count_nonzero(shown, axis=0)
        if (named != 1).any():
            place = int(np.flatnonzero(named != 1)[0])
            raise RunError(
                f"row {request.rows[place]} shows a turn of {named[place]} members, and one acts; "
                f"exactly one of {', '.join(self.keys)} must be 1"
            )
        turns: IntArray = shown.argmax(axis=0)
        return turns


class Selected:
    """The members that a selector chooses."""

    def __init__(self, chooser: BoundMember, *, every: int) -> None:
        self.chooser, self.every = chooser, every
        self.description = f"acts: the member that {chooser.name} chooses, every {every} decisions"

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        return {"choice": np.zeros(num_envs, np.int64), "since": np.zeros(num_envs, np.int64)}

    def turns(
        self,
        group: "TurnGroup",
        row_state: TurnRows,
        request: ActionRequest,
        playing: BoolArray,
        clock: Clock,
    ) -> IntArray:
        """The choice, made where it is due."""
        choice, since = row_state.turns["choice"], row_state.turns["since"]
        rows = request.rows
        plays = playing[choice[rows], np.arange(len(rows))]
        due = request.starts | (since[rows] >= self.every) | ~plays
        if due.any():
            chooses = rows[due]
            choice[chooses] = group.choose(self.chooser, row_state, request.rows_of(due), clock)
            since[chooses] = 0
        since[rows] += 1
        turns: IntArray = choice[rows]
        return turns
