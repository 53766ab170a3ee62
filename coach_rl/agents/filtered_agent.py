"""The shared half of an agent that filters: heat-up, making transitions."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, ClassVar, Generic, Self

import numpy as np

from coach_rl.agents.agent_rows import AgentRows, Exploration, action_of, flat_action, write_rows
from coach_rl.agents.bonuses import BonusFunction, BonusParameters
from coach_rl.agents.entered_goals import enter_goal, enter_moved_goals
from coach_rl.agents.loaded_policy import load_compared
from coach_rl.agents.own_filters import UnfilteredInput, UnfilteredOutput
from coach_rl.agents.shown_numbers import ShownNumbers
from coach_rl.agents.shown_spaces import warn_of_rounding
from coach_rl.agents.stages.filters import filter_stages
from coach_rl.agents.stages.kinds import StageBuilder
from coach_rl.agents.stages.stage import StageBuild, StageKind
from coach_rl.architectures.update_modes import AUTO, cannot_run, check_mode
from coach_rl.core.agents import AgentContext, TrainingReport
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.interfaces import (
    InputFilter,
    InputFilterParameters,
    OutputFilter,
    OutputFilterParameters,
)
from coach_rl.core.levels import DIRECTIVE_KEYS
from coach_rl.core.parameter_classes import ADVICE, MovableParameters, parameter_class
from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.records import (
    ACTION_MASK,
    ALLOWED,
    Action,
    ActionInfo,
    ActionRequest,
    Array,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    Transition,
    take,
)
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames, policy_state
from coach_rl.core.signals import note_signals
from coach_rl.core.spaces import check_counts
from coach_rl.core.state import State


def _describe_input_filter(_value: object) -> str:
    example = "InputFilter(observation={'observation': (ObservationNormalizationFilter(),)})"
    return f"; put filters into one, e.g. {example}"


@parameter_class
class FilteredAgentParameters(MovableParameters):
    """Parameters shared by agents that filter and learn."""

    name: NonEmpty[str] = "agent"
    """The agent's name in logs and files."""
    input_filter: InputFilterParameters | None = field(
        default=None, metadata={ADVICE: _describe_input_filter}
    )
    """Filter of observations and rewards, applied first; None: no filter."""
    output_filter: OutputFilterParameters | None = None
    """Filter of actions, applied last; None: no filter."""
    infos: tuple[str, ...] = ()
    """Names of infos of the environment to keep with every transition, as the extras
    `infos/<name>` of batches; 0 where a row does not report one."""
    action_mask: str | None = ACTION_MASK
    """Observation key, if there is one, of which discrete actions are allowed, for one that acts in
    any; networks don't observe it. None: such a key is an observation like others."""
    bonus: BonusFunction | BonusParameters | None = None
    """Bonus to the rewards that the agent learns from, before its InputFilter: a function of
    observations before, actions and outcomes, or parameters of one with state. None: no bonus."""
    update_mode: str = AUTO
    """Execution of gradient steps: auto, eager, compiled (CPU only), captured (GPU only), or that
    of an extension."""

    def moved_to(self, device: str) -> Self:
        """The same; a way to run gradient steps that is not there becomes `auto`."""
        if cannot_run(self.update_mode, device) is None:
            return self
        return replace(self, update_mode=AUTO)

    def check_device(self, device: str) -> None:
        """Check the way to run gradient steps."""
        check_mode(self.update_mode, device)


