"""PPO in spaces of every form: Dict, MultiBinary, and those with several axes, as one flat array.

Choices and numbers in one action are independent, or numbers are arguments of a choice. May import
agents, exploration_policies, functional and core. Start with `flattened_output`, the form of
actions; `mixed_space` has the flat space, `distribution` and `sampling` its policy.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.mixed_actions.flattened_output import FlatParts, FlattenedOutput
    from coach_rl.extensions.mixed_actions.mixed_space import MixedSpace
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["FlatParts", "FlattenedOutput", "MixedSpace"]
