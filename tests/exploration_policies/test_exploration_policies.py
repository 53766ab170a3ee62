"""What every exploration policy keeps, and what each one draws."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.core.clock import Clock
from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.spaces import check_actions
from coach_rl.exploration_policies import ExplorationPolicyParameters
from coach_rl.extensions.choices.independent_choices import IndependentChoices

BUTTONS = spaces.Discrete(4, start=3)
DIALS = spaces.MultiDiscrete([3, 2], start=[-1, 4])
UNEVEN = spaces.Box(np.float32([-1, 0, 5]), np.float32([3, 1, 5]))  # half ranges 2, 0.5, 0
CLOCK = Clock(environment_steps=500, planned=rl.EnvironmentSteps(1000))


def constant(value):
    return rl.ConstantSchedule(value=value)


@dataclass(frozen=True)
class PerChoice:
    """Independent policies of each choice."""

    params: ExplorationPolicyParameters

    def build(self, space):
        return IndependentChoices(self.params, space)


DISCRETE = {
    "greedy": rl.Greedy(),
    "epsilon_greedy": rl.EpsilonGreedy(epsilon=constant(0.5)),
    "epsilon_z_greedy": rl.EpsilonZGreedy(epsilon=constant(0.3)),
    "boltzmann": rl.Boltzmann(temperature=constant(0.7)),
    "categorical": rl.Categorical(),
}
BOX = {
    "greedy": rl.Greedy(),
    "gaussian": rl.GaussianNoise(scale=constant(0.4)),
    "raw_gaussian": rl.GaussianNoise(scale=constant(0.4), unit="raw"),
    "truncated_normal": rl.TruncatedNormalNoise(scale=constant(0.4)),
    "ornstein_uhlenbeck": rl.OrnsteinUhlenbeckNoise(dt=1.0),
    "epsilon_and_gaussian": rl.EpsilonGreedyNoise(),
    "epsilon_and_drift": rl.EpsilonGreedyNoise(
        epsilon=constant(0.5), noise=rl.OrnsteinUhlenbeckNoise(dt=1.0)
    ),
    "epsilon_z_and_drift": rl.EpsilonZGreedy(
        epsilon=constant(0.3), noise=rl.OrnsteinUhlenbeckNoise(dt=1.0)
    ),
}
ALL = [
    *[pytest.param(params, BUTTONS, id=f"{name}_discrete") for name, params in DISCRETE.items()],
    *[
        pytest.param(PerChoice(params), DIALS, id=f"{name}_choices")
        for name, params in DISCRETE.items()
    ],
    *[pytest.param(params, UNEVEN, id=f"{name}_box") for name, params in BOX.items()],
]


def some_values(space, rows, seed=0):
    """What a network might say of these rows, inside and outside the bounds."""
    size = sum(choice_sizes(space)) or space.shape[0]
    return (3 * np.random.default_rng(seed).standard_normal((rows, size))).astype(np.float32)


def no_starts(rows):
    return np.zeros(len(rows), np.bool_)


def explore_all(policy, values, *, seed=0, clock=CLOCK):
    """One decision of as many rows as there are values."""
    rows = np.arange(len(values))
    state = policy.new_rows(len(values), seed)
    return policy.explore(state, rows, values, starts=rows >= 0, clock=clock)


@pytest.mark.parametrize(("params", "space"), ALL)
class TestEveryPolicy:
    def test_actions_lie_in_the_space(self, params, space):
        policy, values = params.build(space), some_values(space, 200)
        before = values.copy()
        for actions in (explore_all(policy, values), policy.greedy(values)):
            check_actions(space, actions)
            assert actions.dtype == (np.float32 if isinstance(space, spaces.Box) else np.int64)
            assert not np.shares_memory(actions, values)
        np.testing.assert_array_equal(values, before)

    def test_a_row_is_the_same_alone_and_among_many(self, params, space):
        policy, rng = params.build(space), np.random.default_rng(1)
        values, starts = some_values(space, 300), rng.random(300) < 0.1
        alone = policy.new_rows(3, seed=7)
        expected = [
            policy.explore(alone, np.array([2]), values[[k]], starts=starts[[k]], clock=CLOCK)[0]
            for k in range(300)
        ]
        many, got = policy.new_rows(8, seed=7), []
        while len(got) < 300:
            rows = rng.permutation(8)[: rng.integers(0, 9)]
            here, said, begins = rows == 2, some_values(space, len(rows), 5), rows % 2 == 0
            said[here], begins[here] = values[len(got)], starts[len(got)]
            got += list(policy.explore(many, rows, said, starts=begins, clock=CLOCK)[here])
        np.testing.assert_array_equal(got, expected)

    def test_saved_rows_go_on_bit_for_bit(self, params, space):
        policy, rows = params.build(space), np.array([2, 0])
        state = policy.new_rows(3, seed=4)

        def life(rows_state, steps):
            return [
                policy.explore(
                    rows_state, rows, some_values(space, 2, k), starts=no_starts(rows), clock=CLOCK
                )
                for k in range(steps)
            ]

        life(state, 150)  # past the first block of noise
        saved = state.state_dict()
        expected = life(state, 20)
        other = policy.new_rows(3, seed=99)
        life(other, 3)
        other.load_state_dict(saved)
        np.testing.assert_array_equal(life(other, 20), expected)

    def test_greedy_draws_nothing(self, params, space):
        policy = params.build(space)
        values = some_values(space, 50)
        np.testing.assert_array_equal(policy.greedy(values), policy.greedy(values))
        if isinstance(space, spaces.Discrete):
            np.testing.assert_array_equal(policy.greedy(values), values.argmax(axis=1) + 3)
        elif isinstance(space, spaces.MultiDiscrete):
            each = [values[:, :3].argmax(axis=1) - 1, values[:, 3:].argmax(axis=1) + 4]
            np.testing.assert_array_equal(policy.greedy(values), np.stack(each, axis=1))
        else:
            np.testing.assert_array_equal(
                policy.greedy(values), np.clip(values, space.low, space.high)
            )

    def test_no_rows(self, params, space):
        policy = params.build(space)
        state = policy.new_rows(2, seed=0)
        nobody = np.zeros(0, np.int64)
        actions = policy.explore(
            state, nobody, some_values(space, 0), starts=no_starts(nobody), clock=CLOCK
        )
        assert actions.shape == (0, *space.shape)

    def test_json_rebuilds_it(self, params, space):
        given = getattr(params, "params", params)
        assert decode(encode(given)) == given

    def test_scalars_are_numbers_of_this_moment(self, params, space):
        scalars = params.build(space).metrics(CLOCK)
        assert all(name.startswith("exploration/") for name in scalars)
        assert all(isinstance(value, float) for value in scalars.values())


def test_schedules_are_asked_with_true_progress():
    half_way = Clock(environment_steps=500, planned=rl.EnvironmentSteps(1000))
    epsilon = rl.EpsilonGreedy(epsilon=rl.LinearSchedule(start=1, end=0)).build(BUTTONS)
    assert epsilon.metrics(half_way) == {"exploration/epsilon": 0.5}
    scale = rl.GaussianNoise(
        scale=rl.LinearSchedule(start=0.3, end=0.1, over=rl.EnvironmentSteps(1000))
    ).build(UNEVEN)
    assert scale.metrics(half_way)["exploration/scale"] == pytest.approx(0.2)
    temperature = rl.Boltzmann(temperature=rl.ExponentialSchedule(start=8, end=1, decay=0.5)).build(
        BUTTONS
    )
    assert temperature.metrics(Clock(environment_steps=2)) == {"exploration/temperature": 2}
    both = rl.EpsilonGreedyNoise(noise=rl.OrnsteinUhlenbeckNoise()).build(UNEVEN)
    assert both.metrics(half_way) == {"exploration/epsilon": 0.3, "exploration/sigma": 0.2}


def test_published_defaults():
    assert rl.EpsilonGreedy().build(BUTTONS).metrics(Clock(environment_steps=500_000)) == {
        "exploration/epsilon": pytest.approx(0.55)
    }
    assert rl.GaussianNoise().build(UNEVEN).metrics(CLOCK) == {"exploration/scale": 0.1}
    assert rl.EpsilonGreedyNoise().build(UNEVEN).metrics(CLOCK) == {
        "exploration/epsilon": 0.3,
        "exploration/scale": 0.2,
    }


def test_the_first_of_equal_values_is_greedy():
    values = np.float32([[1, 2, 2, 0], [5, 5, 5, 5]])
    assert rl.Greedy().build(BUTTONS).greedy(values).tolist() == [4, 3]


def shares(actions):
    """Shares of the actions 3, 4, 5, 6."""
    return np.bincount(actions - 3, minlength=4) / len(actions)


def test_choices_explore_independently():
    policy = PerChoice(rl.EpsilonGreedy(epsilon=constant(0.5))).build(DIALS)
    actions = explore_all(policy, np.tile(np.float32([0, 0, 1, 1, 0]), (MANY, 1)))
    first, second = actions[:, 0] != 1, actions[:, 1] != 4  # not greedy: 1 in 3, 1 in 4
    assert first.mean() == pytest.approx(1 / 3, abs=0.04)
    assert second.mean() == pytest.approx(1 / 4, abs=0.04)
    assert (first & second).mean() == pytest.approx(1 / 12, abs=0.03)


MANY = 4000  # decisions; five standard errors of a share p are 5 sqrt(p (1 - p) / 4000) <= 0.04


def test_epsilon_greedy_frequencies():
    policy = rl.EpsilonGreedy(epsilon=constant(0.4)).build(BUTTONS)
    values = np.tile(np.float32([0, 9, 0, 0]), (MANY, 1))
    # the greedy action: 0.6 + 0.4 / 4, the others 0.4 / 4
    np.testing.assert_allclose(
        shares(explore_all(policy, values)), [0.1, 0.7, 0.1, 0.1], atol=0.037
    )
    for epsilon, expected in ((0.0, [0, 1, 0, 0]), (1.0, [0.25] * 4)):
        policy = rl.EpsilonGreedy(epsilon=constant(epsilon)).build(BUTTONS)
        found = shares(explore_all(policy, values))
        np.testing.assert_allclose(found, expected, atol=0.037 * epsilon)


def test_boltzmann_probabilities():
    # exp(values / 2) is in the proportion 1 : 2 : 4 : 1
    values = np.tile(2 * np.log(np.float32([1, 2, 4, 1])) - 50, (MANY, 1))
    policy = rl.Boltzmann(temperature=constant(2.0)).build(BUTTONS)
    np.testing.assert_allclose(
        shares(explore_all(policy, values)), np.array([1, 2, 4, 1]) / 8, atol=0.04
    )


@pytest.mark.parametrize("temperature", [0.0, 1e-300, 1e-9])
def test_boltzmann_without_warmth_is_greedy(temperature):
    values = some_values(BUTTONS, 200)
    policy = rl.Boltzmann(temperature=constant(temperature)).build(BUTTONS)
    np.testing.assert_array_equal(explore_all(policy, values), policy.greedy(values))


def test_categorical_probabilities():
    values = np.tile(np.log(np.float32([0.1, 0.2, 0.3, 0.4])), (MANY, 1))
    policy = rl.Categorical().build(BUTTONS)
    np.testing.assert_allclose(shares(explore_all(policy, values)), [0.1, 0.2, 0.3, 0.4], atol=0.04)
    assert policy.metrics(CLOCK) == {}


def test_gaussian_noise_is_in_half_ranges_of_each_element():
    policy = rl.GaussianNoise(scale=constant(0.1)).build(UNEVEN)
    noise = explore_all(policy, np.tile(np.float32([1, 0.5, 5]), (MANY, 1))) - [1, 0.5, 5]
    # deviations 0.1 * 2, 0.1 * 0.5, 0; five standard errors are 5 / sqrt(2 * 4000) = 5.6 %
    np.testing.assert_allclose(noise.std(axis=0), [0.2, 0.05, 0], rtol=0.056)
    np.testing.assert_allclose(noise.mean(axis=0), 0, atol=5 * 0.2 / math.sqrt(MANY))


def test_gaussian_noise_in_raw_units_is_the_same_for_all_elements():
    wide = spaces.Box(np.float32([-30, -100, 5]), np.float32([30, 0, 5]))
    policy = rl.GaussianNoise(scale=constant(2.0), unit="raw").build(wide)
    values = np.tile(np.float32([1, -50, 5]), (20_000, 1))
    actions = explore_all(policy, values)
    np.testing.assert_allclose(actions.std(axis=0), [2.0, 2.0, 0.0], rtol=0.03)
    np.testing.assert_allclose(actions.mean(axis=0), values[0], atol=0.06)


def test_gaussian_noise_is_clipped():
    policy = rl.GaussianNoise(scale=constant(0.5)).build(UNEVEN)
    actions = explore_all(policy, np.tile(np.float32([3, 0.5, 5]), (MANY, 1)))
    # half of the noise around the upper bound is beyond it
    assert (actions[:, 0] == 3).mean() == pytest.approx(0.5, abs=0.04)


def test_truncated_normal_moments():
    policy = rl.TruncatedNormalNoise(scale=constant(0.5)).build(UNEVEN)
    values = np.float32([[1, 1, 5], [3, 0.5, 5], [9, -9, 5]]).repeat(MANY, axis=0)
    middle, edge, outside = np.split(explore_all(policy, values)[:, 0], 3)
    # Element 0: deviation 0.5 * 2 = 1 in [-1, 3]. Around 1 it is cut at two deviations:
    # variance 1 - 2 * 2 phi(2) / (2 Phi(2) - 1) = 1 - 4 * 0.053991 / 0.954500 = 0.77374
    assert middle.mean() == pytest.approx(1, abs=5 * 0.88 / math.sqrt(MANY))
    assert middle.var() == pytest.approx(0.77374, rel=0.08)
    # Around 3 it is half a normal, cut at four deviations:
    # mean 3 - (phi(0) - phi(4)) / (Phi(0) - Phi(-4)) = 3 - 0.398808 / 0.499968 = 2.20233
    for below in (edge, outside):  # an action beyond the bound counts as the bound
        assert below.mean() == pytest.approx(2.20233, abs=5 * 0.6 / math.sqrt(MANY))
        assert (below == 3).mean() < 0.01


def test_truncated_normal_of_a_large_scale_is_even_and_of_none_is_greedy():
    values = np.tile(np.float32([3, 0, 5]), (MANY, 1))
    wide = rl.TruncatedNormalNoise(scale=constant(1e6)).build(UNEVEN)
    actions = explore_all(wide, values)
    counts = np.histogram(actions[:, 0], bins=4, range=(-1, 3))[0] / MANY
    np.testing.assert_allclose(counts, 0.25, atol=0.035)
    narrow = rl.TruncatedNormalNoise(scale=constant(0.0)).build(UNEVEN)
    np.testing.assert_array_equal(explore_all(narrow, values), values)


@pytest.mark.parametrize("number", [0, 1 - 2**-24], ids=["smallest", "largest"])
@pytest.mark.parametrize("value", [-1, 1, 3])
def test_truncated_normal_takes_every_number_that_can_be_drawn(number, value):
    class Drawn:
        def draw(self, rows):
            return np.full((1, 3), number, np.float32)

    policy, rows = rl.TruncatedNormalNoise(scale=constant(0.01)).build(UNEVEN), np.array([0])
    values = np.float32([[value, 0.5, 5]])
    action = policy.explore(Drawn(), rows, values, starts=rows == 0, clock=CLOCK)[0, 0]
    # 2^-25 of a normal lies beyond 5.4 deviations of 0.01 * 2, of half a normal beyond 5.5
    at_bound = value == (-1 if number == 0 else 3)
    distance = 0 if at_bound else 0.109
    assert abs(action - value) == pytest.approx(distance, abs=0.002)


def drift(params, steps, num_rows=400, starts_at=()):
    """Noise [steps, num_rows] around the middle of a box that is too wide to clip it."""
    policy = params.build(spaces.Box(-1, 1, (1,)))
    state, rows = policy.new_rows(num_rows, seed=3), np.arange(num_rows)
    values = np.zeros((num_rows, 1), np.float32)
    return np.array(
        [
            policy.explore(
                state, rows, values, starts=np.full(num_rows, k in starts_at), clock=CLOCK
            )[:, 0]
            for k in range(steps)
        ]
    )


def test_ornstein_uhlenbeck_is_stationary_where_it_should_be():
    noise = drift(rl.OrnsteinUhlenbeckNoise(dt=1.0, sigma=constant(0.1)), steps=100)[50:]
    # x' = 0.85 x + 0.1 N: variance 0.01 / (1 - 0.85^2) = 0.036036, correlation 0.85.
    # About 400 rows * 50 / 12 independent numbers: five standard errors are 17 %.
    assert noise.var() == pytest.approx(0.036036, rel=0.17)
    assert (noise[1:] * noise[:-1]).mean() / noise.var() == pytest.approx(0.85, abs=0.03)


def test_ornstein_uhlenbeck_spreads_with_the_root_of_time():
    params = rl.OrnsteinUhlenbeckNoise(theta=2.0, dt=0.25, sigma=constant(0.2))
    noise = drift(params, steps=60)[10:]
    # x' = 0.5 x + 0.2 sqrt(0.25) N: variance 0.01 / (1 - 0.5^2) = 0.013333.
    # 400 rows * 50 / 1.7 independent numbers: five standard errors are 6.5 %
    assert noise.var() == pytest.approx(0.013333, rel=0.065)


def test_ornstein_uhlenbeck_by_hand():
    policy = rl.OrnsteinUhlenbeckNoise(theta=0.5, sigma=constant(0.0), dt=0.5, mean=0.4).build(
        UNEVEN
    )
    state, rows = policy.new_rows(1, seed=0), np.array([0])
    state.level[:] = 0.8
    values, seen = np.float32([[0, 0, 5]]), []
    for _ in range(2):
        action = policy.explore(state, rows, values, starts=no_starts(rows), clock=CLOCK)
        seen.append(action[0].tolist())
    # 0.8 + 0.25 (0.4 - 0.8) = 0.7, then 0.625; times half ranges 2, 0.5, 0
    np.testing.assert_allclose(seen, [[1.4, 0.35, 5], [1.25, 0.3125, 5]], rtol=1e-6)


def test_ornstein_uhlenbeck_starts_anew_with_the_episode():
    noise = drift(rl.OrnsteinUhlenbeckNoise(dt=1.0, mean=0.3), steps=41, starts_at=(0, 40))
    # one step from the mean: deviation 0.2, and not the 0.38 of a process that goes on
    assert noise[40].std() == pytest.approx(0.2, rel=0.18)
    assert noise[40].mean() == pytest.approx(0.3, abs=0.05)
    assert abs(np.corrcoef(noise[39], noise[40])[0, 1]) < 0.25
    assert noise[39].std() > 0.3


def test_ornstein_uhlenbeck_starts_only_the_rows_that_start():
    policy = rl.OrnsteinUhlenbeckNoise(sigma=constant(0.0), theta=0.5, dt=1.0).build(UNEVEN)
    state, rows = policy.new_rows(3, seed=0), np.array([2, 1])
    state.level[:] = 0.8
    starts = np.array([False, True])
    policy.explore(state, rows, np.zeros((2, 3), np.float32), starts=starts, clock=CLOCK)
    np.testing.assert_allclose(state.level[:, 0], [0.8, 0, 0.4])


def test_epsilon_greedy_noise_covers_the_box_evenly():
    policy = rl.EpsilonGreedyNoise(
        epsilon=constant(0.4), noise=rl.GaussianNoise(scale=constant(0.0))
    ).build(UNEVEN)
    actions = explore_all(policy, np.tile(np.float32([2, 0.5, 5]), (MANY, 1)))
    drawn = actions[actions[:, 0] != 2]
    assert len(drawn) / MANY == pytest.approx(0.4, abs=0.04)
    for element, (low, high) in enumerate(((-1, 3), (0, 1))):
        counts = np.histogram(drawn[:, element], bins=4, range=(low, high))[0] / len(drawn)
        np.testing.assert_allclose(counts, 0.25, atol=5 * math.sqrt(0.1875 / len(drawn)))
    assert (actions[:, 2] == 5).all()


def test_epsilon_greedy_noise_tells_the_inner_process_of_every_start():
    inner = rl.OrnsteinUhlenbeckNoise(sigma=constant(0.0), theta=0.5, dt=1.0)
    policy = rl.EpsilonGreedyNoise(epsilon=constant(1.0), noise=inner).build(UNEVEN)
    state, rows = policy.new_rows(1, seed=0), np.array([0])
    state.noise.level[:] = 0.8
    policy.explore(state, rows, np.zeros((1, 3), np.float32), starts=rows == 0, clock=CLOCK)
    assert (state.noise.level == 0).all()


def test_a_policy_inside_another_of_its_kind_draws_numbers_of_its_own():
    even = rl.EpsilonGreedyNoise(epsilon=constant(0.5), noise=rl.Greedy())
    nested = rl.EpsilonGreedyNoise(epsilon=constant(0.5), noise=even).build(UNEVEN)
    actions = explore_all(nested, np.tile(np.float32([2, 0.5, 5]), (MANY, 1)))
    # drawn by one or the other: 1 - 0.5 * 0.5
    assert (actions[:, 0] != 2).mean() == pytest.approx(0.75, abs=0.035)


def repetitions(params, space, *, steps, num_rows, starts_at=()):
    """Actions [steps, num_rows, ...] of rows whose episodes start at these steps."""
    policy, rows = params.build(space), np.arange(num_rows)
    state, values = policy.new_rows(num_rows, seed=3), 0 * some_values(space, num_rows)
    return np.array(
        [
            policy.explore(
                state, rows, values, starts=np.full(num_rows, k in starts_at), clock=CLOCK
            )
            for k in range(steps)
        ]
    )


def lengths(actions):
    """Lengths of the runs of equal actions of each row, without the last, which may be cut."""
    found = []
    for row in range(actions.shape[1]):
        changes = np.flatnonzero((actions[1:, row] != actions[:-1, row]).any(axis=-1)) + 1
        found += np.diff(changes, prepend=0).tolist()
    return np.array(found)


def test_repetitions_last_as_long_as_the_zeta_distribution_says():
    # An epsilon of 1 begins a repetition whenever one ends, and two actions of a Box never agree.
    params = rl.EpsilonZGreedy(epsilon=constant(1.0), mu=2.5, longest=8)
    found = lengths(repetitions(params, UNEVEN, steps=4000, num_rows=8))
    weights = np.array([1, 0.176777, 0.064150, 0.03125, 0.017889, 0.011340, 0.007714, 0.005524])
    expected = len(found) * weights / weights.sum()  # n^-2.5
    counts = np.bincount(found, minlength=9)[1:]
    assert len(counts) == 8
    assert len(found) > 20_000
    # Chi-square with 7 degrees of freedom: 24.3 is exceeded once in a thousand seeds.
    assert (((counts - expected) ** 2) / expected).sum() < 24.3


def test_long_durations_are_drawn_from_the_whole_tail():
    class Drawn:
        def draw(self, rows):
            return np.float32([[0.0, 1 - 2**-24, 0.5]])

    policy = rl.EpsilonZGreedy(longest=50).build(BUTTONS)
    state = policy.new_rows(1, seed=0)
    state = type(state)(draws=Drawn(), action=state.action, left=state.left, noise=state.noise)
    rows, values = np.array([0]), np.zeros((1, 4), np.float32)
    policy.explore(state, rows, values, starts=rows == 0, clock=CLOCK)
    assert state.left.tolist() == [49]


def test_epsilon_is_the_probability_that_a_repetition_begins():
    params = rl.EpsilonZGreedy(epsilon=constant(0.2), mu=3.0, longest=2)
    greedy = (repetitions(params, UNEVEN, steps=500, num_rows=40) == [0, 0, 5]).all(axis=-1)
    # mean duration (1 + 2/8) / (1 + 1/8) = 10/9: greedy 0.8 of every 0.8 + 0.2 * 10/9 decisions
    assert greedy.mean() == pytest.approx(0.8 / (0.8 + 2 / 9), abs=0.016)
    # 20,000 decisions, five standard errors of the share after a greedy one
    assert (~greedy[1:])[greedy[:-1]].mean() == pytest.approx(0.2, abs=0.016)


def test_repeated_actions_are_uniform():
    params = rl.EpsilonZGreedy(epsilon=constant(1.0), mu=1.5, longest=2)
    single = repetitions(params, BUTTONS, steps=1, num_rows=MANY)
    np.testing.assert_allclose(shares(single[0]), 0.25, atol=0.037)
    actions = repetitions(params, UNEVEN, steps=2, num_rows=MANY)[..., 0]
    repeated = actions[0, actions[0] == actions[1]]
    # every 3.8th is; the action does not depend on the duration
    counts = np.histogram(repeated, bins=4, range=(-1, 3))[0] / len(repeated)
    np.testing.assert_allclose(counts, 0.25, atol=5 * math.sqrt(0.1875 / len(repeated)))


def test_repetitions_end_with_the_episode():
    params = rl.EpsilonZGreedy(epsilon=constant(1.0), mu=1.0001, longest=10_000)
    actions = repetitions(params, UNEVEN, steps=12, num_rows=200, starts_at=(0, 6))
    unchanged = (actions[1:] == actions[:-1]).all(axis=(1, 2))
    changed_rows = (actions[6] != actions[5]).any(axis=1)
    assert changed_rows.all()
    assert not unchanged.any()  # others end by themselves
    # most durations are far longer than an episode of six decisions
    assert (actions[5] == actions[0]).all(axis=1).mean() > 0.6
    assert (actions[11] == actions[6]).all(axis=1).mean() > 0.6


def test_a_repetition_waits_while_its_row_does_not_decide():
    policy = rl.EpsilonZGreedy(epsilon=constant(1.0)).build(UNEVEN)
    state, values = policy.new_rows(2, seed=0), np.zeros((1, 3), np.float32)
    first = policy.explore(state, np.array([0]), values, starts=np.array([True]), clock=CLOCK)
    state.left[0] = 2
    policy.explore(state, np.array([1]), values, starts=np.array([True]), clock=CLOCK)
    assert state.left[0] == 2
    again = policy.explore(state, np.array([0]), values, starts=np.array([False]), clock=CLOCK)
    np.testing.assert_array_equal(again, first)
    assert state.left[0] == 1


def test_noise_inside_repetitions_draws_numbers_of_its_own_and_goes_on():
    inner = rl.OrnsteinUhlenbeckNoise(sigma=constant(0.0), theta=0.5, dt=1.0)
    policy = rl.EpsilonZGreedy(epsilon=constant(1.0), noise=inner).build(UNEVEN)
    state, rows = policy.new_rows(1, seed=0), np.array([0])
    state.noise.level[:] = 0.8
    policy.explore(state, rows, np.zeros((1, 3), np.float32), starts=no_starts(rows), clock=CLOCK)
    np.testing.assert_allclose(state.noise.level, 0.4)
    nested = rl.EpsilonZGreedy(
        epsilon=constant(0.5), mu=20, noise=rl.EpsilonZGreedy(epsilon=constant(0.5), mu=20)
    ).build(UNEVEN)
    actions = explore_all(nested, np.tile(np.float32([2, 0.5, 5]), (MANY, 1)))
    # drawn by one or the other: 1 - 0.5 * 0.5
    assert (actions[:, 0] != 2).mean() == pytest.approx(0.75, abs=0.035)
