"""Checks that an agent acts by the code that its graph is written from.

A class of a user's that changes nothing of acting, such as one with a `picture` or a loss of its
own, is exported as the class that it extends.
"""

from typing import Any

import numpy as np
from gymnasium import spaces

from coach_rl.agents.stages.action_masks import ActionMasks
from coach_rl.agents.stages.filters import ActionBounds, FilteredInput, FilteredOutput
from coach_rl.agents.stages.reward_terms import RewardTerms
from coach_rl.agents.stages.stage import Stage
from coach_rl.agents.stages.stages import Stages
from coach_rl.agents.stages.symmetry import SymmetricView
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.records import Action, ActionRequest, Observation
from coach_rl.extensions.exporting.numpy_functions import samples_of

_LEARNING = frozenset(
    {
        "SAVED", "STAGES", "TIMED", "_abc_impl", "critic_for", "cut_off",
        "decisions_until_training",
        "description", "learn_from_batch", "learn_from_rollout", "load_state_dict", "loss",
        "metrics", "note_loaded", "parts", "rollout_batch", "state_dict", "store", "train",
    }
)  # fmt: skip
"""Names that a subclass may change without acting otherwise."""
WRITTEN_STAGES: list[type[Stage]] = [
    ActionBounds, ActionMasks, FilteredInput, FilteredOutput, RewardTerms, SymmetricView,
]  # fmt: skip
"""Stages that graphs are written of, or that leave actions as they are; offers add theirs."""
_ACTING = "acting", "begin", "choose", "enter", "leave", "new_rows", "shown"
"""Methods of a stage by which an agent acts otherwise."""
ROWS = 64
"""Rows in which a user's class is tried."""


def own_acting(agent: Any) -> str | None:
    """The reason why an agent acts by Python that no graph is written of; None: it doesn't."""
    kinds = type(agent).__mro__
    place = next(n for n, each in enumerate(kinds) if _is_ours(each))
    base = kinds[place]
    for own in kinds[:place]:
        for name in vars(own):
            is_new = not hasattr(base, name)
            is_harmless = name == "__init__" or (name[:2] == "__" and not name.startswith("__get"))
            if not (is_new or is_harmless or name in _LEARNING):
                return f"its {own.__name__} has a {name} of its own"
    for stage in getattr(agent, "stages", Stages("")).all:
        if not isinstance(stage, tuple(WRITTEN_STAGES)) and _acts(stage):
            return f"its stage {type(stage).__name__} is not known"
    return None


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("coach_rl.") or kind is object


def _acts(stage: Stage) -> bool:
    return any(getattr(type(stage), name) is not getattr(Stage, name) for name in _ACTING)


def is_own(agent: Any) -> bool:
    """True if an agent's class is a user's."""
    return not _is_ours(type(agent))


def first_actions(agent: Any, sees: spaces.Dict) -> tuple[Observation, Action]:
    """Observations [R, ...] that episodes begin with, and an agent's greedy actions in them."""
    seen = {key: values.numpy() for key, values in samples_of(sees, ROWS).items()}
    everywhere = np.ones(ROWS, np.bool_)
    request = ActionRequest(
        rows=np.arange(ROWS),
        observation=seen,
        starts=everywhere,
        episode_start=everywhere,
        greedy=everywhere,
    )
    return seen, agent.act(agent.new_rows(ROWS, 0), request, Clock(phase=Phase.TEST))
