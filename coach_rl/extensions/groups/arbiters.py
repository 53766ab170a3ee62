"""Arbiters: they choose the member of a group that acts in each row.

AgentGroupParameters(members=(...), arbiter=Turns(order=("left", "left", "right")))
AgentGroupParameters(members=(...), arbiter=EnvironmentTurns())
AgentGroupParameters(members=(...), arbiter=SelectedTurns(agent=chooser))
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar, Protocol

import numpy as np
from gymnasium import spaces

from coach_rl.core.agents import (
    AgentContext,
    AgentParameters,
    AnyAgent,
    require_own_mask,
)
from coach_rl.core.errors import (
    ConfigurationError,
    RunError,
    SpaceError,
    UnknownNameError,
    require,
)
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive
from coach_rl.core.records import ActionRequest, Array, BoolArray, IntArray
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.members.member_agents import in_turn
from coach_rl.extensions.members.members import BoundMember
from coach_rl.extensions.members.requests import real_starts


@parameter_class
class Turns:
    """Members act in a fixed order, which begins again with each real episode."""

    order: tuple[str, ...] = ()
    """Names of members, each as often as it acts in a round; empty: each once, as they are listed.
    A member whose own episode is over is left out."""

    def build(
        self, agents: Mapping[str, AnyAgent], bound: tuple[BoundMember, ...], context: AgentContext
    ) -> "Arbiter":
        """The arbiter; errors name a member that the order lacks, or a name that is none."""
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
        """The arbiter; SpaceError where the environment shows no turns of a member."""
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
        """The arbiter; errors where the agent's name is taken, or it can't see or choose."""
        name = self.agent.name
        observed = context.spaces.observation.spaces
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
        for each in agents.values():
            require_own_mask(agent, each)
        chooser = BoundMember(
            name=name,
            agent_name=name,
            observations={key: key for key in keys},
            infos=getattr(self.agent, "infos", ()),
        )
        return Selected(chooser, agent, every=self.every)


Kept = dict[str, Array]
"""Arrays [N, ...] that an arbiter keeps of rows, by name."""
Alive = BoolArray | None
"""[K, R] the member's own episode continues; None: all of them do."""
Choose = Callable[[ActionRequest], IntArray]
"""Function from some rows of a request to the numbers of members that the selector chooses, [R]."""


class Arbiter(Protocol):
    """Chooses the member that acts in each row."""

    description: str
    """A line that names who acts, for people."""
    selector: tuple[BoundMember, AnyAgent] | None = None
    """The agent that chooses, which is no member, as one and by itself; None: there is none."""

    def new_rows(self, num_envs: int) -> Kept:
        """Fresh arrays of N rows, which are saved with them."""
        ...

    def turns(self, kept: Kept, request: ActionRequest, alive: Alive, choose: Choose) -> IntArray:
        """The number of the member that acts in each row, [R].

        Args:
            kept: What `new_rows` made; updated.
            request: The rows that wait for a decision, R of them.
            alive: Whose own episode continues.
            choose: The selector's choices, for some of the request's rows.
        """
        ...


class Order(Arbiter):
    """Members in a fixed order."""

    def __init__(self, order: tuple[str, ...], names: list[str]) -> None:
        self.order = np.array([names.index(name) for name in order])  # [L]
        self.description = f"acts: {', '.join(order)}, in this order"

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        return {"place": np.zeros(num_envs, np.int64)}

    def turns(self, kept: Kept, request: ActionRequest, alive: Alive, choose: Choose) -> IntArray:
        """The first member from the row's place in the order on whose own episode continues."""
        place = kept["place"]  # [N] of the next member in the order
        rows = request.rows
        count = len(self.order)
        begins = real_starts(request)
        if np.count_nonzero(begins):
            place[rows[begins]] = 0
        places = place[rows]
        turns: IntArray = self.order[places]
        if alive is not None:
            for _ in range(count):
                waits = ~alive[turns, np.arange(len(rows))]  # [R]
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

    def turns(self, kept: Kept, request: ActionRequest, alive: Alive, choose: Choose) -> IntArray:
        """The member that each row names; RunError where none is named, or several are."""
        shown = np.empty((len(self.keys), len(request.rows)), np.bool_)  # [K, R]
        for number, key in enumerate(self.keys):
            np.greater(request.observation[key].reshape(-1), 0, out=shown[number])
        named = np.add.reduce(shown, axis=0, dtype=np.int64)  # [R] members that a row names
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
        self.chooser = chooser
        self.selector = chooser, agent
        self.every = every
        self.description = f"acts: the member that {chooser.name} chooses, every {every} decisions"

    def new_rows(self, num_envs: int) -> dict[str, Array]:
        return {"choice": np.zeros(num_envs, np.int64), "since": np.zeros(num_envs, np.int64)}

    def turns(self, kept: Kept, request: ActionRequest, alive: Alive, choose: Choose) -> IntArray:
        """The selector's latest choices, made once more where they are due."""
        choice = kept["choice"]  # [N] numbers of members
        since = kept["since"]  # [N] decisions since the choice
        rows = request.rows
        due = request.starts | (since[rows] >= self.every)
        if alive is not None:
            due |= ~alive[choice[rows], np.arange(len(rows))]
        if np.count_nonzero(due):
            choice[rows[due]] = choose(request.rows_of(due))
            since[rows[due]] = 0
        since[rows] += 1
        turns: IntArray = choice[rows]
        return turns
