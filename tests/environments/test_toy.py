"""The toy worlds' rules, with numbers worked out by hand."""

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.records import End
from coach_rl.environments import make
from coach_rl.environments.toy import BitFlip, Chain, Gates, GoalPointMass, PointMass
from tests.environments.walks import answer_to

NO_LUCK = np.zeros((1, 0))


def test_one_step_rewards_the_matching_action():
    environment = rl.OneStepParameters(size=3).build(num_envs=50)
    shown = environment.reset(seed=0).observation["observation"]
    assert shown.sum(axis=1).tolist() == [1] * 50
    assert (shown.sum(axis=0) > 5).all()
    context = shown.argmax(axis=1)
    answer = answer_to(environment, np.where(np.arange(50) < 25, context, (context + 1) % 3))
    assert answer.reward.tolist() == [1] * 25 + [0] * 25
    assert (answer.end == End.TERMINATED).all()
    assert not answer.truncated.any()
    np.testing.assert_array_equal(answer.observation["observation"], shown)


def test_one_step_continuous_rewards_one_minus_the_mean_squared_error():
    environment = rl.OneStepParameters(size=2, continuous=True).build(num_envs=1)
    target = environment.reset(seed=0).observation["observation"]
    nudge = np.where(target > 0, -0.5, 0.5) * np.array([[1, 0]])
    environment.send((target + nudge).astype(np.float32))
    # differences 0.5 and 0: the mean square is 0.25 / 2
    assert environment.recv().reward[0] == pytest.approx(1 - 0.125, abs=1e-6)


