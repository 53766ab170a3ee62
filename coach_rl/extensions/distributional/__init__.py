"""DQN that learns the distribution of returns: C51 and QR-DQN.

May import architectures, functional and core. Start with `heads`; `losses` has their formulas.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.distributional.heads import CategoricalHead, QuantileHead
    from coach_rl.extensions.distributional.losses import (
        categorical_loss,
        projected,
        quantile_loss,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["CategoricalHead", "QuantileHead", "categorical_loss", "projected", "quantile_loss"]
