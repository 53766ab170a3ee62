"""Estimators with a model of the policy's values: the direct method, and doubly robust ones.

The model continues where the data were cut off: behind a truncated episode they count its value of
the last observation.
"""

import numpy as np

from coach_rl.core.records import FloatArray
from coach_rl.extensions.evaluation_from_data.estimates import RatioSum
from coach_rl.extensions.evaluation_from_data.logged_episodes import LoggedEpisodes


def direct_method(episodes: LoggedEpisodes) -> RatioSum:
    """1/n sum_i v(s_0): the model's value of first observations; no weights, all of its errors.

    Its interval has the spread of first observations alone, not the model's error.
    """
    return RatioSum.mean(_model(episodes)[1][:, 0])


def doubly_robust(episodes: LoggedEpisodes) -> RatioSum:
    """Doubly robust per decision (Jiang & Li 2016, arXiv:1511.03722, equation 10).

    V_t = v(s_t) + rho_t (r_t + gamma V_t+1 - q(s_t, a_t)), backwards from the end. It is unbiased
    with right ratios whatever the model, and the better the model, the less noisy.
    """
    action_values, values = _model(episodes)
    with np.errstate(over="ignore"):
        ratios = np.exp(episodes.log_ratios)
    estimate = values[:, -1]
    for step in reversed(range(episodes.rewards.shape[1])):
        error = episodes.rewards[:, step] + episodes.discount * estimate - action_values[:, step]
        estimate = values[:, step] + ratios[:, step] * error
    return RatioSum.mean(estimate)


def weighted_doubly_robust(episodes: LoggedEpisodes) -> RatioSum:
    """Weighted doubly robust (Thomas & Brunskill 2016, arXiv:1604.00923, section 4).

    sum_i sum_t gamma^t (w_t (r_t - q(s_t, a_t)) + w_t-1 v(s_t)), with w_t = rho_0:t / sum_i rho_0:t
    and w_-1 = 1/n. Consistent; a little biased, and less noisy than without normalising.
    """
    action_values, values = _model(episodes)
    weights = episodes.scaled_weights
    before = np.concatenate([np.ones((episodes.count, 1)), weights], axis=1)  # w_t-1, [E, T + 1]
    discounts = np.append(episodes.discounts, episodes.discounts[-1] * episodes.discount)
    errors = weights * (episodes.rewards - action_values) * episodes.discounts
    return RatioSum(
        np.concatenate([errors, before * values * discounts], axis=1),
        np.concatenate([weights, before], axis=1),
    )


def _model(episodes: LoggedEpisodes) -> tuple[FloatArray, FloatArray]:
    """The model's values of actions and of observations."""
    assert episodes.action_values is not None, "an estimator with a model has been given none"
    assert episodes.values is not None, "an estimator with a model has been given none"
    return episodes.action_values, episodes.values
