"""What agents that learn from a replay memory share: when to learn, exploring, bookkeeping."""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.agents.agent import AgentRows, FilteredAgent, check_same_kind
from coach_rl.agents.hindsight_filters import check_filters
from coach_rl.agents.perturbed_policy import PerturbedPolicy, PerturbedRows
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_policy import numpy_forward
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.torso import Torso
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.architectures.user_module import ModuleTorso
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import CheckpointError, ConfigurationError, NonFiniteError, require
from coach_rl.core.interfaces import (
    ALONE,
    InputFilterParameters,
    LevelPlace,
    OutputFilterParameters,
    RowState,
)
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import (
    ActionInfo,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    TrainingReport,
    Transition,
    take,
)
from coach_rl.core.roles import LearnerParameters, MovableParameters
from coach_rl.core.schedules import ConstantSchedule, Schedule
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.core.state import State
from coach_rl.core.update_modes import UpdateMode, cannot_run
from coach_rl.exploration_policies.exploration_policy import (
    ExplorationPolicy,
    ExplorationPolicyParameters,
)
from coach_rl.memories.memory import Batch, Memory, MemoryParameters
from coach_rl.memories.replay_memory import ReplayMemoryParameters

OBSERVATIONS, NEXT_OBSERVATIONS = "/observations/", "/next_observations/"
REPAID_AFTER = 15_000
"""Updates after which compiling has repaid itself: two variants of 15 s at 2 to 3 ms saved each."""

Policy = Callable[[Observation], FloatArray]
"""What a network says of observations [R, ...] each, e.g. greedy actions [R, A]."""


@parameter_class
class LearningParameters:
    """When and on how much an off-policy agent learns."""

    batch: int = 256
    """Transitions per gradient step."""
    updates_per_step: float = 1.0
    """Gradient steps per decision stored, for any number of environments; may be a fraction."""
    learning_starts: int = 1_000
    """Transitions in the memory before learning starts.

    Those up to then earn no updates, nor do decisions made in HEATUP."""
    report_every: int = 1_000
    """Gradient steps between two log records."""

    def __post_init__(self) -> None:
        require(self.batch >= 1, f"batch must be 1 or more, got {self.batch}")
        require(
            0 < self.updates_per_step < math.inf and self.ratio > 0,
            f"updates_per_step must be more than 0 and finite, got {self.updates_per_step}",
        )
        require(
            self.learning_starts >= 1,
            f"learning_starts must be 1 or more, got {self.learning_starts}",
        )
        require(self.report_every >= 1, f"report_every must be 1 or more, got {self.report_every}")

    @property
    def ratio(self) -> Fraction:
        """`updates_per_step` as it was meant: 0.29 is 29/100, and 1 / 3 a third."""
        return Fraction(self.updates_per_step).limit_denominator(10**9)


@parameter_class
class ValueLearningParameters:
    """What the settings of all off-policy algorithms have."""

    discount: float = 0.99
    """Gamma, per decision."""
    huber: float | None = None
    """Errors of values beyond this count linearly; None squares all."""

    def __post_init__(self) -> None:
        require(0 <= self.discount <= 1, f"discount must lie in [0, 1], got {self.discount}")
        require(
            self.huber is None or self.huber > 0,
            f"huber must be more than 0 or None, got {self.huber}",
        )


