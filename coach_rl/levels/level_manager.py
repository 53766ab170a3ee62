"""One level: tells its agent what there is to see, tells its environment what to do."""

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces

from coach_rl.core.clock import Clock
from coach_rl.core.errors import ActionError, ConfigurationError
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.interfaces import Agent, Environment
from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    Directive,
    End,
    EnvResponse,
    IntArray,
    Observation,
    Outcome,
    take,
)
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State

REAL_ENDS = int(End.TERMINATED | End.TRUNCATED)


class LevelManager:
    """A level drives N rows, each at its own point of its own sub-episode.

    It implements the environment contract: the level above sends goals and receives an answer for a
    row when that row's sub-episode is over. The top level is sent nothing; its `recv` is one tick
    of the whole stack, and answers every row the environment answered.

    Args:
        name: The level's name in logs.
        agent: Who decides here.
        environment: A simulator or the level below. The level closes it.
        clock: Phase and counters of the stack this level belongs to; read only.
        seed: Of the rows' random streams.
        goal_space: What the level above acts in; None at the top.
        horizon: Decisions after which a sub-episode ends; None for no limit. At the top: decisions
        after which
            the agent's episode is cut (the simulator is not reset).
        outer_goal_spaces: Goal spaces of the levels between the top and this one, top first.
        real_end_is_terminal: Whether a real termination cuts the bootstrap at a level with a goal
        of its own.
            False by default: under -1/0 rewards dying early would be the best policy.
    """

    def __init__(
        self,
        *,
        name: str,
        agent: Agent,
        environment: Environment,
        clock: Clock,
        seed: int,
        goal_space: GoalSpace | None = None,
        horizon: int | None = None,
        outer_goal_spaces: tuple[GoalSpace, ...] = (),
        real_end_is_terminal: bool = False,
    ) -> None:
        if horizon is not None and horizon < 1:
            raise ConfigurationError(f"level '{name}': horizon must be 1 or more, got {horizon}")
        if goal_space is not None:
            goal_space.check(environment.spaces.observation)
        self.name = name
        self.agent = agent
        self.environment = environment
        self.goal_space = goal_space
        self.simulator_steps = 0
        """Simulator steps answered so far, summed over the rows."""
        self._clock, self._horizon = clock, horizon
        self._outer_goal_spaces = outer_goal_spaces
        self._real_end_is_terminal = real_end_is_terminal
        self._row_state = agent.new_rows(environment.num_envs, seed)
        self._observation: Observation = {}
        n = environment.num_envs
        self._open = np.zeros(n, np.bool_)  # under a directive from above
        self._waiting = np.zeros(n, np.bool_)  # for a decision of the agent
        self._starts = np.zeros(n, np.bool_)  # the next decision is the first of a sub-episode
        self._fresh = np.zeros(n, np.bool_)  # the next decision is the first of a real episode
        self._tested = np.zeros(n, np.bool_)
        self._decisions = np.zeros(n, np.int64)
        self._steps = np.zeros(n, np.int64)
        self._reward = np.zeros(n, np.float64)
        size = 0 if goal_space is None else len(goal_space.low)
        self._goal = np.zeros((n, size), np.float32)
        self._outer_goals = [
            np.zeros((n, len(outer.low)), np.float32) for outer in outer_goal_spaces
        ]

    @property
    def num_envs(self) -> int:
        """N."""
        return self.environment.num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        """What the level above sees (what the simulator shows) and where it acts (our goals)."""
        below = self.environment.spaces
        action = below.action if self.goal_space is None else self.goal_space.space
        return EnvironmentSpaces(observation=below.observation, action=action)

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start every row anew; see `core.interfaces.Environment.reset`."""
        response = self.environment.reset(seed)
        self._observation = {
            key: values.copy() for key, values in response.first_observation.items()
        }
        self._open[:] = False
        self._waiting[:] = self.goal_space is None
        self._starts[:] = True
        self._fresh[:] = True
        self._zero(np.arange(self.num_envs))
        return response

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Give closed rows a goal; ActionError when one of them is open."""
        rows = np.arange(self.num_envs) if rows is None else rows
        if not isinstance(directive, Directive):
            directive = Directive(action=directive)
        if self.goal_space is None or isinstance(directive.action, dict):
            raise ActionError(f"level '{self.name}' takes goals of its goal space, got {directive}")
        if self._open[rows].any():
            busy = int(rows[self._open[rows]][0])
            raise ActionError(f"level '{self.name}': row {busy} is still busy with its goal")
        seen = take(self._observation, rows)
        self._goal[rows] = self.goal_space.target(directive.action, seen)
        self._tested[rows] = False if directive.tested is None else directive.tested
        for mine, given in zip(self._outer_goals, directive.outer_goals, strict=True):
            mine[rows] = given
        self._open[rows] = self._waiting[rows] = self._starts[rows] = True
        self._zero(rows)

    def recv(self) -> EnvResponse:
        """One tick: decide where it is due, let the environment go on, take in what came."""
        self._decide()
        answer = self.environment.recv()
        rows = answer.rows
        if not len(rows):
            return answer
        self._decisions[rows] += 1
        self._steps[rows] += answer.duration
        self._reward[rows] += answer.reward
        self.simulator_steps += int(answer.duration.sum())
        end = self._ends(answer)
        self.agent.observe(self._row_state, self._outcome(answer, end), clock=self._clock)
        for key, values in answer.first_observation.items():
            self._observation[key][rows] = values
        self._fresh[rows] = (answer.end & REAL_ENDS) != 0
        self._starts[rows] = over = end != 0
        if self.goal_space is None:
            self._waiting[rows] = True
            if over.any():
                self._zero(rows[over])
            return answer
        self._waiting[rows] = ~over
        self._open[rows[over]] = False
        return self._upwards(answer, over, end)

    def state_dict(self) -> State:
        """Everything of this level and of what is below it, but the agent's parameters."""
        return {
            "environment": self.environment.state_dict(),
            "rows": self._row_state.state_dict(),
            "observation": {key: values.copy() for key, values in self._observation.items()},
            "outer_goals": [goal.copy() for goal in self._outer_goals],
            "simulator_steps": self.simulator_steps,
            **{name: getattr(self, f"_{name}").copy() for name in _ARRAYS},
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state, open sub-episodes included."""
        self.environment.load_state_dict(state["environment"])
        self._row_state.load_state_dict(state["rows"])
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
        return agent_spaces(self.environment.spaces, self.goal_space)

    def _decide(self) -> None:
        rows = np.flatnonzero(self._waiting)
        if not len(rows):
            return
        action = self.agent.act(
            self._row_state,
            rows,
            self._with_goal(take(self._observation, rows), rows),
            starts=self._starts[rows],
            fresh=self._fresh[rows],
            quiet=self._tested[rows],
            clock=self._clock,
        )
        self._waiting[rows] = False
        own = () if self.goal_space is None else (self._goal[rows],)
        directive = Directive(
            action=action,
            tested=self._tested[rows],
            outer_goals=(*(goal[rows] for goal in self._outer_goals), *own),
        )
        self.environment.send(directive, rows)

    def _ends(self, answer: EnvResponse) -> Array:
        """The bits that apply at this level, uint8 [R]."""
        rows = answer.rows
        end = answer.end & np.uint8(REAL_ENDS)
        if self._horizon is not None:
            end |= np.where(
                self._decisions[rows] >= self._horizon, np.uint8(End.HORIZON), np.uint8(0)
            )
        if self.goal_space is not None:
            reached = self.goal_space.reached(self._goal[rows], answer.observation)
            end |= np.where(reached, np.uint8(End.GOAL), np.uint8(0))
        for outer, goal in zip(self._outer_goal_spaces, self._outer_goals, strict=True):
            reached = outer.reached(goal[rows], answer.observation)
            end |= np.where(reached, np.uint8(End.OUTER), np.uint8(0))
        return end

    def _outcome(self, answer: EnvResponse, end: Array) -> Outcome:
        """What the decision was worth at this level."""
        rows = answer.rows
        if self.goal_space is None:
            reward, terminated = answer.reward, answer.terminated
        else:
            reward = self.goal_space.goal_reward(self._goal[rows], answer.observation)
            cuts = End.GOAL | End.TERMINATED if self._real_end_is_terminal else End.GOAL
            terminated = (end & np.uint8(cuts)) != 0
        return Outcome(
            rows=rows,
            observation=self._with_goal(answer.observation, rows),
            reward=reward,
            terminated=terminated,
            truncated=(end != 0) & ~terminated
            if self.goal_space is not None
            else self._cut(answer, end),
            duration=answer.duration,
            end=end,
            below=answer.end,
            info=answer.info,
        )

    def _cut(self, answer: EnvResponse, end: Array) -> BoolArray:
        """Where the top's episode is cut off: truncated for real, or out of decisions."""
        if self._horizon is None:
            return answer.truncated
        return np.asarray(answer.truncated | ((end & np.uint8(End.HORIZON)) != 0))

    def _upwards(self, answer: EnvResponse, over: BoolArray, end: Array) -> EnvResponse:
        """The answer to the level above, for the rows whose sub-episode is over."""
        rows = answer.rows[over]
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
        if self.goal_space is None:
            return observation
        return {**observation, GOAL_KEY: self._goal[rows]}

    def _zero(self, rows: IntArray) -> None:
        self._decisions[rows] = 0
        self._steps[rows] = 0
        self._reward[rows] = 0.0


_ARRAYS = (
    "open",
    "waiting",
    "starts",
    "fresh",
    "tested",
    "decisions",
    "steps",
    "reward",
    "goal",
)


def agent_spaces(below: EnvironmentSpaces, goal_space: GoalSpace | None) -> EnvironmentSpaces:
    """What an agent sees and does: its level's goal stands in its observation."""
    if goal_space is None:
        return below
    observed = {**below.observation.spaces, GOAL_KEY: goal_space.goal_space}
    return EnvironmentSpaces(observation=spaces.Dict(observed), action=below.action)
