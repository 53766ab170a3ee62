"""Exported goals that learn, groups by turns and graphs of levels decide as `load(...)` does."""

from dataclasses import replace

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core import End, LevelPart, LevelPartParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.extensions.learned_goals.lesson_goals import LESSONGoals
from tests.agents.goal_stacks import stack
from tests.extensions.exporting.test_export import exported, play_both, run_of
from tests.random_graphs import GOALS, KEY, STACKED, ppo, random_levels
from tests.refusals import check_refused
from tests.small_runs import experiment

TORSO = rl.TorsoParameters(middleware=(16,))
OFF_POLICY = {
    "learning": rl.LearningParameters(batch=8, updates_per_step=0.1, learning_starts=20),
    "actor": rl.ActorParameters(torso=TORSO),
    "critic": rl.CriticParameters(torso=TORSO),
    "update_mode": "eager",
}
TD3 = rl.TD3AgentParameters(**OFF_POLICY)
SAC = rl.SACAgentParameters(**OFF_POLICY)
FAST = rl.AdamParameters(learning_rate=0.01)
SLOW = rl.LESSONGoalSpace(
    low=(-2.0,) * 3, high=(2.0,) * 3, threshold=(0.3,) * 3, key=KEY, reward="dense",
    torso=TORSO, optimizer=FAST, ahead=4, every=1,
)  # fmt: skip
RELATIVE = replace(SLOW, relative=True, observed="relative")
METRA = rl.METRAGoalSpace(torso=TORSO, optimizer=FAST)
FOUR = {"low": (-1.0,) * 4, "high": (1.0,) * 4, "threshold": (0.0,) * 4}


def two_levels(top, low, goals, training=240):
    """A run of two levels."""
    return rl.GraphManager(stack(top, low, goals=goals, training=training))


LEARNED = {
    "slow features": (TD3, replace(RELATIVE, reach=(0.5,) * 3)),
    "learned bounds, relative": (TD3, replace(RELATIVE, bounds_rate=0.1)),
    "learned bounds, absolute": (SAC, replace(SLOW, bounds_rate=0.1)),
    "skills as directions": (SAC, METRA),
    "discrete skills": (SAC, replace(METRA, **FOUR, discrete=True)),
}


@pytest.mark.drawn(one_of=3)
@pytest.mark.filterwarnings("ignore:.*would learn nothing")
@pytest.mark.parametrize("name", LEARNED)
def test_exported_goals_that_learn_decide_as_load_does(name, tmp_path):
    agent, goals = LEARNED[name]
    run = run_of(two_levels(agent, agent, goals), tmp_path)
    assert play_both(run, exported(run, tmp_path / "policy.zip"))


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
def test_exported_angles_of_the_environments_goals_are_shown_within_bounds(tmp_path):
    full_turn_on = rl.GoalSpace(
        key=KEY, elements=(0, 1), low=(5.0, -1.0), high=(5.0 + 2 * np.pi, 1.0),
        threshold=(0.2, 0.2), angles=(0,),
    )  # fmt: skip
    params = two_levels(TD3, TD3, GOALS, training=100).parameters
    top, low = params.levels
    levels = (replace(top, goal_space=full_turn_on), low)
    run = run_of(rl.GraphManager(replace(params, levels=levels)), tmp_path)
    assert play_both(run, exported(run, tmp_path / "policy.zip"))


@parameter_class
class Judging(rl.LESSONGoalSpace):
    """Slow features with a judge of their own."""

    def build(self, context):
        return JudgingGoals(self, context)


class JudgingGoals(LESSONGoals):
    def judge(self, goal, achieved, before=None):
        return super().judge(goal, 2 * achieved, before)


def test_learned_goals_with_methods_of_their_own_are_refused(tmp_path):
    run = run_of(two_levels(TD3, TD3, Judging(**vars(SLOW))), tmp_path)
    message = "level 'low' cannot be exported: its goals are a JudgingGoals with methods of its"
    check_refused(lambda: rl.export(run, tmp_path / "a.zip"), rl.ConfigurationError, message)


class Drifting(LevelPart):
    """Ends all sub-episodes after each decision."""

    def ends(self, answer, index):
        return np.full(len(answer), np.uint8(End.OPTION))


@parameter_class
class DriftingParameters(LevelPartParameters):
    """A part of a level by another package."""

    def build(self, context):
        return Drifting()


