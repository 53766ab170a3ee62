"""A policy's network alone, for every space that PPO acts in, and how an agent acts with it."""

from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.agents.action_forms import ACTION_UNITS_KIND, FORMS
from coach_rl.agents.filtered_agent import FilteredAgentParameters
from coach_rl.agents.learner import ValuingLearner
from coach_rl.agents.off_policy_agent import OffPolicyAgent, OffPolicyAgentParameters
from coach_rl.architectures.actor_critic import distribution_for
from coach_rl.architectures.initial_weights import linear
from coach_rl.architectures.numpy_policy import torch_forward
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.output_rules import Forward, OutputRule
from coach_rl.architectures.recurrent_forward import recurrent_forward
from coach_rl.architectures.torso import AnyTorsoParameters, last_layer, relu_torso
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock
from coach_rl.core.discrete_actions import first_action
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import RisingPair
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.samplers import sampler_for


@parameter_class
class PolicyParameters:
    """Network of a stochastic policy. Defaults: 256-256 relu with PyTorch's initial weights."""

    torso: AnyTorsoParameters = relu_torso(256, 256)
    """The torso: maps observations to features."""
    squash: bool = True
    """Pass the means of Gaussian policies through tanh, into the bounds of the Box, or of the Boxes
    beside choices, if all elements have some."""
    initial_log_std: float = 0.0
    """Gaussian policies: initial log standard deviation, the same in every state."""
    log_std_bounds: RisingPair = (-5.0, 2.0)
    """Gaussian policies: log standard deviations are kept within (Kostrikov et al. 2022)."""


