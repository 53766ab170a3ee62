"""HIGL's landmarks (Kim et al. 2021, arXiv:2110.13625): places on the way, near enough to be next.

Some of the visited states are landmarks: few that cover all of them, and the most novel ones. A
graph joins them with edge costs from the critic of the level below, and sub-goals are drawn towards
the first landmark on the cheapest way to the goal.
docs/algorithms/hrac.md lists every detail and its source.
"""

import time
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.initial_weights import linear
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.architectures.torso import relu_torso
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.agents import AgentContext
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.records import FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.extensions.hac.critic_below import CriticBelow
from coach_rl.extensions.hiro.unread_steps import UnreadSteps
from coach_rl.memories.batches import OBSERVATIONS
from coach_rl.memories.ring_store import RingStore

_REMOVED = 1e6
"""Added to the cost of an edge that is too long: it is taken only where there is no other way."""


def farthest_points(points: FloatArray, count: int) -> IntArray:
    """Indices of points that cover all: the first, then always the one farthest from those chosen.

    Fewer than `count` where there are not so many different points.

    Args:
        points: [M, G].
        count: Number of points to choose.
    """
    nearest = np.full(len(points), np.inf)  # squared distance to the nearest chosen one
    chosen: list[int] = []
    while len(chosen) < count and nearest.max(initial=0.0) > 0:
        chosen.append(int(nearest.argmax()))
        squares = ((points - points[chosen[-1]]) ** 2).sum(axis=1)
        nearest = np.minimum(nearest, squares)
    return np.array(chosen, np.int64)


def path_costs(edges: FloatArray) -> FloatArray:
    """The cost of the cheapest way from each place to each other, float64 [M, M], by scipy.

    Args:
        edges: Cost of the edge from each place to each other, 0 or more, [M, M]; inf: no edge.
    """
    from scipy.sparse.csgraph import csgraph_from_dense, shortest_path

    # A dense matrix would have no edges where they cost 0.
    return np.asarray(shortest_path(csgraph_from_dense(edges, null_value=np.inf), method="D"))


def costs_to(edges: FloatArray, last: FloatArray) -> FloatArray:
    """The cost of the cheapest way from each of M places to each of B targets, [M, B].

    Args:
        edges: As for `path_costs`, [M, M].
        last: Cost of the edge from each place to each target, [M, B].
    """
    ways = path_costs(edges)
    cheapest: FloatArray = (ways[:, :, None] + last[None]).min(axis=1)
    return cheapest


@parameter_class
class NoveltyParameters:
    """Novel states as landmarks. Defaults: those of HIGL's program."""

    count: Positive[int] = 20
    """Novel states that are kept."""
    apart: NonNegative[float] = 0.2
    """A novel state is dropped when a place nearer than this is visited, in units of the goal."""
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
    optimizer: OptimizerParameters = AdamParameters(learning_rate=1e-3)
    """Optimiser of the network that predicts."""


class StateBatch(NamedTuple):
    """States to learn from."""

    observation: dict[str, Tensor]
    """[B, ...] each."""


class Novelty(Saved):
    """Scores states by how badly a network predicts a random one, and keeps the most novel.

    Args:
        params: How.
        observation_space: The space of the states.
        context: The context of the agent that plans.
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
        self.params = params
        self._keys = tuple(observation_space.spaces)
        self._device = torch.device(context.device)
        rng = torch.Generator().manual_seed(integer_seed(context.seed, owner, "novelty weights"))
        self.predictor, self.random = (
            NetworkWrapper(_features(params, observation_space, rng), device=self._device)
            for _ in range(2)
        )
        objective = Objective(network=self.predictor, loss=self.loss, optimizer=params.optimizer)
        self.engine = UpdateEngine(
            (objective,), owner=f"the novelty of {owner}", runtime=context.runtime
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
        """Keep the most novel of the stored and new states; drop stored ones close to the new.

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
        self.places = places[most]
        self._scores = scores[most]

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


def _features(
    params: NoveltyParameters, observation_space: spaces.Dict, rng: torch.Generator
) -> nn.Sequential:
    """A network from states [B, ...] each to features [B, F]."""
    torso = relu_torso(*params.layers).build(observation_space, rng)
    last = linear(torso.output_size, params.features, rng=rng, gain=1.0, orthogonal=False)
    return nn.Sequential(OrderedDict(torso=torso, last=last))


