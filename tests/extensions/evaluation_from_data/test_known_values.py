"""Estimators in decision processes of 3 to 6 states whose values dynamic programming gives.

Episodes have 5 decisions, data sets 200 episodes of a behaviour that chooses among two actions
evenly, so that no ratio is above 2. Rewards have normal noise of standard deviation 1.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from coach_rl.extensions.evaluation_from_data.estimates import resample_counts
from coach_rl.extensions.evaluation_from_data.evaluation import ESTIMATORS, estimate
from coach_rl.extensions.evaluation_from_data.fitted_q import linear_coefficients
from coach_rl.extensions.evaluation_from_data.logged_episodes import LoggedEpisodes

DISCOUNT = 0.95
HORIZON = 5
EPISODES = 200
ACTIONS = 2
STATES = (3, 4, 5, 6)
WEIGHTED = [name for name in ESTIMATORS if name != "dm"]


@dataclass(frozen=True)
class Process:
    """A decision process with S states, and a policy whose value is known."""

    transitions: np.ndarray
    """Probabilities of next states, [S, A, S]."""
    rewards: np.ndarray
    """Mean rewards, [S, A]."""
    first: np.ndarray
    """Probabilities of first states, [S]."""
    policy: np.ndarray
    """Probabilities of actions, [S, A]."""

    @classmethod
    def drawn(cls, states, rng):
        return cls(
            transitions=rng.dirichlet(np.ones(states), (states, ACTIONS)),
            rewards=rng.normal(size=(states, ACTIONS)),
            first=rng.dirichlet(np.ones(states)),
            policy=rng.dirichlet(np.ones(ACTIONS), states),
        )

    def exact(self):
        """Values of actions [T, S, A], of states [T + 1, S], and of the policy."""
        states = len(self.first)
        values = np.zeros((HORIZON + 1, states))
        action_values = np.zeros((HORIZON, states, ACTIONS))
        for step in reversed(range(HORIZON)):
            action_values[step] = self.rewards + DISCOUNT * self.transitions @ values[step + 1]
            values[step] = (self.policy * action_values[step]).sum(axis=1)
        return action_values, values, float(self.first @ values[0])

    def data(self, rng, episodes=EPISODES):
        """States, actions and rewards of the behaviour, [E, T] each."""
        state = rng.choice(len(self.first), episodes, p=self.first)
        columns = []
        for _ in range(HORIZON):
            action = rng.integers(0, ACTIONS, episodes)
            reward = self.rewards[state, action] + rng.normal(size=episodes)
            columns.append((state, action, reward))
            cumulative = self.transitions[state, action].cumsum(axis=1)
            below = (rng.random(episodes)[:, None] > cumulative).sum(axis=1)
            state = np.minimum(below, len(self.first) - 1)
        return [np.stack(each, axis=1) for each in zip(*columns, strict=True)]

    def logged(self, state, action, reward, action_values, values):
        """The data with the values of a model, [T, S, A] and [T + 1, S]."""
        step = np.arange(HORIZON)
        behind = np.zeros((len(state), 1))
        ratios = self.policy[state, action] * ACTIONS
        assert ratios.max() <= 2
        return LoggedEpisodes(
            rewards=reward,
            log_ratios=np.log(ratios),
            discount=DISCOUNT,
            action_values=action_values[step, state, action],
            values=np.concatenate([values[step, state], behind], axis=1),
        )


def wrong_model(process, rng):
    """Values of a model that knows nothing of the process, too high by 1 on average."""
    action_values = 1 + rng.normal(size=(HORIZON, *process.rewards.shape))
    values = (process.policy * action_values).sum(axis=2)
    return action_values, np.concatenate([values, np.zeros((1, len(process.first)))])


def check_coverage(draws, seed, low, high):
    """Check how many intervals of so many data sets hold the value, by estimator.

    Every draw has a process of its own; the model is wrong in every second one.
    """
    rng = np.random.default_rng(seed)
    holds = {name: [] for name in ESTIMATORS}
    for draw in range(draws):
        process = Process.drawn(STATES[draw % len(STATES)], rng)
        action_values, values, value = process.exact()
        model = wrong_model(process, rng) if draw % 2 else (action_values, values)
        episodes = process.logged(*process.data(rng), *model)
        counts = list(resample_counts(EPISODES, rng))
        for name in ESTIMATORS if draw % 2 == 0 else WEIGHTED:
            found = estimate(name, episodes, counts)
            holds[name].append(found.low <= value <= found.high)
    coverage = {name: float(np.mean(each)) for name, each in holds.items()}
    assert all(low <= each <= high for each in coverage.values()), coverage


def test_intervals_hold_the_value_in_most_of_100_data_sets():
    check_coverage(100, seed=0, low=0.86, high=1.0)


@pytest.mark.slow
def test_intervals_hold_the_value_in_92_to_98_of_100_data_sets():
    """1,000 data sets; takes minutes."""
    check_coverage(1_000, seed=1, low=0.92, high=0.98)


def test_fitted_table_has_the_values_of_dynamic_programming():
    """One-hot features of step, state and action; enough data for one digit."""
    rng = np.random.default_rng(6)
    process = Process.drawn(3, rng)
    action_values, _, value = process.exact()
    state, action, reward = process.data(rng, episodes=30_000)
    states = len(process.first)
    step = np.broadcast_to(np.arange(HORIZON), state.shape)
    cell = (step * states + state) * ACTIONS + action
    cells = HORIZON * states * ACTIONS
    after = np.zeros((*state.shape, cells))
    rows, columns = np.indices((len(state), HORIZON - 1))
    for other in range(ACTIONS):
        next_cell = (step[:, 1:] * states + state[:, 1:]) * ACTIONS + other
        after[rows, columns, next_cell] = process.policy[state[:, 1:], other]
    fitted = linear_coefficients(
        np.eye(cells)[cell.ravel()],
        after.reshape(-1, cells),
        reward.ravel(),
        discount=DISCOUNT,
    )
    np.testing.assert_allclose(fitted, action_values.ravel(), atol=0.12)
    first = fitted.reshape(HORIZON, states, ACTIONS)[0]
    assert process.first @ (process.policy * first).sum(axis=1) == pytest.approx(value, abs=0.02)
