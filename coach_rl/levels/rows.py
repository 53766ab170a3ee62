"""The state a level keeps of its rows."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np

from coach_rl.core.goals import GoalSpace
from coach_rl.core.infos import AGENTS, Sums, add_infos, is_agent_end, is_agent_reward
from coach_rl.core.level_parts import RowIndex
from coach_rl.core.levels import LevelSpace, NothingReceived
from coach_rl.core.records import Array, BoolArray, Directive, EnvResponse, FloatArray, IntArray
from coach_rl.core.saved import Saved, SavedAttribute

EVERY_ROW = slice(None)


@dataclass(kw_only=True)
class LevelRows(Saved):
    """The position of each of N rows in its sub-episode; the first axis of every array is N."""

    SAVED = (
        "row",
        SavedAttribute("observation", varies=True),
        "goal",
        "outer_goals",
        "difference_at_start",
        "open",
        "waiting",
        "starts",
        "episode_start",
        "tested",
        "decision_tested",
        "decision_frozen",
        "decisions",
        "own_return",
        "reward",
        "duration",
        SavedAttribute("agent_rewards", varies=True),
        SavedAttribute("agent_ends", varies=True),
        SavedAttribute("totals", varies=True, optional=True),
    )

    row: IntArray
    """[N] its number."""
    observation: dict[str, Array]
    """[N, ...] each: what the row acts on next."""
    goal: FloatArray
    """[N, G] the goal (or option) received last; G is 0 where the level receives none. Where goals
    have a time, the time left in simulator steps follows them."""
    outer_goals: list[FloatArray]
    """[N, G] each: the goals of the levels above, top first, with the times left of those that have
    one."""
    difference_at_start: FloatArray
    """[N, G] what was achieved minus the goal when the sub-episode began."""
    open: BoolArray
    """[N] has a directive from above and has not answered it; never true at the top."""
    waiting: BoolArray
    """[N] waits for a decision of the level's agent."""
    starts: BoolArray
    """[N] the next decision is the first of a sub-episode."""
    episode_start: BoolArray
    """[N] the next decision is the first of a real episode."""
    tested: BoolArray
    """[N] the level above tests this sub-episode: no level explores."""
    decision_tested: BoolArray
    """[N] the level's own open decision is tested, by itself or from above."""
    decision_frozen: BoolArray
    """[N] the level's own open decision was made while its agent was frozen for a time."""
    decisions: IntArray
    """[N] decisions in this sub-episode so far."""
    own_return: FloatArray
    """[N] sum of the level's own rewards in this sub-episode; for the logs."""
    reward: FloatArray
    """[N] raw reward of this sub-episode, discounted, for the level above; 0 at the top."""
    duration: IntArray
    """[N] simulator steps of this sub-episode."""
    agent_rewards: dict[str, FloatArray] = field(default_factory=dict)
    """[N] each: the same as `reward` of every agent's own, by the info's name; empty at the top and
    where the environment reports none."""
    agent_ends: dict[str, BoolArray] = field(default_factory=dict)
    """[N] each: an agent's own episode has ended in this sub-episode, by the info's name; empty as
    `agent_rewards` is."""
    totals: dict[str, Array] | None = None
    """[N, ...] each: sums and maxima of infos in this sub-episode, as `add_infos` has them; None:
    there are none."""

    is_top: bool
    """The level is the top: its rows begin without a goal from above, and nothing is added up."""
    sums: Sums
    """Rules for the sums that go to the level above."""
    goals_below: tuple[FloatArray, ...]
    """[N, G] each: the goals that are known to the level below, top first: the outer ones, and the
    level's own. They are those arrays, not copies."""
    aging: tuple[tuple[int, Any], ...]
    """Spaces of the goals that change as steps pass: 0 the level's own, 1 the outermost, ..."""

    @classmethod
    def new(
        cls,
        num_envs: int,
        *,
        space: LevelSpace | NothingReceived,
        outer_spaces: Sequence[GoalSpace],
        is_top: bool,
        sums: Sums,
    ) -> Self:
        """Rows that have not been reset yet.

        Args:
            num_envs: N.
            space: Of what the level receives.
            outer_spaces: Of the goals of the levels above, top first.
            is_top: Whether no level is above.
            sums: What is added up for the level above.
        """
        goal = np.zeros((num_envs, space.sent_size), np.float32)
        outer_goals = [np.zeros((num_envs, each.sent_size), np.float32) for each in outer_spaces]
        own_goals = [goal] if isinstance(space, GoalSpace) else []
        nowhere = partial(np.full, num_envs, False)
        return cls(
            row=np.arange(num_envs),
            observation={},
            goal=goal,
            outer_goals=outer_goals,
            goals_below=(*outer_goals, *own_goals),
            difference_at_start=np.zeros((num_envs, space.size), np.float64),
            open=nowhere(),
            waiting=nowhere(),
            starts=nowhere(),
            episode_start=nowhere(),
            tested=nowhere(),
            decision_tested=nowhere(),
            decision_frozen=nowhere(),
            decisions=np.zeros(num_envs, np.int64),
            own_return=np.zeros(num_envs, np.float64),
            reward=np.zeros(num_envs, np.float64),
            duration=np.zeros(num_envs, np.int64),
            is_top=is_top,
            sums=sums,
            totals={} if sums.infos else None,
            aging=tuple(
                (place, each) for place, each in enumerate((space, *outer_spaces)) if each.ages
            ),
        )

    def index(self, rows: IntArray) -> RowIndex:
        """The fastest index of these rows."""
        n = len(self.row)
        if len(rows) == n and np.count_nonzero(rows == self.row) == n:
            return EVERY_ROW
        return rows

    def reset(self, response: EnvResponse) -> None:
        """Restart every row from the response of the environment's reset."""
        self.observation = copy.deepcopy(response.first_observation)
        self.open[:] = False
        self.waiting[:] = self.is_top
        self.starts[:] = True
        self.episode_start[:] = True
        self.restart(EVERY_ROW)

    def begin(self, rows: IntArray, goal: FloatArray, directive: Directive) -> None:
        """Begin the sub-episodes of a directive from above, with goals [R, G]."""
        self.goal[rows] = goal
        self.tested[rows] = False if directive.tested is None else directive.tested
        for mine, given in zip(self.outer_goals, directive.outer_goals, strict=True):
            mine[rows] = given
        self.open[rows] = self.waiting[rows] = self.starts[rows] = True
        self.restart(rows)

    def add(self, answer: EnvResponse, index: RowIndex) -> None:
        """Add a decision: its steps, its reward for the level above, and the time that has passed.

        Args:
            answer: What the decision led to, of R rows.
            index: These rows.
        """
        self.decisions[index] += 1
        if not self.is_top:
            self._add_up(answer, index)
        self.duration[index] += answer.duration
        for place, space in self.aging:
            goals = self.outer_goals[place - 1] if place else self.goal
            space.age(goals, index, answer.duration)

    def advance(self, answer: EnvResponse, index: RowIndex, is_over: BoolArray) -> None:
        """Update the rows for the next decision.

        At the top the next sub-episode begins at once, below it with a goal from above.

        Args:
            answer: Of R rows.
            index: These rows.
            is_over: [R] the sub-episode is over.
        """
        for key, values in answer.first_observation.items():
            self.observation[key][index] = values
        self.starts[index] = is_over
        self.episode_start[index] = answer.terminated | answer.truncated
        self.waiting[index] = self.is_top or ~is_over
        if self.is_top and np.count_nonzero(is_over):
            self.restart(answer.rows[is_over])

    def restart(self, rows: RowIndex) -> None:
        """Reset the sums of the sub-episodes of these rows."""
        self.decisions[rows] = 0
        self.own_return[rows] = 0.0
        self.reward[rows] = 0.0
        self.duration[rows] = 0
        for sums in self.agent_rewards.values():
            sums[rows] = 0.0
        for ended in self.agent_ends.values():
            ended[rows] = False
        for total in (self.totals or {}).values():
            total[rows] = 0

    def _add_up(self, answer: EnvResponse, index: RowIndex) -> None:
        """Add up discount ** duration * answer.reward, each agent's own rewards, and infos."""
        reward = answer.reward
        factor: FloatArray | float = 1.0
        if (discount := self.sums.discount) != 1.0:
            factor = discount ** self.duration[index]
            reward = reward * factor
        self.reward[index] += reward
        for key, values in answer.info.items():
            if not key.startswith(AGENTS):
                continue
            if is_agent_reward(key):
                total = self.agent_rewards.setdefault(key, np.zeros(len(self.row), np.float64))
                total[index] += values * factor
            elif is_agent_end(key):
                ended = self.agent_ends.setdefault(key, np.zeros(len(self.row), np.bool_))
                ended[index] |= values.astype(np.bool_)
        if self.totals is not None:
            add_infos(
                self.totals,
                answer.info,
                self.sums.infos,
                rows=answer.rows,
                places=EVERY_ROW,
                count=len(self.row),
            )
