"""Options: tasks among which the level above chooses one, for the level's agent to carry out."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import RunError, SpaceError, require
from coach_rl.core.goals import name_of, takes
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation, take

OPTION_KEY = "option"
"""The observation key under which a level's own option stands."""
OptionReward = Callable[[Observation, Observation, FloatArray], FloatArray]
"""Function from the observations before and after a decision, [R, ...] each, and the environment's
reward [R] to the option's rewards [R]. It has no memory, and stands at the top level of a file."""
OptionEnd = Callable[[Observation], BoolArray]
"""Function from the observations after a decision, [R, ...] each, to where the option ends, [R]. It
has no memory, and stands at the top level of a file."""


@parameter_class
class OptionSpace:
    """K options: the level above chooses one, the level's agent sees which.

    An option has no goal. It is rewarded by the environment, or by a function of its own, and ends
    by a condition of its own or of the level's agent, at its horizon, or with the real episode.
    """

    ages: ClassVar[bool] = False
    """True in no options: they don't change as simulator steps pass."""

    count: Positive[int]
    """K."""
    rewards: tuple[OptionReward | None, ...] = ()
    """The function that rewards each option; None: the environment does. Empty: it rewards all."""
    ends: tuple[OptionEnd | None, ...] = ()
    """The termination function of each option; None, or empty: none. Termination cuts the bootstrap
    of an option with a reward of its own; others bootstrap from the environment's reward under the
    next option."""

    def __post_init__(self) -> None:
        for name, functions, arguments in (("rewards", self.rewards, 3), ("ends", self.ends, 1)):
            require(
                len(functions) in (0, self.count),
                f"OptionSpace.{name} needs a function (or None) for each of {self.count} options, "
                f"got {len(functions)}",
            )
            for number, function in enumerate(functions):
                require(
                    function is None or takes(function, arguments),
                    f"OptionSpace.{name}[{number}] must be a function of {arguments} argument"
                    f"{'s' * (arguments > 1)}, got {name_of(function)}; see docs/skills.md",
                )

    @property
    def space(self) -> spaces.Discrete:
        """The action space of the level above."""
        return spaces.Discrete(self.count)

    @property
    def shown(self) -> dict[str, spaces.Box]:
        """The space under which the level's agent sees its option: one-hot."""
        return {OPTION_KEY: spaces.Box(0, 1, (self.count,), np.float32)}

    @property
    def size(self) -> int:
        """Elements an option is kept in, K."""
        return self.count

    @property
    def sent_size(self) -> int:
        """Elements of an option as the level keeps it, K."""
        return self.count

    def check(self, observation_space: spaces.Dict) -> None:
        """Raise `SpaceError` where the option's key is taken."""
        if OPTION_KEY in observation_space.spaces:
            raise SpaceError(
                f"the environment shows a '{OPTION_KEY}' of its own, under which a level's option "
                "would stand; rename it"
            )

    def check_given(self, observation_space: spaces.Dict) -> None:  # noqa: ARG002 - as GoalSpace
        """Raise `SpaceError`: no environment chooses options."""
        raise SpaceError("the top level has no options, as no level above chooses one")

    def target(self, action: Array, observation: Observation) -> FloatArray:  # noqa: ARG002 - as GoalSpace
        """The options chosen as ones among zeros, float32 [R, K]."""
        return np.eye(self.count, dtype=np.float32)[action]

    def show(self, goal: FloatArray, observation: Observation) -> Observation:  # noqa: ARG002 - as GoalSpace
        """Return the options as the level's agent sees them, by observation key, one-hot [R, K]."""
        return {OPTION_KEY: goal}

    def reward(
        self, option: FloatArray, observation: Observation, after: Observation, given: FloatArray
    ) -> FloatArray:
        """Return the reward of each row's option, float64 [R].

        Args:
            option: One-hot [R, K].
            observation: What the decisions were made on, [R, ...] each.
            after: What they led to.
            given: The environment's reward, [R].
        """
        reward = np.array(given, np.float64)
        for number, function in enumerate(self.rewards):
            (here,) = option[:, number].nonzero()
            if function is not None and len(here):
                earned = function(take(observation, here), take(after, here), given[here])
                reward[here] = _one_a_row(earned, here, f"rewards[{number}]", function)
        return reward

    def ended(self, option: FloatArray, after: Observation) -> BoolArray:
        """Return where each row's option ends by its own condition, [R] bool."""
        ended = np.zeros(len(option), np.bool_)
        for number, function in enumerate(self.ends):
            (here,) = option[:, number].nonzero()
            if function is not None and len(here):
                stops = function(take(after, here))
                ended[here] = _one_a_row(stops, here, f"ends[{number}]", function)
        return ended

    def has_own_reward(self, option: FloatArray) -> BoolArray:
        """Return whether each row's option has a reward function of its own, [R] bool."""
        if not self.rewards:
            return np.zeros(len(option), np.bool_)
        has_own = np.array([each is not None for each in self.rewards], np.bool_)
        own: BoolArray = has_own[option.argmax(axis=1)]
        return own


def _one_a_row(values: Array, rows: IntArray, what: str, function: object) -> Array:
    """The values that a function returned, if they are a number a row."""
    found = np.asarray(values)
    if found.shape != (len(rows),):
        raise RunError(
            f"OptionSpace.{what} ({name_of(function)}) returned an array of shape {found.shape} "
            f"for {len(rows)} rows; needed is one number for each row"
        )
    return found
