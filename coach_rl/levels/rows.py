"""The state a level keeps of its rows."""

import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from coach_rl.core.agent_info import is_agent_reward
from coach_rl.core.records import Array, BoolArray, Directive, EnvResponse, FloatArray, IntArray
from coach_rl.core.state import State

EVERY_ROW = slice(None)
RowIndex = IntArray | slice
"""Index of rows: their numbers, or `EVERY_ROW`, the faster index of all."""


@dataclass(kw_only=True)
class LevelRows:
    """The position of each of N rows in its sub-episode; the first axis of every array is N."""

    row: IntArray
    """[N] its number."""
    observation: dict[str, Array]
    """[N, ...] each: what the row acts on next."""
    goal: FloatArray
    """[N, G] the goal (or option) received last; G is 0 where the level receives none. Where goals
    have a time, the time left in simulator steps stands behind them."""
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
    """[N] the level above tests this sub-episode: nobody explores."""
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

    @classmethod
    def new(
        cls, num_envs: int, *, goal_size: int, sent_size: int, outer_sizes: Sequence[int]
    ) -> Self:
        """Rows that have not been reset yet.

        Args:
            num_envs: N.
            goal_size: Elements of the level's own goal, G.
            sent_size: The same with its time, if it has one.
            outer_sizes: The same of the levels above, top first.
        """

        def nowhere() -> BoolArray:
            return np.zeros(num_envs, np.bool_)

        return cls(
            row=np.arange(num_envs),
            observation={},
            goal=np.zeros((num_envs, sent_size), np.float32),
            outer_goals=[np.zeros((num_envs, size), np.float32) for size in outer_sizes],
            difference_at_start=np.zeros((num_envs, goal_size), np.float64),
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
        )

    def index(self, rows: IntArray) -> RowIndex:
        """The fastest index of these rows."""
        n = len(self.row)
        if len(rows) == n and np.count_nonzero(rows == self.row) == n:
            return EVERY_ROW
        return rows

    def reset(self, response: EnvResponse, *, waiting: bool) -> None:
        """Start every row anew.

        Args:
            response: What the environment's reset returned.
            waiting: Whether the rows wait for a decision at once, as at the top, or for a goal.
        """
        self.observation = copy.deepcopy(response.first_observation)
        self.open[:] = False
        self.waiting[:] = waiting
        self.starts[:] = True
        self.episode_start[:] = True
        self.restart(EVERY_ROW)

    def begin(self, rows: IntArray, goal: FloatArray, directive: Directive) -> None:
        """Begin the sub-episodes that a directive from above asks for, of goals [R, G]."""
        self.goal[rows] = goal
        self.tested[rows] = False if directive.tested is None else directive.tested
        for mine, given in zip(self.outer_goals, directive.outer_goals, strict=True):
            mine[rows] = given
        self.open[rows] = self.waiting[rows] = self.starts[rows] = True
        self.restart(rows)

    def add(self, answer: EnvResponse, index: RowIndex, discount: float | None) -> None:
        """Count a decision, and add up what goes upwards: discount ** duration * answer.reward.

        Args:
            answer: What the decision led to, of R rows.
            index: These rows.
            discount: Discount of rewards per simulator step; None at the top: nothing goes up.
        """
        self.decisions[index] += 1
        if discount is not None:
            self._add_rewards(answer, index, discount)
        self.duration[index] += answer.duration

    def let_time_pass(
        self, answer: EnvResponse, index: RowIndex, *, own: bool, outer: Sequence[int]
    ) -> None:
        """Count down the times left of goals.

        Args:
            answer: Of R rows, with the steps it took.
            index: These rows.
            own: Whether the level's own goals have a time.
            outer: Which of the outer goals have one.
        """
        for goal in [self.goal] * own + [self.outer_goals[depth] for depth in outer]:
            goal[index, -1] -= answer.duration

    def go_on(
        self, answer: EnvResponse, index: RowIndex, is_over: BoolArray, *, waits_at_end: bool
    ) -> None:
        """Go on from what an answer showed.

        Args:
            answer: Of R rows.
            index: These rows.
            is_over: [R] the sub-episode is over.
            waits_at_end: Whether the next sub-episode begins at once, as at the top, or with a goal
                from above.
        """
        for key, values in answer.first_observation.items():
            self.observation[key][index] = values
        self.starts[index] = is_over
        self.episode_start[index] = answer.terminated | answer.truncated
        self.waiting[index] = waits_at_end or ~is_over
        if waits_at_end and np.count_nonzero(is_over):
            self.restart(answer.rows[is_over])

    def restart(self, rows: RowIndex) -> None:
        """Nothing is added up yet in the sub-episodes of these rows."""
        self.decisions[rows] = 0
        self.own_return[rows] = 0.0
        self.reward[rows] = 0.0
        self.duration[rows] = 0
        for sums in self.agent_rewards.values():
            sums[rows] = 0.0

    def state_dict(self) -> State:
        """Every field."""
        return dataclasses.asdict(self)

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        for each in dataclasses.fields(self):
            if each.name in state:  # earlier versions lack some
                setattr(self, each.name, copy.deepcopy(state[each.name]))

    def _add_rewards(self, answer: EnvResponse, index: RowIndex, discount: float) -> None:
        """Add up the rewards that go upwards, each agent's own among them."""
        factor = 1.0 if discount == 1.0 else discount ** self.duration[index]
        self.reward[index] += answer.reward if discount == 1.0 else answer.reward * factor
        for key, values in answer.info.items():
            if is_agent_reward(key):
                sums = self.agent_rewards.setdefault(key, np.zeros(len(self.row), np.float64))
                sums[index] += values * factor