@parameter_class
class LandmarkParameters:
    """Landmarks that sub-goals are drawn to. Defaults: those of the authors' program."""

    weight: NonNegative[float] = 20.0
    """Factor on the landmark loss, which is added to the actor's loss."""
    coverage: Positive[int] = 20
    """Landmarks that cover the visited states."""
    candidates: Positive[int] = 1_000
    """Visited states that those are chosen from."""
    novelty: NoveltyParameters | None = NoveltyParameters()
    """Novel states, which are landmarks too; None: none."""
    longest_edge: NonNegative[float] = 38.0
    """Cost above which an edge is taken only where there is no other way; a cost is minus the value
    that the level below gives to getting there."""
    near_goal: NonNegative[float] = 10.0
    """The goal is its own landmark where getting there directly costs less than this."""
    shift: Positive[float] | None = 2.0
    """Sub-goals are drawn to the point at this distance in the landmark's direction, in units of
    the goal; None: to the landmark itself."""
    decisions: Positive[int] | None = None
    """Decisions of a batch that a landmark is planned for, and that the loss is the mean of; None:
    all. Planning costs as much as this times the number of landmarks."""
    starts: NonNegative[int] = 60_000
    """Steps of the level below before landmarks are used; until then sub-goals are drawn to where
    one is."""


