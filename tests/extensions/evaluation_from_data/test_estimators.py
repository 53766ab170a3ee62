"""Estimators of a policy's value beside their definitions, written as loops over plain numbers."""

import math

import numpy as np
import pytest

from coach_rl.core.errors import ParameterError
from coach_rl.extensions.evaluation_from_data import estimates
from coach_rl.extensions.evaluation_from_data.estimates import RatioSum, resample_counts
from coach_rl.extensions.evaluation_from_data.evaluation import ESTIMATORS, estimate
from coach_rl.extensions.evaluation_from_data.logged_episodes import LoggedEpisodes

DISCOUNT = 0.9


def steps_of(lengths, seed):
    """Episodes as lists of steps: a ratio, a reward, and a model's values; the value behind."""
    rng = np.random.default_rng(seed)
    episodes = []
    for number, length in enumerate(lengths):
        steps = [
            {name: float(rng.normal()) for name in ("reward", "q", "v")}
            | {"ratio": float(rng.uniform(0.2, 2))}
            for _ in range(length)
        ]
        episodes.append((steps, float(rng.normal()) if number % 2 else 0.0))
    return episodes


def padded(episodes):
    longest = max(len(steps) for steps, _ in episodes)
    columns = {
        "rewards": np.zeros((len(episodes), longest)),
        "log_ratios": np.zeros((len(episodes), longest)),
        "action_values": np.zeros((len(episodes), longest)),
        "values": np.zeros((len(episodes), longest + 1)),
    }
    for row, (steps, behind) in enumerate(episodes):
        for step, each in enumerate(steps):
            columns["rewards"][row, step] = each["reward"]
            columns["log_ratios"][row, step] = math.log(each["ratio"])
            columns["action_values"][row, step] = each["q"]
            columns["values"][row, step] = each["v"]
        columns["values"][row, len(steps)] = behind
    return LoggedEpisodes(**columns, discount=DISCOUNT)


def weight(steps, upto):
    """The product of ratios up to and with a step, or of all where the episode is over by then."""
    product = 1.0
    for each in steps[: upto + 1]:
        product *= each["ratio"]
    return product


def discounted(steps):
    return sum(DISCOUNT**t * each["reward"] for t, each in enumerate(steps))


def by_trajectories(episodes):
    return sum(weight(s, len(s)) * discounted(s) for s, _ in episodes) / len(episodes)


def by_trajectories_weighted(episodes):
    total = sum(weight(s, len(s)) for s, _ in episodes)
    return sum(weight(s, len(s)) * discounted(s) for s, _ in episodes) / total


def per_decision(episodes):
    total = 0.0
    for steps, _ in episodes:
        for t, each in enumerate(steps):
            total += DISCOUNT**t * weight(steps, t) * each["reward"]
    return total / len(episodes)


def per_decision_weighted(episodes):
    total = 0.0
    for t in range(max(len(steps) for steps, _ in episodes)):
        weights = [weight(steps, t) for steps, _ in episodes]
        rewards = [steps[t]["reward"] if t < len(steps) else 0.0 for steps, _ in episodes]
        weighted = sum(w * r for w, r in zip(weights, rewards, strict=True))
        total += DISCOUNT**t * weighted / sum(weights)
    return total


def by_model(episodes):
    return sum(steps[0]["v"] for steps, _ in episodes) / len(episodes)


def recursively(steps, behind):
    """V_DR of Jiang & Li 2016, equation 10, of what is left of an episode."""
    if not steps:
        return behind
    now, *rest = steps
    ahead = recursively(rest, behind)
    return now["v"] + now["ratio"] * (now["reward"] + DISCOUNT * ahead - now["q"])


def robust(episodes):
    return sum(recursively(steps, behind) for steps, behind in episodes) / len(episodes)


def robust_weighted(episodes):
    """WDR of Thomas & Brunskill 2016, term by term; an episode that is over keeps its weight."""
    total = 0.0
    for t in range(max(len(steps) for steps, _ in episodes) + 1):
        now = sum(weight(steps, t) for steps, _ in episodes)
        before = sum(weight(steps, t - 1) if t else 1.0 for steps, _ in episodes)
        for steps, behind in episodes:
            own_before = weight(steps, t - 1) / before if t else 1 / before
            if t < len(steps):
                own = weight(steps, t) / now
                error = own * (steps[t]["reward"] - steps[t]["q"])
                total += DISCOUNT**t * (error + own_before * steps[t]["v"])
            elif t == len(steps):
                total += DISCOUNT**t * own_before * behind
    return total


