"""Terms that guide an actor's sub-goals beside the critic: adjacency (HRAC), landmarks (HIGL).

    TD3AgentParameters(actor_terms=(SubGoalGuideParameters(),))             # HRAC
    both = SubGoalGuideParameters(landmarks=LandmarkParameters())
    SACAgentParameters(actor_terms=(both,))

For the agent of any level that sends goals to a level below and has an actor and critics.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.own_filters import UnfilteredOutput
from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.initial_weights import linear
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.architectures.torso import dense_layers, relu_torso
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.agents import AgentContext, LevelPlace, RowState
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.core.state import State
from coach_rl.extensions.hac.critic_below import require_critic_below
from coach_rl.extensions.hiro.adjacency_losses import (
    adjacency_penalty,
    contrastive_loss,
    embedded_distance,
)
from coach_rl.extensions.hiro.landmarks import LandmarkParameters, LandmarkPlanner, Novelty
from coach_rl.extensions.hiro.steps_below import require_standard_sub_goals
from coach_rl.extensions.hiro.unread_steps import UnreadSteps
from coach_rl.memories.replay_memory import ReplayMemory, RowHistory
from coach_rl.memories.transition_batch import TransitionBatch

_FULL = -1
_MOST_CELLS = 1_000
"""Cells at most whose distances are learned; those that are visited later are left out."""
LANDMARK = "landmark"
"""The extra of a batch with the places that its first sub-goals are drawn to."""


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
    layers: NonEmpty[tuple[Positive[int], ...]] = (128, 128, 128)
    """Sizes of the hidden layers."""
    embedding: Positive[int] = 32
    """Elements of an embedding."""
    optimizer: OptimizerParameters = AdamParameters(learning_rate=2e-4)
    """Optimiser of the network."""

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
        self._side = side
        self._steps = steps
        self._most = most
        self._numbers: dict[tuple[int, ...], int] = {}
        self.adjacent: BoolArray = np.zeros((0, 0), np.bool_)
        """The adjacency matrix, as far as is known: symmetric [C, C]."""

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def places(self) -> FloatArray:
        """The middle of each cell, float32 [C, G]."""
        return np.array(list(self._numbers), np.float32) * np.float32(self._side)

    def add(self, trajectories: Iterable[FloatArray]) -> None:
        """Record trajectories of places [T, G], visited one step after the other."""
        visited = [self._numbered(trajectory) for trajectory in trajectories]
        known = self.adjacent
        count = len(self._numbers)
        self.adjacent = np.eye(count, dtype=np.bool_)
        self.adjacent[: len(known), : len(known)] |= known
        for numbers in visited:
            for apart in range(1, min(self._steps, len(numbers))):
                one = numbers[:-apart]
                other = numbers[apart:]
                kept = (one != _FULL) & (other != _FULL)
                self.adjacent[one[kept], other[kept]] = True
                self.adjacent[other[kept], one[kept]] = True

    def state_dict(self) -> State:
        """The cells, and which are adjacent."""
        return {"cells": np.array(list(self._numbers), np.int64), "adjacent": self.adjacent.copy()}

    def load_state_dict(self, state: State) -> None:
        cells = map(tuple, state["cells"].tolist())
        self._numbers = {cell: number for number, cell in enumerate(cells)}
        self.adjacent = state["adjacent"].copy()

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
    """An embedding of places learned from the trajectories of the level below.

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
        self.cells = VisitedCells(side=params.cell, steps=steps, most=_MOST_CELLS)
        rng = torch.Generator().manual_seed(integer_seed(context.seed, owner, "adjacency weights"))
        device = torch.device(context.device)
        self.network = NetworkWrapper(_embedding(params, size, rng), device=device)
        self.trained = torch.zeros((), device=device)
        """1 once the network has been trained, so that its output is used."""
        objective = Objective(network=self.network, loss=self.loss, optimizer=params.optimizer)
        self.engine = UpdateEngine(
            (objective,), owner=f"the adjacency of {owner}", runtime=context.runtime
        )
        self._rng = generator(context.seed, owner, "adjacency pairs")
        self._learned: dict[str, float] = {}
        self._seconds = 0.0

    def embedded(self, places: Tensor) -> Tensor:
        """Embeddings [B, E] of places [B, G]."""
        embedding: Tensor = self.network.call(self.network.online, places)
        return embedding

    def learn(self, trajectories: Iterable[FloatArray]) -> None:
        """Record trajectories [T, G] each, then train on all pairs of cells."""
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
        seconds = self._seconds
        self._seconds = 0.0
        return {**self._learned, "time/adjacency": seconds}

    def _train(self) -> None:
        """Train on all pairs of cells, and measure how many of them are classified correctly."""
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
    layers = dense_layers(size, params.layers, relu_torso(), rng)
    last = linear(params.layers[-1], params.embedding, rng=rng, gain=1.0, orthogonal=False)
    return nn.Sequential(*layers, last)


