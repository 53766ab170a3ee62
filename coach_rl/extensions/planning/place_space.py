"""The elements of a place of a graph, and the goals of the level below that lead there."""

from collections.abc import Sequence

import numpy as np

from coach_rl.core.agents import LevelPlace
from coach_rl.core.box_ranges import has_finite_width
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.random_actions import actions_from_uniform
from coach_rl.core.records import Array, BoolArray, FloatArray, Observation


class PlaceSpace:
    """Places of P elements: a goal of the graph's own level, and the conditions behind it.

    Goals of the level below are the first elements, and fixed values that places don't have.

    Args:
        own: The goals of the graph's own level.
        sub_goal: The goals of the level below.
        fixed_goal: Values of the last elements of these.
        conditions: Further elements of places, which goals leave open; None: there are none.
    """

    def __init__(
        self,
        *,
        own: GoalSpace,
        sub_goal: GoalSpace,
        fixed_goal: Sequence[float] = (),
        conditions: GoalSpace | None = None,
    ) -> None:
        self._parts = (own,) if conditions is None else (own, conditions)
        self._sub_goal, self._fixed_goal = sub_goal, np.array(fixed_goal, np.float64)
        self.size = sum(part.size for part in self._parts)
        """P."""
        self.goal_size = own.size
        """Elements of a goal of the graph's own level, the first ones of a place."""
        self.requested_size = sub_goal.size - len(fixed_goal)
        """Elements of a place that goals of the level below have, the first ones."""
        self.way_point_size = sub_goal.size
        """S, elements of a goal of the level below."""

    @classmethod
    def between(
        cls,
        place: LevelPlace,
        owner: str,
        *,
        fixed_goal: Sequence[float],
        conditions: GoalSpace | None,
    ) -> "PlaceSpace":
        """The places of a graph between its own level and the one below.

        Args:
            place: The graph's place in the stack.
            owner: The agent that plans, for messages.
            fixed_goal: Values of the last elements of the goals of the level below.
            conditions: Further elements of places.

        Raises:
            ConfigurationError: A level has no goals, or they are not places in the same
                coordinates.
        """
        place.require_untimed_sub_goals(owner)
        place.require_sub_goals_as_actions(owner)
        own = place.goal
        sub_goal = place.sub_goal
        if any(each is not None and each.learns for each in (own, sub_goal)):
            raise ConfigurationError(
                f"{owner} keeps which places were reached, and a curriculum of thresholds changes "
                "that; leave it out at both levels"
            )
        if own is None or sub_goal is None:
            lacks = "its level has no goals" if own is None else "no level below it has goals"
            raise ConfigurationError(
                f"{owner} plans ways to its level's goals along goals of the level below, and "
                f"{lacks}; both levels need a GoalSpace as goal_space"
            )
        if own.observed != "absolute" or not 0 < sub_goal.size - len(fixed_goal) <= own.size:
            raise ConfigurationError(
                f"{owner} needs goals that are seen absolutely and that, with GraphAgentParameters."
                f"besides, have at least as many elements as those of the level below; got "
                f"{own.size} ({own.observed}), fixed_goal={fixed_goal} and {sub_goal.size}"
            )
        requested = sub_goal.size - len(fixed_goal)
        mine, theirs = (tuple(each.elements or range(each.size)) for each in (own, sub_goal))
        if own.key == sub_goal.key and mine[:requested] != theirs[:requested]:
            raise ConfigurationError(
                f"{owner} needs goals that begin with the same elements of '{own.key}' as those of "
                f"the level below, got GoalSpace.elements={mine} and {theirs}"
            )
        bounds = zip(fixed_goal, sub_goal.low[requested:], sub_goal.high[requested:], strict=True)
        if not all(low <= value <= high for value, low, high in bounds):
            raise ConfigurationError(
                f"{owner}: GraphAgentParameters.fixed_goal={tuple(fixed_goal)} must lie within the "
                f"bounds of the last elements of the goals of the level below, "
                f"{sub_goal.low[requested:]} to {sub_goal.high[requested:]}"
            )
        for goals in (own, sub_goal, *(() if conditions is None else (conditions,))):
            if goals.angles:
                raise ConfigurationError(
                    f"{owner} measures its ways along straight lines, and GoalSpace.angles="
                    f"{goals.angles} turn full circle; leave `angles` out, or give such goals to "
                    "another agent"
                )
            if not has_finite_width(np.array(goals.low), np.array(goals.high)).all():
                raise ConfigurationError(
                    f"{owner} places a graph within the bounds of goals, which must be finite and "
                    f"less far apart than float32 can hold, got {goals.low} to {goals.high}; "
                    "lower GoalSpace.high, or raise GoalSpace.low"
                )
        return cls(own=own, sub_goal=sub_goal, fixed_goal=fixed_goal, conditions=conditions)

    @property
    def requests_all(self) -> bool:
        """True if goals of the level below have all elements of a place."""
        return self.requested_size == self.size

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of places, [P] each."""
        low = np.concatenate([part.low for part in self._parts])
        high = np.concatenate([part.high for part in self._parts])
        return low, high

    def achieved(self, observation: Observation) -> FloatArray:
        """The positions of observations in the space of places, [R, P]."""
        if len(self._parts) == 1:
            return self._parts[0].achieved(observation)
        return np.hstack([part.achieved(observation) for part in self._parts])

    def aims(self, heading: FloatArray, observation: Observation) -> FloatArray:
        """The final places of rows' ways, [R, P]; nan for elements left open.

        Args:
            heading: What each explores, [R, P]; nan where that is the goal that it sees.
            observation: What they see, [R, ...] each.
        """
        aims = heading.copy()
        own = aims[:, : self.goal_size]
        own[:] = np.where(np.isnan(own), observation[GOAL_KEY].reshape(len(aims), -1), own)
        return aims

    def random_sub_goals(self, uniform: FloatArray) -> Array:
        """Goals of the level below [R, S], uniformly drawn by numbers in [0, 1)."""
        requested = actions_from_uniform(self._sub_goal.space, uniform)
        assert not isinstance(requested, dict), "goals of a level are a Box"
        return requested

    def sub_goals(self, places: FloatArray, observation: Observation) -> FloatArray:
        """The actions [R, S] that send rows with these observations to places [R, P]."""
        return self._sub_goal.asked_by(self._way_points(places), observation)

    def reached(self, places: FloatArray, observation: Observation) -> BoolArray:
        """Return which rows [R] meet the goal of the level below that leads there."""
        return self._sub_goal.reached(self._way_points(places), observation)

    def starts_as_requested(self, observation: Observation) -> BoolArray:
        """Return which rows [R] have the values of `fixed_goal`; one that fell has not."""
        size = self.requested_size
        space = self._sub_goal
        away = np.abs(space.achieved(observation)[:, size:] - self._fixed_goal)
        return np.asarray((away <= space.threshold[size:]).all(axis=1), np.bool_)

    def _way_points(self, places: FloatArray) -> FloatArray:
        """Places [R, P] as goals of the level below [R, S], float32."""
        rest = np.tile(self._fixed_goal, (len(places), 1))
        return np.hstack([places[:, : self.requested_size], rest]).astype(np.float32)
