"""Hindsight for goals with a time (Gürtler et al. 2021, arXiv:2112.03100): it relabels both.

A goal that the same sub-episode achieved k steps later becomes the desired one, with a time of k
steps: its time is up where it was achieved, and nowhere before. With L the old time left, the new
time left after transition i with a goal of transition j is L(i) - L(j).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.goals import GOAL_KEY, TIME_KEY, Verdict
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.extensions.hindsight.hindsight import (
    GOALS,
    OBSERVED_GOALS,
    RELABELLED,
    Hindsight,
    HindsightGoals,
    HindsightObservations,
    HindsightRewards,
    HindsightUnits,
)
from coach_rl.memories.batches import (
    DURATIONS,
    ENDS,
    INTERNAL,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    POSITIONS,
    Columns,
)
from coach_rl.memories.parts import Stored
from coach_rl.memories.ring_store import RingStore
from coach_rl.memories.tables import Field

OBSERVED_TIMES = (f"{OBSERVATIONS}{TIME_KEY}", f"{NEXT_OBSERVATIONS}{TIME_KEY}")
TIMES_LEFT = "/times_left"
"""Column: the steps left after each transition."""
TIMES = f"{INTERNAL}hindsight/times"
"""Column between units: the steps left for new goals."""


def timed(hindsight: Hindsight) -> "TimedHindsight":
    """The same hindsight for goals with a time.

    Raises:
        ConfigurationError: The strategy gives them none.
    """
    if hindsight.strategy not in ("future", "final"):
        raise ConfigurationError(
            f"hindsight for goals with a time takes them from later in the same sub-episode: use "
            f"the strategy 'future' or 'final', got '{hindsight.strategy}'"
        )
    # nothing is bootstrapped behind the time of a goal
    return TimedHindsight(**{**vars(hindsight), "goal_ends_episode": True})


@dataclass(frozen=True, kw_only=True)
class TimedHindsight(Hindsight):
    """`Hindsight` where goals have a time; "reached" means that the desired goal's time was up."""

    goal: Any
    """`TimedGoalSpace` of achieved goals in the observation, with their times, and their reward."""

    def check(self, observation_space: spaces.Dict) -> None:
        """Raise `SpaceError` unless such observations have a goal and the time left for it."""
        observed = observation_space.spaces
        super().check(spaces.Dict({key: observed[key] for key in observed if key != TIME_KEY}))
        if TIME_KEY not in observation_space.spaces:
            raise SpaceError(
                f"hindsight for goals with a time needs the observation key '{TIME_KEY}', which is "
                f"not there; observed: {', '.join(sorted(observation_space.spaces))}"
            )

    @property
    def ledger(self) -> dict[str, Field]:
        return {**super().ledger, TIMES_LEFT: Field((), np.float32)}

    def kept(self, stored: Stored) -> dict[str, Array]:
        return {**super().kept(stored), TIMES_LEFT: self.goal.steps_left(stored.after)}

    def judged(
        self,
        observation: Observation,
        next_observation: Observation,
        *,
        moved: FloatArray | float = 0.0,
    ) -> Verdict:
        """The verdict on R transitions under the goals and the times that they had."""
        shown = observation[GOAL_KEY].reshape(-1, self.goal.size)
        goal = self.goal.seen(shown, observation) + moved
        left = self.goal.steps_left(next_observation)[:, None]
        achieved = self.goal.achieved(next_observation)
        verdict: Verdict = self.goal.judge(np.concatenate([goal, left], axis=1), achieved)
        return verdict

    def units(self, store: RingStore, rng: np.random.Generator) -> HindsightUnits:
        return HindsightUnits(
            TimedHindsightGoals(store, rng, self),
            TimedHindsightRewards(store, self),
            TimedHindsightObservations(store, self),
        )


class TimedHindsightGoals(HindsightGoals):
    """Draws which transitions are relabelled, with which goals, and how long these are off."""

    outputs = (GOALS, RELABELLED, TIMES)

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        """Goals [B, G], whether to use them [B], and the steps left after the transitions [B]."""
        positions = batch[POSITIONS].numpy()
        relabelled, source = self._draw(positions)
        left = self._store.ledger[TIMES_LEFT]
        return {
            GOALS: torch.from_numpy(self._goals(source)),
            RELABELLED: torch.from_numpy(relabelled),
            # Both count down to the end of one sub-episode: the steps between them.
            TIMES: torch.from_numpy(left.take(positions) - left.take(source)),
        }


class TimedHindsightRewards(HindsightRewards):
    """Rewards and ends of the window as the new goals and times have them."""

    inputs = (*HindsightRewards.inputs, TIMES)

    def _wanted(self, batch: Columns, chosen: BoolArray, where: IntArray) -> FloatArray:
        """The new goals and the times left for them, [C * n, G + 1]."""
        positions, times = batch[POSITIONS].numpy()[chosen], batch[TIMES].numpy()[chosen]
        left = _left_at(self._store, where, positions, times)
        goals = super()._wanted(batch, chosen, where)
        return np.concatenate([goals, left.reshape(-1, 1)], axis=1)


class TimedHindsightObservations(HindsightObservations):
    """Shows the new goals and the time left for them in the observations before and after."""

    outputs = (*OBSERVED_GOALS, *OBSERVED_TIMES)

    def __init__(self, store: RingStore, params: TimedHindsight) -> None:
        super().__init__(store, params)
        self.inputs += (POSITIONS, ENDS, TIMES, *OBSERVED_TIMES)
        self._store = store
        self._longest = params.goal.longest

    def __call__(self, batch: Columns, size: int) -> Columns:
        """The desired goals, [B, ...] each, and the times left, [B, 1] each."""
        positions, times = batch[POSITIONS].numpy(), batch[TIMES].numpy()
        before = times + self._store.ledger[DURATIONS].take(positions)
        after = _left_at(self._store, batch[ENDS].numpy()[:, None], positions, times)[:, 0]
        shown = super().__call__(batch, size)
        for path, left in zip(OBSERVED_TIMES, (before, after), strict=True):
            old = batch[path]
            part = torch.from_numpy((left / self._longest).astype(np.float32))[:, None]
            chosen = batch[RELABELLED].to(old.device, non_blocking=True)[:, None]
            shown[path] = torch.where(chosen, part.to(old.device, non_blocking=True), old)
        return shown


def _left_at(store: RingStore, where: IntArray, positions: IntArray, times: Array) -> Array:
    """The steps left for new goals after other transitions of the same sub-episodes, [B, n].

    time(position) - L(position) + L(other), with L the old times left.

    Args:
        store: Where the transitions are kept.
        where: Positions of the others, [B, n].
        positions: Of the transitions themselves, [B].
        times: The steps left after those, [B].
    """
    left = store.ledger[TIMES_LEFT]
    return np.asarray(times[:, None] - left.take(positions)[:, None] + left.take(where))
