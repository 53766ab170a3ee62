"""Shared half of agents with a replay memory: when to learn, exploration, bookkeeping."""

import math
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar, TypeAlias, cast

import numpy as np
import torch
from annotated_types import Interval
from gymnasium import spaces
from torch import Tensor

from coach_rl.agents.agent_rows import (
    AgentRows,
    TransitionFilterParameters,
    combined,
)
from coach_rl.agents.filtered_agent import (
    FilteredAgent,
    FilteredAgentParameters,
)
from coach_rl.agents.hindsight_filters import check_filters, check_units
from coach_rl.agents.learner import ActorTerm, Learner
from coach_rl.agents.points import points_of_replay
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.architectures.hidden_states import require_memoryless
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.agents import AgentContext, RowState, TrainingReport
from coach_rl.core.clock import Clock, ConstantSchedule, Schedule
from coach_rl.core.data_points import PointsFunction
from coach_rl.core.errors import ConfigurationError, NonFiniteError, require
from coach_rl.core.goals import KeptForGoals
from coach_rl.core.parameter_classes import (
    KeepingParameters,
    LearnerParameters,
    parameter_class,
)
from coach_rl.core.ranges import Positive, RisingPair, UnitInterval
from coach_rl.core.records import (
    HIDDEN_STATE,
    ActionInfo,
    ActionRequest,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    Transition,
)
from coach_rl.core.saved import SavedAttribute, SavedNames
from coach_rl.core.seeding import integer_seed
from coach_rl.core.state import State
from coach_rl.memories.batches import TransitionBatch
from coach_rl.memories.hindsight_comparison import HindsightComparison
from coach_rl.memories.memory import Memory, MemoryParameters
from coach_rl.memories.replay_parameters import ReplayMemoryParameters

REPAID_AFTER = 15_000
"""Updates after which compiling has repaid itself: two variants of 15 s at 2 to 3 ms saved each."""


@parameter_class
class LearningParameters:
    """Schedule and batch size of an off-policy agent's learning."""

    batch: Positive[int] = 256
    """Transitions per gradient step."""
    updates_per_step: Annotated[float, Interval(ge=1e-9, lt=math.inf)] = 1.0
    """Gradient steps per decision stored, for any number of environments; may be a fraction."""
    learning_starts: Positive[int] = 1_000
    """Transitions in the memory before learning starts.

    Those up to then earn no updates, nor do decisions made in HEATUP."""
    report_every: Positive[int] = 1_000
    """Gradient steps between two log records."""

    @property
    def ratio(self) -> Fraction:
        """`updates_per_step` as it was meant: 0.29 is 29/100, and 1 / 3 a third."""
        return Fraction(self.updates_per_step).limit_denominator(10**9)


@parameter_class
class ValueLearningParameters:
    """Settings shared by all off-policy algorithms."""

    discount: UnitInterval = 0.99
    """Gamma, per decision."""
    huber: Positive[float] | None = None
    """Errors of values beyond this count linearly; None squares all."""


@parameter_class
class ClippedTargetParameters(ValueLearningParameters):
    """Settings shared by algorithms whose values count rewards alone."""

    clip_targets: RisingPair | None = None
    """Bounds of the value of an action, where they are known; None: those of the critic, if it
    has any."""


@parameter_class
class OffPolicyAgentParameters(FilteredAgentParameters, LearnerParameters):
    """Parameters shared by all off-policy agents."""

    AGENT: "ClassVar[type[OffPolicyAgent] | None]" = None
    """Class of the agents: of a subclass with methods of its own; None: the algorithm's."""

    learning: LearningParameters = field(default_factory=LearningParameters)
    """Schedule and batch size of learning."""
    memory: MemoryParameters = field(default_factory=ReplayMemoryParameters)
    """The memory for transitions."""
    stores: TransitionFilterParameters | None = None
    """Filter of the transitions that the memory gets, e.g. by the end of their episode; None: it
    gets all."""
    learning_rate_schedule: Schedule = field(default_factory=lambda: ConstantSchedule(value=1.0))
    """Multiplies every learning rate."""
    normalise_observations: Positive[float] | None = None
    """Normalise inside the networks and clip to +- this; None leaves observations as they are."""

    def obstacle_to_learning(self, *, num_envs: int, steps: int, heatup: int) -> str | None:
        """A memory that is never full enough, or never holds a batch of different transitions."""
        starts, batch = self.learning.learning_starts, self.learning.batch
        kept = steps
        if isinstance(self.memory, ReplayMemoryParameters):
            if self.memory.is_filled:
                return None
            kept = min(steps, self.memory.capacity)
        if steps <= starts:
            return (
                f"agent '{self.name}' would learn nothing: it waits for {starts:,} transitions, "
                f"the run has {steps:,} steps; train for longer, or lower learning.learning_starts"
            )
        if kept < batch:
            return (
                f"agent '{self.name}' draws batches of {batch:,} from {kept:,} transitions at "
                "most; lower learning.batch, or raise memory.capacity and the run's steps"
            )
        return None

    def new_agent(
        self, context: AgentContext, *, discount: float, make_learner: "MakeLearner"
    ) -> "OffPolicyAgent":
        """The agent with an algorithm's discount and learner, see `OffPolicyAgent`."""
        kind = OffPolicyAgent if self.AGENT is None else self.AGENT
        return kind(self, context, discount=discount, make_learner=make_learner)

    def build_actor_terms(
        self,
        agent: FilteredAgent[RowState],
        context: AgentContext,
    ) -> dict[str, ActorTerm]:
        """Terms of the actor's loss beside the critic's value, by name; empty without an actor."""
        return {}


