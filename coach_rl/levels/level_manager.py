"""One level: tells its agent what there is to see, tells its environment what to do."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from coach_rl.core.agents import AnyAgent
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ActionError, ConfigurationError, SpaceError
from coach_rl.core.goals import GOAL_KEY, GoalSpace, LevelSpace, OptionSpace
from coach_rl.core.interfaces import Environment, LevelDescription
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    BoolArray,
    Directive,
    End,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    take,
)
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.levels.sub_episodes import SubEpisodes

# Arrays, not scalars: they take half the time in arithmetic with other arrays.
REAL_ENDS = np.array(End.TERMINATED | End.TRUNCATED, np.uint8)
_HORIZON, _OUTER = np.array(End.HORIZON, np.uint8), np.array(End.OUTER, np.uint8)
_ALL = slice(None)


@dataclass(frozen=True, kw_only=True)
class LevelGoals:
    """What a level is after, row by row; read only."""

    goal_space: GoalSpace
    goal: FloatArray
    """[N, G] the goal given last."""
    given: BoolArray
    """[N] a goal was given since the last reset."""
    open: BoolArray
    """[N] the level is still after it."""


class LevelManager:
    """A level drives N rows, each at its own point of its own sub-episode.

    It implements the environment contract: the level above sends goals (or options) and receives an
    answer for a row when that row's sub-episode is over. The top level is sent nothing; its `recv`
    is one tick of the whole stack, and answers every row the environment answered.

    Args:
        params: What the level is like.
        agent: Who decides here.
        environment: A simulator or the level below. The level closes it.
        clock: Phase and counters of the stack this level belongs to; read only.
        seed: Of the rows' random streams.
        above: The levels above, top first.
        discount: Of rewards per simulator step, when they are added up for the level above; the
            same for the whole stack.

    Raises:
        ConfigurationError: Something does not fit; the line names the level.
    """

    def __init__(
        self,
        params: LevelDescription,
        *,
        agent: AnyAgent,
        environment: Environment,
        clock: Clock,
        seed: int,
        above: Sequence[LevelDescription] = (),
        discount: float = 1.0,
    ) -> None:
        check_level(params, environment.spaces, is_top=not above)
        self.name, self.agent, self.environment = params.name, agent, environment
        self.space = params.goal_space
        """What it is told: goals or options; None where the environment's reward is all there is.
        The top level's goals are the environment's."""
        self.simulator_steps = 0
        """Simulator steps answered so far, summed over the rows."""
        self.sub_episodes = SubEpisodes()
        """How sub-episodes have gone, for the logs."""
        self.answer: EnvResponse | None = None
        """What the environment answered last; None before the first tick."""
        self.uncounted: BoolArray | None = None
        """Rows [N] that are left out of `sub_episodes`; None: none."""
        self._params, self._is_top, self._discount = params, not above, discount
        self._testing_rate = params.testing_rate or 0.0
        self._horizon = np.array(params.horizon or 0, np.int64)  # 0 stands for none
        self._goal_space = self.space if isinstance(self.space, GoalSpace) else None
        # The environment's may; those of the levels below stay until they answer.
        self._goals_may_move = self._is_top and self._goal_space is not None
        # A frozen level's agent lives in TEST: it neither explores nor learns nor remembers.
        self._stack_clock = clock
        self._clock = Clock(phase=Phase.TEST) if params.frozen else clock
        outer = [each.goal_space for each in above]
        self._outer_spaces = [space for space in outer if isinstance(space, GoalSpace)]
        self._is_lowest = not isinstance(environment, LevelManager)
        n = environment.num_envs
        self._every: IntArray = np.arange(n)
        self._difference: FloatArray = np.zeros((0, 0))  # of the last answer, to its rows' goals
        self._row_state = agent.new_rows(n, seed)
        self._testing = RowNoise(num_rows=n, size=1, kind="uniform", seed=seed, name="testing")
        self._observation: Observation = {}
        self._open = np.zeros(n, np.bool_)  # under a directive from above
        self._waiting = np.zeros(n, np.bool_)  # for a decision of the agent
        self._starts = np.zeros(n, np.bool_)  # the next decision is the first of a sub-episode
        self._fresh = np.zeros(n, np.bool_)  # the next decision is the first of a real episode
        self._tested = np.zeros(n, np.bool_)  # by the level above
        self._testing_below = np.zeros(n, np.bool_)  # the open decision is tested
        self._decisions = np.zeros(n, np.int64)
        self._steps = np.zeros(n, np.int64)
        self._reward = np.zeros(n, np.float64)
        self._return = np.zeros(n, np.float64)
        self._goal = np.zeros((n, 0 if self.space is None else self.space.size), np.float32)
        self._difference_at_start = np.zeros(self._goal.shape, np.float64)
        self._outer_goals = [np.zeros((n, space.size), np.float32) for space in self._outer_spaces]

    @property
    def num_envs(self) -> int:
        """N."""
        return self.environment.num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        """What the level above sees (what the simulator shows) and where it acts (our goals)."""
        below = self.environment.spaces
        action = below.action if self._is_top or self.space is None else self.space.space
        return EnvironmentSpaces(observation=below.observation, action=action)

    @property
    def goals(self) -> LevelGoals | None:
        """The goals the level above gives, as they stand; None at the top and under options."""
        if self._is_top or self._goal_space is None:
            return None
        return LevelGoals(
            goal_space=self._goal_space,
            goal=_read_only(self._goal),
            given=_read_only(self._open | (self._decisions > 0)),
            open=_read_only(self._open),
        )

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start every row anew; see `core.interfaces.Environment.reset`."""
        response = self.environment.reset(seed)
        self._observation = {
            key: values.copy() for key, values in response.first_observation.items()
        }
        self._open[:] = False
        self._waiting[:] = self._is_top
        self._starts[:] = True
        self._fresh[:] = True
        self._zero(slice(None))
        return response

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Give closed rows a goal; ActionError when one of them is open."""
        rows = np.arange(self.num_envs) if rows is None else rows
        if not isinstance(directive, Directive):
            directive = Directive(action=directive)
        if self._is_top or self.space is None or isinstance(directive.action, dict):
            raise ActionError(f"level '{self.name}' takes goals of its goal space, got {directive}")
        if np.count_nonzero(self._open[rows]):
            busy = int(rows[self._open[rows]][0])
            raise ActionError(f"level '{self.name}': row {busy} is still busy with its goal")
        self._goal[rows] = self.space.target(directive.action, take(self._observation, rows))
        self._tested[rows] = False if directive.tested is None else directive.tested
        for mine, given in zip(self._outer_goals, directive.outer_goals, strict=True):
            mine[rows] = given
        self._open[rows] = self._waiting[rows] = self._starts[rows] = True
        self._zero(rows)

    def recv(self) -> EnvResponse:
        """One tick: decide where it is due, let the environment go on, take in what came."""
        self._decide()
        answer = self.answer = self.environment.recv()
        rows = answer.rows
        if not len(rows):
            return answer
        index = self._index(rows)
        outcome = self._outcome(answer, index)
        self.agent.observe(self._row_state, outcome, self._clock)
        for key, values in answer.first_observation.items():
            self._observation[key][index] = values
        self._starts[index] = is_over = outcome.terminated | outcome.truncated
        (over,) = is_over.nonzero()
        if len(over):
            self._fresh[index] = (answer.end & REAL_ENDS).astype(np.bool_)
            self._note_ends(outcome, over)
        else:
            self._fresh[index] = False
        if self._is_top:
            self._waiting[index] = True
            if len(over):
                self._zero(rows[over])
            return answer
        self._waiting[index] = ~is_over
        if not len(over):
            return self._no_answer(answer)
        return self._upwards(answer, over, outcome.end)

    def state_dict(self) -> State:
        """Everything of this level and of what is below it, but the agent's parameters."""
        return {
            "environment": self.environment.state_dict(),
            "rows": self._row_state.state_dict(),
            "testing": self._testing.state_dict(),
            "sub_episodes": self.sub_episodes.state_dict(),
            "observation": {key: values.copy() for key, values in self._observation.items()},
            "outer_goals": [goal.copy() for goal in self._outer_goals],
            "simulator_steps": self.simulator_steps,
            **{name: getattr(self, f"_{name}").copy() for name in _ARRAYS},
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state, open sub-episodes included."""
        self.environment.load_state_dict(state["environment"])
        self._row_state.load_state_dict(state["rows"])
        self._testing.load_state_dict(state["testing"])
        self.sub_episodes.load_state_dict(state["sub_episodes"])
        self._observation = {key: values.copy() for key, values in state["observation"].items()}
        for mine, saved in zip(self._outer_goals, state["outer_goals"], strict=True):
            mine[:] = saved
        self.simulator_steps = state["simulator_steps"]
        for name in _ARRAYS:
            getattr(self, f"_{name}")[:] = state[name]

    def close(self) -> None:
        """Close the environment, and so everything below."""
        self.environment.close()

    def agent_spaces(self) -> EnvironmentSpaces:
        """What this level's agent sees (its goal included) and where it acts."""
        return agent_spaces(self.environment.spaces, self.space)

    def _decide(self) -> None:
        (rows,) = self._waiting.nonzero()
        if not len(rows):
            return
        seen = take(self._observation, rows)
        if self._is_top and self.space is not None:
            self._goal[rows] = seen[GOAL_KEY].reshape(len(rows), -1)
        starts = self._starts[rows]
        if self._goal_space is not None and starts.any():
            difference = self._goal_space.difference(self._goal[rows], seen)
            self._difference_at_start[rows[starts]] = difference[starts]
        tested = self._tested[rows]
        request = ActionRequest(
            rows=rows,
            observation=self._with_goal(seen, rows),
            starts=starts,
            episode_start=self._fresh[rows],
            greedy=tested,
        )
        action = self.agent.act(self._row_state, request, self._clock)
        self._waiting[rows] = False
        if self._tests_now():
            tested = tested | (self._testing.draw(rows)[:, 0] < self._testing_rate)
        self._testing_below[rows] = tested
        own = () if self._goal_space is None else (self._goal.take(rows, axis=0),)
        outer = tuple(goal.take(rows, axis=0) for goal in self._outer_goals)
        directive = Directive(action=action, tested=tested, outer_goals=(*outer, *own))
        self.environment.send(directive, rows)

    def _tests_now(self) -> bool:
        return self._testing_rate > 0 and self._stack_clock.phase is Phase.TRAIN

    def _index(self, rows: IntArray) -> IntArray | slice:
        """The rows, as a slice where they are all there are: that is the faster index."""
        n = len(self._waiting)
        if len(rows) == n and np.count_nonzero(rows == self._every) == n:
            return _ALL
        return rows

    def _outcome(self, answer: EnvResponse, index: IntArray | slice) -> Outcome:
        """What the decisions were worth at this level, and why its sub-episodes ended."""
        params, space, seen = self._params, self._goal_space, answer.observation
        decisions = self._add(answer, index)
        end = answer.end & REAL_ENDS
        if params.horizon is not None:
            end |= (decisions >= self._horizon).view(np.uint8) * _HORIZON
        if space is not None:
            difference = space.difference(self._goal[index], seen)
            reached = space.reached_at(difference)
            end |= reached.view(np.uint8)  # End.GOAL is 1
            reward, terminated = space.reward_at(difference, reached), reached
            self._difference = difference
            if params.real_end_is_terminal:
                terminated = reached | answer.terminated
        else:
            reward, terminated = answer.reward, answer.terminated
        for outer, goal in zip(self._outer_spaces, self._outer_goals, strict=True):
            end |= outer.reached(goal[index], seen).view(np.uint8) * _OUTER
        self._return[index] += reward
        tested = self._testing_below[answer.rows]
        if self._tests_now():
            missed = answer.end == _HORIZON  # any other end is not the level's fault
            self.sub_episodes.note_decisions(tested, missed)
        return Outcome(
            rows=answer.rows,
            observation=self._with_goal(seen, answer.rows),
            reward=reward,
            terminated=terminated,
            truncated=end.astype(np.bool_) & ~terminated,
            duration=answer.duration,
            end=end,
            below=answer.end,
            tested=tested,
            told=self._told(answer, index, end) if self._goals_may_move else {},
            info=answer.info,
        )

    def _told(self, answer: EnvResponse, index: IntArray | slice, end: Array) -> Observation:
        """What the rows see next of their goals where the environment has moved one, else nothing.

        Where a sub-episode has ended, the next one begins with a goal of its own.
        """
        assert self._goal_space is not None
        before = self._goal[index]
        now = answer.first_observation[GOAL_KEY].reshape(before.shape)
        differs = now.astype(np.float32, copy=False) != before
        if not np.count_nonzero(differs):
            return {}
        moved = differs.any(axis=1) & (end == 0)
        if not moved.any():
            return {}
        goal = np.where(moved[:, None], now, before).astype(np.float32, copy=False)
        return self._goal_space.show(goal, answer.observation)

    def _add(self, answer: EnvResponse, index: IntArray | slice) -> IntArray:
        """Add up what goes upwards; the decisions of the rows' sub-episodes so far, [R]."""
        if self._is_lowest:
            self.simulator_steps += int(np.add.reduce(answer.duration))
        if not self._is_top:
            reward = answer.reward
            if self._discount != 1.0:
                reward = reward * self._discount ** self._steps[index]
            self._reward[index] += reward
            self._steps[index] += answer.duration
        self._decisions[index] += 1
        return self._decisions[index]

    def _note_ends(self, outcome: Outcome, over: IntArray) -> None:
        """Take in the sub-episodes that are over, `over` being their places in `outcome`."""
        if self.uncounted is not None:
            over = over[~self.uncounted[outcome.rows[over]]]
        ended = outcome.rows[over]
        differences = None
        if self._goal_space is not None:
            differences = self._difference_at_start[ended], self._difference.take(over, axis=0)
        self.sub_episodes.note_ends(
            outcome.end[over],
            differences=differences,
            decisions=self._decisions[ended],
            returns=self._return[ended],
        )

    def _no_answer(self, answer: EnvResponse) -> EnvResponse:
        """An answer without rows."""
        none = slice(0, 0)
        return EnvResponse(
            rows=answer.rows[none],
            observation=take(answer.observation, none),
            first_observation=take(answer.first_observation, none),
            reward=answer.reward[none],
            terminated=answer.terminated[none],
            truncated=answer.truncated[none],
            end=answer.end[none],
            duration=answer.duration[none],
            info={key: values[none] for key, values in answer.info.items()},
        )

    def _upwards(self, answer: EnvResponse, over: IntArray, end: Array) -> EnvResponse:
        """The answer to the level above, for the places `over` whose sub-episodes are over."""
        rows = answer.rows[over]
        self._open[rows] = False
        return EnvResponse(
            rows=rows,
            observation=take(answer.observation, over),
            first_observation=take(answer.first_observation, over),
            reward=self._reward[rows],
            terminated=answer.terminated[over],
            truncated=answer.truncated[over],
            end=end[over],
            duration=self._steps[rows],
            info={key: values[over] for key, values in answer.info.items()},
        )

    def _with_goal(self, observation: Observation, rows: IntArray) -> Observation:
        if self.space is None:
            return observation
        return observation | self.space.show(self._goal.take(rows, axis=0), observation)

    def _zero(self, rows: IntArray | slice) -> None:
        self._decisions[rows] = 0
        self._steps[rows] = 0
        self._reward[rows] = 0.0
        self._return[rows] = 0.0


_ARRAYS = (
    "open",
    "waiting",
    "starts",
    "fresh",
    "tested",
    "testing_below",
    "decisions",
    "steps",
    "reward",
    "return",
    "goal",
    "difference_at_start",
)


def check_level(params: LevelDescription, below: EnvironmentSpaces, *, is_top: bool) -> None:
    """Raise a ConfigurationError that names the level unless it fits on what is below.

    Args:
        params: What the level is like.
        below: What the simulator or the level below shows and takes.
        is_top: Whether no level is above.
    """
    name, space = params.name, params.goal_space
    if params.horizon is not None and params.horizon < 1:
        raise ConfigurationError(f"level '{name}': horizon must be 1 or more, got {params.horizon}")
    if params.testing_rate is not None and not 0 <= params.testing_rate <= 1:
        raise ConfigurationError(
            f"level '{name}': testing_rate must lie in [0, 1], got {params.testing_rate}"
        )
    if space is None:
        if not is_top:
            raise ConfigurationError(
                f"level '{name}' needs a goal_space: the level above acts in it"
            )
        return
    try:
        space.check(below.observation)
        if is_top:
            if isinstance(space, OptionSpace):
                raise SpaceError("the top level has no options: nobody is above to choose one")
            space.check_given(below.observation)
    except SpaceError as error:
        raise SpaceError(f"level '{name}': {error}") from error


def agent_spaces(below: EnvironmentSpaces, space: LevelSpace | None) -> EnvironmentSpaces:
    """What an agent sees and does: what its level is told stands in its observation."""
    if space is None:
        return below
    observed = {**below.observation.spaces, **space.shown}
    return EnvironmentSpaces(observation=spaces.Dict(observed), action=below.action)


def _read_only(values: Array) -> Array:
    view = values.view()
    view.flags.writeable = False
    return view
