"""Plans of a graph of way-points as a torch module: its tables, and searches in loops.

Searches are by Bellman & Ford, from all places at once, and find the same costs as Dijkstra's; of
ways that cost exactly as much another one may be taken.
"""

import warnings
from typing import Any

import numpy as np
import torch
from torch import Tensor

from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.extensions.exporting.coach_policy import FAILED, MET, MISSED
from coach_rl.extensions.exporting.decisions import (
    Chosen,
    Decision,
    Place,
    Request,
    decision_of,
    refused,
)
from coach_rl.extensions.exporting.goals import achieved, action_for, is_near
from coach_rl.extensions.exporting.policies import Tensors
from coach_rl.extensions.planning.graph_agent import GraphAgent, GraphAgentParameters
from coach_rl.extensions.planning.way_points import DETOUR, numbered

REMEMBERED = 16
"""Misses that a row remembers, as `GraphRows` does."""


class PlanDecision(Decision):
    """A graph's next sub-goals without exploration.

    Args:
        agent: The agent that plans.
        params: Its parameters.
        own: The goals of its level.
        sub_goal: The goals of the level below.
    """

    def __init__(
        self,
        agent: GraphAgent,
        params: GraphAgentParameters,
        *,
        own: GoalSpace,
        sub_goal: GoalSpace,
    ) -> None:
        super().__init__()
        graph = agent.graph
        roadmap = agent.graph.roadmap
        count = len(roadmap.places)
        if sub_goal.learns:
            raise refused(agent, "goals of the level below are in a space that learns")
        if not count:
            raise refused(agent, "its graph has no places yet")
        self._own = own
        self._sub_goal = sub_goal
        self._seen = (own,) if params.conditions is None else (own, params.conditions)
        self._requested = sub_goal.size - len(params.fixed_goal)
        """The elements of a place that goals of the level below have, the first ones."""
        self._edge = "edge"
        self._missed = "missed"
        self.state[self._edge] = (), np.dtype(np.int64)
        self.state[self._missed] = (REMEMBERED,), np.dtype(np.int64)
        passed, try_missed, _ = graph.expected(cautious=True)
        self._keep = 1 - params.retry_discount
        self._places = torch.from_numpy(roadmap.places.astype(np.float64))
        requested = roadmap.places[:, : self._requested]
        rest = roadmap.places[:, self._requested :]
        fixed = np.broadcast_to(params.fixed_goal, (count, len(params.fixed_goal)))
        self._goals = torch.from_numpy(np.hstack([requested, fixed]).astype(np.float32))
        self._rest = torch.from_numpy(numbered(rest) if rest.size else np.zeros(count, np.int64))
        """[M] the same for places that agree in all that goals of the level below lack."""
        self._fixed = torch.tensor(params.fixed_goal, dtype=torch.float32)
        self._parts = torch.from_numpy(np.array(roadmap.parts))
        self._tables = [
            torch.from_numpy(np.concatenate([[filler], values]))
            for values, filler in (
                (passed, 1.0),
                (try_missed, 0.0),
                (graph.try_costs, np.inf),
                (graph.pruned, False),
            )
        ]
        """[1 + E] each, of edges counted from 1; 0 stands for none."""
        tries = numbered(np.hstack([roadmap.begins[:, None], requested[roadmap.ends]]))
        self._tries = torch.from_numpy(np.concatenate([[0], 1 + tries]))
        """[1 + E] the same for edges of a place that are one try for the level below."""
        self._way_points = torch.from_numpy(np.concatenate([[0], roadmap.ends]))
        edges, ends = _by_place(roadmap.begins, roadmap.ends, count)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scripts are deprecated, and are what makes loops
            self._search, self._skip = torch.jit.script(_searched), torch.jit.script(_passed_by)
        self._edges, self._ends = torch.from_numpy(edges), torch.from_numpy(ends)

    def forward(self, request: Request) -> tuple[Chosen, Tensors]:
        """Sub-goals [R, S], and what rows remember of their tries."""
        seen = request.seen
        edge = request.state[self._edge]
        # Bits of MISSED or FAILED without MET; ONNX has no bitwise operators for whole numbers.
        below = request.below % (2 * FAILED)
        position = torch.cat([achieved(each, seen).to(torch.float64) for each in self._seen], 1)
        was_met = below % (2 * MET) >= MET
        in_vain = was_met & (self._ended_at(position, edge) != self._way_points[edge])
        failed = ((~was_met & (below >= MISSED)) | in_vain) & (edge > 0)
        missed = request.state[self._missed]
        pushed = torch.cat([edge[:, None], missed[:, :-1]], dim=1)
        missed = torch.where(failed[:, None], pushed, missed)
        missed = torch.where(request.starts[:, None], torch.zeros_like(missed), missed)
        costs = self._costs(missed)[:, self._edges]  # [R, M, K]
        # Begin at the nearest place; aim at the nearest to the goal in that part of the graph.
        place = _squares(position, self._places).argmin(dim=1)
        aim = seen[GOAL_KEY].flatten(1).to(torch.float64)
        away = _squares(aim, self._places[:, : self._own.size])
        away = torch.where(self._parts == self._parts[place][:, None], away, torch.inf)
        least = away.amin(dim=1, keepdim=True)
        # Of places that numpy.isclose finds as near, the one that costs least is the target.
        near = (away - least).abs() <= 1e-8 + 1e-5 * least
        _, labels, _ = self._search(costs, self._ends, near)
        target = labels.gather(1, place[:, None])[:, 0]
        is_target = torch.arange(len(self._places)) == target[:, None]
        _, _, slots = self._search(costs, self._ends, is_target)
        # The place after each on its way to the target, [R, M], and whether its goal is reached.
        every = self._ends + torch.zeros_like(slots).unsqueeze(2)  # [R, M, K]
        onward = every.gather(2, slots.unsqueeze(2)).squeeze(2)
        difference = achieved(self._sub_goal, seen)[:, None] - self._goals  # [R, M, S]
        reached = is_near(self._sub_goal, difference)
        place = self._skip(place, target, onward, reached, self._rest)
        way_point = onward.gather(1, place[:, None])[:, 0]
        slot = slots.gather(1, place[:, None])[:, 0]
        # From the target itself the way leads to the goal, which is no edge of the graph.
        arrives = place == target
        edge = torch.where(arrives, 0, self._edges[place, slot])
        goal = aim[:, : self._requested].to(torch.float32)
        if len(self._fixed):
            goal = torch.cat([goal, self._fixed + torch.zeros_like(goal[:, :1])], dim=1)
        goal = torch.where(arrives[:, None], goal, self._goals[way_point])
        return action_for(self._sub_goal, goal, seen), {self._edge: edge, self._missed: missed}

    def _ended_at(self, position: Tensor, edge: Tensor) -> Tensor:
        """The way-points [R] of edges that were passed, with the rest of their places as it is."""
        if self._requested == self._places.shape[1]:
            return self._way_points[edge]
        requested = self._places[self._way_points[edge]][:, : self._requested]
        there = torch.cat([requested, position[:, self._requested :]], dim=1)
        return _squares(there, self._places).argmin(dim=1)

    def _costs(self, missed: Tensor) -> Tensor:
        """[R, 1 + E] expected costs of passing each edge, by the tries that rows have missed."""
        passed, try_missed, try_costs, pruned = self._tables
        numbers = torch.arange(len(passed))
        counts = ((self._tries[missed][:, :, None] == self._tries) & (numbers > 0)).sum(dim=1)
        passed = passed * self._keep ** counts.to(torch.float64)
        costs = try_costs + (1 - passed) / passed * try_missed
        kept = torch.where(pruned | (numbers == 0), 0.0, costs).sum(dim=1, keepdim=True)
        return torch.where(pruned, costs + DETOUR + kept, costs)


