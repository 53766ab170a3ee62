"""HRAC's adjacency (Zhang et al. 2020, arXiv:2006.11485): which places are k steps apart or less.

Trajectories of the level below say which cells of the goal space have been visited within k steps
of each other. A network embeds places so that the distance of two embeddings says the same of
places between them. docs/algorithms/hrac.md lists every detail and its source.
"""

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.architectures.gradient_step import Numbers, Objective
from coach_rl.architectures.layers import Activate, linear
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import AdamParameters
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.seeding import (
    generator,
    integer_seed,
)
from coach_rl.core.state import State
from coach_rl.functional.adjacency import contrastive_loss, embedded_distance

_FULL = -1


@parameter_class
class AdjacencyParameters:
    """Settings of the constraint and of learning it. Defaults: those of the authors' program."""

    weight: NonNegative[float] = 20.0
    """Factor on the penalty that sub-goals beyond the margin add to the actor's loss."""
    cell: Positive[float] = 1.0
    """Side of the cells in which places count as one, in units of the goal."""
    steps: Positive[int] | None = None
    """Places fewer than so many steps of the level below apart are adjacent; None: its horizon."""
    every: Positive[int] = 50_000
    """Steps of the level below from one round of learning to the next."""
    near: Positive[float] = 1.0
    """Adjacent places are drawn to this distance of their embeddings or less."""
    far: Positive[float] = 1.2
    """Others are pushed to this distance or more; sub-goals have to keep to the middle of both."""
    epochs: Positive[int] = 25
    """Passes through all pairs of cells in a round."""
    batch: Positive[int] = 64
    """Pairs of cells per gradient step."""
    most_updates: Positive[int] = 10_000
    """Gradient steps of a round at most, however many pairs there are."""
    most_cells: Positive[int] = 1_000
    """Cells at most; those that are visited later are left out."""
    layers: NonEmpty[tuple[Positive[int], ...]] = (128, 128, 128)
    """Sizes of the hidden layers."""
    embedding: Positive[int] = 32
    """Elements of an embedding."""
    optimizer: AdamParameters = AdamParameters(learning_rate=2e-4)
    """Adam of the network."""

    def __post_init__(self) -> None:
        require(
            self.near <= self.far,
            f"AdjacencyParameters.near must be at most far = {self.far}, got {self.near}",
        )

    @property
    def margin(self) -> float:
        """The distance of embeddings up to which places count as adjacent."""
        return (self.near + self.far) / 2


class VisitedCells:
    """The cells of a goal space that were visited, and which of them within k steps of each other.

    Args:
        side: Side of a cell.
        steps: k; places fewer steps apart are adjacent.
        most: Cells at most.
    """

    def __init__(self, *, side: float, steps: int, most: int) -> None:
        self._side, self._steps, self._most = side, steps, most
        self._numbers: dict[tuple[int, ...], int] = {}
        self._adjacent: BoolArray = np.zeros((0, 0), np.bool_)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def places(self) -> FloatArray:
        """The middle of each cell, float32 [C, G]."""
        return np.array(list(self._numbers), np.float32) * np.float32(self._side)

    @property
    def adjacent(self) -> BoolArray:
        """The adjacency matrix, as far as is known: symmetric bool [C, C]."""
        return self._adjacent

    def add(self, trajectories: Iterable[FloatArray]) -> None:
        """Take in places [T, G] that were visited one step after the other, for each of some."""
        visited = [self._numbered(trajectory) for trajectory in trajectories]
        known, count = self._adjacent, len(self._numbers)
        self._adjacent = np.eye(count, dtype=np.bool_)
        self._adjacent[: len(known), : len(known)] |= known
        for numbers in visited:
            for apart in range(1, min(self._steps, len(numbers))):
                one, other = numbers[:-apart], numbers[apart:]
                kept = (one != _FULL) & (other != _FULL)
                self._adjacent[one[kept], other[kept]] = True
                self._adjacent[other[kept], one[kept]] = True

    def state_dict(self) -> State:
        """The cells, and which are adjacent."""
        return {"cells": np.array(list(self._numbers), np.int64), "adjacent": self._adjacent.copy()}

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        cells = map(tuple, state["cells"].tolist())
        self._numbers = {cell: number for number, cell in enumerate(cells)}
        self._adjacent = state["adjacent"].copy()

    def _numbered(self, trajectory: FloatArray) -> IntArray:
        """The number of each place's cell, [T]; a cell that is new gets one if there is room."""
        cells = np.round(trajectory / self._side).astype(np.int64)
        numbers = []
        for cell in map(tuple, cells.tolist()):
            if cell not in self._numbers and len(self._numbers) < self._most:
                self._numbers[cell] = len(self._numbers)
            numbers.append(self._numbers.get(cell, _FULL))
        return np.array(numbers, np.int64)


