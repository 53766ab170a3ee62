"""Random network distillation: the error of a network that learns what a random one makes of it.

The error is large where little like it has been observed (Burda et al. 2018, arXiv:1810.12894,
sections 2.2 and 2.4). docs/curiosity.md lists every detail and its source.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import torch
from annotated_types import Ge, Interval
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.hidden_states import require_memoryless
from coach_rl.architectures.initial_weights import HIDDEN_GAIN, linear
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.architectures.torso import AnyTorsoParameters, TorsoParameters, dense_layers
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import SpaceError
from coach_rl.core.levels import DIRECTIVE_KEYS
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive, UnitInterval
from coach_rl.core.records import Array, FloatArray, IntArray, Observation
from coach_rl.core.running_statistics import RunningStatistics
from coach_rl.core.saved import Saved, SavedNames
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.extensions.curiosity.visits import owner_of

EPSILON = 1e-8
"""Added to variances before their roots are taken."""


@parameter_class
class DistillationParameters:
    """Networks whose error is the novelty of observations, and how they learn."""

    keys: NonEmpty[tuple[str, ...]] | None = None
    """Observation keys whose novelty counts; None: all but the level's goal or option."""
    torso: AnyTorsoParameters = field(
        default_factory=lambda: TorsoParameters(middleware=(128,), activation="relu")
    )
    """Torso of both networks, the random one and the predictor."""
    predictor_layers: tuple[Positive[int], ...] = (128, 128)
    """Dense layers of the predictor behind its torso, which the random network lacks."""
    latents: Positive[int] = 128
    """Outputs of both networks."""
    optimizer: OptimizerParameters = field(
        default_factory=lambda: AdamParameters(learning_rate=1e-4)
    )
    """Optimiser of the predictor; learning rate of the paper."""
    batch: Positive[int] = 256
    """Observations that are collected, over all environments, before the predictor learns them."""
    updates: Positive[int] = 4
    """Gradient steps that it takes then; the paper's epochs."""
    proportion: Annotated[float, Interval(gt=0, le=1)] = 0.25
    """Proportion of the batch, drawn for each gradient step, from which it learns."""
    clip: Positive[float] = 5.0
    """Observations are normalised by their running mean and standard deviation, then clipped to +-
    this."""
    warmup: Annotated[int, Ge(2)] = 1_000
    """Observations that initialise this normalisation, then as many that initialise the scale of
    the bonus; until then the bonus is 0."""
    discount: UnitInterval = 0.99
    """Gamma of the returns of novelty whose running standard deviation is the bonus' unit."""


class Whitening(Saved):
    """Running mean and standard deviation of each element of the Boxes among observations.

    Args:
        space: Of the observations.
        clip: Largest size of a normalised number.
    """

    SAVED: ClassVar[SavedNames] = ("statistics",)

    def __init__(self, space: spaces.Dict, clip: float) -> None:
        self.clip = clip
        self.statistics = {
            key: RunningStatistics(part.shape)
            for key, part in space.spaces.items()
            if isinstance(part, spaces.Box)
        }
        self.space = spaces.Dict(
            {
                key: spaces.Box(-clip, clip, part.shape, np.float32)
                if key in self.statistics
                else part
                for key, part in space.spaces.items()
            }
        )
        """Space of normalised observations; parts that are no Boxes stay as they are."""

    def update(self, observation: Observation) -> None:
        """Update the statistics with observations [R, ...] each."""
        for key, statistics in self.statistics.items():
            statistics.update(observation[key])

    def __call__(self, observation: Mapping[str, Array]) -> Observation:
        """Normalised observations, float32 [R, ...] each."""
        normal = {}
        for key in self.space.spaces:
            normal[key] = observation[key]
            if statistics := self.statistics.get(key):
                values = (observation[key] - statistics.mean) * statistics.inverse_std(EPSILON)
                normal[key] = values.clip(-self.clip, self.clip).astype(np.float32)
        return normal