class LandmarkPlanner(Saved):
    """Chooses the place that a sub-goal is drawn to.

    Args:
        params: How.
        goal: The goals of the level below.
        low: The agent of that level.
        store: The transitions that its memory keeps.
        novelty: Keeps novel states; None: only coverage counts.
        seed: Seed for drawing candidates.
    """

    SAVED = (
        "_new",
        SavedAttribute("_rng", key="generator"),
        "_counts",
        SavedAttribute("novelty", optional=True),
    )

    def __init__(
        self,
        params: LandmarkParameters,
        *,
        goal: GoalSpace,
        low: OffPolicyAgent,
        store: RingStore,
        novelty: Novelty | None,
        seed: int,
    ) -> None:
        self.params = params
        self.novelty = novelty
        self._goal = goal
        self._critic = CriticBelow(goal, low)
        self._store = store
        self._new = UnreadSteps(store)
        self._rng = generator(seed, "landmarks")
        self._counts = np.zeros(3, np.int64)  # planned, led to the goal, by an edge too long
        self._seconds = 0.0

    def targets(self, observation: Observation) -> FloatArray:
        """The place that a sub-goal is drawn to, float32 [B, G].

        Args:
            observation: What the sub-goals are chosen in, as the environment shows it, with the
                goal of the level that chooses, [B, ...] each.
        """
        began = time.perf_counter()
        here = self._goal.achieved(observation)
        places = here
        if self._store.counts.sum() >= self.params.starts:
            landmarks = self.landmarks(observation)
            places = (
                landmarks if self.params.shift is None else self.shifted(landmarks, observation)
            )
        self._seconds += time.perf_counter() - began
        return places.astype(np.float32)

    def landmarks(self, observation: Observation) -> FloatArray:
        """The first landmark on the cheapest way to each goal, or the goal itself, [B, G]."""
        params = self.params
        goals = observation[GOAL_KEY].reshape(len(observation[GOAL_KEY]), -1)
        here = self._critic.states(observation)
        states, places = self._candidates()
        between = _kept(self._all_costs(states, places), params.longest_edge, diagonal=True)
        last = _kept(self._all_costs(states, goals), params.longest_edge)
        onward = costs_to(between, last)  # [K, B]
        first = self._all_costs(here, places)  # [B, K]
        first = first + _REMOVED * (first > params.longest_edge)
        ways = first + onward.T
        chosen = ways.argmin(axis=1)
        is_near = self._costs(here, goals) < params.near_goal
        blocked = ways[np.arange(len(goals)), chosen] >= _REMOVED
        self._counts += (len(goals), is_near.sum(), (blocked & ~is_near).sum())
        return np.where(is_near[:, None], goals, places[chosen])

    def shifted(self, landmarks: FloatArray, observation: Observation) -> FloatArray:
        """The points at the distance `shift` in the direction of the landmarks, [B, G]."""
        way = -self._goal.difference(landmarks, observation)
        length = np.sqrt((way**2).sum(axis=1, keepdims=True))
        step = np.where(length > 0, way / np.where(length > 0, length, 1.0), 0.0)
        moved: FloatArray = self._goal.achieved(observation) + (self.params.shift or 0.0) * step
        return moved

    def learn(self) -> None:
        """Train the novelty predictor when that is due."""
        novelty = self.novelty
        if novelty is None or len(self._new) < novelty.params.every:
            return
        began = time.perf_counter()
        begins, ends = self._new.take()
        counts = ends - begins
        rows = np.repeat(np.arange(len(counts)), counts)
        steps = np.concatenate(
            [np.arange(*interval) for interval in zip(begins, ends, strict=True)]
        )
        visited = self._states(self._store.positions_of(rows, steps))
        novelty.offer(visited, self._goal.achieved(visited))
        for _ in range(int(novelty.params.updates_per_step * len(steps))):
            novelty.learn(self._states(self._store.draw(self._rng, novelty.params.batch)))
        self._seconds += time.perf_counter() - began

    def metrics(self) -> dict[str, float]:
        """Shares of the ways planned, and the seconds spent, since the last call."""
        (planned, near, blocked), seconds = self._counts.tolist(), self._seconds
        self._counts[:] = 0
        self._seconds = 0.0
        found = {} if self.novelty is None else self.novelty.metrics()
        if planned:
            found["landmarks/goal_share"] = near / planned
            found["landmarks/no_way_share"] = blocked / planned
        return {**found, "time/landmarks": seconds}

    def _candidates(self) -> tuple[Observation, FloatArray]:
        """The landmarks: states as the level below keeps them, [K, ...] each, and places [K, G]."""
        drawn = self._states(self._store.draw(self._rng, self.params.candidates))
        places = self._goal.achieved(drawn)
        cover = farthest_points(places, self.params.coverage)
        states = {key: values[cover] for key, values in drawn.items()}
        places = places[cover]
        novelty = self.novelty
        if novelty is None or novelty.places is None:
            return states, places
        both = {key: np.concatenate((states[key], novelty.states[key])) for key in novelty.states}
        return both, np.concatenate((places, novelty.places))

    def _states(self, positions: IntArray) -> Observation:
        """Observations of the level below at positions of its memory, without its goal."""
        paths = [path for path in self._store.fields if path.startswith(OBSERVATIONS)]
        return {
            path.removeprefix(OBSERVATIONS): self._store.read(path, positions)
            for path in paths
            if path != f"{OBSERVATIONS}{GOAL_KEY}"
        }

    def _all_costs(self, states: Observation, goals: FloatArray) -> FloatArray:
        """Costs of getting from each of S states to each of T goals, [S, T]."""
        count = len(goals)
        repeated = {key: np.repeat(values, count, axis=0) for key, values in states.items()}
        size = len(next(iter(states.values())))
        return self._costs(repeated, np.tile(goals, (size, 1))).reshape(size, count)

    def _costs(self, states: Observation, goals: FloatArray) -> FloatArray:
        """Costs of getting from states [R, ...] to goals [R, G], float64 [R]."""
        return np.maximum(-self._critic.values(states, goals), 0.0)


def _kept(costs: FloatArray, longest: float, *, diagonal: bool = False) -> FloatArray:
    """Costs [M, N] where edges longer than `longest` cost more than any others.

    The shortest edge to each place is spared, so that every place can be got to.

    Args:
        costs: [M, N].
        longest: Cost up to which an edge is not too long.
        diagonal: Whether the edges on the diagonal are self-loops.
    """
    others = costs + np.where(np.eye(*costs.shape) > 0, np.inf, 0.0) if diagonal else costs
    limits = np.maximum(others.min(axis=0), longest)
    kept: FloatArray = costs + _REMOVED * (costs > limits)
    if diagonal:
        np.fill_diagonal(kept, 0.0)
    return kept