@parameter_class
class SubGoalGuideParameters:
    """Terms of the actor's loss that keep sub-goals within reach of the level below."""

    adjacency: AdjacencyParameters = field(default_factory=AdjacencyParameters)
    """The constraint to places that the level below reaches in time."""
    landmarks: LandmarkParameters | None = None
    """Landmarks on the way to the goal; None: none."""

    def build(self, agent: FilteredAgent[RowState], context: AgentContext) -> "SubGoalGuide":
        """The guide of an agent; ConfigurationErrors name the level that does not fit."""
        low, memory = _level_below(agent, context.place)
        goal = context.place.sub_goal
        assert goal is not None
        owner = context.place.owner(agent.name)
        below = context.place.below
        steps = self.adjacency.steps or (None if below is None else below.horizon)
        if steps is None:
            raise ConfigurationError(
                f"{owner}: places are adjacent if they are fewer steps apart than the horizon of "
                "the level below, and it has none; give it one or set "
                "SubGoalGuideParameters.adjacency.steps"
            )
        planner = None
        if self.landmarks is not None:
            _check_landmarks(agent, low, context.place)
            novelty = None
            if self.landmarks.novelty is not None:
                observed = low.observation_space.spaces.items()
                states = spaces.Dict({key: each for key, each in observed if key != GOAL_KEY})
                novelty = Novelty(
                    self.landmarks.novelty, observation_space=states, context=context, owner=owner
                )
            planner = LandmarkPlanner(
                self.landmarks,
                goal=goal,
                low=low,
                store=memory.store,
                novelty=novelty,
                seed=integer_seed(context.seed, agent.name, "landmarks"),
            )
        adjacency = Adjacency(
            self.adjacency, size=goal.size, steps=steps, context=context, owner=owner
        )
        return SubGoalGuide(adjacency, steps=steps, goal=goal, memory=memory, planner=planner)


class SubGoalGuide(Saved):
    """Term of an actor's loss which constrains its sub-goals; see `learner.ActorTerm`.

    Args:
        adjacency: Which places are adjacent.
        steps: Places fewer steps apart are.
        goal: The goals of the level below.
        memory: The memory of the agent of that level.
        planner: Chooses landmarks; None: there are none.
    """

    name = "guide"
    SAVED = ("adjacency", "_new", SavedAttribute("planner", optional=True))
    TIMED: ClassVar[Mapping[str, str]] = {"learn": "adjacency", "prepared": "landmarks"}

    def __init__(
        self,
        adjacency: Adjacency,
        *,
        steps: int,
        goal: GoalSpace,
        memory: ReplayMemory,
        planner: LandmarkPlanner | None,
    ) -> None:
        self.adjacency = adjacency
        self.planner = planner
        self._steps = steps
        self._goal = goal
        self._history = memory.history
        self._new = UnreadSteps(memory.store)

    def prepared(self, batch: TransitionBatch) -> TransitionBatch:
        if self.planner is None:
            return batch
        count = self.planner.params.decisions
        seen = {key: values[:count].cpu().numpy() for key, values in batch.observation.items()}
        targets = torch.from_numpy(self.planner.targets(seen))
        landmark = targets.to(batch.action.device, non_blocking=True)
        return batch._replace(extras={**batch.extras, LANDMARK: landmark})

    def loss(self, action: Tensor, batch: TransitionBatch) -> tuple[Tensor, Numbers]:
        """The terms for the actor's sub-goals [B, G], and the metrics.

        The adjacency loss of Zhang et al. 2020, section 4.2, and the landmark loss of Kim et al.
        2021, section 4; nothing before adjacency has been learned.
        """
        adjacency = self.adjacency
        margin = self.adjacency.params.margin
        here = self._achieved(batch)
        proposed = adjacency.embedded(here + action if self._goal.relative else action)
        penalty = adjacency_penalty(embedded_distance(adjacency.embedded(here), proposed), margin)
        loss = adjacency.params.weight * penalty
        metrics = {"adjacency_penalty": penalty}
        if self.planner is not None:
            landmark = adjacency.embedded(batch.extras[LANDMARK])
            drawn = proposed[: len(landmark)]
            pull = adjacency_penalty(embedded_distance(landmark, drawn), margin)
            loss = loss + self.planner.params.weight * pull
            metrics["landmark_loss"] = pull
        return adjacency.trained * loss, metrics

    def learn(self) -> None:
        """Train on the steps of the level below when that is due."""
        if len(self._new) >= self.adjacency.params.every:
            begins, ends = self._new.take(overlap=self._steps - 1)
            self.adjacency.learn(trajectories(self._history, self._goal, begins, ends))
        if self.planner is not None:
            self.planner.learn()

    def metrics(self) -> dict[str, float]:
        planner = {} if self.planner is None else self.planner.metrics()
        return self.adjacency.metrics() | planner

    def _achieved(self, batch: TransitionBatch) -> Tensor:
        """The goals [B, G] that the batch's observations achieve."""
        values = batch.observation[self._goal.key].flatten(1).to(torch.float32)
        elements = self._goal.elements
        return values if elements is None else values[:, list(elements)]


