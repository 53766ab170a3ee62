"""ReBRAC: TD3 with penalties for the actor and the critics (Tarasov et al. 2023, arXiv:2305.09836).

Both are held near the data: the actor near the actions that the data have, the target's action near
the one that they have next. Critics have layer normalisation.
"""

from dataclasses import field
from functools import partial

import numpy as np
import torch
from torch import Tensor

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.td3_agent import (
    TD3AgentParameters,
    TD3AlgorithmParameters,
    TD3Batch,
    TD3Learner,
)
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.architectures.gradient_step import AdamParameters, Numbers
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.functional.temporal_difference import critic_loss, td_target
from coach_rl.memories.batches import ACTIONS, POSITIONS, Columns, extra
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from coach_rl.memories.samplers import SamplerUnit, UnitContext

NEXT_ACTION = "next_action"
"""Extra of a batch: the action that follows in the episode, [B, A]; 0 where there is none."""
HAS_NEXT_ACTION = "has_next_action"
"""Extra of a batch: whether there is one, [B] bool."""


@parameter_class
class NextActionsParameters:
    """A sampler unit that adds the actions that follow in the data: `next_action`."""

    @property
    def after(self) -> str:
        """The unit behind which actions are read."""
        return "gather"

    def build(self, context: UnitContext) -> "NextActions":
        """The unit."""
        return NextActions(context)


class NextActions(SamplerUnit):
    """Reads the actions of the transitions that follow those of a batch.

    Args:
        context: The unit's surroundings.
    """

    name = "next_actions"
    inputs = (POSITIONS, ACTIONS)
    outputs = (extra(NEXT_ACTION), extra(HAS_NEXT_ACTION))

    def __init__(self, context: UnitContext) -> None:
        self._store = context.store

    def __call__(self, batch: Columns, size: int) -> Columns:
        store = self._store
        positions = batch[POSITIONS].numpy()
        steps = store.steps_of(positions) + 1
        _, ends = store.episodes_of(positions)
        has_next = steps < ends
        following = store.positions_of(store.rows_of(positions), np.minimum(steps, ends - 1))
        action = store.take((ACTIONS,), following)[ACTIONS]
        known = torch.from_numpy(has_next).to(action.device, non_blocking=True)
        return {
            extra(NEXT_ACTION): torch.where(known[:, None], action, 0.0),
            extra(HAS_NEXT_ACTION): known,
        }


def _adam() -> AdamParameters:
    return AdamParameters(learning_rate=1e-3)


def _torso(*, layer_norm: bool) -> TorsoParameters:
    return TorsoParameters(
        middleware=(256, 256, 256), activation="relu", orthogonal=False, layer_norm=layer_norm
    )


@parameter_class
class ReBRACAlgorithmParameters(TD3AlgorithmParameters):
    """ReBRAC's settings. Defaults: the paper's for Hopper, medium."""

    actor_penalty: NonNegative[float] = 0.01
    """Beta 1: weight of the squared distance from the data's actions in the actor's loss."""
    critic_penalty: NonNegative[float] = 0.01
    """Beta 2: weight of the squared distance of the target's action from the one that follows in
    the data, which is taken from its value."""


@parameter_class
class ReBRACAgentParameters(TD3AgentParameters):
    """A ReBRAC agent; its memory has `NextActionsParameters` among its units."""

    algorithm: ReBRACAlgorithmParameters = field(default_factory=ReBRACAlgorithmParameters)
    """Settings of the algorithm."""
    memory: ReplayMemoryParameters = field(
        default_factory=lambda: ReplayMemoryParameters(units=(NextActionsParameters(),))
    )
    """The memory for transitions."""
    actor: ActorParameters = field(
        default_factory=lambda: ActorParameters(torso=_torso(layer_norm=False))
    )
    """The actor's network."""
    critic: CriticParameters = field(
        default_factory=lambda: CriticParameters(torso=_torso(layer_norm=True))
    )
    """The network of each of the two critics."""
    actor_optimizer: OptimizerParameters = field(default_factory=_adam)
    """Optimiser of the actor."""
    critic_optimizer: OptimizerParameters = field(default_factory=_adam)
    """Optimiser of the critics."""

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError unless it acts in a flat, bounded Box."""
        make_learner = partial(ReBRACLearner, self)
        return self.AGENT(
            self, context, discount=self.algorithm.discount, make_learner=make_learner
        )


class ReBRACLearner(TD3Learner):
    """TD3 with penalties for leaving the data.

    Args:
        params: The agent's parameters.
        agent: The agent that learns by it; ConfigurationError where its memory has no actions that
            follow, or sums rewards over several steps.
    """

    def __init__(self, params: ReBRACAgentParameters, agent: OffPolicyAgent) -> None:
        memory = params.memory
        reads = any(isinstance(each, NextActionsParameters) for each in memory.units)
        if memory.n_step != 1 or not reads:
            raise ConfigurationError(
                f"agent '{agent.name}' compares actions with those that follow in the data; give "
                "it ReplayMemoryParameters(units=(NextActionsParameters(),)), with n_step=1, got "
                f"n_step={memory.n_step} and units={memory.units}"
            )
        super().__init__(params, agent)
        self._settings = params.algorithm

    def critic_loss(
        self, flat: Tensor, noisy: TD3Batch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Both critics towards r + gamma (min Q'(s', a) - beta 2 |a - a'|^2), section 3.

        a is the target actor's smoothed action, a' the one that follows in the data, both in
        [-1, 1]; where none follows, in an episode that was cut off, nothing is taken off.
        """
        batch, noise = noisy
        settings = self._settings
        after = batch.next_observation
        with torch.no_grad():
            limit = settings.target_noise_clip
            noise = (noise * settings.target_noise).clamp(-limit, limit)
            if settings.target_noise_unit == "raw":
                noise = noise / self.to_box.half_range
            normalised = self.to_box.inverse(self.actor.call(self.actor.target, after))
            chosen = (normalised + noise).clamp(-1, 1)
            distance = chosen - self.to_box.inverse(batch.extras[NEXT_ACTION])
            penalty = torch.where(batch.extras[HAS_NEXT_ACTION], (distance**2).sum(dim=-1), 0.0)
            lower = self.critics.call(self.critics.target, after, self.to_box(chosen)).amin(dim=0)
            next_value = lower - settings.critic_penalty * penalty
            target = td_target(batch.reward, batch.discount, next_value, self.clip_targets)
        values = self.critics.call(flat, batch.observation, batch.action)  # [2, B]
        return critic_loss(values, target, batch.weight, settings.huber, batch.summary)

    def actor_loss(self, flat: Tensor, noisy: TD3Batch, scalars: Numbers) -> tuple[Tensor, Numbers]:
        """The penalised loss beta 1 |pi(s) - a|^2 - min Q(s, pi(s)) / mean |min Q|, section 3.

        Actions are in [-1, 1]. The lower critic is that of the authors' code; TD3 takes the first.
        """
        batch = noisy.transitions
        action = self.actor.call(flat, batch.observation)
        values = self.critics.call(self.critics.online, batch.observation, action).amin(dim=0)
        scale = 1 / batch.mean(values.abs()).detach()
        distance = self.to_box.inverse(action) - self.to_box.inverse(batch.action)
        cloning = batch.mean((distance**2).sum(dim=-1))
        penalised = self._settings.actor_penalty * cloning - scale * batch.mean(values)
        loss, metrics = self.with_terms(penalised, action, batch)
        return loss, {**metrics, "cloning_loss": cloning}
