"""The option-critic architecture (Bacon et al. 2017, arXiv:1609.05140), on top of PPO.

One agent learns all options of its level, and where each ends. The level above chooses among them.
docs/skills.md lists every detail and its source.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
import torch
from annotated_types import Interval
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.agents.agent_rows import AgentRows
from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters
from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.hidden_states import require_memoryless
from coach_rl.architectures.initial_weights import linear
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_policy import quick_forward
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.architectures.torso import AnyTorsoParameters, TorsoParameters, last_layer
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.agents import AgentContext, TrainingReport
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.options import OPTION_KEY, OptionSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import BoolArray, End, IntArray, Observation, Outcome
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import SavedAttribute
from coach_rl.core.seeding import integer_seed
from coach_rl.extensions.skills.skill_losses import termination_loss
from coach_rl.memories.batches import Rollout, RolloutBatch, Tensors
from coach_rl.memories.rollout_memory import RowGrid

ENDED = "ended"
"""The name under which a decision keeps whether its option was ended after it."""
OVER = "episode_over"
"""The name under which it keeps whether the real episode was."""
REAL_END = np.uint8(End.TERMINATED | End.TRUNCATED)


@parameter_class
class TerminationParameters:
    """beta(s, w), the probability that option w ends in state s, and how it is learned."""

    torso: AnyTorsoParameters = field(default_factory=TorsoParameters)
    """Its layers."""
    initial_chance: Annotated[float, Interval(gt=0, lt=1)] = 0.1
    """Chance at the start, about the same in every state."""
    deliberation_cost: NonNegative[float] = 0.01
    """Reward that ending an option costs (Harb et al. 2018); 0 lets options become short. Bacon
    et al. 2017 add 0.01 to the advantage in their Atari runs."""
    optimizer: OptimizerParameters = field(
        default_factory=lambda: AdamParameters(learning_rate=3e-4, epsilon=1e-5)
    )
    """Optimiser of the network; PPO's schedule is a factor on its learning rate, too."""


@parameter_class
class OptionCriticAgentParameters(PPOAgentParameters):
    """PPO over a level's options, which it ends itself."""

    termination: TerminationParameters = field(default_factory=TerminationParameters)
    """The network that ends options."""

    def build(self, context: AgentContext) -> "OptionCriticAgent":
        """The agent; ConfigurationError unless its level rewards all options alike."""
        space = None if context.place.level is None else context.place.level.goal_space
        if (
            not isinstance(space, OptionSpace)
            or OPTION_KEY not in context.spaces.observation.spaces
        ):
            raise ConfigurationError(
                f"agent '{self.name}' ends options, and needs a level with "
                f"goal_space=OptionSpace(count=K) all of which it acts for, got {space}"
            )
        if space.rewards:
            raise ConfigurationError(
                f"agent '{self.name}' compares the values of options, which needs one reward for "
                "all of them; leave out OptionSpace.rewards, or use PPOAgentParameters and "
                "OptionSpace.ends"
            )
        return OptionCriticAgent(self, context)


