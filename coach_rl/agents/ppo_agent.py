"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347).

Both objectives of the paper, clipped and with an adaptive KL penalty, for Box, Discrete and
MultiDiscrete actions. docs/algorithms/ppo.md lists every detail and its source.
"""

from dataclasses import field, replace
from typing import Literal, Self

import numpy as np
import torch
from gymnasium.spaces import Discrete, MultiDiscrete
from torch import Tensor

from coach_rl.agents.agent import AgentRows, FilteredAgent
from coach_rl.architectures.actor_critic import ActorCritic, ActorCriticParameters
from coach_rl.architectures.gradient_step import Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_policy import numpy_policy
from coach_rl.architectures.optimizers import AdamParameters
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.clock import Clock
from coach_rl.core.errors import require
from coach_rl.core.interfaces import (
    ALONE,
    InputFilterParameters,
    LevelPlace,
    OutputFilterParameters,
)
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import (
    ActionInfo,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
    TrainingReport,
    Transition,
)
from coach_rl.core.roles import LearnerParameters, MovableParameters
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.running_statistics import RunningStatistics
from coach_rl.core.schedules import ConstantSchedule, Schedule
from coach_rl.core.seeding import generator, generator_state, integer_seed, load_generator_state
from coach_rl.core.spaces import EnvironmentSpaces, Space, first_action
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.core.update_modes import UpdateMode, cannot_run
from coach_rl.exploration_policies.sampling import (
    CategoricalSampler,
    GaussianSampler,
    Sampler,
)
from coach_rl.functional.advantages import (
    advantages_of_rows,
    explained_variance,
    segment_ends,
)
from coach_rl.functional.policy_gradient import (
    adapted_kl_coefficient,
    clipped_surrogate,
    normalised,
    penalised_surrogate,
    value_loss,
)
from coach_rl.memories.memory import Batch
from coach_rl.memories.rollout_memory import RolloutMemory, RowGrid

OBSERVATIONS, NEXT_OBSERVATIONS = "/observations/", "/next_observations/"


@parameter_class
class PPOAlgorithmParameters:
    """PPO's settings. Defaults: the paper's table 3 (MuJoCo, 1M steps) where it has them."""

    rollout: EnvironmentSteps = EnvironmentSteps(2048)
    """Decisions collected, over all environments, before each round of updates."""
    epochs: int = 10
    """Passes over a rollout."""
    minibatch: int = 64
    """Transitions per gradient step, `rollout` at most; what does not fill a minibatch waits for
    the next epoch."""
    discount: float = 0.99
    """Gamma, per decision."""
    discount_by_duration: bool = False
    """Discount by gamma ** duration instead, for decisions that last several simulator steps."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation."""
    objective: Literal["clip", "kl"] = "clip"
    """Clipped surrogate (equation 7) or adaptive KL penalty (equation 8)."""
    clip: float = 0.2
    """Epsilon of the clipped objective, usually 0.1 to 0.3."""
    clip_schedule: Schedule = field(default_factory=lambda: ConstantSchedule(value=1.0))
    """Factor on `clip` over the run, read where the rollout began."""
    learning_rate_schedule: Schedule = field(default_factory=lambda: ConstantSchedule(value=1.0))
    """Factor on the optimiser's learning rate over the run, read where the rollout began."""
    kl_target: float = 0.01
    """Divergence per round that the KL penalty steers for (objective `kl`)."""
    initial_kl_coefficient: float = 1.0
    """First beta of the KL penalty (objective `kl`)."""
    stop_at_kl: float | None = None
    """End the round after an epoch whose mean divergence exceeds this; None never does."""
    value_coefficient: float = 0.5
    """Weight of the value loss (which is half the mean squared error)."""
    entropy_coefficient: float = 0.0
    """Weight of the entropy bonus."""
    value_clip: float | None = None
    """Keep value predictions within this of the old ones; None does not (better, as a rule)."""
    normalise_advantage: bool = True
    """Give each minibatch's advantages mean 0 and deviation 1."""
    recompute_advantages: bool = False
    """Recompute values and advantages before each epoch (Andrychowicz et al. 2021)."""
    scale_returns: bool = False
    """Let the critic predict returns divided by their running deviation."""

    def __post_init__(self) -> None:
        for name in ("epochs", "minibatch"):
            value = getattr(self, name)
            require(value >= 1, f"{name} must be 1 or more, got {value}")
        require(
            self.rollout.count >= 2, f"rollout must be 2 steps or more, got {self.rollout.count}"
        )
        require(self.kl_target > 0, f"kl_target must be more than 0, got {self.kl_target}")
        for name in ("initial_kl_coefficient", "value_coefficient", "entropy_coefficient"):
            value = getattr(self, name)
            require(value >= 0, f"{name} must be 0 or more, got {value}")
        for name in ("discount", "gae_lambda"):
            value = getattr(self, name)
            require(0 <= value <= 1, f"{name} must lie in [0, 1], got {value}")
        require(self.clip > 0, f"clip must be more than 0, got {self.clip}")
        for name in ("stop_at_kl", "value_clip"):
            value = getattr(self, name)
            require(value is None or value > 0, f"{name} must be more than 0 or None, got {value}")

    @property
    def updates_per_round(self) -> int:
        """Gradient steps of a full round."""
        return self.epochs * max(1, self.rollout.count // self.minibatch)


@parameter_class
class PPOAgentParameters(MovableParameters, LearnerParameters):
    """A PPO agent."""

    name: str = "agent"
    """The agent's name in logs and files."""
    algorithm: PPOAlgorithmParameters = field(default_factory=PPOAlgorithmParameters)
    """How it learns."""
    network: ActorCriticParameters = field(default_factory=ActorCriticParameters)
    """What it learns with."""
    optimizer: AdamParameters = field(
        default_factory=lambda: AdamParameters(
            learning_rate=3e-4, epsilon=1e-5, max_gradient_norm=0.5
        )
    )
    """Adam; step size of the paper, epsilon and clipping of OpenAI baselines."""
    input_filter: InputFilterParameters | None = None
    """What happens to observations and rewards first; None: nothing."""
    output_filter: OutputFilterParameters | None = None
    """What happens to actions last; None: nothing."""
    update_mode: UpdateMode = "auto"
    """How gradient steps are run: auto, eager, compiled (CPU only) or captured (GPU only)."""

    def moved_to(self, device: str) -> Self:
        """The same; a way to run gradient steps that is not there becomes `auto`."""
        if cannot_run(self.update_mode, device) is None:
            return self
        return replace(self, update_mode="auto")

    def obstacle_to_learning(self, *, num_envs: int, steps: int, heatup: int) -> str | None:
        """A rollout that is never full, or too short for the environments to take a step each."""
        rollout = self.algorithm.rollout.count
        if steps - heatup < rollout:
            return (
                f"agent '{self.name}' would learn nothing: a rollout has {rollout:,} decisions, "
                f"the run {steps - heatup:,} after heat-up; train for longer, or lower "
                "algorithm.rollout"
            )
        if rollout < num_envs:
            return (
                f"agent '{self.name}' learns from less than a step of each of {num_envs:,} "
                f"environments: a rollout has {rollout:,} decisions; raise algorithm.rollout, or "
                "lower num_envs"
            )
        return None

    def build(
        self,
        *,
        spaces: EnvironmentSpaces,
        num_envs: int,
        device: str,
        seed: int,
        planned_steps: int,
        place: LevelPlace = ALONE,
    ) -> "PPOAgent":
        """The agent; SpaceError when it has no policy for the action space."""
        return PPOAgent(
            self,
            spaces=spaces,
            num_envs=num_envs,
            device=torch.device(device),
            seed=seed,
            planned_steps=planned_steps,
            place=place,
        )


class PPOAgent(FilteredAgent):
    """Collects a rollout with the current policy, improves on it, forgets the rollout."""

    def __init__(
        self,
        params: PPOAgentParameters,
        *,
        spaces: EnvironmentSpaces,
        num_envs: int,
        device: torch.device,
        seed: int,
        planned_steps: int,
        place: LevelPlace = ALONE,
    ) -> None:
        super().__init__(
            name=params.name,
            spaces=spaces,
            input_filter=params.input_filter,
            output_filter=params.output_filter,
        )
        self.params, self._device = params, device
        weights = torch.Generator().manual_seed(integer_seed(seed, params.name, "weights"))
        self._model: ActorCritic = params.network.build(
            observation_space=self.observation_space, action_space=self.action_space, rng=weights
        )
        self.network = NetworkWrapper(self._model, device=device)
        self._distribution = self._model.distribution
        self._sampler = sampler_for(self.action_space)
        self._policy = numpy_policy(self._model) or self._torch_policy
        self._first_action = first_action(self.action_space)
        rounds = planned_steps // params.algorithm.rollout.count
        self.engine = UpdateEngine(
            (Objective(network=self.network, loss=self._loss, optimizer=params.optimizer),),
            mode=params.update_mode,
            planned_updates=rounds * params.algorithm.updates_per_round,
            owner=place.owner(params.name),
        )
        # A tick brings a transition of every row at most, and a round follows when there are
        # enough. Decisions still open when acting turns random come in without one, once a row.
        self._memory = RolloutMemory(params.algorithm.rollout.count + 2 * num_envs)
        self._shuffle = generator(seed, params.name, "shuffle")
        self._returns = RunningStatistics(())
        self._kl_coefficient = params.algorithm.initial_kl_coefficient
        self.training_steps = 0

    def new_rows(self, num_envs: int, seed: int) -> AgentRows:
        """Row state for a stack of that many environments."""
        noise = RowNoise(
            num_rows=num_envs,
            size=self._sampler.noise_size,
            kind=self._sampler.noise_kind,
            seed=seed,
            name="policy",
        )
        return self._rows(num_envs, seed, noise)

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
        """Sample from the policy, or take its mode where `quiet`; keeps the log-probability."""
        noise = row_state.exploration
        assert isinstance(noise, RowNoise)
        parameters = self.engine.checked(self._policy(observation))
        if not quiet.any():
            action, log_prob = self._sampler.draw(parameters, noise.draw(rows))
        else:
            action, log_prob = self._sampler.greedy(parameters)
            if not quiet.all():
                loud = ~quiet
                draws = noise.draw(rows[loud])
                action[loud], log_prob[loud] = self._sampler.draw(parameters[loud], draws)
        extras = {"log_prob": log_prob}
        if self.params.algorithm.objective == "kl":
            extras["policy"] = parameters
        return ActionInfo(action=action + self._first_action, extras=extras)

    def keeps_heatup(self) -> bool:
        """On-policy: decisions made at random are dropped."""
        return False

    def store(self, transition: Transition) -> None:
        """Append to the rollout."""
        self._memory.add(transition)

    def train(self, clock: Clock) -> TrainingReport | None:
        """A round of updates once the rollout is full."""
        algorithm = self.params.algorithm
        if len(self._memory) < algorithm.rollout.count:
            return None
        began = self._when_the_rollout_began(clock)
        factor = algorithm.learning_rate_schedule(began)
        learning_rate = self.params.optimizer.learning_rate * factor
        clip = algorithm.clip * algorithm.clip_schedule(began)
        self.engine.set_scalars(
            learning_rate=learning_rate, clip=clip, kl_coefficient=self._kl_coefficient
        )
        scalars, steps = self._learn_from_rollout()
        self._memory.clear()
        self.training_steps += steps
        named = {f"train/{name}": value for name, value in scalars.items()}
        named |= {
            "train/training_steps": float(steps),
            "train/learning_rate": learning_rate,
            "train/clip": clip,
        }
        return TrainingReport(training_steps=steps, scalars=named)

    def learn_from_batch(self, data: Batch, index: Tensor) -> None:
        """One gradient step on the rows `index` [B] of a rollout's columns."""
        self.engine.step(data, index)

    def trajectories(self) -> dict[str, Array]:
        """The rollout so far by flat path, see `memories.trajectories`; empty when it is."""
        return self._memory.trajectories(self.name) if len(self._memory) else {}

    def state_dict(self) -> State:
        """Everything but the rows, which belong to the levels."""
        return {
            "network": self.network.state_dict(),
            "engine": self.engine.state_dict(),
            "memory": self._memory.state_dict(),
            "filters": self.filters_state_dict(),
            "returns": self._returns.state_dict(),
            "shuffle": generator_state(self._shuffle),
            "kl_coefficient": self._kl_coefficient,
            "training_steps": self.training_steps,
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        self.network.load_state_dict(state["network"])
        self.engine.load_state_dict(state["engine"], steps=state["training_steps"])
        self._memory.load_state_dict(state["memory"])
        self.load_filters_state_dict(state["filters"])
        self._returns.load_state_dict(state["returns"])
        load_generator_state(self._shuffle, state["shuffle"])
        self._kl_coefficient = state["kl_coefficient"]
        self.training_steps = state["training_steps"]

    def take_over(self, state: State) -> None:
        """Take over the network, and the scale in which its critic predicts."""
        self.network.load_state_dict(state["network"])
        self._returns.load_state_dict(state["returns"])

    def description(self) -> str:
        """The network and how it is updated, for people."""
        return f"{self.network.summary()}\nupdates: {self.engine.mode}"

    def _when_the_rollout_began(self, clock: Clock) -> Clock:
        """What schedules are read at: read now, one that falls to 0 would waste the last round."""
        steps = clock.environment_steps - self._memory.environment_steps
        return replace(clock, environment_steps=steps)

    def _learn_from_rollout(self) -> tuple[dict[str, float], int]:
        """Epochs over the rollout; metrics without their room, and the gradient steps made."""
        algorithm = self.params.algorithm
        data = {
            path: torch.from_numpy(column).to(self._device)
            for path, column in self._memory.columns.items()
        }
        grid, count = self._memory.grid(), len(self._memory)
        columns, estimates = self._batch_columns(data), self._estimates(data, grid)
        variance = explained_variance(estimates["/values"][:count], estimates["/targets"][:count])
        per_epoch: list[dict[str, float]] = []  # of equally many gradient steps each
        steps = 0
        for epoch in range(algorithm.epochs):
            if epoch and algorithm.recompute_advantages:
                estimates = self._estimates(data, grid)
            steps += self._learn_one_epoch(columns | estimates, count)
            if algorithm.stop_at_kl is not None:
                per_epoch.append(self.engine.drain_metrics())
                if per_epoch[-1]["approx_kl"] > algorithm.stop_at_kl:
                    break
        per_epoch = per_epoch or [self.engine.drain_metrics()]
        metrics = {
            name: float(np.mean([each[name] for each in per_epoch])) for name in per_epoch[0]
        }
        metrics["explained_variance"] = float(variance)
        if algorithm.objective == "kl":
            self._kl_coefficient = adapted_kl_coefficient(
                self._kl_coefficient, self._divergence(data, count), algorithm.kl_target
            )
            metrics["kl_coefficient"] = self._kl_coefficient
        return metrics, steps

    def _learn_one_epoch(self, data: Batch, count: int) -> int:
        """Minibatches of a new permutation; the gradient steps made."""
        algorithm = self.params.algorithm  # count may differ from round to round, sizes may not
        size = min(algorithm.minibatch, algorithm.rollout.count)
        order = torch.from_numpy(self._shuffle.permutation(count)).to(self._device)
        minibatches = order[: count - count % size].reshape(-1, size).unbind()
        for index in minibatches:
            self.learn_from_batch(data, index)
        return len(minibatches)

    def _estimates(self, data: Batch, grid: RowGrid) -> Batch:
        """Values, value targets and advantages of the whole memory, [capacity] each."""
        algorithm = self.params.algorithm
        scale = self._return_scale()
        index, valid = self._on_device(grid.index), self._on_device(grid.valid)
        with torch.inference_mode():
            value = self._model.value(_observations(data, OBSERVATIONS))  # [C], in its own scale
            ends = segment_ends(
                index=index,
                valid=valid,
                ended=data["/terminated"] | data["/truncated"],
                follows=data["/follows"],
            )
            after = {
                key: column[index[ends]]
                for key, column in _observations(data, NEXT_OBSERVATIONS).items()
            }
            discount = torch.full(index.shape, algorithm.discount, device=self._device)
            if algorithm.discount_by_duration:
                discount = discount ** data["/durations"][index]
            advantage = advantages_of_rows(
                index=index,
                valid=valid,
                ends=ends,
                reward=data["/rewards"].to(torch.float32),
                value=value * scale,
                value_after_ends=self._model.value(after) * scale,
                terminated=data["/terminated"],
                discount=discount,
                trace=algorithm.gae_lambda,
            )
            target = advantage + value * scale
            if algorithm.scale_returns:
                self._returns.update(target[index[valid]].cpu().numpy())
        return {"/advantages": advantage, "/targets": target / scale, "/values": value}

    def _divergence(self, data: Batch, count: int) -> float:
        """Mean KL(old || new) over the rollout, after its updates (section 4)."""
        with torch.inference_mode():
            parameters = self._model.policy(_observations(data, OBSERVATIONS))[:count]
            return float(self._distribution.kl(data["/policy"][:count], parameters).mean())

    def _return_scale(self) -> float:
        """What the critic's outputs are multiplied with to be returns."""
        if not self.params.algorithm.scale_returns:
            return 1.0
        return float(1 / self._returns.inverse_deviation(1e-8))

    def _batch_columns(self, data: Batch) -> Batch:
        observations = {
            path: column for path, column in data.items() if path.startswith(OBSERVATIONS)
        }
        actions = data["/actions"] - torch.as_tensor(self._first_action, device=self._device)
        policy = {"/policy": data["/policy"]} if "/policy" in data else {}
        return {**observations, **policy, "/actions": actions, "/log_prob": data["/log_prob"]}

    def _loss(self, flat: Tensor, batch: Batch, scalars: Batch) -> tuple[Tensor, Batch]:
        algorithm, distribution = self.params.algorithm, self._distribution
        parameters, value = self.network.call(flat, _observations(batch, OBSERVATIONS))
        advantage = batch["/advantages"]
        if algorithm.normalise_advantage:
            advantage = normalised(advantage)
        log_prob = distribution.log_prob(parameters, batch["/actions"])
        if algorithm.objective == "clip":
            policy, metrics = clipped_surrogate(
                log_prob, batch["/log_prob"], advantage, scalars["clip"]
            )
        else:
            kl = distribution.kl(batch["/policy"], parameters)
            policy, metrics = penalised_surrogate(
                log_prob, batch["/log_prob"], advantage, kl, scalars["kl_coefficient"]
            )
        error = value_loss(value, batch["/values"], batch["/targets"], algorithm.value_clip)
        entropy = distribution.entropy(parameters).mean()
        loss = (
            policy + algorithm.value_coefficient * error - algorithm.entropy_coefficient * entropy
        )
        return loss, {
            "policy_loss": policy.detach(),
            "value_loss": error.detach(),
            "entropy": entropy.detach(),
            **metrics,
        }

    def _torch_policy(self, observation: Observation) -> FloatArray:
        with torch.inference_mode():
            tensors = {
                key: torch.from_numpy(values).to(self._device)
                for key, values in observation.items()
            }
            return np.asarray(self._model.policy(tensors).cpu().numpy())

    def _on_device(self, values: IntArray | BoolArray) -> Tensor:
        return torch.from_numpy(values).to(self._device)


def sampler_for(space: Space) -> Sampler:
    """How actions of a space are drawn; the space is one `distribution_for` has accepted."""
    match space:
        case Discrete():
            return CategoricalSampler(sizes=(int(space.n),), single=True)
        case MultiDiscrete():
            return CategoricalSampler(sizes=tuple(int(size) for size in space.nvec), single=False)
    return GaussianSampler(size=int(np.prod(space.shape or (1,))))


def _observations(columns: Batch, prefix: str) -> Batch:
    return {
        path.removeprefix(prefix): column
        for path, column in columns.items()
        if path.startswith(prefix)
    }
