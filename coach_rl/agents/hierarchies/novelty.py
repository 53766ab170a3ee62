"""The most novel states among those visited, by random network distillation.

Burda et al. 2019 (arXiv:1810.12894): a network learns to predict what a fixed random one says of a
state; where its error is large, few states like it were seen. HIGL (Kim et al. 2021,
arXiv:2110.13625) takes the most novel states for landmarks.
"""

from typing import NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.gradient_step import Numbers, Objective
from coach_rl.architectures.layers import linear
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import AdamParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.agents import AgentContext
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.records import FloatArray, Observation
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.seeding import integer_seed


@parameter_class
class NoveltyParameters:
    """Novel states as landmarks. Defaults: those of HIGL's program."""

    count: Positive[int] = 20
    """Novel states that are kept."""
    apart: NonNegative[float] = 0.2
    """A novel state is given up when a place nearer than this is visited, in units of the goal."""
    every: Positive[int] = 500
    """Steps of the level below from one round of learning to the next."""
    updates_per_step: NonNegative[float] = 1.0
    """Gradient steps per step of the level below."""
    batch: Positive[int] = 128
    """States per gradient step."""
    layers: NonEmpty[tuple[Positive[int], ...]] = (300, 300)
    """Sizes of the hidden layers."""
    features: Positive[int] = 128
    """Numbers that are to be predicted of a state."""
    optimizer: AdamParameters = AdamParameters(learning_rate=1e-3)
    """Adam of the network that predicts."""


class StateBatch(NamedTuple):
    """States to learn from."""

    observation: dict[str, Tensor]
    """[B, ...] each."""


class Novelty(Saved):
    """Scores states by how badly a network predicts a random one, and keeps the most novel.

    Args:
        params: How.
        observation_space: The space of the states.
        context: The context of the agent that asks.
        owner: That agent, for messages.
    """

    SAVED = (
        "predictor",
        "random",
        "engine",
        SavedAttribute("states", varies=True),
        SavedAttribute("_scores", varies=True),
        SavedAttribute("places", optional=True, varies=True),
    )

    def __init__(
        self,
        params: NoveltyParameters,
        *,
        observation_space: spaces.Dict,
        context: AgentContext,
        owner: str,
    ) -> None:
        self.params, self._keys = params, tuple(observation_space.spaces)
        self._device = torch.device(context.device)
        rng = torch.Generator().manual_seed(integer_seed(context.seed, owner, "novelty weights"))
        self.predictor, self.random = (
            NetworkWrapper(Features(params, observation_space, rng), device=self._device)
            for _ in range(2)
        )
        objective = Objective(network=self.predictor, loss=self.loss, optimizer=params.optimizer)
        self.engine = UpdateEngine(
            (objective,),
            mode="eager",
            planned_updates=0,
            owner=f"the novelty of {owner}",
            runtime=context.runtime,
        )
        self.states: Observation = {}
        """The most novel states, [K, ...] each; nothing before the first are offered."""
        self.places: FloatArray | None = None
        """The goal that each of them achieves, [K, G]; None before the first are offered."""
        self._scores: FloatArray = np.zeros(0)

    def scores(self, states: Observation) -> FloatArray:
        """Half the squared errors of the predictions, [M]."""
        seen = self._tensors(states)
        with torch.inference_mode():
            errors = self._errors(self.predictor.online, seen)
        return np.asarray((0.5 * errors.sum(dim=1)).cpu().numpy(), np.float64)

    def offer(self, states: Observation, places: FloatArray) -> None:
        """Keep the most novel of the states held and these; those close to these are given up.

        Args:
            states: States just visited, [M, ...] each.
            places: The goals that they achieve, [M, G].
        """
        states = {key: states[key] for key in self._keys}
        scores = self.scores(states)
        if self.places is not None:
            away = ((self.places[:, None] - places[None]) ** 2).sum(axis=2)
            kept = away.min(axis=1) >= self.params.apart**2
            states = {
                key: np.concatenate((self.states[key][kept], states[key])) for key in self._keys
            }
            places = np.concatenate((self.places[kept], places))
            scores = np.concatenate((self._scores[kept], scores))
        most = np.argsort(-scores, kind="stable")[: self.params.count]
        self.states = {key: values[most] for key, values in states.items()}
        self.places, self._scores = places[most], scores[most]

    def learn(self, states: Observation) -> None:
        """One gradient step on states [B, ...] each."""
        self.engine.step(StateBatch(self._tensors(states)))

    def loss(self, flat: Tensor, batch: StateBatch, scalars: Numbers) -> tuple[Tensor, Numbers]:
        """Mean squared error of the predictions."""
        loss = self._errors(flat, batch.observation).mean()
        return loss, {"novelty_loss": loss}

    def metrics(self) -> dict[str, float]:
        """The mean score of the states kept, and of the predictions' loss since the last call."""
        drained = self.engine.drain_metrics()
        found = {"landmarks/novelty": float(self._scores.mean())} if len(self._scores) else {}
        if "novelty_loss" in drained:
            found["landmarks/novelty_loss"] = drained["novelty_loss"]
        return found

    def _errors(self, flat: Tensor, seen: dict[str, Tensor]) -> Tensor:
        """Squared errors of the predictions, [B, F]."""
        with torch.no_grad():
            wanted = self.random.call(self.random.online, seen)
        errors: Tensor = (self.predictor.call(flat, seen) - wanted) ** 2
        return errors

    def _tensors(self, states: Observation) -> dict[str, Tensor]:
        return {key: torch.from_numpy(states[key]).to(self._device) for key in self._keys}


class Features(nn.Module):
    """Features [B, F] of states [B, ...] each."""

    def __init__(
        self, params: NoveltyParameters, observation_space: spaces.Dict, rng: torch.Generator
    ) -> None:
        super().__init__()
        torso = TorsoParameters(middleware=params.layers, activation="relu", orthogonal=False)
        self.torso = torso.build(observation_space, rng)
        self.last = linear(
            self.torso.output_size, params.features, rng=rng, gain=1.0, orthogonal=False
        )

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """[B, F]."""
        features: Tensor = self.last(self.torso(observation))
        return features
