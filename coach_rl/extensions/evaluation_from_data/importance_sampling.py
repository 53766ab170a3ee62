"""Importance sampling: returns of the data, weighted by how likely the policy is to act so.

Precup, Sutton & Singh 2000, "Eligibility traces for off-policy policy evaluation". rho_0:t is the
product of the ratios pi(a|s) / b(a|s) up to decision t, of the policy and of the behaviour.

They know nothing beyond the data: where an episode was cut off, its return ends there.
"""

import numpy as np

from coach_rl.extensions.evaluation_from_data.estimates import RatioSum
from coach_rl.extensions.evaluation_from_data.logged_episodes import LoggedEpisodes


def trajectory_sampling(episodes: LoggedEpisodes) -> RatioSum:
    """1/n sum_i rho_0:T sum_t gamma^t r_t: importance sampling by whole trajectories; unbiased."""
    returns = episodes.rewards @ episodes.discounts
    return RatioSum.mean(_weighted(episodes.weights[:, -1], returns))


def weighted_trajectory_sampling(episodes: LoggedEpisodes) -> RatioSum:
    """sum_i rho_0:T sum_t gamma^t r_t / sum_i rho_0:T.

    Consistent, biased towards the behaviour's value with few episodes, and much less noisy.
    """
    returns = episodes.rewards @ episodes.discounts
    weights = episodes.scaled_weights[:, -1:]
    return RatioSum(weights * returns[:, None], weights)


def per_decision_sampling(episodes: LoggedEpisodes) -> RatioSum:
    """1/n sum_i sum_t gamma^t rho_0:t r_t: a reward is weighted by what led to it; unbiased."""
    terms = _weighted(episodes.weights, episodes.rewards)
    return RatioSum.mean(terms @ episodes.discounts)


def weighted_per_decision_sampling(episodes: LoggedEpisodes) -> RatioSum:
    """sum_t gamma^t (sum_i rho_0:t r_t / sum_i rho_0:t).

    Weights are normalised at each decision (Thomas 2015, "Safe reinforcement learning"), which is
    consistent; Precup et al. divide by one sum over all decisions, which is not.
    """
    weights = episodes.scaled_weights
    return RatioSum(weights * episodes.rewards * episodes.discounts, weights)


def _weighted(weights: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Products, where an infinite weight of nothing is nothing."""
    return np.where(numbers == 0, 0.0, weights * numbers)
