"""One level: tells its agent what there is to see, tells its environment what to do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coach_rl.core.agents import (
    AnyAgent,
    DrawnAgent,
    EndingAgent,
    PlanningAgent,
    following,
)
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ActionError
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.interfaces import Environment
from coach_rl.core.joined_answers import joined
from coach_rl.core.levels import LevelDescription
from coach_rl.core.marks import GoalPlace, Mark
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    BoolArray,
    Directive,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    missed,
    take,
)
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.levels.certifier import Certifier
from coach_rl.levels.judging import Judgement, judged, moved_goals, with_failures
from coach_rl.levels.rows import LevelRows, RowIndex
from coach_rl.levels.spaces import agent_spaces, check_level
from coach_rl.levels.sub_episodes import SubEpisodes


@dataclass(frozen=True, kw_only=True)
class LevelGoals:
    """The current goals of a level, row by row; read only."""

    goal_space: GoalSpace
    goal: FloatArray
    """[N, G] the goal given last; with the time left in steps behind it where goals have one."""
    given: BoolArray
    """[N] a goal was given since the last reset."""
    open: BoolArray
    """[N] the level is still after it."""
    decisions: IntArray
    """[N] decisions of the level since it was given."""


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
        seed: Seed of the rows' random streams.
        above: The levels above, top first.
        discount: Discount of rewards per simulator step, when they are added up for the level
            above; the same for the whole stack.
        certifier: Tries the agent's decisions before they are sent; None sends them untried.

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
        certifier: Certifier | None = None,
    ) -> None:
        check_level(params, environment.spaces, is_top=not above)
        self.params, self.agent, self.environment = params, agent, environment
        self.certifier = certifier
        space = params.goal_space
        self._options = space if isinstance(space, OptionSpace) else None
        self._ending = agent if isinstance(agent, EndingAgent) else None
        self.sub_episodes = SubEpisodes(
            options=0 if self._options is None else self._options.count,
            stops_on_failure=params.stops_on_failure != "never",
        )
        """Statistics of sub-episodes, for the logs."""
        self.on_decision: Callable[[Observation, Action], None] | None = None
        """Called with what the agent saw and its actions, [R, ...] each; None for nobody."""
        self._is_top, self._clock = not above, clock
        self._discount = discount if above else None  # nothing goes up from the top
        # A frozen level's agent lives in TEST: it neither explores nor learns nor remembers.
        self._frozen_clock = Clock(phase=Phase.TEST) if params.frozen else None
        self._may_freeze = params.may_freeze
        spaces_above = [each.goal_space for each in above]
        self._outer_spaces = [each for each in spaces_above if isinstance(each, GoalSpace)]
        self._timed_outer = [
            depth for depth, each in enumerate(self._outer_spaces) if each.sent_size > each.size
        ]
        self._is_timed = space is not None and space.sent_size > space.size
        n = environment.num_envs
        self._agent_rows = agent.new_rows(n, seed)
        self._testing = RowNoise(num_rows=n, size=1, kind="uniform", seed=seed, name="testing")
        self._followed: BoolArray | None = None
        """[N] which decisions made elsewhere are tested; None where the level makes its own."""
        self._rows = LevelRows.new(
            n,
            goal_size=0 if space is None else space.size,
            sent_size=0 if space is None else space.sent_size,
            outer_sizes=[each.sent_size for each in self._outer_spaces],
        )

    @property
    def name(self) -> str:
        """The level's name in logs."""
        return self.params.name

    @property
    def num_envs(self) -> int:
        """N."""
        return self.environment.num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        """The level above sees the simulator's observations and acts in our goal space."""
        below, space = self.environment.spaces, self.params.goal_space
        action = below.action if self._is_top or space is None else space.space
        return EnvironmentSpaces(observation=below.observation, action=action)

    @property
    def goals(self) -> LevelGoals | None:
        """The goals the level above gives, as they stand; None at the top and under options."""
        rows, space = self._rows, self.params.goal_space
        if self._is_top or not isinstance(space, GoalSpace):
            return None
        return LevelGoals(
            goal_space=space,
            goal=_read_only(rows.goal),
            given=_read_only(rows.open | (rows.decisions > 0)),
            open=_read_only(rows.open),
            decisions=_read_only(rows.decisions),
        )

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start every row anew; see `core.interfaces.Environment.reset`."""
        response = self.environment.reset(seed)
        if self.certifier is not None:
            self.certifier.reset(seed)
        self._rows.reset(response, waiting=self._is_top)
        return response

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Give closed rows a goal; ActionError when one of them is open."""
        rows = np.arange(self.num_envs) if rows is None else rows
        if not isinstance(directive, Directive):
            directive = Directive(action=directive)
        space = self.params.goal_space
        if self._is_top or space is None or isinstance(directive.action, dict):
            raise ActionError(f"level '{self.name}' takes goals of its goal space, got {directive}")
        is_open = self._rows.open[rows]
        if np.count_nonzero(is_open):
            busy = int(rows[is_open][0])
            raise ActionError(f"level '{self.name}': row {busy} is still busy with its goal")
        goal = space.target(directive.action, take(self._rows.observation, rows))
        self._rows.begin(rows, goal, directive)

    def recv(self) -> EnvResponse:
        """One tick: decide where it is due, step the environment, take in what came."""
        self.decide()
        return self.take_in(self.environment.recv())

    def decide(self, among: BoolArray | None = None) -> None:
        """Ask the agent where rows wait for a decision, and send it down.

        Args:
            among: Only in these rows, [N]; None: in all.
        """
        rows, space = self._rows, self.params.goal_space
        (waiting,) = (rows.waiting if among is None else rows.waiting & among).nonzero()
        if not len(waiting):
            return
        shown = seen = take(rows.observation, waiting)
        starts, tested = rows.starts[waiting], rows.tested[waiting]
        outer_goals = [goal.take(waiting, axis=0) for goal in rows.outer_goals]
        if space is not None:
            if self._is_top:
                rows.goal[waiting] = seen[GOAL_KEY].reshape(len(waiting), -1)
            goal = rows.goal.take(waiting, axis=0)
            shown = seen | space.show(goal, seen)
            if isinstance(space, GoalSpace):
                outer_goals.append(goal)
                if np.count_nonzero(starts):
                    difference = space.difference(goal, seen)[starts]
                    rows.difference_at_start[waiting[starts]] = difference
        request = ActionRequest(
            rows=waiting,
            observation=shown,
            starts=starts,
            episode_start=rows.episode_start[waiting],
            greedy=tested,
        )
        agent_clock = self._agent_clock
        action = self.agent.act(self._agent_rows, request, agent_clock)
        rows.decision_tested[waiting] = tested = self._tested(waiting, tested)
        if self._may_freeze:
            rows.decision_frozen[waiting] = agent_clock.phase is Phase.TEST
        rows.waiting[waiting] = False
        directive = Directive(action=action, tested=tested, outer_goals=tuple(outer_goals))
        if self.certifier is not None:
            directive = self.certifier.certified(
                self._agent_rows, request, directive, self.environment
            )
        if self.on_decision is not None:
            self.on_decision(shown, directive.action)
        self.environment.send(directive, waiting)

    def take_in(self, answer: EnvResponse) -> EnvResponse:
        """Judge what the environment answered, and tell the agent; the answer to the level above.

        At the top that is the answer itself.
        """
        if not len(answer):
            return answer
        if answer.faults and (lost := answer.lost).any():
            upwards = self.take_in(answer.rows_of(~lost)), self._end_lost(answer.rows_of(lost))
            return answer if self._is_top else joined(upwards, faults=answer.faults)
        rows = self._rows
        index = rows.index(answer.rows)
        rows.add(answer, index, self._discount)
        if self._is_timed or self._timed_outer:
            rows.let_time_pass(answer, index, own=self._is_timed, outer=self._timed_outer)
        judgement = self._judged(answer, index, self._stopped(answer))
        outcome = self._outcome(answer, judgement)
        self._tell(outcome)
        self._note(answer, index, judgement)
        rows.go_on(answer, index, judgement.is_over, waits_at_end=self._is_top)
        return answer if self._is_top else self._upwards(answer, judgement)

    def freeze(self) -> None:
        """The agent is frozen from here on: later transitions do not go on from those before."""
        self.agent.cut_off(self._agent_rows, np.arange(self.num_envs), self._clock)

    def drain(self) -> dict[str, float]:
        """Figures of its sub-episodes, plans and forks since the last call."""
        agent = self.agent
        plans = agent.planning(self._agent_rows) if isinstance(agent, PlanningAgent) else {}
        forks = {} if self.certifier is None else self.certifier.drain()
        return self.sub_episodes.drain() | plans | forks

    def decisions(self) -> State:
        """Return the decision that each row made last, as a level elsewhere can `follow` it."""
        agent = following(self._agent_rows, self.name)
        return {"tested": self._rows.decision_tested, "agent": agent.decisions()}

    def follow(self, decisions: State) -> None:
        """Let the next decisions be those that an equal level made elsewhere, arrays [N, ...]."""
        self._followed = decisions["tested"]
        following(self._agent_rows, self.name).follow(decisions["agent"])

    def marks(self, row: int, place: GoalPlace) -> Sequence[Mark]:
        """Return what the agent draws into a frame of a row; see `core.agents.DrawnAgent`."""
        agent = self.agent
        return agent.marks(self._agent_rows, row, place) if isinstance(agent, DrawnAgent) else ()

    def restart(self) -> None:
        """Give up the open sub-episodes of all rows after a gap; `reset` begins them anew."""
        self.agent.restart_rows(self._agent_rows)

    def state_dict(self) -> State:
        """Everything of this level and of what is below it, but the agent's parameters."""
        return {"environment": self.environment.state_dict(), **self.own_state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state, open sub-episodes included."""
        self.environment.load_state_dict(state["environment"])
        self.load_own_state_dict(state)

    def own_state_dict(self) -> State:
        """Everything of this level alone, but the agent's parameters."""
        return {
            "agent_rows": self._agent_rows.state_dict(),
            "rows": self._rows.state_dict(),
            "testing": self._testing.state_dict(),
            "sub_episodes": self.sub_episodes.state_dict(),
            **({"certifier": self.certifier.state_dict()} if self.certifier is not None else {}),
        }

    def load_own_state_dict(self, state: State) -> None:
        """Load this level's part of a saved state, and nothing into what is below it."""
        self._agent_rows.load_state_dict(state["agent_rows"])
        self._rows.load_state_dict(state["rows"])
        self._testing.load_state_dict(state["testing"])
        self.sub_episodes.load_state_dict(state["sub_episodes"])
        if self.certifier is not None and "certifier" in state:  # not where it is a new setting
            self.certifier.load_state_dict(state["certifier"])

    def count_only(self, rows: BoolArray) -> None:
        """Leave out the statistics of other rows than these, [N], until they are drained."""
        self.sub_episodes.count_only(rows)
        if self.certifier is not None:
            self.certifier.count_only(rows)

    def close(self) -> None:
        """Close the environment, and so everything below."""
        self.environment.close()

    def agent_spaces(self) -> EnvironmentSpaces:
        """The observation space (with the goal) and action space of this level's agent."""
        return agent_spaces(self.environment.spaces, self.params.goal_space)

    @property
    def _agent_clock(self) -> Clock:
        """The clock that the agent reads."""
        return self._frozen_clock or self._clock.of_level(self.params.name)

    @property
    def _tests_now(self) -> bool:
        """True if the level tests some of its decisions of its own accord; random ones it doesn't.

        That a frozen level does makes no difference to it.
        """
        clock = self._clock
        if not self.params.testing_rate or clock.phase is not Phase.TRAIN:
            return False
        return clock.levels.get(self.params.name) is not Phase.HEATUP

    def _tested(self, rows: IntArray, from_above: BoolArray) -> BoolArray:
        """[R] which of the rows' decisions are tested: where they are from above, and some more."""
        if self._followed is not None:
            return self._followed[rows]
        if not self._tests_now:
            return from_above
        tested: BoolArray = self._testing.draw(rows)[:, 0] < (self.params.testing_rate or 0)
        return tested | from_above

    def _end_lost(self, answer: EnvResponse) -> EnvResponse:
        """End sub-episodes before the decisions that the simulator's failure made nothing of.

        The level above has a decision that lasted as long as the ones before took, and that came to
        nothing as well where there were none.
        """
        rows = self._rows
        judgement = self._judged(answer, answer.rows)
        self.agent.cut_off(self._agent_rows, answer.rows, self._agent_clock)
        (lived,) = rows.decisions[answer.rows].nonzero()  # places in the answer
        self._note_ends(answer.rows, lived, judgement)
        rows.go_on(answer, answer.rows, judgement.is_over, waits_at_end=self._is_top)
        return answer if self._is_top else self._upwards(answer, judgement)

    def _stopped(self, answer: EnvResponse) -> BoolArray | None:
        """[R] whether the agent ends its option here; None where it doesn't decide that."""
        if self._ending is None or self._options is None:
            return None
        option = self._rows.goal.take(answer.rows, axis=0)
        shown = answer.observation | self._options.show(option, answer.observation)
        return self._ending.ends(self._agent_rows, answer.rows, shown, self._agent_clock)

    def _judged(
        self, answer: EnvResponse, index: RowIndex, stopped: BoolArray | None = None
    ) -> Judgement:
        rows, options = self._rows, self._options
        has_rewards = options is not None and options.rewards
        judgement = judged(
            answer,
            level=self.params,
            goal=rows.goal[index],
            decisions=rows.decisions[index],
            outer_spaces=self._outer_spaces,
            outer_goals=[goal[index] for goal in rows.outer_goals],
            before=take(rows.observation, answer.rows) if has_rewards else None,
            stopped=stopped,
        )
        stops = self.params.stops_on_failure
        if stops == "never" or (stops == "training" and self._clock.phase is Phase.TEST):
            return judgement
        return with_failures(judgement, answer, level=self.params)

    def _outcome(self, answer: EnvResponse, judgement: Judgement) -> Outcome:
        """Build the outcome that the agent learns from."""
        next_goal: Observation = {}
        shown, space = answer.observation, self.params.goal_space
        if space is not None:
            goal = self._rows.goal.take(answer.rows, axis=0)
            shown = shown | space.show(goal, shown)
            if self._is_top and isinstance(space, GoalSpace):  # the environment may move its goals
                next_goal = moved_goals(answer, goal_space=space, goal=goal, end=judgement.end)
        return Outcome(
            rows=answer.rows,
            observation=shown,
            reward=judgement.reward,
            terminated=judgement.terminated,
            truncated=judgement.truncated,
            duration=answer.duration,
            end=judgement.end,
            below=answer.end,
            tested=self._rows.decision_tested[answer.rows],
            next_goal=next_goal,
            info=answer.info,
        )

    def _tell(self, outcome: Outcome) -> None:
        """Tell the agent; it learns nothing of decisions that it made while it was frozen."""
        clock = self._agent_clock
        if self._may_freeze and clock.learns:
            frozen = self._rows.decision_frozen[outcome.rows]
            if np.count_nonzero(frozen):
                silent = replace(clock, phase=Phase.TEST)
                self.agent.observe(self._agent_rows, outcome.rows_of(frozen), silent)
                outcome = outcome.rows_of(~frozen)
                if not len(outcome.rows):
                    return
        self.agent.observe(self._agent_rows, outcome, clock)

    def _note(self, answer: EnvResponse, index: RowIndex, judgement: Judgement) -> None:
        """Take in what there is to log."""
        rows = self._rows
        rows.own_return[index] += judgement.reward
        if self._tests_now:
            self.sub_episodes.note_decisions(rows.decision_tested[answer.rows], missed(answer.end))
        (over,) = judgement.is_over.nonzero()  # places in the answer
        self._note_ends(answer.rows, over, judgement)

    def _note_ends(self, answered: IntArray, over: IntArray, judgement: Judgement) -> None:
        """Take in the sub-episodes that are over at these places of an answer."""
        rows = self._rows
        if not len(over):
            return
        ended, differences = answered[over], None
        if judgement.difference is not None:
            at_end = judgement.difference.take(over, axis=0)
            differences = rows.difference_at_start[ended], at_end
        self.sub_episodes.note_ends(
            ended,
            judgement.end[over],
            differences=differences,
            decisions=rows.decisions[ended],
            steps=rows.duration[ended],
            returns=rows.own_return[ended],
            options=None if self._options is None else rows.goal[ended].argmax(axis=1),
        )

    def _upwards(self, answer: EnvResponse, judgement: Judgement) -> EnvResponse:
        """Close the rows whose sub-episodes are over: the answer to the level above."""
        (over,) = judgement.is_over.nonzero()
        places = over if len(over) else slice(0, 0)
        rows = answer.rows[places]
        self._rows.open[rows] = False
        return EnvResponse(
            rows=rows,
            observation=take(answer.observation, places),
            first_observation=take(answer.first_observation, places),
            reward=self._rows.reward[rows],
            terminated=answer.terminated[places],
            truncated=answer.truncated[places],
            end=judgement.end[places],
            duration=self._rows.duration[rows],
            info={
                key: self._rows.agent_rewards[key][rows]
                if key in self._rows.agent_rewards
                else values[places]
                for key, values in answer.info.items()
            },
        )


def _read_only(values: Array) -> Array:
    view = values.view()
    view.flags.writeable = False
    return view
