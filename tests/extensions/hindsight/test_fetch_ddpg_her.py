"""The Fetch preset: its levels, what it shows the networks, what a goal is worth, the control."""

import importlib.util
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from coach_rl.core.goals import GOAL_KEY
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.presets.Fetch_DDPG_HER import Panel, graph_manager
from tests.agents.decisions import context

needs_robotics = pytest.mark.skipif(
    importlib.util.find_spec("gymnasium_robotics") is None,
    reason="gymnasium_robotics is not installed; it comes with the extra robotics",
)


def described(**panel):
    return graph_manager(Panel(**panel)).parameters


@pytest.mark.parametrize("level", Panel.LEVELS)
def test_level_with_and_without_package(level):
    bare, full = described(level=level), described(level=f"gymnasium_robotics:{level}")
    assert bare.environment.level == f"gymnasium_robotics:{level}"
    assert bare == full


@needs_robotics
def test_levels_cover_all_fetch_tasks():
    importlib.import_module("gymnasium_robotics")
    registered = {name for name in gymnasium.registry if name.startswith("Fetch")}
    assert {name for name in registered if name.endswith("-v4")} == set(Panel.LEVELS)
    for name in registered:
        described(level=name)


@pytest.mark.drawn(one_of=3)
@needs_robotics
@pytest.mark.parametrize("level", Panel.LEVELS)
def test_goal_space_of_each_task(level):
    """Achieved goals and rewards, as the task has them before anything is left out."""
    parameters = described(level=level)
    goal = parameters.agent.memory.relabelling.goal
    plain = GymnasiumParameters(level=parameters.environment.level).build(num_envs=4)
    seen = plain.reset(seed=0).observation
    rng, rewards = np.random.default_rng(0), []
    for step in range(12):
        action = rng.uniform(-1, 1, (4, 4)).astype(np.float32)
        # Two rows reach for the goal, so that some reward is 0 where that is what reaching gives.
        action[:2, :3] = np.clip(10 * (seen["desired_goal"] - goal.achieved(seen))[:2], -1, 1)
        plain.send(action)
        answer = plain.recv()
        seen = answer.observation
        np.testing.assert_array_equal(goal.achieved(seen), seen["achieved_goal"])
        expected = goal.verdict(seen[GOAL_KEY], seen).reward
        np.testing.assert_allclose(answer.reward, expected, rtol=1e-6, err_msg=f"step {step}")
        rewards.append(answer.reward)
    plain.close()
    if level == "FetchReach-v4":
        assert set(np.unique(rewards)) == {-1, 0}


@needs_robotics
def test_achieved_goal_is_not_stored_twice():
    parameters = described()
    environment = parameters.environment.build(num_envs=1)
    known = environment.spaces
    agent = parameters.agent.build(context(known.observation.spaces, known.action, num_envs=1))
    environment.close()
    assert list(agent.observation_space.spaces) == ["desired_goal", "observation"]
    assert agent.learner.actor.module.torso.embedder.output_size == 3 + 10


def test_control_differs_in_hindsight_only():
    cure, control = described().agent, described(hindsight=False).agent
    assert control.memory.relabelling is None
    assert replace(control, memory=cure.memory) == cure


def test_targets_are_clipped_by_discount():
    assert described(discount=0.9).agent.algorithm.clip_targets == pytest.approx((-10, 0))
    assert described(discount=1.0).agent.algorithm.clip_targets is None


def test_validation_of_reach_only():
    assert described().validation is not None
    assert described(level="FetchReachDense-v4").validation is None
    assert described(level="FetchPush-v4").validation is None