def trajectories(
    history: RowHistory, goal: GoalSpace, begins: IntArray, ends: IntArray
) -> Iterator[FloatArray]:
    """The places [T, G] visited one step after the other, for each stretch without a break.

    A stretch continues from one sub-episode to the next, and ends where the world restarts.

    Args:
        history: The history of the level below.
        goal: Its goals.
        begins: First steps of each row, [N].
        ends: Steps behind the last, [N].
    """
    for row, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        if begin == end:
            continue
        steps = np.arange(begin, end)
        rows = np.full(len(steps), row)
        seen = history.observations(rows, steps, (goal.key,))
        seen_next = {goal.key: history.next_observation(rows, steps, goal.key)}
        before, after = goal.turned(goal.achieved(seen)), goal.turned(goal.achieved(seen_next))
        breaks = (after[:-1] != before[1:]).any(axis=1).nonzero()[0] + 1
        for first, last in zip((0, *breaks), (*breaks, len(steps)), strict=True):
            yield np.concatenate((before[first:last], after[last - 1 : last]))


def _level_below(
    agent: FilteredAgent[RowState], place: LevelPlace
) -> tuple[OffPolicyAgent, ReplayMemory]:
    """The agent below and its memory, where sub-goals can be guided by it.

    Raises:
        ConfigurationError: There is none, or it does not keep what is needed.
    """
    owner = place.owner(agent.name)
    goal = place.sub_goal
    low = place.agent_below
    if place.below is None or goal is None:
        raise ConfigurationError(
            f"{owner} has a guide, which is for sub-goals, and sends none to a level below; "
            "leave it out of actor_terms"
        )
    require_standard_sub_goals(place, f"{owner}: its guide")
    below = f"{owner}: its guide learns from level '{place.below.name}' below, which"
    if place.below.frozen:
        raise ConfigurationError(
            f"{below} is frozen and remembers nothing; leave it out of actor_terms"
        )
    if not (isinstance(low, OffPolicyAgent) and isinstance(low.memory, ReplayMemory)):
        raise ConfigurationError(
            f"{below} needs an agent with a replay memory (TD3, DDPG or SAC), "
            f"got {type(low).__name__}"
        )
    if goal.key in low.input_filter.changed_keys:
        raise ConfigurationError(
            f"{below} changes '{goal.key}', where its achieved goals are, by its InputFilter; "
            "leave that out and hide the key from its networks with torso.keys"
        )
    if goal.key in agent.input_filter.changed_keys:
        raise ConfigurationError(
            f"{owner}: its InputFilter changes '{goal.key}', where achieved goals are, and its "
            "guide needs them as they are; use normalise_observations instead"
        )
    if not isinstance(agent.output_filter, UnfilteredOutput):
        raise ConfigurationError(
            f"{owner}: its guide needs sub-goals in the units of the level below; set "
            "output_filter=None"
        )
    return low, low.memory


def _check_landmarks(
    agent: FilteredAgent[RowState], low: OffPolicyAgent, place: LevelPlace
) -> None:
    """Raise `ConfigurationError` unless ways to goals can be planned by the critic below."""
    owner = place.owner(agent.name)
    goal = place.goal
    sub_goal = place.sub_goal
    assert sub_goal is not None
    wanted = agent.observation_space.spaces.get(GOAL_KEY)
    size = 0 if wanted is None else int(np.prod(wanted.shape or (1,)))
    if size != sub_goal.size or (goal is not None and goal.observed != "absolute"):
        raise ConfigurationError(
            f"{owner} plans ways to its goals over landmarks of the level below; goals must be "
            f"seen absolutely and have the {sub_goal.size} elements of those below, got {size}"
        )
    require_critic_below(owner, place)
    if agent.input_filter.changed_keys:
        raise ConfigurationError(
            f"{owner} shows its observations to the critic of agent '{low.name}', so its own "
            "InputFilter must not change them; got filters for "
            f"{', '.join(sorted(agent.input_filter.changed_keys))}"
        )
