"""Certified decisions: sub-goals are tried in a fork of the simulator before one is sent.

A fork is a second stack of the levels below, with its own simulators. For every try it loads the
state of the level's environment, random streams included, and runs one candidate of each row to the
end of its sub-episode. docs/how_to_levels.md explains its uses.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from coach_rl.core.agents import AnyAgent, ForkLearner, ProposingAgent, RowState
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.goals import GoalSpace
from coach_rl.core.interfaces import Environment
from coach_rl.core.levels import LevelDescription
from coach_rl.core.records import (
    ActionRequest,
    Array,
    BoolArray,
    Directive,
    End,
    EnvResponse,
    FloatArray,
    IntArray,
    joined,
)
from coach_rl.core.seeding import integer_seed
from coach_rl.core.signals import SignalChannel
from coach_rl.core.state import State

if TYPE_CHECKING:
    from coach_rl.levels.level_manager import LevelManager

_COUNTS = ("decisions", "certified", "changed", "tried", "succeeded", "steps")


@dataclass(frozen=True, kw_only=True)
class Tried:
    """The results of trying R decisions, each with K candidates, of which not all were tried."""

    ends: Array
    """[R, K] bits of `End` that the level below reported; 0 where a candidate was not tried."""
    succeeded: BoolArray
    """[R, K] the sub-goal was reached, or the goal of a level above."""
    distance: FloatArray
    """[R, K] distance to the level's own goal at the end; 0 if not requested."""


class Fork:
    """A second stack of the levels below a level, in which their sub-episodes are tried.

    Args:
        levels: Top first; the simulators under them are closed by their creator.
        clock: Theirs. They act as in an evaluation, whatever happens outside.
        channel: Signals of the agents; in the fork they are dropped.
    """

    def __init__(
        self, levels: "Sequence[LevelManager]", *, clock: Clock, channel: SignalChannel
    ) -> None:
        self._levels, self._clock, self._channel = tuple(levels), clock, channel

    def follow(self, clock: Clock) -> None:
        """Set the fork's clock, and so its schedules, to another clock."""
        self._clock.load_state_dict(clock.for_evaluation().state_dict())
        self._clock.wall_seconds, self._clock.samples = clock.wall_seconds, clock.samples

    def run(self, state: State, directive: Directive, rows: IntArray) -> tuple[EnvResponse, int]:
        """Run sub-episodes from a saved state to their ends.

        Args:
            state: Of the environment that the fork is of.
            directive: Of the rows.
            rows: [R]; the others are not stepped.

        Returns:
            The answers in the order of the rows, and the simulator steps they took.
        """
        top, simulators = self._levels[0], self._levels[-1].environment
        top.load_state_dict(state)
        before = self._nested_steps()
        among = np.zeros(top.num_envs, np.bool_)
        among[rows] = True
        top.send(directive, rows)
        ended: list[EnvResponse] = []
        steps, listener = 0, self._channel.listener
        self._channel.listener = None
        try:
            while among.any():
                for level in self._levels:
                    level.decide(among)
                answer = simulators.recv()
                steps += int(answer.duration.sum())
                for level in reversed(self._levels):
                    answer = level.process(answer)
                if len(answer):
                    among[answer.rows] = False
                    ended.append(replace(answer, info={}, faults=()))  # infos may come and go
        finally:
            self._channel.listener = listener
        return _in_order(ended, rows), steps + self._nested_steps() - before

    def _nested_steps(self) -> int:
        """Steps in forks of the fork, since the run began."""
        certifiers = (level.certifier for level in self._levels)
        return sum(each.steps for each in certifiers if each is not None)


