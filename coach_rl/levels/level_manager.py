"""One level: passes observations to its agent and the agent's actions to its environment."""

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import ClassVar

import numpy as np

from coach_rl.core.agents import AnyAgent, following
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ActionError
from coach_rl.core.infos import PLAIN_SUMS, InfoWatch, Sums, joined
from coach_rl.core.interfaces import Environment
from coach_rl.core.level_parts import Hooks, Judgement, LevelPart, RowIndex
from coach_rl.core.levels import LevelDescription, received_by
from coach_rl.core.records import (
    Action,
    ActionRequest,
    BoolArray,
    Directive,
    EnvResponse,
    IntArray,
    Observation,
    Outcome,
    take,
)
from coach_rl.core.spaces import EnvironmentSpaces, check_counts
from coach_rl.core.state import State, Stateful
from coach_rl.levels.answers_above import closed
from coach_rl.levels.building import (
    by_key,
    clock_of,
    ends_by_agent,
    goal_spaces,
    judge_of,
    named_ends,
    parts_before,
    parts_behind,
)
from coach_rl.levels.context import LevelContext
from coach_rl.levels.goal_sub_episodes import sub_episodes_of
from coach_rl.levels.judging import REAL_ENDS
from coach_rl.levels.level_checks import check_level
from coach_rl.levels.rows import LevelRows


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
        request: Makes a request to the agent, of the fields of `ActionRequest`.
        parts: Further parts, behind those of the description.

    Raises:
        ConfigurationError: Something does not fit; the line names the level.
    """

    has_one_above: ClassVar[bool] = True
    """True if no other level sends it goals than the last of those above."""

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
        request: Callable[..., ActionRequest] = ActionRequest,
        parts: Sequence[LevelPart] = (),
    ) -> None:
        check_level(params, environment.spaces, is_top=not above)
        self.params = params
        self.agent = agent
        self.environment = environment
        num_envs = environment.num_envs
        self.agent_rows = agent.new_rows(num_envs, seed)
        """The agent's state of the rows, opaque to the level."""
        self.listeners: list[Callable[[Observation, Action], None]] = []
        """Called with what the agent saw and its actions, [R, ...] each."""
        self._seed = seed
        self._clock = clock
        self._request = request
        self._now = clock_of(params, clock)
        self._above = above[-1].name if above else ""
        self._received = received_by(params)
        self._takes_goals = bool(above) and self._received.sent_size > 0
        self._rows = LevelRows.new(
            num_envs,
            space=self._received,
            outer_spaces=goal_spaces(above),
            is_top=not above,
            sums=sums,
        )
        context = LevelContext(
            level=params,
            rows=self._rows,
            counts={},
            clock=clock,
            num_envs=num_envs,
            seed=seed,
            above=above,
            sender=above[-1:] if self.has_one_above else (),
            agent=agent,
            agent_rows=lambda: self.agent_rows,
            now=self._now,
            watch=InfoWatch(sums.infos, f"level '{params.name}'"),
        )
        self._judge = judge_of(context)
        self._parts: tuple[LevelPart, ...] = (
            *parts_before(context),
            self._judge,
            *ends_by_agent(context),
            *(part.build(context) for part in params.parts),
            *parts,
            *parts_behind(context),
        )
        self._hooks = Hooks.of(self._parts)
        self.notes_above = self._hooks.note_above
        """Functions that are called with the agent of the level above once it is built."""
        self._saved_parts = by_key(self._parts, params.name)
        ends = named_ends(self._parts, params)
        self.sub_episodes = sub_episodes_of(self._received, ends, context.counts)
        """Statistics of sub-episodes, for the logs."""

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
        below = self.environment.spaces
        space = self.params.goal_space
        action = below.action if self._rows.is_top or space is None else space.space
        return EnvironmentSpaces(observation=below.observation, action=action)

    @property
    def rows(self) -> LevelRows:
        """The position of each row in its sub-episode."""
        return self._rows

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        response = self.environment.reset(seed)
        self._rows.reset(response)
        return response

    def begin_streams(self) -> None:
        """Recreate the agent's state of the rows, and the random streams of both."""
        self.agent_rows = self.agent.new_rows(self.num_envs, self._seed)
        for begin_streams in self._hooks.begin_streams:
            begin_streams()

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
        goal = self._received.target(directive.action, take(self._rows.observation, rows))
        self._rows.begin(rows, goal, directive)

    def recv(self) -> EnvResponse:
        """One tick: decide where due, step the environment and process its answer."""
        self.decide()
        return self.process(self.environment.recv())

    def decide(self, among: BoolArray | None = None) -> None:
        """Send the agent's decisions for the rows that wait for one.

        Args:
            among: Only in these rows, [N]; None: in all.
        """
        rows = self._rows
        hooks = self._hooks
        (waiting,) = (rows.waiting if among is None else rows.waiting & among).nonzero()
        if not len(waiting):
            return
        seen = take(rows.observation, waiting)
        starts = rows.starts[waiting]
        greedy = rows.tested[waiting]
        for deciding in hooks.deciding:
            deciding(waiting, starts, seen)
        shown = self._judge.decided_on(waiting, starts, seen)
        request = self._request(
            rows=waiting,
            observation=shown,
            starts=starts,
            episode_start=rows.episode_start[waiting],
            greedy=greedy,
        )
        action = self.agent.act(self.agent_rows, request, self._now())
        directive = Directive(
            action=action,
            tested=greedy,
            outer_goals=tuple(map(itemgetter(waiting), rows.goals_below)),
        )
        for decided in hooks.decided:
            directive = decided(waiting, directive)
        rows.decision_tested[waiting] = directive.tested
        rows.waiting[waiting] = False
        for listen in self.listeners:
            listen(shown, action)
        self.environment.send(directive, waiting)

    def process(self, answer: EnvResponse) -> EnvResponse:
        """Judge an answer and pass the outcome to the agent; return the answer to the level above.

        At the top that is the answer itself.
        """
        if not len(answer.rows):
            return answer
        rows = self._rows
        hooks = self._hooks
        if answer.faults and (lost := answer.lost).any():
            upwards = self.process(answer.rows_of(~lost)), self._end_lost(answer.rows_of(lost))
            return answer if rows.is_top else joined(upwards, faults=answer.faults)
        index = rows.index(answer.rows)
        rows.add(answer, index)
        shown = self._judge.shown(answer.rows, answer.observation)
        judgement = self._judged(answer, index)
        for judged in hooks.judged:
            judgement = judged(judgement, answer, shown)
        clock = self._now()
        outcome = Outcome(
            rows=answer.rows,
            observation=shown,
            reward=judgement.reward,
            terminated=judgement.terminated,
            truncated=judgement.truncated,
            duration=answer.duration,
            end=judgement.end,
            below=answer.end,
            tested=rows.decision_tested[answer.rows],
            info=answer.info,
        )
        for observed in hooks.observed:
            outcome = observed(outcome, answer, clock)
        if len(outcome.rows):
            self.agent.observe(self.agent_rows, outcome, clock)
        rows.own_return[index] += judgement.reward
        (over,) = judgement.is_over.nonzero()  # places in the answer
        if len(over):
            self.sub_episodes.note(rows, answer.rows, over, judgement, phase=clock.phase)
        rows.advance(answer, index, judgement.is_over)
        return answer if rows.is_top else closed(rows, answer, judgement, over)

    def drain(self) -> dict[str, float]:
        """Figures of its sub-episodes and parts since the last call, and values that change."""
        of_parts: dict[str, float] = {}
        for metrics in self._hooks.metrics:
            of_parts |= metrics()  # before the counts of parts are cleared with those of episodes
        found = self.sub_episodes.drain() | of_parts
        for change in self.params.changes:
            found |= change.values(self.name, self._clock)
        return found

    def count_only(self, rows: BoolArray) -> None:
        """Leave out the statistics of other rows than these, [N], until they are drained."""
        self.sub_episodes.count_only(rows)

    def decisions(self) -> State:
        """Return the decision that each row made last, as a level elsewhere can `follow` it."""
        made = following(self.agent_rows, self.name).decisions()
        of_parts = {key: part.decisions() for key, part in self._saved_parts.items()}
        return {"agent": made, **{key: each for key, each in of_parts.items() if each}}

    def follow(self, decisions: State) -> None:
        """Replace the next decisions by those of an equal level elsewhere, arrays [N, ...]."""
        following(self.agent_rows, self.name).follow(decisions["agent"])
        for key in decisions.keys() & self._saved_parts.keys():
            self._saved_parts[key].follow(decisions[key])

    def shown(self, rows: IntArray) -> Observation:
        """The agent's newest observation of rows [R], unfiltered: [R, ...] each."""
        return self._judge.shown(rows, take(self._rows.observation, rows))

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
        return {
            "agent_rows": self.agent_rows,
            "rows": self._rows,
            "sub_episodes": self.sub_episodes,
            **self._saved_parts,
        }

    def _judged(self, answer: EnvResponse, index: RowIndex) -> Judgement:
        """The judgement of an answer, with what ends sub-episodes besides."""
        end = answer.end & REAL_ENDS
        for ends in self._hooks.ends:
            end |= ends(answer, index)
        return self._judge.judgement(answer, index, end)

    def _end_lost(self, answer: EnvResponse) -> EnvResponse:
        """End sub-episodes before the decisions that a failure of the simulator has voided.

        The decision of the level above lasted as long as the decisions before; without any, it is
        void as well.
        """
        rows = self._rows
        judgement = self._judged(answer, answer.rows)
        clock = self._now()
        self.agent.cut_off(self.agent_rows, answer.rows, clock)
        (lived,) = rows.decisions[answer.rows].nonzero()  # places in the answer
        self.sub_episodes.note(rows, answer.rows, lived, judgement, phase=clock.phase)
        (over,) = judgement.is_over.nonzero()
        rows.advance(answer, answer.rows, judgement.is_over)
        return answer if rows.is_top else closed(rows, answer, judgement, over)
