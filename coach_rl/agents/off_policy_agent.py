"""Shared half of agents with a replay memory: when to learn, exploration, bookkeeping."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from functools import partial
from typing import Annotated, ClassVar, Self, TypeAlias

import numpy as np
import torch
from annotated_types import Interval
from gymnasium import spaces
from torch import Tensor

from coach_rl.agents.agent_rows import AgentRows, TransitionFilterParameters
from coach_rl.agents.critic_view import CriticView
from coach_rl.agents.filtered_agent import FilteredAgent, FilteredAgentParameters
from coach_rl.agents.learner import ActorTerm, Learner
from coach_rl.agents.unfiltered_keys import check_units
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.agents import AgentContext, RowState, TrainingReport
from coach_rl.core.clock import Clock, ConstantSchedule, Schedule
from coach_rl.core.errors import ConfigurationError, NonFiniteError
from coach_rl.core.goals import KeptForGoals
from coach_rl.core.parameter_classes import LearnerParameters, parameter_class, with_values
from coach_rl.core.ranges import Positive, RisingPair, UnitInterval
from coach_rl.core.records import (
    ActionInfo,
    ActionRequest,
    Array,
    IntArray,
    Observation,
    Outcome,
    Transition,
)
from coach_rl.core.saved import SavedAttribute, SavedNames
from coach_rl.core.seeding import integer_seed
from coach_rl.core.state import State
from coach_rl.memories.replay_memory import ReplayMemory
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from coach_rl.memories.transition_batch import TransitionBatch

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

    AGENT: "ClassVar[type[OffPolicyAgent]]"
    """Class of the agents: `OffPolicyAgent`, or a subclass with methods of its own."""

    learning: LearningParameters = field(default_factory=LearningParameters)
    """Schedule and batch size of learning."""
    memory: ReplayMemoryParameters = field(default_factory=ReplayMemoryParameters)
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
        starts = self.learning.learning_starts
        batch = self.learning.batch
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

    def build_normaliser(
        self, space: spaces.Dict, device: torch.device
    ) -> ObservationNormaliser | None:
        """The normaliser of observations inside the networks; None leaves them as they are."""
        clip = self.normalise_observations
        return None if clip is None else ObservationNormaliser(space, clip=clip, device=device)

    def build_actor_terms(
        self,
        agent: FilteredAgent[RowState],
        context: AgentContext,
    ) -> dict[str, ActorTerm]:
        """Terms of the actor's loss beside the critic's value, by name; empty without an actor."""
        return {}

    def for_acting(self) -> Self:
        """The same for a process in which the agent only acts: its memory keeps nothing."""
        return replace(self, memory=self.memory.keeping_nothing())


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
        SavedAttribute("_stores", inline=True, policy=False),
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

    def __init__(
        self,
        params: OffPolicyAgentParameters,
        context: AgentContext,
        *,
        discount: float,
        make_learner: MakeLearner,
    ) -> None:
        super().__init__(params, context)
        self.runtime = context.runtime
        if self.runtime.acts_only:
            params = params.for_acting()
        self.params = params
        self.place = context.place
        self.device = torch.device(context.device)
        self.normaliser = params.build_normaliser(self.observation_space, self.device)
        self.noise_rng = _generator(context.seed, params.name, "learning noise")
        self.noise = partial(_normal, self.noise_rng, self.device)
        self.network_arguments = (
            self.observation_space,
            self.action_space,
            _generator(context.seed, params.name, "weights"),
            self.normaliser,
        )
        self._ratio = params.learning.ratio
        self.new_engine = partial(
            UpdateEngine,
            mode=params.update_mode,
            planned_updates=int(self._ratio * context.planned_steps),
            repaid_after=REPAID_AFTER,
            owner=context.place.owner(params.name),
            runtime=context.runtime,
        )
        self.actor_terms = params.build_actor_terms(self, context)
        self.learner = make_learner(self)
        self._engine = self.learner.engine
        self.building.of_networks([each.module for each in self.learner.networks.values()])
        acting = self.learner.acting
        acting.outputs = self.stages.acting(acting.outputs)
        self.explores = acting.explores
        params.memory.check_filters(self, context.place)
        kept = context.place.attach_goals(self)
        self.goals = kept.goals
        self.discount = discount
        self.memory = self._new_memory(context, kept)
        self._stores = {} if params.stores is None else {"stores": params.stores.build(context)}
        check_units(self, self.memory.sampler.units, holds_back=bool(self._stores))
        self._normalisers = [] if self.normaliser is None else [self.normaliser]
        self.earned = 0
        """Decisions that count for gradient steps."""
        self._reported_at = 0
        self.training_steps = 0

    def _new_memory(self, context: AgentContext, kept: KeptForGoals) -> ReplayMemory:
        """The memory, with columns of its own, of the agent's infos and of goals.

        Raises:
            ConfigurationError: It does not fit, or never has enough transitions to learn from.
        """
        params = self.params.memory
        params = with_values(
            params,
            extras=(*params.extras, *self.stages.extras, *kept.extras),
            parts=(*kept.parts, *params.parts),
        )
        memory = params.build(
            observation_space=self._kept_space(),
            action_space=self.action_space,
            num_envs=context.num_envs,
            device=self.device,
            seed=integer_seed(context.seed, self.name, "memory"),
            discount=self.discount,
            place=context.place,
            output_filter=self.output_filter,
            owner=context.place.owner(self.name),
            scratch=context.runtime.scratch,
        )
        learning = self.params.learning
        params.draws.check_batch(learning.batch, f"agent '{self.name}'")
        starts = learning.learning_starts
        if memory.capacity < starts and not params.is_filled:
            raise ConfigurationError(
                f"agent '{self.name}' would never learn: its memory holds {memory.capacity:,} "
                f"transitions, learning.learning_starts waits for {starts:,}; lower that, or raise "
                "memory.capacity"
            )
        return memory

    def new_rows(self, num_envs: int, seed: int) -> AgentRows[RowState]:
        return self._rows(num_envs, seed, self.learner.acting.new_rows(num_envs, seed))

    def choose(
        self, row_state: AgentRows[RowState], request: ActionRequest, clock: Clock
    ) -> ActionInfo:
        acting = self.learner.acting
        observation = acting.observed(row_state.exploration, request)
        outputs = self._engine.checked(acting.outputs(observation))  # [R, P]
        greedy = request.greedy
        if not greedy.any():
            return ActionInfo(action=acting.explore(row_state.exploration, request, outputs, clock))
        action = acting.greedy(request.observation, outputs)
        if not greedy.all():
            some = request.rows_of(~greedy)
            explored = acting.explore(row_state.exploration, some, outputs[~greedy], clock)
            action[~greedy] = explored
        return ActionInfo(action=action)

    def policy_actions(self, observation: Observation) -> Array:
        """Return the greedy actions of the policy for filtered observations [R, ...] each."""
        return self.learner.acting.policy_actions(observation)

    def critic_for(self, owner: str) -> CriticView:
        return CriticView(self, self.learner, owner)

    def _kept_space(self) -> spaces.Dict:
        """The observation space with what stages keep beside it, which the memory keeps too."""
        more = self.stages.kept
        return spaces.Dict(self.observation_space.spaces | more) if more else self.observation_space

    def store(self, transition: Transition) -> None:
        self.memory.add(transition)
        for each in self._normalisers:
            each.update(self.memory.as_shown(transition.observation))

    def _keep(
        self, row_state: AgentRows[RowState], transition: Transition, outcome: Outcome
    ) -> None:
        """Store what is to be kept, and count its decisions once the memory is large enough."""
        kept: Sequence[Transition] = (transition,)
        for each in self._stores.values():
            kept = each(transition, outcome)
        for part in kept:
            if len(self.memory) >= self.params.learning.learning_starts:
                self.earned += int((~row_state.heatup[part.rows]).sum())  # none for HEATUP's
            self.store(part)

    def cut_off(self, row_state: AgentRows[RowState], rows: IntArray, clock: Clock) -> None:
        for each in self._stores.values():
            each.drop(rows)
        super().cut_off(row_state, rows, clock)

    def restart_rows(self, row_state: AgentRows[RowState]) -> None:
        super().restart_rows(row_state)
        rows = np.arange(len(row_state.follows))
        for each in self._stores.values():
            each.drop(rows)
        self._truncate(rows)

    def decisions_until_training(self) -> int:
        # Stores may release any number at the next decision, and all of them move the statistics.
        if self._stores or self._normalisers:
            return 1
        missing = max(0, self.params.learning.learning_starts - len(self.memory))
        return max(1, missing + math.ceil((self.training_steps + 1) / self._ratio) - self.earned)

    def train(self, clock: Clock) -> TrainingReport | None:
        ratio = self._ratio
        due = ratio.numerator * self.earned // ratio.denominator - self.training_steps
        if due <= 0:
            return None
        for term in self.actor_terms.values():
            term.learn()
        factor = self.params.learning_rate_schedule(clock)
        rates = {name: rate * factor for name, rate in self.learner.learning_rates.items()}
        self._engine.set_scalars(**rates)
        for _ in range(due):
            batch = self.memory.sample(self.params.learning.batch)
            for stage in self.stages.refreshing:
                batch = stage.refreshed(batch)
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
        return self.normaliser or {}

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


OffPolicyAgentParameters.AGENT = OffPolicyAgent
