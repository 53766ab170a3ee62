"""Pure tensor functions: distributions, returns and advantages, losses, the optimiser's step.

No module, no parameter object, no logging, no in-place writes; imports torch only. Start with
`policy_gradient` (PPO's losses), whose inputs come from `advantages` and `distributions`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.functional.advantages import (
        advantages_of_rows,
        explained_variance,
        gae,
        segment_ends,
    )
    from coach_rl.functional.distributions import Categorical
    from coach_rl.functional.gaussians import squashed_sample
    from coach_rl.functional.policy_gradient import (
        clipped_surrogate,
        normalised,
        value_loss,
    )
    from coach_rl.functional.temporal_difference import (
        critic_loss,
        dueling_values,
        regression_loss,
        td_target,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Categorical", "advantages_of_rows", "clipped_surrogate", "critic_loss", "dueling_values",
    "explained_variance", "gae", "normalised", "regression_loss",
    "segment_ends", "squashed_sample", "td_target", "value_loss",
]  # fmt: skip
