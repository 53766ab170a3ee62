"""What every exploration policy keeps, and what each one draws."""

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
from tests.exploration_policies.plain_exploration import CLOCK, plain

BUTTONS = spaces.Discrete(4, start=3)
DIALS = spaces.MultiDiscrete([3, 2], start=[-1, 4])
UNEVEN = spaces.Box(np.float32([-1, 0, 5]), np.float32([3, 1, 5]))  # half ranges 2, 0.5, 0


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


MORE = {
    "loud gaussian": rl.GaussianNoise(scale=constant(5.0)),
    "wide truncated_normal": rl.TruncatedNormalNoise(scale=constant(1e3)),
    "still truncated_normal": rl.TruncatedNormalNoise(scale=constant(0.0)),
    "slow ornstein_uhlenbeck": rl.OrnsteinUhlenbeckNoise(theta=2.0, dt=0.25, mean=0.3),
    "epsilon in epsilon": rl.EpsilonGreedyNoise(noise=rl.EpsilonGreedyNoise(noise=rl.Greedy())),
    "epsilon_z in epsilon_z": rl.EpsilonZGreedy(
        epsilon=constant(0.5), mu=1.1, longest=6, noise=rl.EpsilonZGreedy(epsilon=constant(0.5))
    ),
}


@pytest.mark.parametrize(
    ("params", "space"),
    [*ALL, *(pytest.param(params, UNEVEN, id=name) for name, params in MORE.items())],
)
def test_explore_equals_a_plain_program(params, space):
    """Of rows that decide at any time, and whose episodes start at any decision."""
    policy, rng = params.build(space), np.random.default_rng(1)
    state, given = policy.new_rows(4, seed=7), getattr(params, "params", params)
    rows, explored = [plain(given, space, 7, row) for row in range(4)], 0
    for number in range(300):
        chosen = rng.permutation(4)[: rng.integers(5)]
        values, starts = some_values(space, len(chosen), number), rng.random(len(chosen)) < 0.1
        found = policy.explore(state, chosen, values, starts=starts, clock=CLOCK)
        for place, row in enumerate(chosen):
            expected = rows[row].decide(values[place].tolist(), bool(starts[place]))
            np.testing.assert_allclose(found[place], expected, rtol=1e-4, atol=1e-5)
        explored += bool((found != policy.greedy(values)).any())
    assert explored > 50 or params in (
        rl.Greedy(),
        PerChoice(rl.Greedy()),
        MORE["still truncated_normal"],
    )


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


@pytest.mark.parametrize("temperature", [0.0, 1e-300, 1e-9])
def test_boltzmann_without_warmth_is_greedy(temperature):
    values = some_values(BUTTONS, 200)
    policy = rl.Boltzmann(temperature=constant(temperature)).build(BUTTONS)
    np.testing.assert_array_equal(explore_all(policy, values), policy.greedy(values))


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
