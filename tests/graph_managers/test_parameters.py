"""One description for every kind of graph, and clear answers where it is given something else."""

from dataclasses import replace

import pytest

from coach_rl.agents.ppo_agent import PPOAgentParameters
from coach_rl.core.goals import GoalSpace
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments import parameters as environment_parameters
from coach_rl.environments.toy import PointMassParameters
from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    CheckpointParameters,
    GraphManager,
    GraphParameters,
    HRLGraphManager,
    LevelParameters,
    ScheduleParameters,
)

PLACES = GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.1, 0.1), elements=(0, 1))
TOP = LevelParameters(name="top", agent=PPOAgentParameters(), goal_space=PLACES, horizon=4)
LOW = replace(TOP, name="low")


def flat(**changes):
    return BasicGraphParameters(
        **{"agent": PPOAgentParameters(), "environment": PointMassParameters(), **changes}
    )


def test_a_flat_experiment_has_one_level_which_is_built_once():
    described = flat(num_envs=3)
    assert described.levels == (LevelParameters(agent=described.agent),)
    assert described.levels is described.levels
    other = replace(described, agent=PPOAgentParameters(name="other"))
    assert [level.agent.name for level in other.levels] == ["other"]
    assert other.num_envs == 3


@pytest.mark.parametrize("task", ["CartPole-v1", "hopper", "point_mass"])
def test_the_line_that_a_task_name_is_answered_with_works(task):
    assert flat(environment=environment_parameters(task)).environment.level == task


def test_plain_numbers_stand_for_step_units():
    schedule = ScheduleParameters(
        training=3_000, evaluation_interval=1e3, evaluation_episodes=5, progress_interval=100
    )
    assert schedule == ScheduleParameters(
        training=EnvironmentSteps(3_000),
        evaluation_interval=EnvironmentSteps(1_000),
        evaluation_episodes=EnvironmentEpisodes(5),
        progress_interval=EnvironmentSteps(100),
    )


def test_best_checkpoint_may_be_by_the_share_of_ends_that_a_part_brings():
    top = replace(TOP, parts=(StopOnFailure(when="always"),))
    described = GraphParameters(
        levels=(top, LOW),
        environment=PointMassParameters(),
        checkpoints=CheckpointParameters(best_of="top/failure_share", best_is="smallest"),
    )
    assert described.checkpoints.best_of == "top/failure_share"


def test_graph_managers_build_from_their_own_description():
    levels = GraphParameters(levels=(TOP, LOW), environment=PointMassParameters())
    assert GraphManager(flat()).parameters == BasicRLGraphManager(flat()).parameters
    assert HRLGraphManager(levels).parameters is levels