class FilteredAgent(Saved, ABC, Generic[Exploration]):
    """The shared half of an agent: an algorithm adds `choose`, `store` and `train`.

    Args:
        params: The agent's parameters.
        context: Settings known only at construction, such as spaces.
    """

    SAVED: ClassVar[SavedNames] = (
        SavedAttribute("_filters", policy=True),
        SavedAttribute("_policy_stages", inline=True, policy=True),
        SavedAttribute("_other_stages", inline=True, policy=False),
    )
    TIMED: ClassVar[Mapping[str, str]] = {"choose": "choose", "store": "store"}
    STAGES: ClassVar[tuple[StageKind, ...]] = ()
    """Kinds of stages that a class adds to those of its bases and of `agents.stages`."""

    is_on_policy: bool = False
    """True if it learns only from its newest policy's decisions: those of HEATUP aren't stored."""
    explores: bool = True
    """True if it does not always act greedily in training."""

    def __init__(self, params: FilteredAgentParameters, context: AgentContext) -> None:
        self.name = params.name
        self.signals = context.signals
        """Receiver of values for the logs: `self.signals.note(name, values)`."""
        self.acts_in = context.spaces.action
        self._watch = context.info_watch(params.name)
        self._chooser = f"agent '{params.name}': {type(self).__name__}.choose: "
        self.check_shown = ShownNumbers(self, context.spaces.observation)
        """Check of the numbers that its level shows."""
        given = params.output_filter
        own = UnfilteredOutput(self.acts_in) if given is None else given.build(self.acts_in)
        self.output_filter: OutputFilter = self._form_of_actions(own, params, context)
        self.action_space = self.output_filter.agent_space
        self.observation_space = context.spaces.observation
        self.building = StageBuilder(
            type(self),
            StageBuild(
                name=params.name,
                params=params,
                context=context,
                observation_space=context.spaces.observation,
                action_space=self.action_space,
                output_filter=own,
            ),
        )
        """Builder of its stages; a subclass adds those that its networks bring."""
        self.stages = self.building.stages
        """Stages through which observations enter, and actions leave."""
        shown = self.building.build.observation_space
        filters = params.input_filter
        self.input_filter: InputFilter = (
            UnfilteredInput(shown) if filters is None else filters.build(shown)
        )
        self.observation_space = self.building.inside(
            filter_stages(self, shown, self.action_space), self.input_filter.observation_space
        )
        """The space of what networks observe."""
        self.own_keys = self.stages.own_keys
        """Keys of its level's observation that are about its choices alone, such as a mask."""
        self.output_rules = self.stages.output_rules
        """Rules for the outputs of the networks that it acts and learns with."""
        warn_of_rounding(self.observation_space, params.name)
        for each in self._filters.values():
            note_signals(each, context.signals)

    @abstractmethod
    def new_rows(self, num_envs: int, seed: int) -> AgentRows[Exploration]:
        """Row state for a stack of that size; row i draws from the stream (seed, i)."""

    @abstractmethod
    def choose(
        self, row_state: AgentRows[Exploration], request: ActionRequest, clock: Clock
    ) -> ActionInfo:
        """Choose actions [R, ...] in the agent's space.

        Args:
            row_state: What `new_rows` made; holds what rows that explore draw from.
            request: With the filtered observation; in TEST `greedy` everywhere unless the clock
                `samples`.
            clock: Phase and counters.
        """

    @abstractmethod
    def store(self, transition: Transition) -> None:
        """Keep transitions of decisions made in HEATUP or TRAIN."""

    @abstractmethod
    def train(self, clock: Clock) -> TrainingReport | None:
        """Learn if it is due; None when nothing was due."""

    def _keep(
        self,
        row_state: AgentRows[Exploration],
        transition: Transition,
        outcome: Outcome,
    ) -> None:
        """Store the transitions of an outcome."""
        self.store(transition)

    def parts(self) -> Mapping[str, object]:
        """The agent's parts by name; a subclass adds its networks, engine and memory."""
        return self._filters

    def state_dict(self) -> State:
        return {**super().state_dict(), **self.stages.conditions}

    def policy_state_dict(self) -> State:
        return {**policy_state(self), **self.stages.conditions}

    def load_policy(self, state: State) -> None:
        load_compared(self, state, self.building)

    @property
    def _filters(self) -> dict[str, InputFilter | OutputFilter]:
        return {"input": self.input_filter, "output": self.output_filter}

    @property
    def _policy_stages(self) -> dict[str, object]:
        return self.stages.saved(acting=True)

    @property
    def _other_stages(self) -> dict[str, object]:
        return self.stages.saved(acting=False)

    def act(
        self, row_state: AgentRows[Exploration], request: ActionRequest, clock: Clock
    ) -> Action:
        rows = request.rows
        if request.starts.any():
            self._begin(row_state, request, clock.learns)
        observation = take(row_state.pending, rows)
        for stage in self.stages.checking:
            stage.check(observation, rows, clock)
        if row_state.followed:
            choice = take(row_state.followed, rows)
        elif clock.phase is Phase.HEATUP:
            choice = self._random(row_state, request, observation, clock)
        else:
            choice = self._chosen(row_state, request, observation, clock)
        row_state.heatup[rows] = clock.phase is Phase.HEATUP
        write_rows(row_state.choice, rows, choice, len(row_state.heatup))
        action = action_of(choice)
        for stage in self.stages.leaving:
            action = stage.leave(row_state, rows, action, request.observation)
        return action

    def observe(self, row_state: AgentRows[Exploration], outcome: Outcome, clock: Clock) -> None:
        rows = outcome.rows
        learn = clock.learns
        self.check_shown(rows, outcome.observation, outcome.reward)
        next_observation = self.stages.enter(
            row_state.filters,
            rows,
            outcome.observation,
            starts=np.zeros(len(rows), np.bool_),
            learn=learn,
        )
        if self.stages.checking and outcome.truncated.any():
            valued = take(next_observation, outcome.truncated)
            for stage in self.stages.checking:
                stage.check(valued, rows[outcome.truncated], clock)
        if learn and outcome.info:
            outcome = self._watch.of(outcome)
        reward = outcome.reward
        for stage in self.stages.rewarding:
            reward = stage.reward(row_state, outcome, reward, learn=learn)
        if learn:
            self._store(row_state, outcome, reward, next_observation)
        for stage in self.stages.advancing:
            stage.advance(row_state, rows)
        write_rows(row_state.pending, rows, next_observation, len(row_state.heatup))
        if outcome.next_goal:
            enter_moved_goals(self.stages, self.check_shown, row_state, outcome)

    def cut_off(self, row_state: AgentRows[Exploration], rows: IntArray, clock: Clock) -> None:
        for stage in self.stages.cutting:
            stage.cut_off(row_state, rows)
        row_state.follows[rows] = False
        if clock.learns:
            self._truncate(rows)

    def _truncate(self, rows: IntArray) -> None:
        """Mark the transition that each of these rows stored last as truncated.

        Not where it ended an episode anyway.
        """
        memory: Any = self.parts().get("memory")
        if memory is not None:
            memory.truncate(rows)

    def restart_rows(self, row_state: AgentRows[Exploration]) -> None:
        row_state.follows[:] = False
        row_state.filters = self.stages.new_rows(len(row_state.follows))

    def _form_of_actions(
        self,
        output_filter: OutputFilter,
        params: FilteredAgentParameters,
        context: AgentContext,
    ) -> OutputFilter:
        """The OutputFilter with what the algorithm puts between its policy and the user's."""
        return output_filter

    def _random(
        self,
        row_state: AgentRows[Exploration],
        request: ActionRequest,
        observation: Observation,
        clock: Clock,
    ) -> dict[str, Array]:
        """A random choice, flat, with the extras of the policy's that stages need."""
        uniform = row_state.heatup_noise.draw(request.rows)
        allowed = observation.get(ALLOWED)
        choice = flat_action(actions_from_uniform(self.action_space, uniform, allowed))
        if self.stages.needed:
            chosen = self._chosen(row_state, request, observation, clock)
            choice |= {name: chosen[name] for name in self.stages.needed}
        return choice

    def _chosen(
        self,
        row_state: AgentRows[Exploration],
        request: ActionRequest,
        observation: Observation,
        clock: Clock,
    ) -> dict[str, Array]:
        """The choice by `choose` for filtered observations [R, ...] each, flat."""
        explores = clock.phase is not Phase.TEST or clock.samples
        greedy = request.greedy if explores else np.ones_like(request.greedy)
        filtered = request.seen_as(observation, greedy)
        info = self.choose(row_state, filtered, clock.for_choices() if clock.acts_only else clock)
        choice = flat_action(info.action) | info.extras
        for stage in self.stages.choosing:
            stage.choose(choice)
        check_counts(choice, len(request.rows), self._chooser)
        return choice

    def _rows(self, num_envs: int, seed: int, exploration: Exploration) -> AgentRows[Exploration]:
        rows = AgentRows(
            filters=self.stages.new_rows(num_envs),
            heatup_noise=RowNoise(
                num_rows=num_envs,
                size=uniform_size(self.action_space),
                kind="uniform",
                seed=seed,
                name="heatup",
            ),
            exploration=exploration,
            heatup=np.zeros(num_envs, np.bool_),
            follows=np.zeros(num_envs, np.bool_),
        )
        for stage in self.stages.preparing:
            stage.prepare(rows)
        return rows

    def _begin(
        self, row_state: AgentRows[Exploration], request: ActionRequest, learn: bool
    ) -> None:
        """Enter what `observe` has not seen: an episode's first observation, a new goal."""
        rows = request.rows
        observation = request.observation
        first = request.episode_start
        row_state.follows[rows[request.starts]] = False
        for stage in self.stages.beginning:
            stage.begin(row_state, request)
        if first.any():
            shown = take(observation, first)
            self.check_shown(rows[first], shown)
            entered = self.stages.enter(
                row_state.filters,
                rows[first],
                shown,
                starts=np.ones(int(first.sum()), np.bool_),
                learn=learn,
            )
            write_rows(row_state.pending, rows[first], entered, len(row_state.heatup))
        goes_on = request.starts & ~first
        goal: Observation = {}
        for key in DIRECTIVE_KEYS:
            if key in observation:
                goal[key] = observation[key][goes_on]
        if goal and goes_on.any():
            enter_goal(self.stages, row_state, rows[goes_on], take(observation, goes_on), goal)

    def _store(
        self,
        row_state: AgentRows[Exploration],
        outcome: Outcome,
        reward: FloatArray,
        next_observation: Observation,
    ) -> None:
        if self.is_on_policy:
            trained = ~row_state.heatup[outcome.rows]
            if not trained.all():
                row_state.follows[outcome.rows[~trained]] = False
                if not trained.any():
                    return
                outcome = outcome.rows_of(trained)
                reward = reward[trained]
                next_observation = take(next_observation, trained)
        rows = outcome.rows
        follows = row_state.follows[rows]
        row_state.follows[rows] = True
        observation, extras = take(row_state.pending, rows), take(row_state.choice, rows)
        action = action_of(extras)
        for stage in self.stages.storing:
            stage.store(observation, extras, outcome)
        transition = Transition(
            rows=rows,
            observation=observation,
            action=action,
            reward=reward,
            next_observation=next_observation,
            terminated=outcome.terminated,
            truncated=outcome.truncated,
            duration=outcome.duration,
            end=outcome.end,
            below=outcome.below,
            tested=outcome.tested,
            follows=follows,
            extras=extras,
        )
        self._keep(row_state, transition, outcome)