@parameter_class
class ClippedTargetParameters(ValueLearningParameters):
    """What the settings of algorithms have whose values count rewards alone."""

    clip_targets: tuple[float, float] | None = None
    """Bounds of what an action can be worth, where they are known; None: those of the critic, if it
    has any."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.clip_targets is None or self.clip_targets[0] < self.clip_targets[1],
            f"clip_targets must rise, got {self.clip_targets}",
        )


@dataclass(frozen=True, kw_only=True)
class BuildContext:
    """What is known only when an agent is built; see `core.interfaces.AgentParameters.build`."""

    spaces: EnvironmentSpaces
    num_envs: int
    device: torch.device
    seed: int
    planned_steps: int
    place: LevelPlace


@parameter_class
class OffPolicyAgentParameters(MovableParameters, LearnerParameters):
    """What the parameters of all off-policy agents have."""

    name: str = "agent"
    """The agent's name in logs and files."""
    learning: LearningParameters = field(default_factory=LearningParameters)
    """When it learns, and on how much."""
    memory: MemoryParameters = field(default_factory=ReplayMemoryParameters)
    """Where transitions are kept."""
    learning_rate_schedule: Schedule = field(default_factory=lambda: ConstantSchedule(value=1.0))
    """Multiplies every step size."""
    normalise_observations: float | None = None
    """Normalise inside the networks and clip to +- this; None leaves observations as they are."""
    input_filter: InputFilterParameters | None = None
    """What happens to observations and rewards first; None: nothing."""
    output_filter: OutputFilterParameters | None = None
    """What happens to actions last; None: nothing."""
    update_mode: UpdateMode = "auto"
    """How gradient steps are run: auto, eager, compiled (CPU only) or captured (GPU only)."""

    def __post_init__(self) -> None:
        clip = self.normalise_observations
        require(
            clip is None or clip > 0,
            f"normalise_observations must be more than 0 or None, got {clip}",
        )

    def moved_to(self, device: str) -> Self:
        """The same; a way to run gradient steps that is not there becomes `auto`."""
        if cannot_run(self.update_mode, device) is None:
            return self
        return replace(self, update_mode="auto")

    def obstacle_to_learning(self, *, num_envs: int, steps: int, heatup: int) -> str | None:
        """A memory that is never full enough, unless it is filled from a data set."""
        starts = self.learning.learning_starts
        is_filled = isinstance(self.memory, ReplayMemoryParameters) and self.memory.prefill
        if steps > starts or is_filled:
            return None
        return (
            f"agent '{self.name}' would learn nothing: it waits for {starts:,} transitions, the "
            f"run has {steps:,} steps; train for longer, or lower learning.learning_starts"
        )

    def agent_space(self, spaces: EnvironmentSpaces) -> Space:
        """Where the agent acts, before its OutputFilter."""
        if self.output_filter is None:
            return spaces.action
        return self.output_filter.build(spaces.action).agent_space

    @abstractmethod
    def made(self, context: BuildContext) -> "OffPolicyAgent":
        """The agent."""

    def build(
        self,
        *,
        spaces: EnvironmentSpaces,
        num_envs: int,
        device: str,
        seed: int,
        planned_steps: int,
        place: LevelPlace = ALONE,
    ) -> "OffPolicyAgent":
        """The agent; SpaceError when it can't serve the action space."""
        return self.made(
            BuildContext(
                spaces=spaces,
                num_envs=num_envs,
                device=torch.device(device),
                seed=seed,
                planned_steps=planned_steps,
                place=place,
            )
        )