def test_chain_rewards_at_both_ends():
    environment = rl.ChainParameters(length=4).build(num_envs=1)
    shown = [environment.reset(seed=0).observation["observation"][0].tolist()]
    rewards, ends = [], []
    for action in [0, 0, 1, 1, 1, 1, *[0] * 7]:  # length + 9 = 13 steps
        answer = answer_to(environment, np.array([action]))
        shown.append(answer.observation["observation"][0].tolist())
        rewards.append(answer.reward[0])
        ends.append(int(answer.end[0]))
    assert shown[:5] == [[1, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]
    assert rewards == [0.001, 0.001, 0, 0, 1, 1, 0, 0, *[0.001] * 5]
    assert ends == [0] * 12 + [End.TRUNCATED]
    assert answer.first_observation["observation"][0].tolist() == [1, 1, 0, 0]


def test_chain_observation_kinds():
    state = {"position": np.array([2])}
    shown = {
        kind: Chain(rl.ChainParameters(length=4, observation=kind)).observe(state)["observation"][0]
        for kind in ("one_hot", "thermometer", "index")
    }
    assert shown["one_hot"].tolist() == [0, 0, 1, 0]
    assert shown["thermometer"].tolist() == [1, 1, 1, 0]
    assert shown["index"] == 2


def test_chain_slip_probability():
    environment = rl.ChainParameters(length=5, slip=0.25).build(num_envs=2000)
    environment.reset(seed=0)
    went_back = answer_to(environment, np.ones(2000, np.int64)).reward == 0.001
    # 4 standard deviations of a share of 0.25 among 2000: 4 * sqrt(0.25 * 0.75 / 2000) = 0.039
    assert went_back.mean() == pytest.approx(0.25, abs=0.039)


def test_point_mass_equals_equation_of_motion():
    world = PointMass()
    state = {"position": np.array([[0.0, 0.95]]), "velocity": np.array([[1.0, 1.0]])}
    step = world.step(state, np.array([[1.0, 0.0]]), NO_LUCK)
    # velocity 0.9 * 1 + 5 * 0.1 * 1 = 1.4, place 0 + 0.1 * 1.4; the other hits the wall at 1
    np.testing.assert_allclose(step.state["velocity"], [[1.4, 0.0]])
    np.testing.assert_allclose(step.state["position"], [[0.14, 1.0]])
    assert step.reward[0] == pytest.approx(-np.hypot(0.14, 1.0))
    np.testing.assert_allclose(state["velocity"], [[1.0, 1.0]])


def test_goal_point_mass_rewards_and_success():
    environment = rl.GoalPointMassParameters(threshold=0.2, terminate=True).build(num_envs=30)
    seen = environment.reset(seed=0).observation
    reached = np.zeros(30, bool)
    for _ in range(45):
        push = -1.5 * (seen["achieved_goal"] - seen["desired_goal"]) - seen["observation"][:, 2:]
        answer = answer_to(environment, np.clip(push, -1, 1))
        success = answer.info["is_success"]
        distance = np.linalg.norm(
            answer.observation["achieved_goal"] - answer.observation["desired_goal"], axis=1
        )
        np.testing.assert_array_equal(success, distance <= 0.2)
        np.testing.assert_array_equal(answer.reward, np.where(success, 0, -1))
        np.testing.assert_array_equal(answer.terminated, success)
        reached |= success
        seen = answer.first_observation
    assert reached.all()


def test_closed_gate_returns_mass_open_gate_passes():
    world = Gates(rl.GatesParameters(period=40, open_steps=6))
    state = {
        "position": np.array([[-0.35], [-0.35], [-0.35], [0.2], [0.25]]),
        "velocity": np.full((5, 1), 0.1),
        "clock": np.array([[5.0, 20], [6, 20], [39, 20], [20, 0], [0, 20]]),
        "goal": np.full((5, 1), 0.7),
    }
    step = world.step(state, np.array([[1.0]] * 5), NO_LUCK)
    # velocity 0.8 * 0.1 + 0.03 = 0.11: over the gate at -0.3, and from 0.2 over that at 0.3
    places = [-0.24, -0.9, -0.9, 0.31, -0.9]
    np.testing.assert_allclose(step.state["position"][:, 0], places)
    np.testing.assert_allclose(step.state["velocity"][:, 0], [0.11, 0, 0, 0.11, 0])
    assert step.state["clock"][:, 0].tolist() == [6, 7, 0, 21, 1]
    assert not step.terminated.any()


def test_gates_terminate_at_goal():
    world = Gates(rl.GatesParameters())
    state = world.start(np.array([[0.5, 0.0, 0.999]]))
    assert {name: values.tolist() for name, values in state.items()} == {
        "position": [[-0.9]],
        "velocity": [[0.0]],
        "clock": [[0, 39]],
        "goal": [[0.75]],
    }
    seen = world.observe({**state, "clock": np.array([[10.0, 20.0]])})["observation"]
    np.testing.assert_allclose(seen, [[-0.9, 0, 1, 0, 0, -1]], atol=1e-6)
    near = {**state, "position": np.array([[0.72]])}
    step = world.step(near, np.zeros((1, 1)), NO_LUCK)
    assert step.terminated.all()
    assert step.reward.tolist() == [0]
    assert world.step(state, np.zeros((1, 1)), NO_LUCK).reward.tolist() == [-1]
    here = np.array([[0.72], [0.6]], np.float32)
    assert world.compute_reward(here, np.float32([[0.75], [0.75]])).tolist() == [0, -1]


def test_compute_reward_works_on_any_shape():
    sparse = GoalPointMass(rl.GoalPointMassParameters(threshold=0.5))
    dense = GoalPointMass(rl.GoalPointMassParameters(reward="dense"))
    here, there = np.zeros((2, 3, 2)), np.full((2, 3, 2), 0.3)
    there[1] = 0.4
    # distances 0.3 * sqrt(2) = 0.42 and 0.4 * sqrt(2) = 0.57
    np.testing.assert_array_equal(sparse.compute_reward(here, there), [[0] * 3, [-1] * 3])
    np.testing.assert_allclose(dense.compute_reward(here, there, {})[0], -0.3 * np.sqrt(2))


def test_unseeded_environments_differ():
    starts = [rl.PointMassParameters().build(num_envs=1).reset().observation for _ in range(2)]
    assert (starts[0]["observation"] != starts[1]["observation"]).any()


def test_bits_flip_one_at_a_time():
    world = BitFlip(rl.BitFlipParameters(bits=3))
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


def test_bits_solved_by_flipping_differences():
    environment = make("bit_flip", num_envs=40, bits=6)
    seen = environment.reset(seed=0).observation
    assert environment.spaces.action == spaces.Discrete(6)
    assert {key: values.dtype for key, values in seen.items()} == dict.fromkeys(
        ("observation", "achieved_goal", "desired_goal"), np.float32
    )
    needed = (seen["observation"] != seen["desired_goal"]).sum(axis=1)
    needed[needed == 0] = 2  # away from the goal and back
    ended_at, rows = np.zeros(40, np.int64), np.arange(40)
    for step in range(1, 7):
        differs = seen["observation"] != seen["desired_goal"]
        answer = answer_to(environment, differs.argmax(axis=1), rows)
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


def test_bits_truncated_after_n_steps():
    environment = rl.BitFlipParameters(bits=16).build(num_envs=1)
    environment.reset(seed=0)
    ends = []
    for _ in range(16):
        environment.send(np.array([0]))  # one bit, again and again
        ends.append(int(environment.recv().end[0]))
    assert ends == [0] * 15 + [End.TRUNCATED]


def test_bits_and_goals_are_drawn_evenly():
    seen = rl.BitFlipParameters(bits=5).build(num_envs=800).reset(seed=0).observation
    for key in ("observation", "desired_goal"):
        # five standard errors of a half among 800: 5 * 0.5 / sqrt(800) = 0.088
        np.testing.assert_allclose(seen[key].mean(axis=0), 0.5, atol=0.088)
        assert set(np.unique(seen[key])) == {0, 1}
    same = (seen["observation"] == seen["desired_goal"]).mean(axis=0)
    np.testing.assert_allclose(same, 0.5, atol=0.088)


def test_bits_compute_reward_of_any_shape():
    world = BitFlip(rl.BitFlipParameters(bits=2))
    achieved = np.float32([[[0, 1], [1, 1]], [[0, 0], [1, 0]]])
    rewards = world.compute_reward(achieved, np.float32([[0, 1], [1, 0]]), {})
    assert rewards.tolist() == [[0, -1], [-1, 0]]


def test_steady_pay_rewards_until_the_time_limit():
    environment = make("steady_pay", num_envs=3, max_episode_steps=4)
    shown = [environment.reset(seed=0).observation["observation"]]
    space = environment.spaces.action
    assert (space.low.tolist(), space.high.tolist()) == ([-1], [3])
    for step in range(1, 9):
        answer = answer_to(environment, np.float32([[-1], [0], [3]]))
        assert answer.reward.tolist() == [1, 1, 1]
        assert (answer.end == (End.TRUNCATED if step % 4 == 0 else 0)).all()
        restarted = answer.observation["observation"] != answer.first_observation["observation"]
        assert (restarted == (step % 4 == 0)).all()
        shown.append(answer.observation["observation"])
    assert len(np.unique(shown)) == 9 * 3