def three_levels(*parts):
    """A run whose middle level has parts."""
    params = two_levels(TD3, TD3, GOALS, training=100).parameters
    top, low = params.levels
    middle = replace(low, name="middle", horizon=3, parts=parts)
    levels = (top, middle, replace(low, horizon=2))
    return rl.GraphManager(replace(params, levels=levels))


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
def test_exported_level_that_stops_on_failure_decides_as_load_does(tmp_path):
    run = run_of(three_levels(rl.StopOnFailure(when="always", reward=-1.0)), tmp_path)
    assert play_both(run, exported(run, tmp_path / "policy.zip"))


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
def test_level_with_a_part_that_acts_in_evaluations_is_refused(tmp_path):
    run = run_of(three_levels(DriftingParameters()), tmp_path)
    message = (
        "level 'middle' cannot be exported: its part DriftingParameters may act in evaluations"
    )
    check_refused(lambda: rl.export(run, tmp_path / "a.zip"), rl.ConfigurationError, message)


def to_the_left(observation, _space):
    """A selector of Python."""
    return (observation[KEY][:, 0] > 0).astype(np.int64)


def group(arbiter, *members, shares=None):
    return rl.AgentGroupParameters(
        members=tuple(rl.GroupMember(agent=agent, shares=shares) for agent in members),
        arbiter=arbiter,
    )


CHOOSER = rl.SelectedTurns(agent=ppo("chooser", remembers="episode"), every=3)
PARTS = rl.AgentGroupParameters(
    members=(
        rl.GroupMember(agent=ppo("x", remembers="episode"), actions=("0",)),
        rl.GroupMember(agent=ppo("y"), actions=("1",)),
    ),
    arbiter=rl.Turns(order=("x", "x", "y")),
)
FORGETFUL = [ppo(name, remembers="sub_episode") for name in "ab"]
REMEMBERING = [ppo(name, remembers="episode", input_filter=STACKED) for name in "ab"]
TURNS = {
    "one after the other": group(rl.Turns(order=("a", "b", "b")), *REMEMBERING),
    "parts of the action": PARTS,
    "shared parameters": group(rl.Turns(), *REMEMBERING, shares="both"),
    "a selector": group(CHOOSER, *REMEMBERING),
    "a selector that chooses always": group(rl.SelectedTurns(agent=ppo("chooser")), *FORGETFUL),
}


@pytest.mark.drawn(one_of=3)
@pytest.mark.filterwarnings("ignore:.*would learn nothing")
@pytest.mark.parametrize("place", ["alone", pytest.param("below goals", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TURNS)
def test_exported_members_in_turn_decide_as_load_does(name, place, tmp_path):
    if place == "alone":
        world = rl.PointMassParameters(max_episode_steps=20)
        run = run_of(experiment(TURNS[name], world), tmp_path)
    else:
        run = run_of(two_levels(TD3, TURNS[name], GOALS, training=100), tmp_path)
    assert play_both(run, exported(run, tmp_path / "policy.zip"))


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
def test_exported_turns_continue_where_their_level_gets_control_back(tmp_path):
    by_turns = TURNS["one after the other"]
    graph = rl.GraphParameters(
        levels=(
            rl.LevelParameters(name="top", agent=ppo("top")),
            rl.LevelParameters(name="left", agent=by_turns, horizon=2),
            rl.LevelParameters(name="right", agent=ppo("right"), horizon=2),
        ),
        arrangement=rl.LevelGraph(below={"top": ("left", "right")}),
        environment=rl.PointMassParameters(max_episode_steps=30),
        num_envs=2,
        schedule=rl.ScheduleParameters(training=rl.EnvironmentSteps(100), evaluation_interval=None),
    )
    run = run_of(rl.GraphManager(graph), tmp_path)
    assert play_both(run, exported(run, tmp_path / "policy.zip"))


def test_exported_members_whose_turn_a_function_chooses_decide_as_load_does(tmp_path):
    function = rl.ScriptedAgentParameters(name="chooser", policy=to_the_left)
    world = rl.PointMassParameters(max_episode_steps=20)
    agent = group(rl.SelectedTurns(agent=function), *FORGETFUL)
    run = run_of(experiment(agent, world), tmp_path)
    assert play_both(run, exported(run, tmp_path / "policy.zip"))


@pytest.mark.drawn(one_of=4)
@pytest.mark.filterwarnings("ignore:.*would learn nothing")
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 4 else pytest.mark.slow) for n in range(40)]
)
def test_exported_random_graph_decides_as_load_does(seed, tmp_path):
    graph = rl.GraphParameters(
        **random_levels(np.random.default_rng(seed)),
        environment=rl.PointMassParameters(max_episode_steps=30),
        num_envs=2,
        schedule=rl.ScheduleParameters(training=rl.EnvironmentSteps(100), evaluation_interval=None),
    )
    run = run_of(rl.GraphManager(graph), tmp_path)
    assert play_both(run, exported(run, tmp_path / "policy.zip"))
