"""One description for every kind of graph, and clear answers where it is given something else."""

from dataclasses import replace

import gymnasium
import pytest

from coach_rl.agents.ppo_agent import PPOAgentParameters
from coach_rl.core.errors import ParameterError, UnknownNameError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.options import OptionSpace
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments import parameters as environment_parameters
from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    GraphManager,
    GraphParameters,
    HACGraphManager,
    HACGraphParameters,
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


def hac(*stack, **changes):
    return HACGraphParameters(stack=stack, environment=PointMassParameters(), **changes)


def test_a_flat_experiment_has_one_level_which_is_built_once():
    described = flat(num_envs=3)
    assert described.levels == (LevelParameters(agent=described.agent),)
    assert described.levels is described.levels
    other = replace(described, agent=PPOAgentParameters(name="other"))
    assert [level.agent.name for level in other.levels] == ["other"]
    assert other.num_envs == 3


def test_levels_of_a_hac_stack_that_say_no_testing_rate_take_the_stacks():
    middle = replace(TOP, name="middle", testing_rate=0.1)
    described = hac(TOP, middle, LOW, testing_rate=0.5)
    assert [level.testing_rate for level in described.levels] == [0.5, 0.1, None]
    assert described.stack == (TOP, middle, LOW)
    changed = replace(described, testing_rate=0.2)
    assert [level.testing_rate for level in changed.levels] == [0.2, 0.1, None]


@pytest.mark.parametrize("name", ["levels", "reward_discount"])
def test_what_a_flat_or_hac_graph_fills_in_itself_cannot_be_given(name):
    for build in (flat, hac):
        with pytest.raises(UnknownNameError, match=f"'{name}'"):
            build(**{name: 1})


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ((), r"levels must be tuple\[LevelParameters, \.\.\.\] of length >= 1"),
        ((TOP, TOP), r"different names, got \['top', 'top'\]"),
        ((TOP, replace(LOW, goal_space=None)), "level 'low' needs a goal_space"),
        ((TOP, replace(LOW, name="episodes")), r"name is that of its log file, \['top', 'episodes"),
        ((TOP, replace(LOW, testing_rate=0.3)), "testing_rate=0.3 and no level below it to test"),
        ((replace(TOP, failure_reward=-9.0), LOW), "failure_reward=-9.0 and never stops on fail"),
        ((replace(TOP, name=""), LOW), "has an empty one or one of the run's own"),
    ],
)
def test_levels_that_make_no_stack_are_refused(levels, message):
    with pytest.raises(ParameterError, match=message):
        GraphParameters(levels=levels, environment=PointMassParameters())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"goal_space": OptionSpace(count=2)}, "level 'low' of a HAC stack needs goals"),
        ({"goal_space": None}, "level 'low' of a HAC stack needs goals"),
        ({"horizon": None}, "level 'low' of a HAC stack needs a horizon"),
    ],
)
def test_a_hac_stack_needs_goals_and_horizons_everywhere(change, message):
    with pytest.raises(ParameterError, match=message):
        hac(TOP, replace(LOW, **change))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_envs": 0}, "num_envs must be int > 0, got 0"),
        ({"environment": "CartPole-v1"}, r"write parameters\('CartPole-v1'\), with `from coach_rl"),
        (
            {"environment": PointMassParameters},
            r"write PointMassParameters\(\.\.\.\), with",
        ),
        ({"evaluation_environment": "hopper"}, r"write parameters\('hopper'\)"),
        (
            {"agent": PPOAgentParameters},
            "got the class PPOAgentParameters; write PPOAgent",
        ),
        ({"agnet": PPOAgentParameters()}, "did you mean 'agent'"),
    ],
)
def test_a_wrong_value_is_answered_with_what_to_write(given, message):
    with pytest.raises((ParameterError, UnknownNameError), match=message):
        flat(**given)


def test_an_environment_that_is_made_already_is_answered_with_its_description():
    with (
        gymnasium.make("CartPole-v1") as env,
        pytest.raises(ParameterError, match=r"e\.g\. GymnasiumParameters\(level='CartPole-v1'\)$"),
    ):
        flat(environment=env)


@pytest.mark.parametrize("task", ["CartPole-v1", "hopper", "point_mass", "goal_pendulum"])
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
    with pytest.raises(ParameterError, match=r"got 'all'; write a whole number, or EnvironmentSt"):
        ScheduleParameters(training="all")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"training": float("inf")}, "training must be EnvironmentSteps"),
        ({"training": 0}, "training must be EnvironmentSteps .* > 0"),
        ({"evaluation_interval": 0}, "evaluation_interval must be EnvironmentSteps .* > 0"),
        ({"evaluation_episodes": 0}, "evaluation_episodes must be EnvironmentEpisodes > 0"),
        ({"progress_interval": 0}, "progress_interval must be EnvironmentSteps > 0"),
    ],
)
def test_impossible_schedules_are_refused(change, message):
    with pytest.raises(ParameterError, match=message):
        ScheduleParameters(**change)


def test_every_graph_manager_takes_its_own_description_only():
    levels = GraphParameters(levels=(TOP, LOW), environment=PointMassParameters())
    assert GraphManager(flat()).parameters == BasicRLGraphManager(flat()).parameters
    assert HRLGraphManager(levels).parameters is levels
    for kind, wrong in (
        (BasicRLGraphManager, levels),
        (HACGraphManager, levels),
        (BasicRLGraphManager, PPOAgentParameters()),
        (GraphManager, PointMassParameters()),
    ):
        with pytest.raises(ParameterError, match=f"{kind.__name__} needs .*Parameters.*, got "):
            kind(wrong)