MakeLearner: TypeAlias = "Callable[[OffPolicyAgent], Learner]"


class OffPolicyAgent(FilteredAgent[RowState]):
    """An agent that learns from a replay memory.

    Args:
        params: The agent's parameters.
        context: Settings known only at construction, such as spaces.
        discount: Gamma, for the memory.
        make_learner: Makes the algorithm's networks and losses for the agent, whose attributes
            below are set by then.

    Attributes:
        place: Its place in the stack, with the agent below.
        runtime: The run's settings and services, with the agent's own seed.
        device: Device of the networks.
        network_arguments: Observation space, action space, generator of weights and normaliser:
            the arguments of the networks' constructors after their parameters.
        new_engine: Makes an `UpdateEngine` of objectives and targets.
        noise: Draws standard normal numbers [...] of a shape for losses, the same on every device.
        actor_terms: Terms of the actor's loss beside the critic's value, by name; it saves and
            trains them.
        goals: The goals of its level if they learn, which it saves and trains; None: they don't.
    """

    SAVED: ClassVar[SavedNames] = (
        SavedAttribute("_networks", policy=True),
        SavedAttribute("_normaliser", policy=True),
        SavedAttribute("goals", key="goal_space", optional=True, policy=True),
        SavedAttribute("actor_terms", inline=True),
        SavedAttribute("stores", optional=True, policy=False),
        "_engine",
        "memory",
        SavedAttribute("noise_rng", key="noise"),
        "earned",
        "_reported_at",
        "training_steps",
    )
    TIMED: ClassVar[Mapping[str, str]] = {
        "memory.sample": "sample",
        "memory.note_errors": "priorities",
    }
    POINTS: ClassVar[tuple[PointsFunction, ...]] = (points_of_replay,)

    def __init__(
        self,
        params: OffPolicyAgentParameters,
        context: AgentContext,
        *,
        discount: float,
        make_learner: MakeLearner,
    ) -> None:
        super().__init__(params, context)
        seed, self.runtime = context.seed, context.runtime
        self.params, self.device = params, torch.device(context.device)
        self.place = context.place
        clip = params.normalise_observations
        self.normaliser = (
            None
            if clip is None
            else ObservationNormaliser(self.observation_space, clip=clip, device=self.device)
        )
        self.noise_rng = _generator(seed, params.name, "learning noise")
        self.noise = partial(_normal, self.noise_rng, self.device)
        self.network_arguments = (
            self.observation_space,
            self.action_space,
            _generator(seed, params.name, "weights"),
            self.normaliser,
        )
        owner = context.place.owner(params.name)
        self.new_engine = partial(
            UpdateEngine,
            mode=params.update_mode,
            planned_updates=int(params.learning.ratio * context.planned_steps),
            repaid_after=REPAID_AFTER,
            owner=owner,
            runtime=context.runtime,
        )
        self.actor_terms = (
            {} if context.runtime.acts_only else params.build_actor_terms(self, context)
        )
        goals = context.place.goal
        sub_goals = context.place.sub_goal
        self.goals = goals if hasattr(goals, "state_dict") else None
        self.learner = make_learner(self)
        self._engine = self.learner.engine
        self._add_stages_for(network.module for network in self.learner.networks.values())
        acting = self.learner.acting
        acting.outputs = self.stages.acting(acting.outputs)
        if HIDDEN_STATE in self.stages.kept:
            self._check_recurrence()
        self.explores = self.learner.acting.explores
        check_filters(self, params.memory, context.place)
        extras = self.stages.extras
        kept = KeptForGoals() if goals is None else goals.attach(self)
        above = KeptForGoals() if sub_goals is None else sub_goals.attach_above(self)
        extras += (*kept.extras, *above.extras)
        keeping = _keeping(params.memory, extras, (*kept.parts, *above.parts))
        if context.runtime.acts_only and isinstance(keeping, KeepingParameters):
            keeping = keeping.keeping_nothing()
        self.memory: Memory = keeping.build(
            observation_space=self._kept_space(),
            action_space=self.action_space,
            num_envs=context.num_envs,
            device=self.device,
            seed=integer_seed(seed, params.name, "memory"),
            discount=discount,
            place=context.place,
            output_filter=self.output_filter,
        )
        self.stores = None if params.stores is None else params.stores.build(context)
        check_units(self, self.memory)
        if self.memory.capacity < params.learning.learning_starts:
            raise ConfigurationError(
                f"agent '{params.name}' would never learn: its memory holds "
                f"{self.memory.capacity:,} transitions, learning.learning_starts waits for "
                f"{params.learning.learning_starts:,}; lower that, or raise memory.capacity"
            )
        self._comparison = HindsightComparison.of(self.memory, owner)
        self.discount = discount
        self.earned = 0
        """Decisions that count for gradient steps."""
        self._reported_at = 0
        self.training_steps = 0

    def new_rows(self, num_envs: int, seed: int) -> AgentRows[RowState]:
        return self._rows(num_envs, seed, self.learner.acting.new_rows(num_envs, seed))

    def choose(
        self, row_state: AgentRows[RowState], request: ActionRequest, clock: Clock
    ) -> ActionInfo:
        acting, observation = self.learner.acting, request.observation
        outputs = self._engine.checked(acting.outputs(observation))

        def explored(where: BoolArray | None) -> tuple[Array]:
            part = request if where is None else request.rows_of(where)
            seen = outputs if where is None else outputs[where]
            return (acting.explore(row_state.exploration, part, seen, clock),)

        (action,) = combined(
            request.greedy, lambda: (acting.greedy(observation, outputs),), explored
        )
        return ActionInfo(action=action)

    def policy_actions(self, observation: Observation) -> Array:
        """Return the greedy actions of the policy for filtered observations [R, ...] each."""
        acting = self.learner.acting
        return acting.exploration.greedy(acting.outputs(observation))

    def require_values(self, owner: str) -> None:
        if not self.stages.is_stateless or not hasattr(self.learner, "values"):
            raise ConfigurationError(
                f"{owner} uses the critic of agent '{self.name}', which must be that of TD3, DDPG "
                "or SAC, without recurrence, symmetry and filters that remember observations"
            )

    def values(self, observation: Observation, action: Array | None = None) -> FloatArray:
        seen, learner = self._seen_alone(observation), cast("Any", self.learner)
        if action is None:
            action = self.policy_actions(seen)
        else:
            action = np.asarray(self.output_filter.inverse(action))
        values: FloatArray = learner.values(seen, action)
        return values

    def greedy_actions(self, observation: Observation) -> Array:
        action = self.policy_actions(self._seen_alone(observation))
        return np.asarray(self.output_filter.apply(action))

    def _seen_alone(self, observation: Observation) -> Observation:
        """Filtered observations [R, ...] each that belong to no row."""
        rows = np.arange(len(next(iter(observation.values()))))
        starts = np.ones(len(rows), np.bool_)
        return self.stages.enter({}, rows, observation, starts=starts, learn=False)

    def _check_recurrence(self) -> None:
        """Raise `ConfigurationError` where a recurrent network cannot learn."""
        for name in self.actor_terms:
            networks = (network.module for network in self.learner.networks.values())
            require_memoryless(networks, f"agent '{self.name}' with its {name}")
        memory, batch = self.params.memory, self.params.learning.batch
        if isinstance(memory, ReplayMemoryParameters):
            memory.draws.check_batch(batch, f"agent '{self.name}'")

    def _kept_space(self) -> spaces.Dict:
        """The observation space with what stages keep beside it, which the memory keeps too."""
        more = self.stages.kept
        return spaces.Dict(self.observation_space.spaces | more) if more else self.observation_space

    def store(self, transition: Transition) -> None:
        self.memory.add(transition)
        if self._comparison is not None:
            self._comparison.compare(transition)
        if self.normaliser is not None:
            self.normaliser.update(self.memory.as_shown(transition.observation))

    def observe(self, row_state: AgentRows[RowState], outcome: Outcome, clock: Clock) -> None:
        if self.stores is None and clock.learns:
            self._earn(row_state, outcome.rows)
        super().observe(row_state, outcome, clock)

    def _earn(self, row_state: AgentRows[RowState], rows: IntArray) -> None:
        """Count decisions of these rows, unless the memory is too small or they are of HEATUP."""
        if len(self.memory) >= self.params.learning.learning_starts:
            self.earned += int((~row_state.heatup[rows]).sum())

    def _keep(
        self, row_state: AgentRows[RowState], transition: Transition, outcome: Outcome
    ) -> None:
        if self.stores is None:
            return super()._keep(row_state, transition, outcome)
        for each in self.stores(transition, outcome):
            self._earn(row_state, each.rows)
            self.store(each)
        return None

    def cut_off(self, row_state: AgentRows[RowState], rows: IntArray, clock: Clock) -> None:
        if self.stores is not None:
            self.stores.drop(rows)
        super().cut_off(row_state, rows, clock)

    def restart_rows(self, row_state: AgentRows[RowState]) -> None:
        super().restart_rows(row_state)
        rows = np.arange(len(row_state.follows))
        if self.stores is not None:
            self.stores.drop(rows)
        self._truncate(rows)

    def decisions_until_training(self) -> int:
        learning = self.params.learning
        # Stores may release any number at the next decision, and all of them move the statistics.
        if self.stores is not None or self.normaliser is not None:
            return 1
        missing = max(0, learning.learning_starts - len(self.memory))
        return max(1, missing + math.ceil((self.training_steps + 1) / learning.ratio) - self.earned)

    def train(self, clock: Clock) -> TrainingReport | None:
        due = int(self.params.learning.ratio * self.earned) - self.training_steps
        if due <= 0:
            return None
        for term in self.actor_terms.values():
            term.learn()
        factor = self.params.learning_rate_schedule(clock)
        rates = {name: rate * factor for name, rate in self.learner.learning_rates.items()}
        self._engine.set_scalars(**rates)
        for _ in range(due):
            batch = self.memory.sample(self.params.learning.batch)
            per_sample = self.learn_from_batch(batch)
            if self.memory.is_prioritised:
                self._note_errors(batch.position, per_sample["td_error"])
        return TrainingReport(training_steps=due, metrics=self._report(clock, rates))

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        per_sample = self.learner.learn_from_batch(batch)
        self.training_steps += 1
        return per_sample

    def metrics(self, clock: Clock) -> dict[str, float]:
        found = self.memory.metrics() | self.learner.acting.metrics(clock)
        for term in self.actor_terms.values():
            found |= term.metrics()
        return found

    def parts(self) -> Mapping[str, object]:
        own = {
            "normaliser": self.normaliser,
            "engine": self.learner.engine,
            "memory": self.memory,
            **self.actor_terms,
            "goal_space": self.goals,
        }
        return {**super().parts(), **self.learner.networks, **own}

    def note_loaded(self) -> None:
        self._engine.steps = self.training_steps

    @property
    def _networks(self) -> Mapping[str, NetworkWrapper]:
        return dict(self.learner.networks)

    @property
    def _normaliser(self) -> ObservationNormaliser | State:
        return {} if self.normaliser is None else self.normaliser

    def _note_errors(self, positions: Tensor, errors: Tensor) -> None:
        """Record the batch's new errors; a skipped step has none."""
        try:
            self.memory.note_errors(positions, errors)
        except NonFiniteError:
            self._engine.require_finite()  # which can name the cause
            if not self.runtime.divergence.skips:
                raise

    def _report(self, clock: Clock, rates: dict[str, float]) -> dict[str, float]:
        """Metrics once in `report_every` gradient steps, else none."""
        steps = self.training_steps - self._reported_at
        if steps < self.params.learning.report_every:
            return {}
        self._reported_at = self.training_steps
        learned = self._engine.drain_metrics()
        own = {"training_steps": float(steps), **learned, **rates}
        return {f"train/{name}": value for name, value in own.items()} | self.metrics(clock)


def _normal(rng: torch.Generator, device: torch.device, *shape: int) -> Tensor:
    """Standard normal numbers, drawn on the CPU."""
    return torch.randn(shape, generator=rng).to(device, non_blocking=True)


def _generator(seed: int, *names: str) -> torch.Generator:
    return torch.Generator().manual_seed(integer_seed(seed, *names))


def _keeping(
    memory: MemoryParameters, extras: tuple[str, ...], parts: tuple[Any, ...]
) -> MemoryParameters:
    """The same memory, keeping these extras, and with these parts, as well."""
    if not extras and not parts:
        return memory
    require(
        isinstance(memory, ReplayMemoryParameters),
        "an agent with `infos`, or with goals that learn, needs a memory of "
        f"ReplayMemoryParameters, got {memory!r:.80}",
    )
    assert isinstance(memory, ReplayMemoryParameters)
    return replace(memory, extras=(*memory.extras, *extras), parts=(*parts, *memory.parts))
