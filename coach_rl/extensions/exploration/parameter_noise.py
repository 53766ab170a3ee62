"""Parameter noise (Plappert et al. 2018, "Parameter Space Noise for Exploration").

Two differences from the paper, which copies and perturbs the network once an episode and measures
the distance on a replay batch: a row's perturbation is added to the parameters as they are *now*,
so that learning reaches a running episode; and each row measures the distance in the observations
it meets, and adapts a scale of its own, so that it does not depend on the other rows.
"""

import math
from typing import Annotated

import numpy as np
from annotated_types import Interval

from coach_rl.core.errors import SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.saved import Saved
from coach_rl.core.seeding import generator
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.exploration_policy import BoxActions


@parameter_class
class ParameterNoise:
    """Normal noise on the policy's parameters, the same for a whole episode of a row.

    The noise has one scale for all parameters, so the network wants layer normalisation between
    its layers, whose own parameters are not perturbed (section 3). Numbers of the authors' program
    (OpenAI Baselines, `adaptive-param_0.2`).
    """

    initial_scale: Annotated[float, Interval(gt=0, lt=math.inf)] = 0.2
    """Standard deviation of the noise at the beginning, more than 0."""
    target_distance: Annotated[float, Interval(gt=0, lt=math.inf)] = 0.2
    """Root mean square of the change of actions by the noise, in half-ranges of each
    element, more than 0: as large as action noise of that scale."""
    adaptation: Annotated[float, Interval(ge=1, lt=math.inf)] = 1.01
    """Factor by which the scale grows when actions change no more than that, and shrinks when they
    change more; 1 keeps the initial scale."""
    adapt_every: Positive[int] = 50
    """Decisions of a row between two adaptations of its scale."""

    def build(self, action_space: Space, *, perturbable: BoolArray) -> "ParameterNoiseExploration":
        """Build the policy for a flat, bounded Box of floats.

        Args:
            action_space: The agent's.
            perturbable: [P] which of the flat parameters are perturbed.
        """
        actions = BoxActions(action_space, policy="ParameterNoise")
        if not (actions.half_range > 0).any():
            raise SpaceError(f"there is nothing to explore in {action_space}: no element can move")
        return ParameterNoiseExploration(self, actions, perturbable)


class ParameterNoiseRows(Saved):
    """Each row's perturbation, and the state of its scale.

    A direction is drawn from the stream (seed, row, number of the episode), so it is not saved but
    drawn again: the state is small however large the network.

    Args:
        num_rows: N.
        seed: Of the directions.
        scale: Initial.
        perturbable: [P].
    """

    SAVED = ("_seed", "_episodes", "scale", "distance", "squares", "decisions")

    def __init__(self, *, num_rows: int, seed: int, scale: float, perturbable: BoolArray) -> None:
        self.directions: FloatArray = np.zeros((num_rows, len(perturbable)), np.float32)
        """[N, P] standard normal, 0 where nothing is perturbed; no memory is taken before use."""
        self.scale: FloatArray = np.full(num_rows, scale, np.float64)
        """[N] standard deviation of the perturbations."""
        self.distance: FloatArray = np.zeros(num_rows, np.float64)
        """[N] change of the actions before the last adaptation; 0 before the first."""
        self.squares: FloatArray = np.zeros(num_rows, np.float64)
        """[N] sum of the mean squared changes since then."""
        self.decisions: IntArray = np.zeros(num_rows, np.int64)
        """[N] number of decisions in `squares`."""
        self._episodes: IntArray = np.zeros(num_rows, np.int64)
        """[N] directions drawn so far."""
        self._seed = seed
        self._perturbable = np.flatnonzero(perturbable)

    def begin(self, rows: IntArray, starts: BoolArray) -> None:
        """Draw new directions where an episode starts, and where there is none yet."""
        for row in rows[starts | (self._episodes[rows] == 0)].tolist():
            self._episodes[row] += 1
            self._draw(row)

    def note_loaded(self) -> None:
        """Draw the directions again, which are not saved."""
        for row in np.flatnonzero(self._episodes).tolist():
            self._draw(row)

    def _draw(self, row: int) -> None:
        rng = generator(self._seed, "parameter_noise", row, int(self._episodes[row]))
        numbers = rng.standard_normal(len(self._perturbable), np.float32)
        self.directions[row, self._perturbable] = numbers


class ParameterNoiseExploration:
    """Parameters with noise for every row; a `ParameterExploration`."""

    def __init__(self, params: ParameterNoise, actions: BoxActions, perturbable: BoolArray) -> None:
        self._params = params
        self._perturbable = perturbable
        self._movable = np.flatnonzero(actions.half_range > 0)
        self._half_range = actions.half_range[self._movable].astype(np.float64)

    def new_rows(self, num_rows: int, seed: int) -> ParameterNoiseRows:
        """Rows at the initial scale."""
        return ParameterNoiseRows(
            num_rows=num_rows,
            seed=seed,
            scale=self._params.initial_scale,
            perturbable=self._perturbable,
        )

    def perturbed(
        self, state: ParameterNoiseRows, rows: IntArray, flat: FloatArray, *, starts: BoolArray
    ) -> FloatArray:
        """`flat` plus each row's scale times its direction, float32 [R, P]."""
        state.begin(rows, starts)
        own = state.directions[rows]  # a copy: rows are an index array
        own *= state.scale[rows, None].astype(np.float32)
        own += flat
        return own

    def note_actions(
        self,
        state: ParameterNoiseRows,
        rows: IntArray,
        *,
        perturbed: FloatArray,
        greedy: FloatArray,
    ) -> None:
        """Measure the distance (the paper's appendix C) and adapt the scales that are due."""
        params = self._params
        change = (perturbed.astype(np.float64) - greedy)[:, self._movable] / self._half_range
        state.squares[rows] += (change**2).mean(axis=1)
        state.decisions[rows] += 1
        due = rows[state.decisions[rows] >= params.adapt_every]
        if not len(due):
            return
        distance = np.sqrt(state.squares[due] / state.decisions[due])
        grows = distance <= params.target_distance
        state.scale[due] *= np.where(grows, params.adaptation, 1 / params.adaptation)
        state.distance[due] = distance
        state.squares[due] = 0
        state.decisions[due] = 0

    def metrics(self, state: ParameterNoiseRows) -> dict[str, float]:
        """Scale of the perturbations, and their last effect on the actions."""
        return {
            "exploration/parameter_scale": float(state.scale.mean()),
            "exploration/action_distance": float(state.distance.mean()),
        }