class OffPolicyAgent(FilteredAgent):
    """The shared half: an algorithm adds networks, objectives and `learn_from_batch`.

    A subclass's constructor makes its networks and its `engine` after calling this one.

    Args:
        params: The agent's parameters.
        context: What is known only now.
        exploration: How it explores.
        discount: Gamma, for the memory.
    """

    engine: UpdateEngine[Batch]
    policy: Policy
    """What the acting network says, in numpy."""
    perturbed: PerturbedPolicy | None = None
    """Acts where the agent explores with its parameters; None where it does not."""

    def __init__(
        self,
        params: OffPolicyAgentParameters,
        context: BuildContext,
        *,
        exploration: ExplorationPolicyParameters,
        discount: float,
    ) -> None:
        super().__init__(
            name=params.name,
            spaces=context.spaces,
            input_filter=params.input_filter,
            output_filter=params.output_filter,
        )
        self.device = context.device
        self.exploration: ExplorationPolicy = exploration.build(self.action_space)
        self._learning, self._schedule = params.learning, params.learning_rate_schedule
        check_filters(self, params.memory, context.place)
        self.memory: Memory = params.memory.build(
            observation_space=self.observation_space,
            action_space=self.action_space,
            num_envs=context.num_envs,
            device=context.device,
            seed=integer_seed(context.seed, params.name, "memory"),
            discount=discount,
            place=context.place,
            output_filter=self.output_filter,
        )
        if self.memory.capacity < params.learning.learning_starts:
            raise ConfigurationError(
                f"agent '{params.name}' would never learn: its memory holds "
                f"{self.memory.capacity:,} transitions, learning.learning_starts waits for "
                f"{params.learning.learning_starts:,}; lower that, or raise memory.capacity"
            )
        clip = params.normalise_observations
        self.normaliser = (
            None
            if clip is None
            else ObservationNormaliser(self.observation_space, clip=clip, device=context.device)
        )
        self.weights_rng = torch.Generator().manual_seed(
            integer_seed(context.seed, params.name, "weights")
        )
        self.noise_rng = torch.Generator().manual_seed(
            integer_seed(context.seed, params.name, "learning noise")
        )
        self._ratio = params.learning.ratio
        self.planned_updates = int(self._ratio * context.planned_steps)
        self._earned = 0  # transitions that count for updates
        self._reported_at = 0
        self.training_steps = 0

    @abstractmethod
    def update(self, batch: Batch) -> Batch:
        """Let the engine make a step; returns per-sample outputs, `td_error` [B] among them."""

    @property
    @abstractmethod
    def networks(self) -> dict[str, NetworkWrapper]:
        """Every network by name, for saving and describing."""

    @property
    @abstractmethod
    def learning_rates(self) -> dict[str, float]:
        """Step sizes by the name of the engine's scalar, before the schedule."""

    def new_rows(self, num_envs: int, seed: int) -> AgentRows:
        """Row state for a stack of that many environments."""
        state = self.exploration.new_rows(num_envs, seed)
        if self.perturbed is not None:
            parameters = self.perturbed.exploration.new_rows(num_envs, seed)
            state = PerturbedRows(actions=state, parameters=parameters)
        return self._rows(num_envs, seed, state)

    def choose(
        self,
        row_state: AgentRows,
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        quiet: BoolArray,
        clock: Clock,
    ) -> ActionInfo:
        """The network's choice, with exploration where it isn't quiet."""
        values = self.engine.checked(self.policy(observation))
        if quiet.all():
            return ActionInfo(action=self.greedy(observation, values))
        state = row_state.exploration
        if not quiet.any():
            action = self._explored(state, rows, observation, values, starts, clock)
            return ActionInfo(action=action)
        loud = ~quiet
        action = self.greedy(observation, values)
        action[loud] = self._explored(
            state, rows[loud], take(observation, loud), values[loud], starts[loud], clock
        )
        return ActionInfo(action=action)

    def greedy(self, observation: Observation, values: FloatArray) -> Array:
        """Actions [R, ...] without exploration.

        Args:
            observation: Filtered, [R, ...] each.
            values: What the policy network says of it, [R, P].
        """
        return self.exploration.greedy(values)

    def keeps_heatup(self) -> bool:
        """Off-policy: random decisions are as good to learn from as any."""
        return True

    def store(self, transition: Transition) -> None:
        """Into the replay memory; what it will show of it, into the statistics."""
        self.memory.add(transition)
        if self.normaliser is not None:
            self.normaliser.update(self.memory.as_shown(transition.observation))

    def observe(self, row_state: AgentRows, outcome: Outcome, *, clock: Clock) -> None:
        """As all agents do; decisions made in TRAIN earn gradient steps once learning has begun."""
        if clock.phase is not Phase.TEST and len(self.memory) >= self._learning.learning_starts:
            self._earned += int((~row_state.heatup[outcome.rows]).sum())
        super().observe(row_state, outcome, clock=clock)

    def train(self, clock: Clock) -> TrainingReport | None:
        """The gradient steps that the decisions since the last call have earned."""
        due = int(self._ratio * self._earned) - self.training_steps
        if due <= 0:
            return None
        factor = self._schedule(clock)
        rates = {name: rate * factor for name, rate in self.learning_rates.items()}
        self.engine.set_scalars(**rates)
        for _ in range(due):
            batch = self.memory.sample(self._learning.batch)
            outputs = self.learn_from_batch(batch)
            if self.memory.is_prioritised:
                self._note_errors(batch["/positions"], outputs["td_error"])
        return TrainingReport(training_steps=due, scalars=self._news(clock, rates))

    def learn_from_batch(self, batch: Batch) -> Batch:
        """One gradient step; returns what there is to say of each sample, `td_error` [B] at least.

        Args:
            batch: Columns by flat path, [B, ...] each; see `memories.memory.Memory.sample`.
        """
        outputs = self.update(batch)
        self.training_steps += 1
        return outputs

    def trajectories(self) -> dict[str, Array]:
        """What the memory holds by flat path, see `memories.trajectories`."""
        return self.memory.trajectories(self.name)

    def state_dict(self) -> State:
        """Everything but the rows, which belong to the levels."""
        return {
            "networks": {name: each.state_dict() for name, each in self.networks.items()},
            "engine": self.engine.state_dict(),
            "memory": self.memory.state_dict(),
            "filters": self.filters_state_dict(),
            "normaliser": {} if self.normaliser is None else self.normaliser.state_dict(),
            "noise": self.noise_rng.get_state(),
            "earned": self._earned,
            "reported_at": self._reported_at,
            "training_steps": self.training_steps,
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        for name, network in self.networks.items():
            network.load_state_dict(state["networks"][name])
        self.engine.load_state_dict(state["engine"], steps=state["training_steps"])
        self.memory.load_state_dict(state["memory"])
        self.load_filters_state_dict(state["filters"])
        if self.normaliser is not None:
            self.normaliser.load_state_dict(state["normaliser"])
        self.noise_rng.set_state(state["noise"])
        self._earned = state["earned"]
        self._reported_at = state["reported_at"]
        self.training_steps = state["training_steps"]

    def take_over(self, state: State) -> None:
        """Take over the networks and the statistics by which they see."""
        check_same_kind("networks", dict.fromkeys(state["networks"]), dict.fromkeys(self.networks))
        normaliser = {} if self.normaliser is None else self.normaliser.state_dict()
        check_same_kind("normalised observations", state["normaliser"], normaliser)
        for name, network in self.networks.items():
            try:
                network.load_state_dict(state["networks"][name])
            except CheckpointError as error:
                raise CheckpointError(f"{name}: {error}") from error
        if self.normaliser is not None:
            self.normaliser.load_state_dict(state["normaliser"])

    def description(self) -> str:
        """The networks and how they are updated, for people."""
        summaries = [f"{name}: {each.summary()}" for name, each in self.networks.items()]
        return "\n".join([*summaries, f"updates: {self.engine.mode}"])

    def noise(self, *shape: int) -> Tensor:
        """Standard normal numbers for the losses, the same on every device."""
        return torch.randn(shape, generator=self.noise_rng).to(self.device, non_blocking=True)

    def numpy_policy(self, torso: Torso | ModuleTorso, head: nn.Sequential) -> Policy:
        """A torso and its head as a function of numpy observations; torch where it must be."""
        forward = numpy_forward(torso, head)
        if forward is not None:
            return forward

        def in_torch(observation: Observation) -> FloatArray:
            with torch.inference_mode():
                tensors = {
                    key: torch.from_numpy(values).to(self.device)
                    for key, values in observation.items()
                }
                return np.asarray(head(torso(tensors)).cpu().numpy())

        return in_torch

    def _explored(
        self,
        state: RowState,
        rows: IntArray,
        observation: Observation,
        greedy: FloatArray,
        starts: BoolArray,
        clock: Clock,
    ) -> Array:
        values = greedy
        if self.perturbed is not None:
            assert isinstance(state, PerturbedRows)
            values = self.perturbed.actions(state, rows, observation, greedy, starts)
            state = state.actions
        return self.exploration.explore(state, rows, values, starts=starts, clock=clock)

    def _note_errors(self, positions: Tensor, errors: Tensor) -> None:
        try:
            self.memory.note_errors(positions, errors)
        except NonFiniteError:
            self.engine.require_finite()  # which can say why
            raise

    def _news(self, clock: Clock, rates: dict[str, float]) -> dict[str, float]:
        """What there is to log once in `report_every` gradient steps, else nothing."""
        steps = self.training_steps - self._reported_at
        if steps < self._learning.report_every:
            return {}
        self._reported_at = self.training_steps
        scalars = {"training_steps": float(steps), **self.engine.drain_metrics(), **rates}
        named = {f"train/{name}": value for name, value in scalars.items()}
        perturbed = {} if self.perturbed is None else self.perturbed.scalars()
        return named | self.memory.scalars() | self.exploration.scalars(clock) | perturbed


def observations(batch: Batch, prefix: str = OBSERVATIONS) -> Batch:
    """The observations of a batch by key."""
    return {
        path.removeprefix(prefix): column
        for path, column in batch.items()
        if path.startswith(prefix)
    }
