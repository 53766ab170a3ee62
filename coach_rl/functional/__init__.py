"""Pure tensor functions: distributions, returns and advantages, losses, the optimiser's step.

No module, no parameter object, no logging, no in-place writes; imports torch only. Start with
`policy_gradient` (PPO's losses), whose inputs come from `advantages` and `distributions`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.functional.adam import adam_step, clipped_gradient, next_powers
    from coach_rl.functional.adjacency import (
        adjacency_penalty,
        contrastive_loss,
        embedded_distance,
    )
    from coach_rl.functional.advantages import (
        advantages_of_rows,
        discounted_sums,
        explained_variance,
        gae,
        segment_ends,
    )
    from coach_rl.functional.distributional import categorical_loss, projected, quantile_loss
    from coach_rl.functional.distributions import (
        Categorical,
        DiagonalGaussian,
        Distribution,
        MultiCategorical,
        squashed_sample,
    )
    from coach_rl.functional.policy_gradient import (
        adapted_kl_coefficient,
        clipped_surrogate,
        discrimination,
        diversity_reward,
        normalised,
        penalised_surrogate,
        termination_loss,
        value_loss,
    )
    from coach_rl.functional.rmsprop import rmsprop_step
    from coach_rl.functional.temporal_difference import (
        critic_loss,
        dueling_values,
        of_actions,
        regression_loss,
        td_target,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Categorical", "DiagonalGaussian", "Distribution", "MultiCategorical", "adam_step",
    "adapted_kl_coefficient", "adjacency_penalty", "advantages_of_rows", "categorical_loss",
    "clipped_gradient", "clipped_surrogate", "contrastive_loss", "critic_loss", "discounted_sums",
    "discrimination", "diversity_reward", "dueling_values", "embedded_distance",
    "explained_variance", "gae", "next_powers", "normalised", "of_actions", "penalised_surrogate",
    "projected", "quantile_loss", "regression_loss", "rmsprop_step", "segment_ends",
    "squashed_sample", "td_target", "termination_loss", "value_loss",
]  # fmt: skip