class Certifier:
    """Tries a level's decisions in a fork and takes what succeeds: the sub-goal, or a goal above.

    Where nothing succeeds the agent's own choice stays.

    Args:
        level: Whose decisions they are; its `certify` sets how many are tried, and which is taken.
        agent: The level's, a `ProposingAgent`.
        fork: Of what is below the level.
        clock: The stack's; decisions in the level's HEATUP are left alone.
        num_envs: N.
        seed: Seed of the rows' random streams.
        above: The levels above, top first.
    """

    def __init__(
        self,
        level: LevelDescription,
        *,
        agent: AnyAgent,
        fork: Fork,
        clock: Clock,
        num_envs: int,
        seed: int,
        above: Sequence[LevelDescription] = (),
    ) -> None:
        assert level.certify is not None, "checked when the levels were built"
        assert isinstance(agent, ProposingAgent), "checked likewise"
        self._name, self._params, self._fork = level.name, level.certify, fork
        self._agent: Any = agent
        spaces = [each.goal_space for each in (*above, level)]
        self._goal_spaces = [each for each in spaces if isinstance(each, GoalSpace)]
        self._clock, self._num_envs, self._seed = clock, num_envs, seed
        self._alternatives: RowState = self._new_alternatives(seed)
        self._counted = np.ones(num_envs, np.bool_)
        self._counts = dict.fromkeys(_COUNTS, 0)
        self.steps = 0
        """Simulator steps in forks so far."""

    def reset(self, seed: int | Sequence[int] | None) -> None:
        """Begin random streams that belong to these seeds; None continues."""
        if seed is not None:
            names = (seed,) if isinstance(seed, int) else seed
            self._alternatives = self._new_alternatives(integer_seed(self._seed, *names))

    def certified(
        self, row_state: RowState, request: ActionRequest, directive: Directive, below: Environment
    ) -> Directive:
        """Return the directive with the chosen candidates, which the agent adopts.

        Args:
            row_state: The agent's.
            request: What it has just decided on.
            directive: The decisions of these R rows.
            below: Where they will be sent.
        """
        clock = self._clock.of_level(self._name)
        if clock.phase is Phase.HEATUP:
            return directive
        own = directive.action
        assert not isinstance(own, dict), "a level's goal is one array"
        explores = replace(self._clock, phase=Phase.TRAIN, collects=True)
        proposed = self._agent.propose(row_state, self._alternatives, request, explores)
        actions = np.concatenate((own[:, None], proposed), axis=1)  # [R, K, ...]
        tried = self._tried(actions, directive, request.rows, below)
        taken = self._choice(tried)
        if isinstance(self._agent, ForkLearner):
            others = tried.ends.copy()
            others[np.arange(len(taken)), taken] = 0  # the agent observes the outcome of these
            learns = self._params.learn and clock.learns
            self._agent.observe_fork(
                row_state, self._alternatives, request.rows, others, learns=learns
            )
        (changed,) = taken.nonzero()
        if len(changed):
            rows = request.rows[changed]
            self._agent.adopt(row_state, self._alternatives, rows, taken[changed] - 1)
        self._counts["changed"] += len(changed)
        return replace(directive, action=actions[np.arange(len(taken)), taken])

    def count_only(self, rows: BoolArray) -> None:
        """Certify the decisions of these rows [N] alone from now on; `drain` ends that."""
        self._counted = rows.copy()

    def drain(self) -> dict[str, float]:
        """Statistics since the last call, by name; empty if nothing was certified."""
        self._counted[:] = True
        counts, self._counts = self._counts, dict.fromkeys(_COUNTS, 0)
        if not counts["decisions"]:
            return {}
        return {
            "fork_steps": float(counts["steps"]),
            "fork_candidates": counts["tried"] / counts["decisions"],
            "fork_success_share": counts["succeeded"] / counts["tried"],
            "fork_certified_share": counts["certified"] / counts["decisions"],
            "fork_changed_share": counts["changed"] / counts["decisions"],
        }

    def state_dict(self) -> State:
        return {
            "candidates": self._params.candidates,
            "alternatives": self._alternatives.state_dict(),
            "counts": dict(self._counts),
            "steps": self.steps,
        }

    def load_state_dict(self, state: State) -> None:
        """Load a saved state; random streams only if the number of candidates is the same."""
        if state["candidates"] == self._params.candidates:
            self._alternatives.load_state_dict(state["alternatives"])
        self._counts, self.steps = dict(state["counts"]), state["steps"]

    def _new_alternatives(self, seed: int) -> RowState:
        rows: RowState = self._agent.new_rows(self._num_envs * (self._params.candidates - 1), seed)
        return rows

    def _tried(
        self, actions: Array, directive: Directive, rows: IntArray, below: Environment
    ) -> Tried:
        """Try the candidates [R, K, ...] in turn, where one is still wanted."""
        shape, steps = actions.shape[:2], 0
        tried = Tried(
            ends=np.zeros(shape, np.uint8),
            succeeded=np.zeros(shape, np.bool_),
            distance=np.zeros(shape, np.float64),
        )
        wanted = self._counted[rows]
        if not wanted.any():
            return tried
        self._counts["decisions"] += int(np.count_nonzero(wanted))
        self._fork.follow(self._clock)
        state = below.state_dict()
        for number in range(shape[1]):
            (places,) = (wanted & ~_is_repeated(actions, number)).nonzero()
            if not len(places):
                continue
            sent = replace(directive, action=actions[:, number]).rows_of(places)
            answer, taken = self._fork.run(state, sent, rows[places])
            tried.ends[places, number] = answer.end
            tried.succeeded[places, number] = self._is_success(answer, sent.outer_goals)
            if self._params.prefer == "nearest":
                space, goal = self._goal_spaces[-1], sent.outer_goals[-1]
                tried.distance[places, number] = space.distance(goal, answer.observation)
            else:
                wanted = wanted & ~tried.succeeded[:, number]
            steps += taken
        self.steps += steps
        self._counts["steps"] += steps
        self._counts["tried"] += int(np.count_nonzero(tried.ends))
        return tried

    def _is_success(self, answer: EnvResponse, outer_goals: Sequence[FloatArray]) -> BoolArray:
        """[R] the level below reached its goal, or one of these [R, G], of the levels above it.

        That a goal's time is up ends a try as well, wherever it ends.
        """
        succeeded: BoolArray = (answer.end & np.uint8(End.GOAL)) > 0
        for space, goal in zip(self._goal_spaces, outer_goals, strict=True):
            if space.sent_size > space.size:
                goal = np.hstack([goal[:, :-1], goal[:, -1:] - answer.duration[:, None]])
            succeeded = succeeded | space.reached(goal, answer.observation)
        return succeeded

    def _choice(self, tried: Tried) -> IntArray:
        """Return which candidate is taken, [R]: of those that succeed the nearest, or the first."""
        succeeded = tried.succeeded
        self._counts["succeeded"] += int(np.count_nonzero(succeeded))
        self._counts["certified"] += int(np.count_nonzero(succeeded.any(axis=1)))
        taken: IntArray = np.where(succeeded, tried.distance, np.inf).argmin(axis=1)
        return taken


def _is_repeated(actions: Array, number: int) -> BoolArray:
    """[R] the candidate of that number is one of those before it; actions are [R, K, ...]."""
    flat = actions.reshape(*actions.shape[:2], -1)
    same: BoolArray = (flat[:, :number] == flat[:, number : number + 1]).all(axis=2).any(axis=1)
    return same


def _in_order(ended: Sequence[EnvResponse], rows: IntArray) -> EnvResponse:
    """Answers of several ticks as one, in the order of the rows."""
    whole = joined(ended, faults=())
    place = np.empty(int(rows.max()) + 1, np.int64)
    place[whole.rows] = np.arange(len(whole))
    return whole.rows_of(place[rows])
