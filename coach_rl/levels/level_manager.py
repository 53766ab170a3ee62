"""One level: passes observations to its agent and the agent's actions to its environment."""

from collections.abc import Callable, Sequence

import numpy as np
from gymnasium import spaces

from coach_rl.core.agents import (
    AnyAgent,
    DrawnAgent,
    EndingAgent,
    NamedDecisions,
    following,
)
from coach_rl.core.clock import Clock
from coach_rl.core.errors import (
    ActionError,
    ConfigurationError,
    RunError,
    SpaceError,
    in_one_line,
)
from coach_rl.core.goals import GoalRounding, GoalSpace, check_judging
from coach_rl.core.interfaces import Environment, GoalPlace, Mark
from coach_rl.core.levels import LevelDescription, LevelGoals, LevelSpace
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import (
    PLAIN_SUMS,
    Action,
    ActionRequest,
    Array,
    BoolArray,
    Directive,
    EnvResponse,
    FloatArray,
    InfoWatch,
    IntArray,
    Observation,
    Outcome,
    Sums,
    joined,
    missed,
    take,
)
from coach_rl.core.spaces import EnvironmentSpaces, check_counts
from coach_rl.core.state import State, Stateful
from coach_rl.levels.goal_rewards import GoalRewards
from coach_rl.levels.horizons import Draws, Horizons
from coach_rl.levels.judging import (
    Judgement,
    checked_ends,
    failure_reward,
    judged,
    moved_goals,
    stops_on_failure,
    with_failures,
)
from coach_rl.levels.level_clock import LevelClock, SubGoalTesting
from coach_rl.levels.rows import LevelRows, RowIndex
from coach_rl.levels.sub_episodes import SubEpisodes


def agent_spaces(below: EnvironmentSpaces, space: LevelSpace | None) -> EnvironmentSpaces:
    """Return the agent's spaces; the goal or option it receives is part of its observation.

    Args:
        below: What the simulator or the level below shows and takes.
        space: What its level receives; None for nothing.
    """
    if space is None:
        return below
    observed = {**below.observation.spaces, **space.shown}
    return EnvironmentSpaces(observation=spaces.Dict(observed), action=below.action)


def check_ending(params: LevelDescription, agent: AnyAgent, *, is_top: bool) -> None:
    """Raise a ConfigurationError where the agent would end sub-episodes and is never called to.

    Args:
        params: What the level is like.
        agent: Its agent.
        is_top: Whether no level is above.
    """
    space = params.goal_space
    if not isinstance(agent, EndingAgent):
        return
    ends = (
        f"level '{params.name}': its agent ends its own sub-episodes ({type(agent).__name__}.ends)"
    )
    if is_top or space is None:
        raise ConfigurationError(
            f"{ends}, which is for levels that receive goals or options from a level above; leave "
            "out the method `ends`"
        )
    if isinstance(space, GoalSpace) and space.ages:
        raise ConfigurationError(
            f"{ends}, and its goals end when their time is up; use a GoalSpace, or leave out the "
            "method `ends`"
        )


def check_level(params: LevelDescription, below: EnvironmentSpaces, *, is_top: bool) -> None:
    """Raise a ConfigurationError that names the level unless it fits on what is below.

    Args:
        params: What the level is like.
        below: What the simulator or the level below shows and takes.
        is_top: Whether no level is above.
    """
    name, space = params.name, params.goal_space
    if params.stops_on_failure != "never":
        failure_reward(params)
    if space is None:
        return
    try:
        space.check(below.observation)
        if isinstance(space, GoalSpace):
            check_judging(space, below.observation)
            if not params.goal_is_terminal and space.ages:
                raise SpaceError(
                    "goals with a time have nothing behind it; leave goal_is_terminal at True"
                )
        if is_top:
            if isinstance(space, OptionSpace):
                raise SpaceError("the top level has no options, as no level above chooses one")
            space.check_given(below.observation)
    except SpaceError as error:
        raise SpaceError(f"level '{name}': {error}") from error


def require_goal_space(params: LevelDescription) -> None:
    """Raise a ConfigurationError unless a level can receive what the level above sends."""
    if params.goal_space is None:
        raise ConfigurationError(
            f"level '{params.name}' needs a goal_space: the level above acts in it"
        )