class PlacePairs(NamedTuple):
    """Pairs of places to learn from."""

    one: Tensor
    """[B, G]."""
    other: Tensor
    """[B, G]."""
    adjacent: Tensor
    """True where they are adjacent, bool [B]."""


class Adjacency(Saved):
    """Learns an embedding of places from the trajectories of the level below.

    Args:
        params: How.
        size: Elements of a place, G.
        steps: Places fewer steps apart are adjacent.
        context: The context of the agent whose sub-goals it constrains.
        owner: That agent, for messages.
    """

    SAVED = (
        "cells",
        "network",
        "trained",
        "engine",
        SavedAttribute("_rng", key="generator"),
        SavedAttribute("_learned", varies=True),
    )

    def __init__(
        self,
        params: AdjacencyParameters,
        *,
        size: int,
        steps: int,
        context: AgentContext,
        owner: str,
    ) -> None:
        self.params = params
        self.cells = VisitedCells(side=params.cell, steps=steps, most=params.most_cells)
        rng = torch.Generator().manual_seed(integer_seed(context.seed, owner, "adjacency weights"))
        device = torch.device(context.device)
        self.network = NetworkWrapper(_embedding(params, size, rng), device=device)
        self.trained = torch.zeros((), device=device)
        """1 once there was a round of learning, which gives the network a say."""
        objective = Objective(network=self.network, loss=self.loss, optimizer=params.optimizer)
        self.engine = UpdateEngine(
            (objective,),
            mode="eager",
            planned_updates=0,
            owner=f"the adjacency of {owner}",
            runtime=context.runtime,
        )
        self._rng = generator(context.seed, owner, "adjacency pairs")
        self._learned: dict[str, float] = {}
        self._seconds = 0.0

    def embedded(self, places: Tensor) -> Tensor:
        """Embeddings [B, E] of places [B, G]."""
        embedding: Tensor = self.network.call(self.network.online, places)
        return embedding

    def learn(self, trajectories: Iterable[FloatArray]) -> None:
        """A round: take in trajectories [T, G] each, then learn from all pairs of cells."""
        began = time.perf_counter()
        self.cells.add(trajectories)
        if len(self.cells) > 1:
            self._train()
        self._seconds += time.perf_counter() - began

    def loss(self, flat: Tensor, pairs: PlacePairs, scalars: Numbers) -> tuple[Tensor, Numbers]:
        """The contrastive loss of pairs of cells."""
        both: Tensor = self.network.call(flat, torch.cat((pairs.one, pairs.other)))
        loss = contrastive_loss(
            embedded_distance(*both.chunk(2)),
            pairs.adjacent,
            near=self.params.near,
            far=self.params.far,
        )
        return loss, {"loss": loss}

    def metrics(self) -> dict[str, float]:
        """Results of the newest round, and the seconds spent since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return {**self._learned, "time/adjacency": seconds}

    def _train(self) -> None:
        """Learn from all pairs of cells, and see how many of them are taken for what they are."""
        device = self.network.online.device
        one, other = np.triu_indices(len(self.cells), 1)
        places = torch.from_numpy(self.cells.places).to(device)
        adjacent = torch.from_numpy(self.cells.adjacent[one, other]).to(device)
        pairs = PlacePairs(places[one], places[other], adjacent)
        for index in islice(self._batches(len(one)), self.params.most_updates):
            self.engine.step(pairs, torch.from_numpy(index).to(device))
        self.trained.fill_(1.0)
        with torch.inference_mode():
            embedded = self.embedded(places)
            near = embedded_distance(embedded[one], embedded[other]) <= self.params.margin
        shares = {
            "adjacency/adjacent_found": near[adjacent],
            "adjacency/apart_found": ~near[~adjacent],
        }
        self._learned = {
            "adjacency/cells": float(len(places)),
            "adjacency/loss": self.engine.drain_metrics()["loss"],
            **{name: float(found.float().mean()) for name, found in shares.items() if len(found)},
        }

    def _batches(self, count: int) -> Iterator[IntArray]:
        """Indices of each batch among so many pairs: all of them, shuffled, `epochs` times."""
        for _ in range(self.params.epochs):
            order = self._rng.permutation(count)
            for begin in range(0, count, self.params.batch):
                yield order[begin : begin + self.params.batch]


def _embedding(params: AdjacencyParameters, size: int, rng: torch.Generator) -> nn.Sequential:
    """Dense layers with relu, from places [B, G] to embeddings [B, E]."""
    layers: list[nn.Module] = []
    for width in params.layers:
        layers += [linear(size, width, rng=rng, gain=1.0, orthogonal=False), Activate("relu")]
        size = width
    return nn.Sequential(
        *layers, linear(size, params.embedding, rng=rng, gain=1.0, orthogonal=False)
    )
