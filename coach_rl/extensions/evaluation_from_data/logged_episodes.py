"""Episodes of a data set as the estimators read them: ratios, rewards, and values of a model.

Arrays are padded to the longest episode, [E, T]: E episodes, T decisions. Behind the end of an
episode ratios are 1, rewards and values 0, so that the weight of an episode that is over stays.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.records import FloatArray


@dataclass(frozen=True, kw_only=True)
class LoggedEpisodes:
    """Rewards of E episodes, and what is known of the policy that is judged by them."""

    rewards: FloatArray
    """r, [E, T]."""
    log_ratios: FloatArray
    """log of the policy's probability of each action divided by the behaviour's, [E, T]; minus
    infinity where the policy never takes it."""
    discount: float
    """Gamma, per decision."""
    action_values: FloatArray | None = None
    """A model's values of the actions that were taken, [E, T]; None: there is no model."""
    values: FloatArray | None = None
    """A model's values of the policy in each observation, [E, T + 1]: behind the last decision of
    an episode that of what it was cut off at, 0 where it terminated. None: there is no model."""

    def __post_init__(self) -> None:
        shape = self.rewards.shape
        require(
            len(shape) == 2 and shape[0] > 0 and shape[1] > 0,
            f"LoggedEpisodes.rewards must be [E, T] of at least one decision, got {list(shape)}",
        )
        wanted = {
            "log_ratios": shape,
            "action_values": shape,
            "values": (shape[0], shape[1] + 1),
        }
        for name, of in wanted.items():
            given = getattr(self, name)
            require(
                given is None or given.shape == of,
                f"LoggedEpisodes.{name} must be {list(of)} beside rewards {list(shape)}, "
                f"got {given is not None and list(given.shape)}",
            )
        require(
            0 < self.discount <= 1,
            f"LoggedEpisodes.discount must lie in (0, 1], got {self.discount}",
        )

    @property
    def count(self) -> int:
        """E."""
        return len(self.rewards)

    @cached_property
    def discounts(self) -> FloatArray:
        """Gamma ** t, [T]."""
        return self.discount ** np.arange(self.rewards.shape[1], dtype=np.float64)

    @cached_property
    def log_weights(self) -> FloatArray:
        """Log of rho_0:t, the sum of log-ratios up to and with each decision, [E, T]."""
        return np.asarray(self.log_ratios.cumsum(axis=1))

    @cached_property
    def weights(self) -> FloatArray:
        """rho_0:t, the product of ratios up to and with each decision, [E, T]."""
        with np.errstate(over="ignore"):  # infinite weights make the estimate infinite
            return np.asarray(np.exp(self.log_weights))

    @cached_property
    def scaled_weights(self) -> FloatArray:
        """Weights divided by the largest of all episodes at the same decision, [E, T].

        Estimators that divide by the sum of weights are the same with them, and they are finite.
        """
        largest = self.log_weights.max(axis=0)
        return np.asarray(np.exp(self.log_weights - np.where(np.isfinite(largest), largest, 0.0)))

    @cached_property
    def effective_samples(self) -> float:
        """(sum w)^2 / sum w^2 of the weights of whole episodes (Kong 1992); 0 where all are 0."""
        last = self.scaled_weights[:, -1]
        squares = float(np.square(last).sum())
        return float(last.sum()) ** 2 / squares if squares else 0.0
