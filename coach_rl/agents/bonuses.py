"""Bonuses to the rewards that an agent learns from."""

from collections.abc import Callable
from types import FunctionType
from typing import ClassVar, Protocol

import numpy as np

from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import takes
from coach_rl.core.records import Action, FloatArray, Observation, Outcome
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.signals import Signals

BonusFunction = Callable[[Observation, Action, Outcome], FloatArray]
"""Function from unfiltered observations before decisions [R, ...] each, their actions [R, ...] as
sent, and their outcomes, to what is added to their rewards [R]. It stands at the top level of a
file."""


class BonusParameters(Protocol):
    """A frozen description of a bonus with state."""

    def build(self, context: AgentContext) -> BonusFunction:
        """The bonus, an object with `__call__`; what it lists in `SAVED` is saved with the agent.

        The agents of the levels below are those of `context.place`. Parameters with a method
        `stage(build)`, from a `StageBuild` to a `RewardTerms`, bring the agent's stage themselves.
        """
        ...


def build_bonus(
    bonus: BonusFunction | BonusParameters, context: AgentContext, agent: str
) -> "Bonus":
    """The bonus at an agent's place.

    Args:
        bonus: A function, or parameters of a bonus with state.
        context: The agent's.
        agent: The agent's name.

    Raises:
        ConfigurationError: It can't be called as a bonus is, or has a state that is not saved.
    """
    function = bonus if callable(bonus) else bonus.build(context)
    owner = context.place.owner(agent)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if not takes(function, 3):
        raise ConfigurationError(
            f"the bonus of {owner} must be a function of observations before, actions and outcomes,"
            f" got {name}"
        )
    if getattr(function, "__dict__", None) and not isinstance(function, FunctionType | Saved):
        raise ConfigurationError(
            f"the bonus of {owner} has a state ({', '.join(vars(function))}) that would not be "
            f"saved; make {name} a subclass of coach_rl.core.saved.Saved that lists it in SAVED"
        )
    return Bonus(function, context.signals, owner)


class Bonus(Saved):
    """A bonus to the rewards that an agent learns from; the level's own stay as they are.

    Args:
        function: Computes it.
        signals: Receives it as the signal `bonus`.
        owner: The agent, for messages.
    """

    SAVED: ClassVar[SavedNames] = (SavedAttribute("_state", inline=True),)

    def __init__(self, function: BonusFunction, signals: Signals, owner: str) -> None:
        self._function = function
        self._signals = signals
        self._owner = owner
        self._state = function if isinstance(function, Saved) else None

    def __call__(self, before: Observation, action: Action, outcome: Outcome) -> FloatArray:
        """The bonus, float64 [R].

        Args:
            before: Unfiltered observations that the decisions were made on, [R, ...] each.
            action: [R, ...] as they were sent.
            outcome: What the decisions led to.
        """
        added = np.asarray(self._function(before, action, outcome), np.float64)
        if added.shape != outcome.reward.shape or not np.isfinite(added).all():
            raise ConfigurationError(
                f"the bonus of {self._owner} must be a finite number for each of "
                f"{len(outcome.reward)} decisions, got an array of shape {added.shape}; return one "
                "value a row"
            )
        self._signals.note("bonus", added)
        return added