DEFINITIONS = {
    "is": by_trajectories,
    "wis": by_trajectories_weighted,
    "pdis": per_decision,
    "wpdis": per_decision_weighted,
    "dm": by_model,
    "dr": robust,
    "wdr": robust_weighted,
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("lengths", [(4, 1, 6, 3, 2), (5, 5), (1,)])
def test_estimator_equals_its_definition(name, lengths):
    episodes = steps_of(lengths, seed=len(lengths))
    found = ESTIMATORS[name](padded(episodes)).value()
    assert found == pytest.approx(DEFINITIONS[name](episodes), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_resampled_estimate_is_that_of_the_drawn_episodes(name):
    episodes = steps_of((4, 1, 6, 3), seed=1)
    drawn = [2, 0, 2, 3]
    counts = np.bincount(drawn, minlength=4)[None].astype(np.float64)
    found = ESTIMATORS[name](padded(episodes)).resampled(counts)[0]
    again = DEFINITIONS[name]([episodes[each] for each in drawn])
    assert found == pytest.approx(again, rel=1e-12, abs=1e-12)


def test_interval_is_the_percentile_bootstrap_over_episodes():
    episodes = padded(steps_of((3,) * 30, seed=2))
    (counts,) = resample_counts(30, np.random.default_rng(0))
    assert counts.sum(axis=1).tolist() == [30] * 2000
    found = estimate("pdis", episodes, [counts])
    each = episodes.rewards * episodes.weights @ episodes.discounts
    means = np.sort(counts @ each / 30)
    assert found.low == pytest.approx(means[50], abs=0.02 * means.std())
    assert found.high == pytest.approx(means[1949], abs=0.02 * means.std())


def test_bootstrap_draws_the_same_in_blocks_of_bounded_size(monkeypatch):
    (at_once,) = resample_counts(7, np.random.default_rng(3))
    monkeypatch.setattr(estimates, "DRAWN_AT_ONCE", 7 * 600)
    blocks = list(resample_counts(7, np.random.default_rng(3)))
    assert [len(each) for each in blocks] == [600, 600, 600, 200]
    np.testing.assert_array_equal(np.concatenate(blocks), at_once)
    monkeypatch.setattr(estimates, "DRAWN_AT_ONCE", 1)
    assert len(next(iter(resample_counts(7, np.random.default_rng(3))))) == 1


def test_effective_samples_fall_with_unequal_weights():
    def samples(*ratios):
        logs = np.log(np.array(ratios))[:, None]
        rewards = np.ones_like(logs)
        return LoggedEpisodes(rewards=rewards, log_ratios=logs, discount=1.0).effective_samples

    assert samples(1.0, 1.0, 1.0, 1.0) == pytest.approx(4)
    assert samples(3.0, 1.0) == pytest.approx(16 / 10)
    assert samples(1.0, 1e-300) == pytest.approx(1)


def test_estimate_with_few_effective_samples_is_unreliable():
    rng = np.random.default_rng(0)
    for spread, is_reliable in ((0.1, True), (3.0, False)):
        logs = rng.normal(0, spread, (50, 4))
        episodes = LoggedEpisodes(rewards=np.ones((50, 4)), log_ratios=logs, discount=0.9)
        found = estimate("pdis", episodes, resample_counts(50, rng))
        assert found.is_reliable is is_reliable


def test_actions_that_the_policy_never_takes_have_no_weight():
    logs = np.array([[0.0, -np.inf], [0.0, 0.0]])
    episodes = LoggedEpisodes(
        rewards=np.array([[1.0, 5.0], [1.0, 2.0]]), log_ratios=logs, discount=1.0
    )
    values = {name: ESTIMATORS[name](episodes).value() for name in ("is", "wis", "pdis", "wpdis")}
    assert values == pytest.approx({"is": 1.5, "wis": 3.0, "pdis": 2.0, "wpdis": 3.0})
    nothing = LoggedEpisodes(
        rewards=episodes.rewards, log_ratios=np.full((2, 2), -np.inf), discount=1.0
    )
    assert nothing.effective_samples == 0
    assert ESTIMATORS["wis"](nothing).value() == 0


def test_weights_beyond_float64_stay_finite_where_they_are_normalised():
    episodes = LoggedEpisodes(
        rewards=np.ones((3, 400)), log_ratios=np.full((3, 400), 3.0), discount=0.9
    )
    expected = float(episodes.discounts.sum())
    assert ESTIMATORS["wis"](episodes).value() == pytest.approx(expected)
    assert ESTIMATORS["wpdis"](episodes).value() == pytest.approx(expected)
    assert ESTIMATORS["is"](episodes).value() == np.inf


def test_ratio_without_weight_counts_as_nothing():
    assert RatioSum(np.array([[1.0, 2.0]]), np.array([[0.0, 4.0]])).value() == 0.5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"discount": 0.0}, "discount must lie in"),
        ({"rewards": np.zeros((0, 3))}, "at least one decision"),
        ({"log_ratios": np.zeros((2, 4))}, r"log_ratios must be \[2, 3\]"),
        ({"values": np.zeros((2, 3))}, r"values must be \[2, 4\]"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, message):
    given = {"rewards": np.zeros((2, 3)), "log_ratios": np.zeros((2, 3)), "discount": 0.9}
    with pytest.raises(ParameterError, match=message):
        LoggedEpisodes(**{**given, **changes})
