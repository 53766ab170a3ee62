"""Presets of HIRO: what their panels set."""

import pytest

from coach_rl.core.clock import ConstantSchedule
from coach_rl.exploration_policies import GaussianNoise
from tests.presets.test_presets import load_graph_manager


def test_hiro_evaluation_target_is_the_papers():
    parameters = load_graph_manager("AntMaze_HIRO", {}).parameters
    assert parameters.environment.task.targets == "training"
    assert parameters.evaluation_environment.task.targets == "evaluation"


def test_hrac_parameters_equal_the_authors():
    """Torques of 30 Nm and metres: noise, its limits and what critics see are in these units."""
    parameters = load_graph_manager("AntMaze_HIRO", {}).parameters
    for level in parameters.levels:
        agent = level.agent
        assert agent.exploration == GaussianNoise(scale=ConstantSchedule(value=1.0), unit="raw")
        algorithm = agent.algorithm
        assert (algorithm.target_noise, algorithm.target_noise_clip) == (0.2, 0.5)
        assert algorithm.target_noise_unit == agent.critic.action_unit == "raw"
        assert agent.critic.action_layers == (0, 1)
        assert agent.critic.final_bound == agent.actor.final_bound == 3e-3
    _, low = parameters.levels
    acts_in = parameters.environment.build(num_envs=1).spaces.action
    if low.agent.output_filter is not None:
        acts_in = low.agent.output_filter.build(acts_in).agent_space
    assert (acts_in.low == -30).all()
    assert (acts_in.high == 30).all()


@pytest.mark.parametrize("name", ["AntMaze_HIRO", "AntMaze_HRAC", "PointMaze_HIRO"])
def test_hiro_levels_start_and_forget_together(name):
    top, low = load_graph_manager(name, {}).parameters.levels
    assert top.agent.memory.capacity * low.horizon == low.agent.memory.capacity
    first = low.agent.learning.learning_starts // low.horizon
    assert top.agent.learning.learning_starts == max(top.agent.learning.batch, first)