class LevelManager:
    """A level drives N rows, each at its own point of its own sub-episode.

    It implements the environment contract: the level above sends goals (or options) and receives an
    answer for a row when that row's sub-episode is over. The top level is sent nothing; its `recv`
    is one tick of the whole stack, and answers every row the environment answered.

    Args:
        params: What the level is like.
        agent: Makes the level's decisions.
        environment: A simulator or the level below. The level closes it.
        clock: Phase and counters of the stack; read only.
        seed: Seed of the rows' random streams.
        above: The levels above, top first.
        sums: What its decisions are for the level above.

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
        sums: Sums = PLAIN_SUMS,
    ) -> None:
        check_level(params, environment.spaces, is_top=not above)
        self.params, self.agent, self.environment = params, agent, environment
        self._above = above[-1].name if above else ""
        self._takes_goals = bool(above) and params.goal_space is not None
        self._request: Callable[..., ActionRequest] = ActionRequest
        own_ends = bool(above) and isinstance(agent, EndingAgent)
        self.sub_episodes = SubEpisodes(params, own_ends=own_ends)
        """Statistics of sub-episodes, for the logs."""
        self.on_decision: Callable[[Observation, Action], None] | None = None
        """Called with what the agent saw and its actions, [R, ...] each; None for no call."""
        n, space = environment.num_envs, params.goal_space
        self._ending = agent if above and isinstance(agent, EndingAgent) else None
        self._drawn_ends: Draws | None = None
        if self._ending is not None and getattr(agent, "ends_by_chance", False):
            self._drawn_ends = Draws(f"ends of {params.name}", num_envs=n, seed=seed)
        self._rewards: GoalRewards | None = None
        if isinstance(space, GoalSpace) and callable(space.reward):
            self._rewards = GoalRewards(space.reward, level=params, num_envs=n, above=above)
        goals = space if isinstance(space, GoalSpace) else None
        self._rounding = GoalRounding(goals, within_bounds=bool(above))
        self._watch = InfoWatch(sums.infos, f"level '{params.name}'")
        self._uses_before = self._rewards is not None
        if isinstance(space, GoalSpace):
            self._uses_before |= space.uses_before
        elif space is not None:
            self._uses_before = bool(space.rewards)
        self._horizons: Horizons | None = None
        if params.horizon_of is not None and params.horizon is not None:
            self._horizons = Horizons(
                params.horizon_of, params.horizon, level=params.name, num_envs=n, seed=seed
            )
        spaces_above = [each.goal_space for each in above]
        self._outer_spaces = [each for each in spaces_above if isinstance(each, GoalSpace)]
        self._clock = LevelClock(clock, params)
        self.agent_rows = agent.new_rows(n, seed)
        """The agent's state of the rows, opaque to the level."""
        self._seed = seed
        self._testing = SubGoalTesting(params, clock, num_envs=n, seed=seed)
        self._rows = LevelRows.new(
            n,
            space=params.goal_space,
            outer_spaces=self._outer_spaces,
            is_top=not above,
            sums=sums,
        )

    @property
    def name(self) -> str:
        """The level's name in logs."""
        return self.params.name

    @property
    def num_envs(self) -> int:
        return self.environment.num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        """The level above sees the simulator's observations and acts in our goal space."""
        below, space = self.environment.spaces, self.params.goal_space
        action = below.action if self._rows.is_top or space is None else space.space
        return EnvironmentSpaces(observation=below.observation, action=action)

    @property
    def rows(self) -> LevelRows:
        """The position of each row in its sub-episode."""
        return self._rows

    @property
    def goals(self) -> LevelGoals | None:
        """The current goals from the level above; None at the top and under options."""
        rows, space = self._rows, self.params.goal_space
        if rows.is_top or not isinstance(space, GoalSpace):
            return None
        return LevelGoals(
            goal_space=space,
            goal=_read_only(rows.goal),
            given=_read_only(rows.open | (rows.decisions > 0)),
            open=_read_only(rows.open),
            decisions=_read_only(rows.decisions),
            own_return=_read_only(rows.own_return),
        )

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        response = self.environment.reset(seed)
        self._rows.reset(response)
        return response

    def note_above(self, agent: AnyAgent) -> None:
        """Let the level's rewards read the agent of the level above, where they do."""
        if self._rewards is not None:
            self._rewards.note_above(agent)

    def begin_streams(self) -> None:
        """Recreate the agent's state of the rows, and the random streams of both."""
        self.agent_rows = self.agent.new_rows(self.num_envs, self._seed)
        for draws in (self._horizons, self._drawn_ends):
            if draws is not None:
                draws.begin_streams()

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Start sub-episodes with these goals; ActionError if one of the rows is open."""
        rows = np.arange(self.num_envs) if rows is None else rows
        if not isinstance(directive, Directive):
            directive = Directive(action=directive)
        if not self._takes_goals or isinstance(directive.action, dict):
            raise ActionError(f"level '{self.name}' takes goals of its goal space, got {directive}")
        if len(directive.action) != len(rows):
            check_counts(directive.action, len(rows), f"level '{self._above}': ")
        is_open = self._rows.open[rows]
        if np.count_nonzero(is_open):
            busy = int(rows[is_open][0])
            raise ActionError(f"level '{self.name}': row {busy} is still busy with its goal")
        self._rows.begin(rows, self.target(directive.action, rows), directive)

    def target(self, action: Array, rows: IntArray) -> FloatArray:
        """The goals that an action of the level above sets in some rows, [R, G]."""
        space = self.params.goal_space
        assert space is not None, "a level without goals takes none"
        return space.target(action, take(self._rows.observation, rows))

    def recv(self) -> EnvResponse:
        """One tick: decide where due, step the environment and process its answer."""
        self.decide()
        return self.process(self.environment.recv())

    def decide(self, among: BoolArray | None = None) -> None:
        """Send the agent's decisions for the rows that wait for one.

        Args:
            among: Only in these rows, [N]; None: in all.
        """
        rows, space = self._rows, self.params.goal_space
        (waiting,) = (rows.waiting if among is None else rows.waiting & among).nonzero()
        if not len(waiting):
            return
        shown = seen = take(rows.observation, waiting)
        starts, greedy = rows.starts[waiting], rows.tested[waiting]
        outer_goals = [goal.take(waiting, axis=0) for goal in rows.outer_goals]
        if space is not None:
            if rows.is_top and isinstance(space, GoalSpace):
                rows.goal[waiting] = space.given_by(seen)
            goal = rows.goal.take(waiting, axis=0)
            shown = seen | space.show(goal, seen)
            if isinstance(space, GoalSpace):
                outer_goals.append(goal)
                if np.count_nonzero(starts):
                    self._rounding.check(goal)
                    difference = space.difference(goal, seen)[starts]
                    rows.difference_at_start[waiting[starts]] = difference
        if self._horizons is not None and np.count_nonzero(starts):
            begins = waiting[starts]
            self._horizons.begin(begins, take(seen, starts), rows.goal[begins])
        request = self._request(
            rows=waiting,
            observation=shown,
            starts=starts,
            episode_start=rows.episode_start[waiting],
            greedy=greedy,
        )
        clock = self._clock.now()
        action = self.agent.act(self.agent_rows, request, clock)
        tested = rows.decision_tested[waiting] = self._testing.of(waiting, greedy)
        self._clock.note_decisions(rows, waiting, clock)
        rows.waiting[waiting] = False
        directive = Directive(action=action, tested=tested, outer_goals=tuple(outer_goals))
        if self._rewards is not None:
            self._rewards.note(waiting, action)
        if self.on_decision is not None:
            self.on_decision(shown, action)
        self.environment.send(directive, waiting)

    def process(self, answer: EnvResponse) -> EnvResponse:
        """Judge an answer and pass the outcome to the agent; return the answer to the level above.

        At the top that is the answer itself.
        """
        if not len(answer):
            return answer
        rows = self._rows
        if answer.faults and (lost := answer.lost).any():
            upwards = self.process(answer.rows_of(~lost)), self._end_lost(answer.rows_of(lost))
            return answer if rows.is_top else joined(upwards, faults=answer.faults)
        index = rows.index(answer.rows)
        rows.add(answer, index)
        shown = self._shown(answer.rows, answer.observation)
        judgement = self._judged(answer, index, self._stopped(answer.rows, shown))
        outcome = self._outcome(answer, judgement, shown)
        clock = self._clock.now()
        for part, its_clock in self._clock.parts(rows, outcome, clock):
            self.agent.observe(self.agent_rows, part, its_clock)
        rows.own_return[index] += judgement.reward
        if self._testing.is_on:
            self.sub_episodes.note_decisions(rows.decision_tested[answer.rows], missed(answer.end))
        (over,) = judgement.is_over.nonzero()  # places in the answer
        self.sub_episodes.note(rows, answer.rows, over, judgement, phase=clock.phase)
        rows.advance(answer, index, judgement.is_over)
        return answer if rows.is_top else self._upwards(answer, judgement, over)

    def drain(self) -> dict[str, float]:
        """Figures of its sub-episodes and plans since the last call, and values that change."""
        agent = self.agent
        plans = agent.planning(self.agent_rows) if isinstance(agent, DrawnAgent) else {}
        found = self.sub_episodes.drain() | plans
        for change in self.params.changes:
            found |= change.values(self.name, self._clock.stack)
        return found

    def count_only(self, rows: BoolArray) -> None:
        """Leave out the statistics of other rows than these, [N], until they are drained."""
        self.sub_episodes.count_only(rows)

    def decisions(self) -> State:
        """Return the decision that each row made last, as a level elsewhere can `follow` it."""
        agent = following(self.agent_rows, self.name)
        return {"tested": self._rows.decision_tested, "agent": agent.decisions()}

    def follow(self, decisions: State) -> None:
        """Replace the next decisions by those of an equal level elsewhere, arrays [N, ...]."""
        self._testing.followed = decisions["tested"]
        following(self.agent_rows, self.name).follow(decisions["agent"])

    def shown(self, rows: IntArray) -> Observation:
        """The agent's newest observation of rows [R], unfiltered: [R, ...] each."""
        return self._shown(rows, take(self._rows.observation, rows))

    def marks(self, row: int, place: GoalPlace) -> Sequence[Mark]:
        """Return what the agent draws into a frame of a row; see `core.agents.DrawnAgent`.

        Raises:
            RunError: The agent's method failed.
        """
        agent = self.agent
        if not isinstance(agent, DrawnAgent):
            return ()
        try:
            return agent.marks(self.agent_rows, row, place)
        except Exception as error:
            name = f"level '{self.name}': {type(agent).__name__}.marks"
            raise RunError(f"{name} failed: {in_one_line(error)}") from error

    def acting(self, row: int) -> str:
        """Return the level's name, with what its agent names, or the option that acts in a row."""
        agent = self.agent
        if isinstance(agent, NamedDecisions):
            return f"{self.name}/{agent.acting(self.agent_rows, row)}"
        if isinstance(self.params.goal_space, OptionSpace):
            return f"{self.name}/option {self._rows.goal[row].argmax()}"
        return self.name

    def state_dict(self) -> State:
        return {"environment": self.environment.state_dict(), **self.own_state_dict()}

    def load_state_dict(self, state: State) -> None:
        self.environment.load_state_dict(state["environment"])
        self.load_own_state_dict(state)

    def own_state_dict(self) -> State:
        """Everything of this level alone, but the agent's parameters."""
        return {name: part.state_dict() for name, part in self._saved.items()}

    def load_own_state_dict(self, state: State) -> None:
        """Load this level's part of a saved state, and nothing into what is below it."""
        for name, part in self._saved.items():
            part.load_state_dict(state[name])

    def close(self) -> None:
        self.environment.close()

    @property
    def _saved(self) -> dict[str, Stateful]:
        """The saved parts of this level, by name."""
        parts: dict[str, Stateful] = {
            "agent_rows": self.agent_rows,
            "rows": self._rows,
            "testing": self._testing,
            "sub_episodes": self.sub_episodes,
        }
        more = {
            "horizons": self._horizons,
            "drawn_ends": self._drawn_ends,
            "goal_rewards": self._rewards,
        }
        return parts | {name: part for name, part in more.items() if part is not None}

    def _end_lost(self, answer: EnvResponse) -> EnvResponse:
        """End sub-episodes before the decisions that a failure of the simulator has voided.

        The decision of the level above lasted as long as the decisions before; without any, it is
        void as well.
        """
        rows, judgement = self._rows, self._judged(answer, answer.rows)
        clock = self._clock.now()
        self.agent.cut_off(self.agent_rows, answer.rows, clock)
        (lived,) = rows.decisions[answer.rows].nonzero()  # places in the answer
        self.sub_episodes.note(rows, answer.rows, lived, judgement, phase=clock.phase)
        rows.advance(answer, answer.rows, judgement.is_over)
        (over,) = judgement.is_over.nonzero()
        return answer if rows.is_top else self._upwards(answer, judgement, over)

    def _shown(self, rows: IntArray, seen: Observation) -> Observation:
        """The agent's observation of rows [R]: with the level's goal or option, if it has one."""
        space = self.params.goal_space
        if space is None:
            return seen
        return seen | space.show(self._rows.goal.take(rows, axis=0), seen)

    def _stopped(self, rows: IntArray, shown: Observation) -> BoolArray | None:
        """[R] whether the agent ends its option here; None where it doesn't decide that."""
        if self._ending is None:
            return None
        clock = self._clock.now().for_choices()
        found = self._ending.ends(self.agent_rows, rows, shown, clock)
        draws = self._drawn_ends
        owner = f"level '{self.name}': {type(self.agent).__name__}.ends"
        ends = checked_ends(found, len(rows), by_chance=draws is not None, owner=owner)
        return ends if draws is None else draws.draw(rows) < ends

    def _judged(
        self, answer: EnvResponse, index: RowIndex, stopped: BoolArray | None = None
    ) -> Judgement:
        rows, before, earned = self._rows, None, None
        if self._uses_before:
            before = take(rows.observation, answer.rows)
        if self._rewards is not None and before is not None:
            outer = [goal[index] for goal in rows.outer_goals]
            noted = self._watch.of(answer) if self._clock.now().learns else answer
            earned = self._rewards(before, noted, rows.goal[index], outer)
        judgement = judged(
            answer,
            level=self.params,
            goal=rows.goal[index],
            decisions=rows.decisions[index],
            outer_spaces=self._outer_spaces,
            outer_goals=[goal[index] for goal in rows.outer_goals],
            before=before,
            stopped=stopped,
            limit=None if self._horizons is None else self._horizons.limit[index],
            earned=earned,
        )
        if stops_on_failure(self.params, self._clock.stack.phase):
            return with_failures(judgement, answer, level=self.params)
        return judgement

    def _outcome(self, answer: EnvResponse, judgement: Judgement, shown: Observation) -> Outcome:
        """Build the outcome that the agent learns from."""
        next_goal: Observation = {}
        space = self.params.goal_space
        if self._rows.is_top and isinstance(space, GoalSpace):  # the environment may move its goals
            goal = self._rows.goal.take(answer.rows, axis=0)
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

    def _upwards(self, answer: EnvResponse, judgement: Judgement, over: IntArray) -> EnvResponse:
        """Close the rows of the places `over` in an answer: the answer to the level above."""
        places = over if len(over) else slice(0, 0)
        rows, sums = answer.rows[places], self._rows
        sums.open[rows] = False
        totals = sums.totals or {}
        added_up = {**sums.agent_rewards, **sums.agent_ends, **totals}
        return EnvResponse(
            rows=rows,
            observation=take(answer.observation, places),
            first_observation=take(answer.first_observation, places),
            reward=sums.reward[rows],
            terminated=answer.terminated[places],
            truncated=answer.truncated[places],
            end=judgement.end[places],
            duration=sums.duration[rows],
            info={
                key: added_up[key][rows] if key in added_up else values[places]
                for key, values in (answer.info | totals).items()
            },
        )


def _read_only(values: Array) -> Array:
    view = values.view()
    view.flags.writeable = False
    return view
