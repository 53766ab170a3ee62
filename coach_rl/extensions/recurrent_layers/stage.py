"""The hidden state of an agent: the stage that keeps it, and how PPO learns from sequences."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.agents.agent_rows import AnyAgentRows, write_rows
from coach_rl.agents.rollout_order import FlatBatches, Judging, gathered
from coach_rl.agents.stages.stage import Stage, StageBuild, StageKind
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.architectures.hidden_states import Reset, stateful_layers
from coach_rl.architectures.output_rules import Forward
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.records import (
    HIDDEN_STATE,
    ActionRequest,
    Array,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
)
from coach_rl.core.spaces import Space
from coach_rl.extensions.recurrent_layers.sequences import rollout_sequences
from coach_rl.memories.batches import Minibatch, Rollout, RolloutBatch
from coach_rl.memories.rollout_memory import RowGrid


@dataclass(frozen=True)
class HiddenState:
    """The hidden state of an agent's networks."""

    size: int
    """Numbers per row, over all layers that have some."""
    reset: Reset
    """The start at which it becomes 0."""


class HiddenStates(Stage):
    """Shows the policy the hidden state that its networks had after the row's last decision.

    It is 0 where an episode, or sub-episode, starts. The functions by which such networks act
    return states [R, H] behind their outputs.

    Args:
        state: Of the agent's networks.
    """

    is_stateless = False
    needed = (HIDDEN_STATE,)
    remembers = "a recurrent network remembers earlier ones; leave out symmetry or recurrence"

    def __init__(self, state: HiddenState) -> None:
        self.state = state
        self.kept: Mapping[str, Space] = {
            HIDDEN_STATE: spaces.Box(-np.inf, np.inf, (state.size,), np.float32)
        }
        self._after: FloatArray = np.zeros((0, state.size), np.float32)

    def begin(self, row_state: AnyAgentRows, request: ActionRequest) -> None:
        is_reset = request.starts if self.state.reset == "sub_episode" else request.episode_start
        state = np.zeros((int(is_reset.sum()), self.state.size), np.float32)
        rows = request.rows[is_reset]
        write_rows(row_state.pending, rows, {HIDDEN_STATE: state}, len(row_state.heatup))

    def acting(self, forward: Forward) -> Forward:
        def outputs(observation: Observation) -> FloatArray:
            values, self._after = np.split(forward(observation), [-self.state.size], axis=1)
            return values

        return outputs

    def choose(self, choice: dict[str, Array]) -> None:
        """Keep the states after the decision, unless the agent has named them itself."""
        choice.setdefault(HIDDEN_STATE, self._after)

    def store(
        self,
        observation: Observation,
        extras: dict[str, Array],
        outcome: Outcome,  # noqa: ARG002 - as Stage
    ) -> None:
        """Keep the states that decisions were made in, beside what networks observe."""
        extras[HIDDEN_STATE] = observation.pop(HIDDEN_STATE)

    def advance(self, row_state: AnyAgentRows, rows: IntArray) -> None:
        states = {HIDDEN_STATE: row_state.choice[HIDDEN_STATE][rows]}
        write_rows(row_state.pending, rows, states, len(row_state.heatup))

    def rollout_order(self, order: Any) -> "SequenceBatches":
        return SequenceBatches(order)


class SequenceBatches(FlatBatches):
    """Learns from sequences of transitions, from the hidden states they were collected with."""

    padding = 1

    def __init__(self, flat: FlatBatches) -> None:
        super().__init__(flat.settings, flat.agent)
        settings = flat.settings
        if settings.recompute_advantages:
            raise ConfigurationError(
                f"agent '{flat.agent}' is recurrent, and the hidden states of a rollout are those "
                "of the policy that collected it; leave out recurrence or recompute_advantages"
            )
        most = min(settings.minibatch, settings.rollout.count)
        if settings.sequence > most:
            raise ConfigurationError(
                f"agent '{flat.agent}' learns from whole sequences of algorithm.sequence="
                f"{settings.sequence} transitions, and a minibatch holds {most}; lower sequence, "
                "or raise minibatch and rollout"
            )

    def observed(self, rollout: Rollout) -> Rollout:
        states = {HIDDEN_STATE: rollout.extras[HIDDEN_STATE]}
        return rollout._replace(observation=rollout.observation | states)

    def order(self, rollout: Rollout, grid: RowGrid, count: int) -> IntArray:  # noqa: ARG002 - as FlatBatches
        """Positions [S, W] of the transitions of S sequences, which the last slot pads."""
        return rollout_sequences(
            grid,
            ended=(rollout.terminated | rollout.truncated).cpu().numpy(),
            follows=rollout.follows.cpu().numpy(),
            length=self.settings.sequence,
            padding=len(rollout.reward) - 1,
        )

    def size(self, order: IntArray, count: int) -> int:
        """The number of sequences that have that many transitions."""
        return max(1, round(super().size(order, count) * len(order) / count))

    def valid(self, rollout: Rollout, count: int) -> Tensor | None:
        return torch.arange(len(rollout.reward), device=rollout.reward.device) < count

    def after(self, rollout: Rollout, positions: Tensor, model: Judging) -> dict[str, Tensor]:
        seen = super().after(rollout, positions, model)
        before = {key: values[positions] for key, values in rollout.observation.items()}
        seen[HIDDEN_STATE] = model.states_after(before)
        return seen

    def step(self, engine: UpdateEngine[RolloutBatch], batch: Minibatch) -> Numbers:
        """A gradient step from sequences, gathered before it."""
        return engine.step(self.gathered(batch))

    def gathered(self, batch: Minibatch) -> RolloutBatch:
        """The transitions S * W of sequences, with their first hidden states."""
        observation = dict(batch.rollout.observation)
        states = observation.pop(HIDDEN_STATE)
        taken = gathered(batch.rollout._replace(observation=observation), batch.positions)
        taken.observation[HIDDEN_STATE] = states[batch.positions[:, 0]]
        return taken


def hidden_state_of(networks: Iterable[nn.Module]) -> HiddenState:
    """The hidden state of recurrent networks, whose layers get their places in it.

    Raises:
        ConfigurationError: Two layers are reset at different times.
    """
    layers = stateful_layers(networks)
    resets = sorted({layer.reset for layer in layers})
    if len(resets) > 1:
        raise ConfigurationError(
            f"the networks of an agent have one reset, got {' and '.join(resets)}; give all of "
            "them the same"
        )
    size = 0
    for layer in layers:
        layer.begin = size
        size += layer.state_size
    return HiddenState(size=size, reset=layers[0].reset)


def _hidden_states(build: StageBuild) -> HiddenStates:
    """The stage of an agent with recurrent networks; SpaceError where it observes their state."""
    state = hidden_state_of(build.networks)
    if HIDDEN_STATE in build.observation_space.spaces:
        raise SpaceError(
            f"agent '{build.name}' is recurrent and observes a '{HIDDEN_STATE}', the name of "
            "its own state; give the observation key another name"
        )
    return HiddenStates(state)


KIND = StageKind(order=60, build=_hidden_states)
