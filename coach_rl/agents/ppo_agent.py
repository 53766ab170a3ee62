"""Proximal policy optimisation (Schulman et al. 2017, arXiv:1707.06347).

Both objectives of the paper, clipped and with an adaptive KL penalty, for actions of every kind,
see docs/actions.md. docs/algorithms/ppo.md lists every detail and its source.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor

from coach_rl.agents.action_forms import ACTION_UNITS_KIND, FORMS
from coach_rl.agents.agent_rows import AgentRows
from coach_rl.agents.filtered_agent import FilteredAgent, FilteredAgentParameters
from coach_rl.agents.kl_objective import OBJECTIVES
from coach_rl.agents.rollout_order import FlatBatches
from coach_rl.agents.stages.stage import StageKind
from coach_rl.architectures.actor_critic import ActorCritic, ActorCriticParameters, critics
from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.architectures.recurrent_forward import policy_forward
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.agents import AgentContext, SymmetryParameters, TrainingReport
from coach_rl.core.clock import Clock, ConstantSchedule, Schedule
from coach_rl.core.discrete_actions import first_action
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.parameter_classes import LearnerParameters, parameter_class
from coach_rl.core.ranges import NonNegative, Positive, UnitInterval
from coach_rl.core.records import ActionInfo, ActionRequest, BoolArray, IntArray, Transition
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.running_statistics import RunningStatistics
from coach_rl.core.saved import SavedAttribute, SavedNames
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.exploration_policies.samplers import sampler_for
from coach_rl.functional.advantages import advantages_of_rows, explained_variance, segment_ends
from coach_rl.functional.policy_gradient import ROUNDING, normalised, value_loss
from coach_rl.memories.batches import Minibatch, Rollout, RolloutBatch
from coach_rl.memories.rollout_memory import RolloutMemory, RowGrid


@parameter_class
class PPOAlgorithmParameters:
    """PPO's settings. Defaults: the paper's table 3 (MuJoCo, 1M steps) where it has them."""

    rollout: Annotated[EnvironmentSteps, Ge(2)] = EnvironmentSteps(2048)
    """Decisions collected, over all environments, before each round of updates."""
    epochs: Positive[int] = 10
    """Passes over a rollout."""
    minibatch: Positive[int] = 64
    """Transitions per gradient step, `rollout` at most; what does not fill a minibatch waits for
    the next epoch."""
    discount: UnitInterval = 0.99
    """Gamma, per decision."""
    discount_by_duration: bool = False
    """Discount by gamma ** duration instead, for decisions that last several simulator steps."""
    gae_lambda: UnitInterval = 0.95
    """Lambda of generalised advantage estimation."""
    objective: Literal["clip", "kl"] = "clip"
    """Clipped surrogate (equation 7) or adaptive KL penalty (equation 8)."""
    clip: Positive[float] = 0.2
    """Epsilon of the clipped objective, usually 0.1 to 0.3."""
    clip_schedule: Schedule = field(default_factory=lambda: ConstantSchedule(value=1.0))
    """Factor on `clip` over the run, read where the rollout began."""
    learning_rate_schedule: Schedule = field(default_factory=lambda: ConstantSchedule(value=1.0))
    """Factor on the optimiser's learning rate over the run, read where the rollout began."""
    kl_target: Positive[float] = 0.01
    """Divergence per round that the KL penalty steers for (objective `kl`)."""
    initial_kl_coefficient: NonNegative[float] = 1.0
    """First beta of the KL penalty (objective `kl`)."""
    stop_at_kl: Positive[float] | None = None
    """End the round after an epoch whose mean divergence exceeds this; None never does."""
    value_coefficient: NonNegative[float] = 0.5
    """Weight of the value loss (which is half the mean squared error)."""
    entropy_coefficient: NonNegative[float] = 0.0
    """Weight of the entropy bonus."""
    value_clip: Positive[float] | None = None
    """Keep value predictions within this of the old ones; None does not (better, as a rule)."""
    normalise_advantage: bool = True
    """Give each minibatch's advantages mean 0 and standard deviation 1."""
    recompute_advantages: bool = False
    """Recompute values and advantages before each epoch (Andrychowicz et al. 2021)."""
    sequence: Positive[int] = 16
    """Recurrent networks learn from sequences of so many transitions at most, from the hidden state
    that the first one was collected with; `minibatch` at most."""
    scale_returns: bool = False
    """Let the critic predict returns divided by their running standard deviation."""

    @property
    def updates_per_round(self) -> int:
        """Gradient steps of a full round."""
        return self.epochs * max(1, self.rollout.count // self.minibatch)


@parameter_class
class PPOAgentParameters(FilteredAgentParameters, LearnerParameters):
    """A PPO agent."""

    algorithm: PPOAlgorithmParameters = field(default_factory=PPOAlgorithmParameters)
    """Settings of the algorithm."""
    network: ActorCriticParameters = field(default_factory=ActorCriticParameters)
    """The network of policy and critic."""
    optimizer: OptimizerParameters = field(
        default_factory=lambda: AdamParameters(
            learning_rate=3e-4, epsilon=1e-5, max_gradient_norm=0.5
        )
    )
    """The optimiser; learning rate of the paper, epsilon and clipping of OpenAI baselines."""
    scale_actions: bool = True
    """The policy acts in [-1, 1], which is mapped to the bounds of a Box of actions; False: it acts
    in the Box's own units. Elements without finite bounds keep their units."""
    arguments: Mapping[str, tuple[str, int]] = FrozenMapping[str]()
    """Parameterised actions: parts of a Dict of actions that are arguments of one action of a
    Discrete part, such as `{"distance": ("kind", 2)}`. They count where it was chosen; all other
    parts count always."""
    symmetry: SymmetryParameters | None = None
    """A symmetry of the body: what is learned in one situation holds in all symmetric ones. None:
    each is learned for itself."""

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

    def build(self, context: AgentContext) -> "PPOAgent":
        """The agent; SpaceError when it has no policy for the action space."""
        return PPOAgent(self, context)


class PPOAgent(FilteredAgent[RowNoise]):
    """Collects a rollout with the current policy, improves the policy, discards the rollout."""

    SAVED: ClassVar[SavedNames] = (
        SavedAttribute("network", policy=True),
        SavedAttribute("returns", policy=True),
        "engine",
        "memory",
        "shuffle",
        SavedAttribute("objective", inline=True),
        "training_steps",
    )
    TIMED: ClassVar[Mapping[str, str]] = {
        "memory.rollout": "sample",
        "memory.grid": "sample",
        "rollout_batch": "advantages",
    }
    STAGES: ClassVar[tuple[StageKind, ...]] = (ACTION_UNITS_KIND,)

    is_on_policy = True

    def __init__(self, params: PPOAgentParameters, context: AgentContext) -> None:
        super().__init__(params, context)
        device = torch.device(context.device)
        seed = context.seed
        self.params = params
        self._device = device
        self.place = context.place
        weights = torch.Generator().manual_seed(integer_seed(seed, params.name, "weights"))
        self.model: ActorCritic = params.network.build(
            observation_space=self.observation_space,
            action_space=self.action_space,
            rng=weights,
            streams=len(self.stages.streams),
        )
        self.network = NetworkWrapper(self.model, device=device)
        self.model.output_rules = self.output_rules
        self.building.of_networks([self.model])
        self.policy = self.stages.acting(policy_forward(self.model, device))
        """Parameters of distributions [R, P] of filtered observations, by which it acts."""
        algorithm = params.algorithm
        order = FlatBatches(algorithm, params.name)
        for stage in self.stages.all:
            order = stage.rollout_order(order)
        self.order: FlatBatches = order
        """The order in which it learns from the transitions of a rollout."""
        objective = OBJECTIVES[algorithm.objective]
        self.objective = objective(algorithm.initial_kl_coefficient, algorithm.kl_target)
        self.distribution = self.model.distribution
        self.sampler = sampler_for(self.action_space)
        self._first_action = first_action(self.action_space)
        rounds = context.planned_steps // algorithm.rollout.count
        self.engine = UpdateEngine(
            (Objective(network=self.network, loss=self.loss, optimizer=params.optimizer),),
            mode=params.update_mode,
            planned_updates=rounds * algorithm.updates_per_round,
            owner=context.place.owner(params.name),
            runtime=context.runtime,
        )
        # A tick brings a transition of every row at most, and a round follows when there are
        # enough. Decisions still open when acting turns random come in without one, once a row.
        waiting = 2 * context.num_envs
        self.memory = RolloutMemory(algorithm.rollout.count + waiting + order.padding)
        self.shuffle = generator(seed, params.name, "shuffle")
        self.returns = RunningStatistics(())
        self.training_steps = 0

    def _form_of_actions(
        self, output_filter: OutputFilter, params: FilteredAgentParameters, context: AgentContext
    ) -> OutputFilter:
        for form in FORMS:
            output_filter = form(output_filter, params, context.place.owner(params.name))
        return output_filter

    def new_rows(self, num_envs: int, seed: int) -> AgentRows[RowNoise]:
        noise = RowNoise(
            num_rows=num_envs,
            size=self.sampler.noise_size,
            kind=self.sampler.noise_kind,
            seed=seed,
            name="policy",
        )
        return self._rows(num_envs, seed, noise)

    def choose(
        self, row_state: AgentRows[RowNoise], request: ActionRequest, clock: Clock
    ) -> ActionInfo:
        parameters = self.engine.checked(self.policy(request.observation))
        greedy = request.greedy
        noise = row_state.exploration
        if greedy.any():
            action, log_prob = self.sampler.greedy(parameters)
            if not greedy.all():
                drawn, drawn_log_prob = self.sampler.draw(
                    parameters[~greedy], noise.draw(request.rows[~greedy])
                )
                action[~greedy] = drawn
                log_prob[~greedy] = drawn_log_prob
        else:
            action, log_prob = self.sampler.draw(parameters, noise.draw(request.rows))
        extras = {"log_prob": log_prob}
        if self.objective.keeps_policy:
            extras["policy"] = parameters
        return ActionInfo(action=action + self._first_action, extras=extras)

    def store(self, transition: Transition) -> None:
        self.memory.add(transition)

    def decisions_until_training(self) -> int:
        return max(1, self.params.algorithm.rollout.count - len(self.memory))

    def train(self, clock: Clock) -> TrainingReport | None:
        algorithm = self.params.algorithm
        if len(self.memory) < algorithm.rollout.count:
            return None
        began = self._when_the_rollout_began(clock)
        factor = algorithm.learning_rate_schedule(began)
        learning_rate = self.params.optimizer.learning_rate * factor
        clip = algorithm.clip * algorithm.clip_schedule(began)
        self.engine.set_scalars(
            learning_rate=learning_rate, clip=clip, kl_coefficient=self.objective.kl_coefficient
        )
        metrics, steps = self.learn_from_rollout()
        self.memory.clear()
        self.training_steps = self.engine.steps
        named = {f"train/{name}": value for name, value in metrics.items()}
        named |= {
            "train/training_steps": float(steps),
            "train/learning_rate": learning_rate,
            "train/clip": clip,
        }
        return TrainingReport(training_steps=steps, metrics=named)

    def learn_from_batch(self, batch: Minibatch) -> Numbers:
        return self.order.step(self.engine, batch)

    def parts(self) -> Mapping[str, object]:
        own = {"actor_critic": self.network, "engine": self.engine, "memory": self.memory}
        return {**super().parts(), **own}

    def note_loaded(self) -> None:
        self.engine.steps = self.training_steps

    def _when_the_rollout_began(self, clock: Clock) -> Clock:
        """Return the clock for schedules: read now, a fall to 0 would waste the last round."""
        steps = max(0, clock.environment_steps - self.memory.environment_steps)  # 0: some share it
        return replace(clock, environment_steps=steps)

    def learn_from_rollout(self) -> tuple[dict[str, float], int]:
        """Epochs over the rollout; metrics without their room, and the gradient steps made."""
        algorithm = self.params.algorithm
        rollout = self.order.observed(self.memory.rollout(self._device))
        count = len(self.memory)
        grid = self.memory.grid()
        order = self.order.order(rollout, grid, count)
        batch = self.rollout_batch(rollout, grid)
        variance = explained_variance(batch.value[:count], batch.target[:count])
        per_epoch: list[dict[str, float]] = []  # of equally many gradient steps each
        steps = 0
        for epoch in range(algorithm.epochs):
            if epoch and algorithm.recompute_advantages:
                batch = self.rollout_batch(rollout, grid)
            steps += self._learn_one_epoch(batch, order)
            if algorithm.stop_at_kl is not None:
                per_epoch.append(self.engine.drain_metrics())
                if per_epoch[-1]["approx_kl"] > algorithm.stop_at_kl:
                    break
        per_epoch = per_epoch or [self.engine.drain_metrics()]
        skipped = sum(each.pop("skipped_updates", 0.0) for each in per_epoch)
        metrics = {
            name: float(np.mean([each[name] for each in per_epoch])) for name in per_epoch[0]
        }
        if skipped:
            metrics["skipped_updates"] = skipped
        metrics["explained_variance"] = float(variance)
        metrics |= self.objective.end_round(lambda: self._divergence(batch, order))
        return metrics, steps

    def _learn_one_epoch(self, rollout: RolloutBatch, order: IntArray) -> int:
        """Minibatches of a new permutation; the gradient steps made."""
        size = self.order.size(order, len(self.memory))
        shuffled = self._on_device(order[self.shuffle.permutation(len(order))])
        whole = shuffled[: len(order) - len(order) % size]
        minibatches = whole.view(-1, size, *whole.shape[1:]).unbind()
        for index in minibatches:
            self.learn_from_batch(Minibatch(rollout, index))
        return len(minibatches)

    def rollout_batch(self, rollout: Rollout, grid: RowGrid) -> RolloutBatch:
        """The rollout with the critic's values now, and the advantages and targets they give."""
        algorithm = self.params.algorithm
        scale = self.return_scale()
        index, valid = self._on_device(grid.index), self._on_device(grid.valid)
        with torch.inference_mode():
            # [C] each, in their own scales
            value, *others = critics(self.model.value(rollout.observation))
            ends = segment_ends(
                index=index,
                valid=valid,
                ended=rollout.terminated | rollout.truncated,
                follows=rollout.follows,
            )
            discount = torch.full(index.shape, algorithm.discount, device=self._device)
            if algorithm.discount_by_duration:
                discount = discount ** rollout.duration[index]
            after, *others_after = critics(self.value_after(rollout, index[ends]))
            advantage = advantages_of_rows(
                index=index,
                valid=valid,
                ends=ends,
                reward=rollout.reward.to(torch.float32),
                value=value * scale,
                value_after_ends=after * scale,
                terminated=rollout.terminated,
                discount=discount,
                trace=algorithm.gae_lambda,
            )
            target = advantage + value * scale
            if algorithm.scale_returns:
                self.returns.update(target[index[valid]].cpu().numpy())
            streams: dict[str, Tensor] = {}
            for stream, *own in zip(self.stages.streams, others, others_after, strict=True):
                added, aim = stream(rollout, (index, valid, ends), (own[0], own[1]), algorithm)
                streams[f"{len(streams)}"] = torch.stack([own[0], aim], dim=1)
                advantage = advantage + added
        first = torch.as_tensor(self._first_action, device=self._device)
        return RolloutBatch(
            observation=rollout.observation,
            action=rollout.action - first,
            log_prob=rollout.extras["log_prob"],
            advantage=advantage,
            target=target / scale,
            value=value,
            policy=rollout.extras.get("policy"),
            valid=self.order.valid(rollout, len(self.memory)),
            streams=streams,
        )

    def value_after(self, rollout: Rollout, positions: Tensor) -> Tensor:
        """The critics' values of what transitions [K] led to, [K] or [K, 1 + S]; own scales."""
        return self.model.value(self.order.after(rollout, positions, self.model))

    def _divergence(self, batch: RolloutBatch, order: IntArray) -> float:
        """Mean KL(old || new) over the rollout, after its updates (section 4)."""
        taken = self.order.gathered(Minibatch(batch, self._on_device(order)))
        assert taken.policy is not None
        with torch.inference_mode():
            kl = self.distribution.kl(taken.policy, self.model.policy(taken.observation))
            return float(taken.mean(kl))

    def return_scale(self) -> float:
        """Return the factor from the critic's outputs to returns; 1 while returns don't vary."""
        if not self.params.algorithm.scale_returns:
            return 1.0
        std = np.sqrt(self.returns.variance)
        is_constant = std <= ROUNDING * np.abs(self.returns.mean)
        return 1.0 if is_constant else float(1 / self.returns.inverse_std(1e-8))

    def loss(self, flat: Tensor, batch: RolloutBatch, scalars: Numbers) -> tuple[Tensor, Numbers]:
        """The surrogate of the policy, the critic's error and the entropy bonus, section 5."""
        algorithm = self.params.algorithm
        distribution = self.distribution
        mean = batch.mean
        parameters, values = self.network.call(flat, batch.observation)
        value, *others = critics(values)
        advantage = batch.advantage
        if algorithm.normalise_advantage:
            advantage = normalised(advantage, mean, batch.valid)
        log_prob = distribution.log_prob(parameters, batch.action)
        if batch.valid is not None:  # a ratio of padding could be infinite
            log_prob = torch.where(batch.valid, log_prob, batch.log_prob)
        batch = batch._replace(advantage=advantage)
        policy, metrics = self.objective.surrogate(
            distribution, parameters, log_prob, batch, scalars
        )
        error = value_loss(value, batch.value, batch.target, algorithm.value_clip, mean)
        for own, kept in zip(others, batch.streams.values(), strict=True):
            error = error + value_loss(own, kept[:, 0], kept[:, 1], algorithm.value_clip, mean)
        entropy = mean(distribution.entropy(parameters))
        loss = (
            policy + algorithm.value_coefficient * error - algorithm.entropy_coefficient * entropy
        )
        return loss, {
            "policy_loss": policy.detach(),
            "value_loss": error.detach(),
            "entropy": entropy.detach(),
            **metrics,
        }

    def _on_device(self, values: IntArray | BoolArray) -> Tensor:
        return torch.from_numpy(values).to(self._device)
