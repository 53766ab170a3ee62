"""A level of a graph: others may act in its rows, and one above may take control back."""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from coach_rl.core.agents import AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.goals import GoalSpace
from coach_rl.core.infos import PLAIN_SUMS, Sums
from coach_rl.core.interfaces import Environment
from coach_rl.core.level_parts import NO_DIFFERENCE, Judgement, LevelPart
from coach_rl.core.levels import LevelDescription
from coach_rl.core.records import (
    ActionRequest,
    Array,
    BoolArray,
    Directive,
    FloatArray,
    IntArray,
    take,
)
from coach_rl.extensions.members.member_agents import switch
from coach_rl.extensions.members.requests import SWITCHED
from coach_rl.levels.level_manager import LevelManager


class Standing(Environment, Protocol):
    """The place of a level in a graph: the environment that it acts in, shared with others."""

    def request(self, *, rows: IntArray, episode_start: BoolArray, **others: Any) -> ActionRequest:
        """A request of the level."""
        ...

    @property
    def part(self) -> LevelPart:
        """A part of the level, which has figures of what the level has selected."""
        ...

    def count_only(self, rows: BoolArray) -> None:
        """Leave out decisions of other rows than these, [N], until they are drained."""
        ...


class GraphLevel(LevelManager):
    """A level at a junction of a graph; see `LevelManager`.

    Args:
        params: What the level is like.
        agent: Makes the level's decisions.
        junction: What it acts through.
        clock: Phase and counters of the stack; read only.
        seed: Seed of the rows' random streams.
        above: The levels from which it can be reached, top first.
        sums: What its decisions are for the levels above.
    """

    has_one_above: ClassVar[bool] = False

    def __init__(
        self,
        params: LevelDescription,
        *,
        agent: AnyAgent,
        junction: Standing,
        clock: Clock,
        seed: int,
        above: Sequence[LevelDescription] = (),
        sums: Sums = PLAIN_SUMS,
    ) -> None:
        super().__init__(
            params,
            agent=agent,
            environment=junction,
            clock=clock,
            seed=seed,
            above=above,
            sums=sums,
            request=junction.request,
            parts=(junction.part,),
        )
        self._junction = junction
        self._takes_goals = bool(above)  # where it has no goals, to be selected is all it takes

    def target(self, action: Array, rows: IntArray) -> FloatArray:
        """The goals that an action of the level above sets in some rows, [R, G]."""
        return self._received.target(action, take(self._rows.observation, rows))

    def hand_on(self, rows: IntArray, directive: Directive) -> None:
        """Continue the sub-episodes of rows under a directive with the same goal."""
        own = self._rows
        own.tested[rows] = False if directive.tested is None else directive.tested
        for mine, given in zip(own.outer_goals, directive.outer_goals, strict=True):
            mine[rows] = given

    def switch(self, rows: IntArray) -> None:
        """End open sub-episodes before their next decision: the level above takes control back."""
        own = self._rows
        clock = self._now()
        space = self.params.goal_space
        seen = take(own.observation, rows)
        everywhere = np.ones(len(rows), np.bool_)
        difference = NO_DIFFERENCE
        switch(self.agent, self.agent_rows, rows, self._judge.shown(rows, seen), clock)
        if isinstance(space, GoalSpace):
            difference = space.difference(own.goal[rows], seen)
        ended = Judgement(
            reward=np.zeros(len(rows), np.float64),
            terminated=~everywhere,
            truncated=everywhere,
            end=everywhere * np.uint8(SWITCHED),
            is_over=everywhere,
            difference=difference,
        )
        self.sub_episodes.note(own, rows, np.arange(len(rows)), ended, phase=clock.phase)
        own.open[rows] = own.waiting[rows] = False
        own.starts[rows] = True

    def count_only(self, rows: BoolArray) -> None:
        super().count_only(rows)
        self._junction.count_only(rows)
