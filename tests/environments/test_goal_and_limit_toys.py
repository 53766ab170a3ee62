"""The bits and the steady pay, with numbers worked out by hand."""

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import ParameterError
from coach_rl.core.records import End
from coach_rl.environments import make, parameters
from coach_rl.environments.toy import BitFlip, BitFlipParameters, SteadyPayParameters
from coach_rl.testing import EnvironmentContract


class TestBitFlipContract(EnvironmentContract):
    steps = 30

    def build(self, num_envs):
        return BitFlipParameters(bits=4).build(num_envs=num_envs)


class TestSteadyPayContract(EnvironmentContract):
    steps = 30

    def build(self, num_envs):
        return SteadyPayParameters(max_episode_steps=7).build(num_envs=num_envs)


def test_bits_flip_one_at_a_time():
    world = BitFlip(BitFlipParameters(bits=3))
    state = {
        "bits": np.float32([[0, 1, 0], [0, 1, 0], [1, 1, 1]]),
        "goal": np.float32([[0, 1, 1], [0, 1, 1], [1, 1, 1]]),
    }
    step = world.step(state, np.array([2, 1, 0]), np.zeros((3, 0)))
    assert step.state["bits"].tolist() == [[0, 1, 1], [0, 0, 0], [0, 1, 1]]
    assert step.reward.tolist() == [0, -1, -1]
    assert step.terminated.tolist() == [True, False, False]
    assert step.info["is_success"].tolist() == [True, False, False]
    assert state["bits"].tolist() == [[0, 1, 0], [0, 1, 0], [1, 1, 1]]


def test_bits_are_solved_by_flipping_what_differs():
    environment = make("bit_flip", num_envs=40, seed=0, bits=6)
    seen = environment.reset().observation
    assert environment.spaces.action == spaces.Discrete(6)
    assert {key: values.dtype for key, values in seen.items()} == dict.fromkeys(
        ("observation", "achieved_goal", "desired_goal"), np.float32
    )
    needed = (seen["observation"] != seen["desired_goal"]).sum(axis=1)
    needed[needed == 0] = 2  # away from the goal and back
    ended_at, rows = np.zeros(40, np.int64), np.arange(40)
    for step in range(1, 7):
        differs = seen["observation"] != seen["desired_goal"]
        environment.send(differs.argmax(axis=1), rows)
        answer = environment.recv()
        reached = answer.end == End.TERMINATED
        np.testing.assert_array_equal(answer.info["is_success"], reached)
        np.testing.assert_array_equal(answer.reward, np.where(reached, 0, -1))
        np.testing.assert_array_equal(
            answer.observation["observation"], answer.observation["achieved_goal"]
        )
        ended_at[rows[reached]] = step
        rows = rows[~reached]
        seen = {key: values[~reached] for key, values in answer.observation.items()}
    np.testing.assert_array_equal(ended_at, needed)


def test_bits_are_cut_off_after_as_many_steps():
    environment = BitFlipParameters(bits=16).build(num_envs=1)
    environment.reset(seed=0)
    ends = []
    for _ in range(16):
        environment.send(np.array([0]))  # one bit, again and again
        ends.append(int(environment.recv().end[0]))
    assert ends == [0] * 15 + [End.TRUNCATED]


def test_bits_and_goals_are_drawn_evenly():
    seen = BitFlipParameters(bits=5).build(num_envs=800).reset(seed=0).observation
    for key in ("observation", "desired_goal"):
        # five standard errors of a half among 800: 5 * 0.5 / sqrt(800) = 0.088
        np.testing.assert_allclose(seen[key].mean(axis=0), 0.5, atol=0.088)
        assert set(np.unique(seen[key])) == {0, 1}
    same = (seen["observation"] == seen["desired_goal"]).mean(axis=0)
    np.testing.assert_allclose(same, 0.5, atol=0.088)


def test_bits_are_judged_in_any_shape():
    world = BitFlip(BitFlipParameters(bits=2))
    achieved = np.float32([[[0, 1], [1, 1]], [[0, 0], [1, 0]]])
    rewards = world.compute_reward(achieved, np.float32([[0, 1], [1, 0]]), {})
    assert rewards.tolist() == [[0, -1], [-1, 0]]


def test_steady_pay_is_paid_until_it_is_cut_off():
    environment = make("steady_pay", num_envs=3, seed=0, max_episode_steps=4)
    shown = [environment.reset().observation["observation"]]
    space = environment.spaces.action
    assert (space.low.tolist(), space.high.tolist()) == ([-1], [3])
    for step in range(1, 9):
        environment.send(np.float32([[-1], [0], [3]]))
        answer = environment.recv()
        assert answer.reward.tolist() == [1, 1, 1]
        assert (answer.end == (End.TRUNCATED if step % 4 == 0 else 0)).all()
        restarted = answer.observation["observation"] != answer.first_observation["observation"]
        assert (restarted == (step % 4 == 0)).all()
        shown.append(answer.observation["observation"])
    assert len(np.unique(shown)) == 9 * 3


@pytest.mark.parametrize(
    ("make_parameters", "line"),
    [
        (lambda: BitFlipParameters(bits=0), "BitFlipParameters.bits must be 1 or more, got 0"),
        (lambda: SteadyPayParameters(max_episode_steps=0), "max_episode_steps must be 1 or more"),
        (lambda: SteadyPayParameters(low=3), "low must lie below high, .* got 3.0 and 3.0"),
        (lambda: SteadyPayParameters(high=np.inf), "both be finite"),
        (lambda: parameters("bit_flip", max_episode_steps=3), "has no parameter"),
    ],
)
def test_bad_parameters(make_parameters, line):
    with pytest.raises(ParameterError, match=line):
        make_parameters()