@decision_of.register
def _plan_decision(agent: GraphAgent, place: Place) -> Decision:
    (sub_goal,) = place.below
    assert isinstance(place.params, GraphAgentParameters)
    assert isinstance(place.own, GoalSpace)
    assert isinstance(sub_goal, GoalSpace)
    return PlanDecision(agent, place.params, own=place.own, sub_goal=sub_goal)


def _by_place(begins: Any, ends: Any, count: int) -> tuple[Any, Any]:
    """Edges from each place, counted from 1, and where they end, [M, K]; 0 fills up."""
    most = int(np.bincount(begins, minlength=count).max(initial=1))
    edges, there = np.zeros((2, count, most), np.int64)
    first = np.searchsorted(begins, np.arange(count))
    slots = np.arange(len(begins)) - first[begins]
    edges[begins, slots] = np.arange(len(begins)) + 1
    there[begins, slots] = ends
    return edges, there


def _searched(costs: Tensor, ends: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Cheapest ways from all places [R, M]: cost, target, and the edge to begin with.

    Args:
        costs: Of the edges from each place, [R, M, K].
        ends: Where they lead, [M, K].
        targets: [R, M].
    """
    total = torch.where(targets, 0.0, torch.inf).to(torch.float64)
    labels = torch.arange(targets.shape[1]).expand(targets.shape)
    slots = torch.zeros_like(labels)
    changed = True
    while changed:
        onward = total[:, ends]  # [R, M, K]
        through = costs + onward
        least = through.amin(dim=2)
        # Of equals the one from which the rest is shortest, as Dijkstra's algorithm finds first.
        rest = torch.where(through == least.unsqueeze(2), onward, torch.inf)
        slot = rest.argmin(dim=2)
        better = least < total
        following = labels[:, ends].gather(2, slot.unsqueeze(2)).squeeze(2)
        labels = torch.where(better, following, labels)
        total = torch.where(better, least, total)
        slots = torch.where(targets, slots, slot)
        changed = bool(better.any())
    return total, labels, slots


def _passed_by(
    place: Tensor, target: Tensor, onward: Tensor, reached: Tensor, rest: Tensor
) -> Tensor:
    """The last place [R] on the way to each target whose goal is reached already.

    Places are passed only to those with the same rest.
    """
    changed = True
    while changed:
        following = onward.gather(1, place[:, None])[:, 0]
        passes = reached.gather(1, following[:, None])[:, 0] & (place != target)
        passes = passes & (rest[place] == rest[following])
        place = torch.where(passes, following, place)
        changed = bool(passes.any())
    return place


def _squares(points: Tensor, others: Tensor) -> Tensor:
    """Squares of distances, [R, M]."""
    squares: Tensor = ((points.to(torch.float64)[:, None] - others) ** 2).sum(dim=2)
    return squares