class Policy(nn.Module):
    """Parameters [B, P] of a distribution over actions.

    Gaussian policies in a Box with bounds, alone or beside choices, have means within them; their
    standard deviations do not depend on the observation.

    Args:
        params: Its network.
        observation_space: The space of what it observes.
        action_space: The space that it acts in, as PPO's policies do.
        rng: Draws initial weights.
        normaliser: Normalises observations first; None leaves them as they are.
    """

    _middle: Tensor
    _half: Tensor

    def __init__(
        self,
        params: PolicyParameters,
        observation_space: spaces.Dict,
        action_space: Space,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> None:
        super().__init__()
        self.distribution = distribution_for(action_space)
        self.output_rules: tuple[OutputRule, ...] = ()
        """Rules for the outputs before they become parameters of the distribution."""
        self.torso = params.torso.build(observation_space, rng, normaliser)
        numbers = self.distribution.log_std_size
        outputs = self.distribution.parameter_size - numbers
        self.head = last_layer(
            self.torso, outputs, partial(linear, rng=rng, gain=1.0, orthogonal=False)
        )
        self.log_std = (
            nn.Parameter(torch.full((numbers,), params.initial_log_std)) if numbers else None
        )
        self._bounds = params.log_std_bounds
        middle, half = _squashed_into(_numbers_of(action_space) if params.squash else None)
        self.register_buffer("_middle", middle, persistent=False)
        self.register_buffer("_half", half, persistent=False)

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """Parameters [B, P] of the distribution for observations [B, ...] each."""
        outputs: Tensor = self.head(self.torso(observation))
        for rule in self.output_rules:
            outputs = rule(outputs, observation)
        return self._parameters_of(outputs)

    def of_features(self, features: Tensor) -> Tensor:
        """Parameters [B, P] for the torso's features [B, F], before the rules for outputs."""
        return self._parameters_of(self.head(features))

    @property
    def bounded_log_std(self) -> Tensor | None:
        """Log standard deviations [A] within their bounds; None without Gaussian parts."""
        return None if self.log_std is None else self.log_std.clamp(*self._bounds)

    def squashed(self, outputs: Tensor) -> Tensor:
        """Outputs [B, P] of the head, with means, the last of them, within the bounds of a Box."""
        count = len(self._half)
        if not count:
            return outputs
        means = self._middle + self._half * torch.tanh(outputs[:, -count:])
        logits = outputs[:, :-count]
        return torch.cat([logits, means], dim=-1) if logits.shape[1] else means

    def _parameters_of(self, outputs: Tensor) -> Tensor:
        means = self.squashed(outputs)
        log_std = self.bounded_log_std
        if log_std is None:
            return means
        return torch.cat([means, log_std.expand(len(means), -1)], dim=-1)


def acting_forward(policy: Policy, device: torch.device) -> Forward:
    """Parameters [R, P] of numpy observations [R, ...] each, with hidden states [R, H] if any."""
    stateful = recurrent_forward(policy.torso, policy.of_features, device)
    return stateful or torch_forward(policy, device)


def _numbers_of(space: Space) -> spaces.Box | None:
    """The Box of a flat space of actions: itself, or the last part beside choices; None without."""
    last = space.spaces[-1] if isinstance(space, spaces.Tuple) else space
    return last if isinstance(last, spaces.Box) else None


def _squashed_into(box: spaces.Box | None) -> tuple[Tensor, Tensor]:
    """Middle and half range [A] of a Box with bounds; [0] each for another, or None."""
    if box is None or not box.is_bounded():
        return torch.zeros(0), torch.zeros(0)
    low = torch.from_numpy(box.low.astype(np.float32))
    high = torch.from_numpy(box.high.astype(np.float32))
    return (low + high) / 2, (high - low) / 2


class SampledActions:
    """Draws from the policy's own distribution; greedy is its most likely action.

    An exploration policy whose values are the distribution's parameters [R, P]. Numbers are clipped
    to the bounds of their Box, so that the memory keeps the actions that are executed.

    Args:
        action_space: The space that the policy acts in.
    """

    def __init__(self, action_space: Space) -> None:
        self._sampler = sampler_for(action_space)
        self._first = first_action(action_space)
        self._box = _numbers_of(action_space)

    def new_rows(self, num_rows: int, seed: int) -> RowNoise:
        return RowNoise(
            num_rows=num_rows,
            size=self._sampler.noise_size,
            kind=self._sampler.noise_kind,
            seed=seed,
            name="policy",
        )

    def explore(
        self,
        state: RowNoise,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,
        clock: Clock,
    ) -> Array:
        return self._within_bounds(self._sampler.draw(values, state.draw(rows))[0] + self._first)

    def greedy(self, values: FloatArray) -> Array:
        return self._within_bounds(self._sampler.greedy(values)[0] + self._first)

    def _within_bounds(self, action: Array) -> Array:
        """Actions [R, ...] with the numbers, the last of each, clipped to their Box."""
        box = self._box
        if box is None:
            return action
        count = box.shape[0]
        choices = action[:, :-count]
        clipped = np.clip(action[:, -count:], box.low, box.high).astype(box.dtype, copy=False)
        if not choices.shape[1]:
            return clipped
        return np.concatenate([choices, clipped], axis=1, dtype=action.dtype)

    def metrics(self, clock: Clock) -> dict[str, float]:
        """Nothing: the learner logs the entropy."""
        return {}


class PolicyAgent(OffPolicyAgent):
    """An off-policy agent whose policy acts in the forms of actions that PPO's does.

    Args:
        params: The agent's parameters.
        context: Settings known only at construction, such as spaces.
        given: See `OffPolicyAgent`.

    Raises:
        ConfigurationError: Its memory draws by errors, and nothing that it learns has any.
    """

    STAGES = (ACTION_UNITS_KIND,)

    def __init__(
        self, params: OffPolicyAgentParameters, context: AgentContext, **given: Any
    ) -> None:
        super().__init__(params, context, **given)
        if self.memory.is_prioritised and not isinstance(self.learner, ValuingLearner):
            raise ConfigurationError(
                f"agent '{self.name}' ({type(params).__name__}) has no critic of actions, by whose "
                f"errors {type(params.memory.prioritised).__name__} draws; leave "
                "memory.prioritised out, or take an agent with one, e.g. IQLAgentParameters()"
            )

    def _form_of_actions(
        self, output_filter: OutputFilter, params: FilteredAgentParameters, context: AgentContext
    ) -> OutputFilter:
        for form in FORMS:
            output_filter = form(output_filter, params, context.place.owner(params.name))
        return output_filter