class Termination(nn.Module):
    """The logit of beta."""

    def __init__(
        self, params: TerminationParameters, space: spaces.Dict, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.torso = params.torso.build(space, rng)
        head = partial(linear, rng=rng, gain=0.01, orthogonal=True)
        last = last_layer(self.torso, 1, head)
        if isinstance(last, nn.Linear):
            odds = params.initial_chance / (1 - params.initial_chance)
            nn.init.constant_(last.bias, math.log(odds))
        self.head = nn.Sequential(last)

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """[B] of observations [B, ...] each."""
        logit: Tensor = self.head(self.torso(observation))
        return logit.squeeze(-1)


class TerminationBatch(NamedTuple):
    """The columns that the termination learns from, [C, ...] each."""

    observation: Tensors
    """Observations after the decisions, by key, with the option in them."""
    advantage: Tensor
    """Q(s, w) - V(s) there, [C]."""
    counts: Tensor
    """False where the state is final, [C] bool."""


@dataclass(kw_only=True)
class OptionCriticRows(AgentRows[RowNoise]):
    """The state of PPO's rows, and the random numbers by which options end."""

    SAVED = ("termination",)

    termination: RowNoise


class OptionCriticAgent(PPOAgent):
    """PPO whose critic is Q(s, w), with a learned termination; an `EndingAgent`.

    V(s), what the level above can get from s on, is taken to be the largest of Q(s, w).

    Args:
        params: The agent's parameters.
        context: Settings known only at construction, such as spaces.
    """

    SAVED = (
        SavedAttribute("termination", policy=True),
        "_termination_engine",
        "_termination_steps",
    )
    TIMED: ClassVar[Mapping[str, str]] = {"ends": "choose"}

    def __init__(self, params: OptionCriticAgentParameters, context: AgentContext) -> None:
        super().__init__(params, context)
        if self.stages.streams:
            raise ConfigurationError(
                f"agent '{params.name}' compares the values of options, which streams of reward "
                "lack; leave the bonus' `stream` out"
            )
        if OPTION_KEY in self.input_filter.changed_keys:
            raise ConfigurationError(
                f"agent '{params.name}' compares options as the level shows them, and its "
                f"InputFilter changes '{OPTION_KEY}'; leave that key out of it"
            )
        seed = context.seed
        own = params.termination
        self._cost = own.deliberation_cost
        self._termination_rate = own.optimizer.learning_rate
        rng = torch.Generator().manual_seed(integer_seed(seed, params.name, "termination"))
        network = Termination(own, self.observation_space, rng)
        require_memoryless((self.model, network), f"agent '{params.name}' with its options")
        self.termination = NetworkWrapper(network, device=self._device)
        self._logits = quick_forward(network.torso, network.head, self._device)
        algorithm = params.algorithm
        rounds = context.planned_steps // algorithm.rollout.count
        self._termination_engine: UpdateEngine[TerminationBatch] = UpdateEngine(
            (
                Objective(
                    name="termination",
                    network=self.termination,
                    loss=self.termination_loss,
                    optimizer=own.optimizer,
                ),
            ),
            mode=params.update_mode,
            planned_updates=rounds * algorithm.updates_per_round // algorithm.epochs,
            owner=context.place.owner(params.name),
            runtime=context.runtime,
        )

    def new_rows(self, num_envs: int, seed: int) -> OptionCriticRows:
        noise = RowNoise(num_rows=num_envs, size=1, kind="uniform", seed=seed, name="termination")
        return OptionCriticRows(**vars(super().new_rows(num_envs, seed)), termination=noise)

    def ends(
        self, row_state: OptionCriticRows, rows: IntArray, observation: Observation, clock: Clock
    ) -> BoolArray:
        """Draw where options end, [R], in evaluations too; see `core.agents.EndingAgent`.

        The likelier of two answers would be no at most places, and options would never end.
        """
        memory = {name: values.copy() for name, values in row_state.filters.items()}
        seen = self.stages.enter(
            memory,
            rows,
            observation,
            starts=np.zeros(len(rows), np.bool_),
            learn=False,
        )
        logits = self._termination_engine.checked(self._logits(seen))[:, 0]
        ended: BoolArray = row_state.termination.draw(rows)[:, 0] < 1 / (1 + np.exp(-logits))
        if row_state.followed:
            ended = row_state.followed[ENDED][rows]
        kept = row_state.choice.setdefault(ENDED, np.zeros(len(row_state.heatup), np.bool_))
        kept[rows] = ended
        return ended

    def option_values(self, observation: Tensors) -> Tensor:
        """Q(s, w) of every option, in the critic's own scale, [B, K]."""
        chosen = observation[OPTION_KEY]
        every = torch.eye(chosen.shape[1], dtype=chosen.dtype, device=chosen.device)
        values = [
            self.model.value({**observation, OPTION_KEY: one.expand_as(chosen)}) for one in every
        ]
        return torch.stack(values, dim=1)

    def observe(self, row_state: AgentRows[RowNoise], outcome: Outcome, clock: Clock) -> None:
        over = row_state.choice.setdefault(OVER, np.zeros(len(row_state.heatup), np.bool_))
        over[outcome.rows] = (outcome.end & REAL_END) > 0
        super().observe(row_state, outcome, clock)

    def rollout_batch(self, rollout: Rollout, grid: RowGrid) -> RolloutBatch:
        """PPO's, with advantages that continue under the next option of the same real episode."""
        return super().rollout_batch(continued(rollout, grid), grid)

    def value_after(self, rollout: Rollout, positions: Tensor) -> Tensor:
        """Values [K] of what transitions led to: V(s) where the option is over, else Q(s, w)."""
        seen = {key: values[positions] for key, values in rollout.next_observation.items()}
        best = self.option_values(seen).amax(dim=1)
        return torch.where(rollout.truncated[positions], best, self.model.value(seen))

    def train(self, clock: Clock) -> TrainingReport | None:
        """PPO's round; its schedule is a factor on the termination's learning rate, too."""
        algorithm = self.params.algorithm
        if len(self.memory) < algorithm.rollout.count:
            return None
        factor = algorithm.learning_rate_schedule(self._when_the_rollout_began(clock))
        learning_rate = self._termination_rate * factor
        self._termination_engine.set_scalars(termination_learning_rate=learning_rate)
        report = super().train(clock)
        if report is None:
            return None
        own = {"train/termination_learning_rate": learning_rate}
        return replace(report, metrics={**report.metrics, **own})

    def learn_from_rollout(self) -> tuple[dict[str, float], int]:
        """PPO's epochs, then a pass of the termination; metrics, and the gradient steps made."""
        metrics, steps = super().learn_from_rollout()
        batch = self.termination_batch()
        count = len(self.memory)
        size = min(self.params.algorithm.minibatch, self.params.algorithm.rollout.count)
        order = torch.from_numpy(self.shuffle.permutation(count)).to(self._device)
        minibatches = order[: count - count % size].reshape(-1, size).unbind()
        for index in minibatches:
            self._termination_engine.step(batch, index)
        learned = self._termination_engine.drain_metrics()
        return {**metrics, **learned}, steps + len(minibatches)

    def termination_batch(self) -> TerminationBatch:
        """The rollout as the termination learns from it, advantages in the reward's scale."""
        rollout = self.memory.rollout(self._device)
        with torch.inference_mode():
            values = self.option_values(rollout.next_observation) * self.return_scale()
            option = rollout.next_observation[OPTION_KEY].argmax(dim=1, keepdim=True)
            advantage = values.gather(1, option).squeeze(1) - values.amax(dim=1)
        return TerminationBatch(rollout.next_observation, advantage, ~rollout.terminated)

    def termination_loss(
        self,
        flat: Tensor,
        batch: TerminationBatch,
        scalars: Numbers,
    ) -> tuple[Tensor, Numbers]:
        """The chance of ending, weighted by what the option loses to the best one there."""
        chance = torch.sigmoid(self.termination.call(flat, batch.observation))
        return termination_loss(chance, batch.advantage, batch.counts, self._cost)

    def parts(self) -> Mapping[str, object]:
        own = {"termination": self.termination, "termination_engine": self._termination_engine}
        return {**super().parts(), **own}

    @property
    def _termination_steps(self) -> int:
        """Gradient steps of the termination, for its diagnosis."""
        return self._termination_engine.steps

    @_termination_steps.setter
    def _termination_steps(self, steps: int) -> None:
        self._termination_engine.steps = steps


def continued(rollout: Rollout, grid: RowGrid) -> Rollout:
    """The rollout in which an option's end is none where the next option follows at once.

    It does unless the real episode is over, or something was left out in between: then the next
    decision was not made on what this one led to.
    """
    device = rollout.truncated.device
    valid = torch.from_numpy(grid.valid[1:]).to(device)
    index = torch.from_numpy(grid.index).to(device)
    before, after = index[:-1][valid], index[1:][valid]  # [P] each: neighbours of the same row
    same_episode = rollout.truncated[before] & ~rollout.extras[OVER][before]
    for key, seen in rollout.observation.items():
        if key != OPTION_KEY:
            same = rollout.next_observation[key][before] == seen[after]
            same_episode &= same.reshape(len(same), -1).all(dim=1)
    truncated, follows = rollout.truncated.clone(), rollout.follows.clone()
    truncated[before[same_episode]] = False
    follows[after[same_episode]] = True
    return rollout._replace(truncated=truncated, follows=follows)
