"""The shared half of an agent that filters: heat-up, making transitions."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, ClassVar, Generic, Self

import numpy as np
from torch import nn

from coach_rl.agents.agent_rows import (
    AgentRows,
    Bonus,
    BonusFunction,
    BonusParameters,
    Exploration,
    InfoColumns,
    action_of,
    check_finite,
    check_whole,
    flat_choice,
    warn_of_rounding,
    write_rows,
)
from coach_rl.agents.masked_input import MaskedInput, masked_input
from coach_rl.agents.own_filters import UnfilteredInput, UnfilteredOutput
from coach_rl.agents.points import points_of_filters
from coach_rl.architectures.hidden_states import HiddenState, hidden_state_of
from coach_rl.architectures.output_rules import OutputRule
from coach_rl.core.agents import Symmetry, TrainingReport
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.data_points import PointsFunction
from coach_rl.core.errors import (
    CheckpointError,
    ConfigurationError,
    SpaceError,
)
from coach_rl.core.interfaces import (
    InputFilter,
    InputFilterParameters,
    OutputFilter,
    OutputFilterParameters,
)
from coach_rl.core.levels import DIRECTIVE_KEYS
from coach_rl.core.parameter_classes import ADVICE, MovableParameters, parameter_class
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.records import (
    ACTION_MASK,
    ALLOWED,
    HIDDEN_STATE,
    Action,
    ActionInfo,
    ActionRequest,
    Array,
    BoolArray,
    FloatArray,
    InfoWatch,
    IntArray,
    Observation,
    Outcome,
    Transition,
    take,
)
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.runtime import UpdateMode, cannot_run, check_mode
from coach_rl.core.saved import (
    Saved,
    SavedAttribute,
    SavedNames,
    load_policy_state,
    policy_state,
)
from coach_rl.core.signals import SILENT, Signals, note_signals
from coach_rl.core.spaces import (
    EnvironmentSpaces,
    actions_from_uniform,
    check_counts,
    clipped_to_space,
    mask_key,
    uniform_size,
    without,
)
from coach_rl.core.state import State, check_same_kind

_COMPARED = {
    "filters": "filters",
    "networks": "networks",
    "normaliser": "normalised observations",
}
"""Parts of a policy that must hold the same things, by key, and their names in messages."""


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
    update_mode: UpdateMode = "auto"
    """Execution of gradient steps: auto, eager, compiled (CPU only) or captured (GPU only)."""

    def moved_to(self, device: str) -> Self:
        """The same; a way to run gradient steps that is not there becomes `auto`."""
        if cannot_run(self.update_mode, device) is None:
            return self
        return replace(self, update_mode="auto")

    def check_device(self, device: str) -> None:
        """Check the way to run gradient steps."""
        check_mode(self.update_mode, device)


class FilteredAgent(Saved, ABC, Generic[Exploration]):
    """The shared half of an agent: an algorithm adds `choose`, `store` and `train`.

    Args:
        name: The agent's name in logs.
        spaces: Its level's observation and action spaces.
        input_filter: Applied to observations and rewards; None leaves them as they are.
        output_filter: Applied to actions; None leaves them as they are.
        infos: Names of infos that are kept with transitions.
        action_mask: Observation key of its action mask; None: it has none.
        symmetry: Symmetry of filtered observations and actions; None: there is none.
        bonus: Added to rewards that are stored; None: nothing is.
        signals: Receives values of the agent and its filters for the logs.
        info_watch: Warns of infos of last steps that are learned from; None: nothing does.
    """

    SAVED: ClassVar[SavedNames] = (
        SavedAttribute("_filters", policy=True),
        SavedAttribute("bonus", optional=True, policy=False),
    )
    TIMED: ClassVar[Mapping[str, str]] = {"choose": "choose", "store": "store"}
    POINTS: ClassVar[tuple[PointsFunction, ...]] = (points_of_filters,)

    is_on_policy: bool = False
    """True if it learns only from its newest policy's decisions: those of HEATUP aren't stored."""
    explores: bool = True
    """True if it does not always act greedily in training."""
    output_rules: tuple[OutputRule, ...] = ()
    """Rules for the outputs of the network that it acts by."""
    hidden_state: HiddenState | None = None
    """Hidden state of its recurrent networks; None: it has none."""

    def __init__(
        self,
        *,
        name: str,
        spaces: EnvironmentSpaces,
        input_filter: InputFilterParameters | None,
        output_filter: OutputFilterParameters | None,
        infos: tuple[str, ...] = (),
        action_mask: str | None = None,
        symmetry: Symmetry | None = None,
        bonus: Bonus | None = None,
        signals: Signals = SILENT,
        info_watch: InfoWatch | None = None,
    ) -> None:
        self.name = name
        self.symmetry, self.bonus = symmetry, bonus
        self.signals = signals
        """Receiver of values for the logs: `self.signals.note(name, values)`."""
        self._infos = InfoColumns(infos, agent=name)
        self._watch = info_watch
        self.acts_in = spaces.action
        self._chooser = f"agent '{name}': {type(self).__name__}.choose: "
        self._whole = {
            key: space
            for key, space in spaces.observation.spaces.items()
            if np.dtype(space.dtype).kind in "biu"
        }
        observed = spaces.observation if symmetry is None else symmetry.observation_space
        key = mask_key(observed, action_mask, name, spaces.action)
        if key is not None:
            observed = without(observed, key)
        self.input_filter: InputFilter = (
            UnfilteredInput(observed) if input_filter is None else input_filter.build(observed)
        )
        self.output_filter: OutputFilter = (
            UnfilteredOutput(spaces.action)
            if output_filter is None
            else output_filter.build(spaces.action)
        )
        self.mask: MaskedInput | None = None
        """The filter that passes its action mask on; None: it has none."""
        if key is not None:
            self.mask = masked_input(self.input_filter, key, spaces, self.output_filter, name)
            self.input_filter = self.mask
            self.output_rules = self.mask.output_rules
        remembers = any(path.startswith("observation/") for path in self.input_filter.new_rows(1))
        if symmetry is not None and remembers:
            raise ConfigurationError(
                f"agent '{name}': its symmetry transforms each observation by itself, and a filter "
                "of its InputFilter remembers earlier ones (a stack?); leave one of them out"
            )
        self.observation_space = self.input_filter.observation_space
        warn_of_rounding(self.observation_space, name)
        self.action_space = self.output_filter.agent_space
        self._conditions: dict[str, str] = (
            {} if symmetry is None else {"symmetry": symmetry.description}
        )
        for each in self._filters.values():
            note_signals(each, signals)

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
        return {**super().state_dict(), **self._conditions}

    def policy_state_dict(self) -> State:
        return {**policy_state(self), **self._conditions}

    def load_policy(self, state: State) -> None:
        own = policy_state(self)
        if own.keys() == {"filters"}:
            raise SpaceError(f"agent '{self.name}' has nothing that could be loaded")
        self._check_conditions(state)
        if missing := [key for key in own if key not in state]:
            raise SpaceError(f"the saved policy has no '{missing[0]}': it is another kind of agent")
        try:
            for key, part in own.items():
                if key in _COMPARED:
                    check_same_kind(_COMPARED[key], *map(_shallow(key), (state[key], part)))
            load_policy_state(self, state)
        except CheckpointError as error:
            raise SpaceError(str(error)) from error

    def _check_conditions(self, state: State) -> None:
        """Raise `SpaceError` where a saved policy would have another meaning here."""
        saved, own = state.get("symmetry"), self._conditions.get("symmetry")
        if saved != own:
            raise SpaceError(
                f"the saved policy was learned with symmetry={saved}, and this agent has "
                f"symmetry={own}; give it the same"
            )

    @property
    def _filters(self) -> dict[str, InputFilter | OutputFilter]:
        return {"input": self.input_filter, "output": self.output_filter}

    def act(
        self, row_state: AgentRows[Exploration], request: ActionRequest, clock: Clock
    ) -> Action:
        rows = request.rows
        if request.starts.any():
            self._filter_starts(row_state, request, clock.learns)
        mask = None
        if self.mask is not None:
            mask = row_state.pending[ALLOWED][rows]
            self.mask.check(mask, rows, clock)
        if row_state.followed is not None:
            choice = take(row_state.followed, rows)
        elif clock.phase is Phase.HEATUP:
            uniform = row_state.heatup_noise.draw(rows)
            random = actions_from_uniform(self.action_space, uniform, mask)
            choice = flat_choice(ActionInfo(action=random))
            if self.hidden_state is not None:
                choice[HIDDEN_STATE] = self._chosen(row_state, request, clock)[HIDDEN_STATE]
        else:
            choice = self._chosen(row_state, request, clock)
        row_state.heatup[rows] = clock.phase is Phase.HEATUP
        if row_state.before is not None:
            write_rows(row_state.before, rows, request.observation, len(row_state.heatup))
        write_rows(row_state.choice, rows, choice, len(row_state.heatup))
        return self._sent(choice, request.observation)

    def observe(self, row_state: AgentRows[Exploration], outcome: Outcome, clock: Clock) -> None:
        rows, learn = outcome.rows, clock.learns
        self._check(rows, outcome.observation, outcome.reward)
        ends = outcome.terminated | outcome.truncated
        next_observation = self.input_filter.observation(
            row_state.filters,
            rows,
            self._canonical(outcome.observation),
            starts=np.zeros(len(rows), np.bool_),
            learn=learn,
        )
        if self.mask is not None and outcome.truncated.any():
            valued = outcome.truncated
            self.mask.check(next_observation[ALLOWED][valued], rows[valued], clock)
        reward = outcome.reward
        if learn and self._watch is not None:
            outcome = self._watch.of(outcome)
        if self.bonus is not None and row_state.before is not None and learn:
            before = take(row_state.before, rows)
            action = self._sent(take(row_state.choice, rows), before)
            reward = self.bonus(before, action, outcome)
        reward = self.input_filter.reward(row_state.filters, rows, reward, ends=ends, learn=learn)
        if learn:
            self._store(row_state, outcome, reward, next_observation)
        if self.hidden_state is not None:
            states = {HIDDEN_STATE: row_state.choice[HIDDEN_STATE][rows]}
            write_rows(row_state.pending, rows, states, len(row_state.heatup))
        write_rows(row_state.pending, rows, next_observation, len(row_state.heatup))
        if outcome.next_goal:
            self._filter_moved_goals(row_state, outcome)

    def cut_off(self, row_state: AgentRows[Exploration], rows: IntArray, clock: Clock) -> None:
        ends = np.ones(len(rows), np.bool_)
        nothing = np.zeros(len(rows), np.float64)
        self.input_filter.reward(row_state.filters, rows, nothing, ends=ends, learn=False)
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
        row_state.filters = self.input_filter.new_rows(len(row_state.follows))

    def _recur(self, networks: Iterable[nn.Module]) -> None:
        """Find the hidden state of the networks that the agent acts and learns with."""
        hidden = self.hidden_state = hidden_state_of(networks)
        if hidden is not None and HIDDEN_STATE in self.observation_space.spaces:
            raise SpaceError(
                f"agent '{self.name}' is recurrent and observes a '{HIDDEN_STATE}', the name of "
                "its own state; give the observation key another name"
            )
        if hidden is not None and self.symmetry is not None:
            raise ConfigurationError(
                f"agent '{self.name}': its symmetry transforms each observation by itself, and a "
                "recurrent network remembers earlier ones; leave out symmetry or recurrence"
            )

    def _chosen(
        self, row_state: AgentRows[Exploration], request: ActionRequest, clock: Clock
    ) -> dict[str, Array]:
        """The choice by `choose` for the filtered observations, flat."""
        explores = clock.phase is not Phase.TEST or clock.samples
        filtered = replace(
            request,
            observation=take(row_state.pending, request.rows),
            greedy=request.greedy if explores else np.ones_like(request.greedy),
        )
        choice = flat_choice(self.choose(row_state, filtered, clock.for_choices()))
        check_counts(choice, len(filtered.rows), self._chooser)
        return choice

    def _rows(self, num_envs: int, seed: int, exploration: Exploration) -> AgentRows[Exploration]:
        return AgentRows(
            filters=self.input_filter.new_rows(num_envs),
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
            before=None if self.bonus is None else {},
        )

    def _filter_starts(
        self, row_state: AgentRows[Exploration], request: ActionRequest, learn: bool
    ) -> None:
        """Filter what `observe` has not seen: an episode's first observation, a new goal."""
        rows, observation, first = request.rows, request.observation, request.episode_start
        row_state.follows[rows[request.starts]] = False
        if self.hidden_state is not None:
            reset = request.starts if self.hidden_state.reset == "sub_episode" else first
            state = np.zeros((int(reset.sum()), self.hidden_state.size), np.float32)
            write_rows(row_state.pending, rows[reset], {HIDDEN_STATE: state}, len(row_state.heatup))
        if first.any():
            seen = take(observation, first)
            self._check(rows[first], seen, None)
            filtered = self.input_filter.observation(
                row_state.filters,
                rows[first],
                self._canonical(seen),
                starts=np.ones(int(first.sum()), np.bool_),
                learn=learn,
            )
            write_rows(row_state.pending, rows[first], filtered, len(row_state.heatup))
        goes_on = request.starts & ~first
        goal = {key: observation[key][goes_on] for key in DIRECTIVE_KEYS if key in observation}
        if goal and goes_on.any():
            self._filter_goal(row_state, rows[goes_on], take(observation, goes_on), goal)

    def _filter_moved_goals(self, row_state: AgentRows[Exploration], outcome: Outcome) -> None:
        """Act on moved goals from the next decision on; the last transition keeps the old ones."""
        moved = np.zeros(len(outcome.rows), np.bool_)
        for key, values in outcome.next_goal.items():
            differs = values != outcome.observation[key]
            moved |= differs.reshape(len(moved), -1).any(axis=1)
        rows, goal = outcome.rows[moved], take(outcome.next_goal, moved)
        check_finite(rows, goal, None, self.input_filter)
        self._filter_goal(row_state, rows, take(outcome.observation, moved), goal)
        row_state.follows[rows] = False

    def _filter_goal(
        self,
        row_state: AgentRows[Exploration],
        rows: IntArray,
        observation: Observation,
        goal: Observation,
    ) -> None:
        """Filter goals [R, ...] received in the middle of a real episode, by what rows [R] see."""
        seen = goal if self.symmetry is None else self.symmetry.canonical({**observation, **goal})
        filtered = self.input_filter.observation(
            row_state.filters, rows, seen, starts=np.zeros(len(rows), np.bool_), learn=False
        )
        write_rows(row_state.pending, rows, filtered, len(row_state.heatup))

    def _check(self, rows: IntArray, observation: Observation, reward: FloatArray | None) -> None:
        """Raise an error that names a number that is not finite, or outside of its space."""
        check_finite(rows, observation, reward, self.input_filter)
        for key, space in self._whole.items():
            check_whole(key, space, rows, observation[key], agent=self.name)

    def _canonical(self, observation: Observation) -> Observation:
        """The observation [R, ...] that the filters see."""
        return observation if self.symmetry is None else self.symmetry.canonical(observation)

    def _sent(self, choice: dict[str, Array], observation: Observation) -> Action:
        """The actions [R, ...] for the environment of rows that see this; empties the choice."""
        action = self.output_filter.apply(clipped_to_space(self.action_space, action_of(choice)))
        return action if self.symmetry is None else self.symmetry.restored(action, observation)

    def _store(
        self,
        row_state: AgentRows[Exploration],
        outcome: Outcome,
        reward: FloatArray,
        next_observation: Observation,
    ) -> None:
        kept: slice | BoolArray = slice(None)
        if self.is_on_policy:
            trained = ~row_state.heatup[outcome.rows]
            if not trained.all():
                row_state.follows[outcome.rows[~trained]] = False
                kept = trained
            if not trained.any():
                return
        rows = outcome.rows[kept]
        follows = row_state.follows[rows]
        row_state.follows[rows] = True
        choice = {name: values[rows] for name, values in row_state.choice.items()}
        action = action_of(choice)
        choice |= self._infos.of(outcome, kept)
        observation = take(row_state.pending, rows)
        if self.hidden_state is not None:
            choice[HIDDEN_STATE] = observation.pop(HIDDEN_STATE)
        transition = Transition(
            rows=rows,
            observation=observation,
            action=action,
            reward=reward[kept],
            next_observation=take(next_observation, kept),
            terminated=outcome.terminated[kept],
            truncated=outcome.truncated[kept],
            duration=outcome.duration[kept],
            end=outcome.end[kept],
            below=outcome.below[kept],
            tested=outcome.tested[kept],
            follows=follows,
            extras=choice,
        )
        self._keep(row_state, transition, outcome)


def _shallow(key: str) -> Callable[[State], State]:
    """Return a function to the compared part of a state: of networks the names alone."""
    return dict.fromkeys if key == "networks" else dict