class Embedding(nn.Module):
    """Latents of observations.

    Args:
        params: Its torso and the number of latents.
        space: Of the observations.
        layers: Dense layers behind the torso.
        rng: Draws the initial weights.
    """

    def __init__(
        self,
        params: DistillationParameters,
        space: spaces.Dict,
        layers: tuple[int, ...],
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        self.torso = params.torso.build(space, rng)
        size = self.torso.output_size
        settings = TorsoParameters(activation="relu")
        hidden = dense_layers(size, layers, settings, rng)
        width = layers[-1] if layers else size
        last = linear(width, params.latents, rng=rng, gain=HIDDEN_GAIN, orthogonal=True)
        self.head = nn.Sequential(*hidden, last)

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """[B, latents] of observations [B, ...] each."""
        latents: Tensor = self.head(self.torso(observation))
        return latents


class DistillationBatch(NamedTuple):
    """Observations that the predictor learns from."""

    observation: dict[str, Tensor]
    """Normalised, [B, ...] each."""
    chosen: Tensor
    """True for those that count in this gradient step, [B] bool."""


class Distillation(Saved):
    """The two networks, with the observations that the predictor is to learn next.

    Args:
        params: Their settings.
        context: That of the agent.
        name: Of the bonus, for its random numbers and messages.
    """

    SAVED: ClassVar[SavedNames] = (
        "whitening",
        "target",
        "predictor",
        "engine",
        "waiting",
        "count",
        "observed",
        "shuffle",
    )

    def __init__(self, params: DistillationParameters, context: AgentContext, name: str) -> None:
        shown = seen_by(params.keys, context.spaces.observation, name)
        self.params = params
        self.keys = tuple(shown.spaces)
        """Observation keys that the networks see."""
        self.whitening = Whitening(shown, params.clip)
        rng = torch.Generator().manual_seed(integer_seed(context.seed, name, "weights"))
        params = replace(params, torso=for_whitened(params.torso, shown))
        device = torch.device(context.device)
        target = Embedding(params, self.whitening.space, (), rng)
        predictor = Embedding(params, self.whitening.space, params.predictor_layers, rng)
        require_memoryless((target, predictor), f"the bonus {name}")
        self.target = NetworkWrapper(target, device=device)
        self.predictor = NetworkWrapper(predictor, device=device)
        self.engine: UpdateEngine[DistillationBatch] = UpdateEngine(
            (Objective(network=self.predictor, loss=self.loss, optimizer=params.optimizer),),
            owner=owner_of(name, context),
            runtime=context.runtime,
        )
        self.waiting: dict[str, Array] = {}
        """Observations that the predictor has not learned yet, [capacity, ...] each."""
        capacity = 2 * params.batch
        for key, part in shown.spaces.items():
            self.waiting[key] = np.zeros((capacity, *(part.shape or ())), part.dtype)
        self.count = 0
        """Number of them."""
        self.observed = 0
        """Observations so far."""
        self.shuffle = generator(context.seed, name, "proportion")
        self._device = device
        self._signals = context.signals

    def errors(self, observation: Mapping[str, Array]) -> FloatArray:
        """The predictor's squared errors, summed over the latents, float64 [R].

        Args:
            observation: As the level shows it, [R, ...] each.
        """
        seen = self._tensors(self.whitening(observation))
        with torch.inference_mode():
            error = self.predictor.module(seen) - self.target.module(seen)
            squares: Tensor = error.square().sum(dim=1)
        return squares.cpu().numpy().astype(np.float64)

    @property
    def is_initialised(self) -> bool:
        """True if enough was observed to normalise by."""
        return self.observed >= self.params.warmup

    def observe(self, observation: Observation) -> None:
        """Update the normalisation with observations [R, ...] each, and learn when it is due."""
        self.whitening.update(observation)
        size = len(observation[self.keys[0]])
        learns = self.is_initialised
        self.observed += size
        if not learns:
            return
        batch = self.params.batch
        for begin in range(0, size, batch):
            self._collect({key: observation[key][begin : begin + batch] for key in self.keys})

    def _collect(self, observation: Observation) -> None:
        end = self.count + len(observation[self.keys[0]])
        for key, values in self.waiting.items():
            values[self.count : end] = observation[key]
        self.count = end
        batch = self.params.batch
        if end < batch:
            return
        self._learn({key: values[:batch] for key, values in self.waiting.items()})
        for values in self.waiting.values():
            values[: end - batch] = values[batch:end].copy()
        self.count = end - batch

    def _learn(self, observation: Observation) -> None:
        """Gradient steps from a batch of observations, each from its own part of it."""
        seen = self._tensors(self.whitening(observation))
        for _ in range(self.params.updates):
            chosen = self.shuffle.random(self.params.batch) < self.params.proportion
            self.engine.step(DistillationBatch(seen, torch.from_numpy(chosen).to(self._device)))
        self._signals.note("predictor_loss", self.engine.drain_metrics()["loss"])

    def loss(
        self, flat: Tensor, batch: DistillationBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """The predictor's mean squared error over what was chosen; 0 where nothing was."""
        with torch.no_grad():
            wanted = self.target.call(self.target.online, batch.observation)
        error = self.predictor.call(flat, batch.observation) - wanted
        squares = torch.where(batch.chosen, error.square().mean(dim=1), 0.0)  # [B]
        loss = squares.sum() / batch.chosen.sum().clamp(min=1)
        return loss, {"loss": loss.detach()}

    def _tensors(self, observation: Observation) -> dict[str, Tensor]:
        return {key: torch.from_numpy(each).to(self._device) for key, each in observation.items()}


class ScaledReturns(Saved):
    """The running standard deviation of each row's discounted sum of novelty, across episodes.

    Args:
        num_envs: N.
        discount: Gamma.
    """

    SAVED: ClassVar[SavedNames] = ("sums", "statistics")

    def __init__(self, num_envs: int, discount: float) -> None:
        self.sums: FloatArray = np.zeros(num_envs)
        self.statistics = RunningStatistics(())
        self._discount = discount

    def update(self, rows: IntArray, novelty: FloatArray) -> None:
        """Add the novelty [R] that rows [R] have just met."""
        self.sums[rows] = self._discount * self.sums[rows] + novelty
        self.statistics.update(self.sums[rows])

    @property
    def factor(self) -> float:
        """1 / standard deviation."""
        return float(self.statistics.inverse_std(EPSILON))


def seen_by(keys: tuple[str, ...] | None, space: spaces.Dict, name: str) -> spaces.Dict:
    """The parts of an observation space whose novelty counts; SpaceError where there are none."""
    own = {key: part for key, part in space.spaces.items() if key not in DIRECTIVE_KEYS}
    missing = [key for key in keys or () if key not in space.spaces]
    if missing or not own:
        raise SpaceError(
            f"the bonus {name} has no observation '{(*missing, 'other than goals')[0]}'; there are "
            f"{', '.join(space.spaces)}; set its `keys` to some of these"
        )
    return spaces.Dict({key: space.spaces[key] for key in keys or own})


def for_whitened(torso: AnyTorsoParameters, space: spaces.Dict) -> AnyTorsoParameters:
    """The torso for normalised observations: of those with three axes, bytes were images."""
    if not isinstance(torso, TorsoParameters) or torso.images != "auto":
        return torso
    images: dict[str, spaces.Space[Any]] = {
        key: part
        for key, part in space.spaces.items()
        if isinstance(part, spaces.Box) and len(part.shape) == 3 and part.dtype == np.uint8
    }
    if not images:
        return replace(torso, images="flat")
    # Raises what is wrong with them.
    replace(torso, keys=None).build(spaces.Dict(images), torch.Generator())
    return replace(torso, images="channels_last")
