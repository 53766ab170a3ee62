"""One description for every kind of graph, and clear answers where it is given something else."""

from dataclasses import replace

import pytest

import coach_rl as rl
from coach_rl.environments import parameters as environment_parameters

PLACES = rl.GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.1, 0.1), elements=(0, 1))
TOP = rl.LevelParameters(name="top", agent=rl.PPOAgentParameters(), goal_space=PLACES, horizon=4)
LOW = replace(TOP, name="low")


def flat(**changes):
    return rl.BasicGraphParameters(
        **{"agent": rl.PPOAgentParameters(), "environment": rl.PointMassParameters(), **changes}
    )


def test_a_flat_experiment_has_one_level_which_is_built_once():
    described = flat(num_envs=3)
    assert described.levels == (rl.LevelParameters(agent=described.agent),)
    assert described.levels is described.levels
    other = replace(described, agent=rl.PPOAgentParameters(name="other"))
    assert [level.agent.name for level in other.levels] == ["other"]
    assert other.num_envs == 3


@pytest.mark.parametrize("task", ["CartPole-v1", "hopper", "point_mass"])
def test_the_line_that_a_task_name_is_answered_with_works(task):
    assert flat(environment=environment_parameters(task)).environment.level == task


def test_plain_numbers_stand_for_step_units():
    schedule = rl.ScheduleParameters(
        training=3_000, evaluation_interval=1e3, evaluation_episodes=5, progress_interval=100
    )
    assert schedule == rl.ScheduleParameters(
        training=rl.EnvironmentSteps(3_000),
        evaluation_interval=rl.EnvironmentSteps(1_000),
        evaluation_episodes=rl.EnvironmentEpisodes(5),
        progress_interval=rl.EnvironmentSteps(100),
    )


def test_best_checkpoint_may_be_by_the_share_of_ends_that_a_part_brings():
    top = replace(TOP, parts=(rl.StopOnFailure(when="always"),))
    described = rl.GraphParameters(
        levels=(top, LOW),
        environment=rl.PointMassParameters(),
        checkpoints=rl.CheckpointParameters(best_of="top/failure_share", best_is="smallest"),
    )
    assert described.checkpoints.best_of == "top/failure_share"


def test_graph_managers_build_from_their_own_description():
    levels = rl.GraphParameters(levels=(TOP, LOW), environment=rl.PointMassParameters())
    assert rl.GraphManager(flat()).parameters == rl.BasicRLGraphManager(flat()).parameters
    assert rl.HRLGraphManager(levels).parameters is levels
