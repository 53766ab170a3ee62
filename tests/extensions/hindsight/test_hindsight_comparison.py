"""Rewards and ends that contradict those of hindsight are warned of once, others never."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.records import End
from coach_rl.extensions.hindsight.hindsight import Hindsight, HindsightPart
from coach_rl.extensions.hindsight.hindsight_comparison import HindsightComparison
from coach_rl.memories.batches import columns_of
from coach_rl.memories.parts import Stored
from tests.agents.decisions import transition
from tests.builders import flat
from tests.extensions.hindsight.test_hindsight import GOAL, with_hindsight

OWNER = "agent 'a'"


def transitions(distances, reward, terminated=False, **more):
    """Stored decisions that end at these distances from their goals, along the first element."""
    count = len(distances)
    goal = np.full((count, 2), 3.0)
    after = goal + np.stack([np.array(distances, np.float64), np.zeros(count)], axis=1)
    seen = {"observation": goal, "achieved_goal": goal - 9, "desired_goal": goal}
    made = transition(
        seen,
        np.zeros((count, 1), np.float32),
        {**seen, "achieved_goal": after},
        reward=reward,
        terminated=terminated,
        **more,
    )
    return Stored(
        made.observation, made.next_observation, columns_of(made), made.below, made.tested
    )


def warned(*stored, **hindsight):
    """The warnings about transitions that are stored one after the other."""
    (kept,) = with_hindsight(**hindsight).layout.parts
    comparison = HindsightComparison(kept.hindsight, OWNER)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for each in stored:
            comparison.compare(each)
    assert all(each.category is rl.CoachWarning for each in caught)
    return [str(each.message) for each in caught]


@pytest.mark.parametrize(
    ("stored", "given", "judged"),
    [
        (transitions([2.0, 0.1], [-1.0, 1.0]), 1, 0),  # 1 at the goal
        (transitions([2.0, 0.1], [0.0, 1.0]), 0, -1),  # 0 elsewhere
        (transitions([2.0], [-1.02]), -1.02, -1),  # a cost of the action
        (transitions([0.8, 2.0], [0.0, -1.0]), 0, -1),  # a wider threshold
        (transitions([0.3], [-1.0]), -1, 0),  # a narrower one
    ],
)
def test_comparison_differing_reward_warns_once(stored, given, judged):
    (text,) = warned(stored, stored, stored)
    assert text.startswith(f"agent 'a': the reward of a transition is {given}, and hindsight's ")
    assert f"GoalSpace gives {judged} for it" in text
    assert re.search(r"\(achieved \([0-9., ]+\), wanted \(3, 3\)\), so batches mix two", text)


@pytest.mark.parametrize(
    ("stored", "hindsight"),
    [
        (transitions([2.0, 0.1], [-1.0, 0.0]), {}),
        (transitions([0.5 - 1e-6, 0.5 + 1e-6, 0.5], [-1.0, 0.0, -1.0]), {}),  # rounding decides
        (transitions([2.0, 0.1], [-2.0, -0.1]), {"goal": replace(GOAL, reward="dense")}),
        (transitions([2.0, 0.1], [-1.0, 0.0], [True, True]), {"goal_ends_episode": True}),
    ],
)
def test_comparison_equal_rewards_and_ends_no_warning(stored, hindsight):
    assert warned(*[stored] * 5, **hindsight) == []


def test_comparison_end_only_in_environment_warns():
    ends = transitions([0.1], [0.0], True)
    (text,) = warned(*[ends] * 9)
    assert "that reach their goal are terminal, and those that hindsight relabels not" in text
    assert "set HindsightParameters.goal_ends_episode=True" in text
    assert warned(ends, ends) == [], "twice may be chance"
    goes_on = transitions([0.1], [0.0])
    assert warned(goes_on, *[ends] * 9) == [], "they end for another reason"


def test_comparison_end_only_in_hindsight_warns():
    goes_on = transitions([0.1], [0.0])
    (text,) = warned(goes_on, goes_on, goal_ends_episode=True)
    assert "are not terminal, and those that hindsight relabels terminal" in text
    assert "set HindsightParameters.goal_ends_episode=False" in text


@pytest.mark.parametrize(("observed", "count"), [("absolute", 1), ("relative", 0)])
def test_comparison_angle_out_of_bounds_warns_once_unless_it_is_shown_relative(observed, count):
    bounds = {"low": (-4.0, 0.0), "high": (2 * np.pi - 4.0, 1e6)}  # the goals are 3
    goal = replace(GOAL, **bounds, angles=(0,), observed=observed)
    texts = warned(*[transitions([2.0], [-1.0])] * 3, goal=goal)
    assert len(texts) == count
    assert all("angle lies out of the GoalSpace's bounds" in each for each in texts)


@pytest.mark.parametrize(
    ("ratio", "owner", "count"), [(1.0, OWNER, 1), (0.0, OWNER, 0), (1.0, "", 0)]
)
def test_memory_compares_where_it_relabels_for_an_agent(ratio, owner, count):
    hindsight = Hindsight(goal=GOAL, strategy="future", ratio=ratio, goal_ends_episode=True)
    part = HindsightPart(hindsight, owner)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        part.kept(transitions([2.0], [-7.0]))
    assert len(caught) == count


def test_comparison_failures_are_not_compared():
    comparison = HindsightComparison(
        Hindsight(
            goal=GOAL, strategy="future", ratio=1.0, goal_ends_episode=True, stops_on_failure=True
        ),
        "agent 'a'",
    )
    missed = np.array([End.HORIZON, End.GOAL], np.uint8)
    comparison.compare(transitions([2.0, 0.1], [-7.0, 0.0], True, below=missed))
    with pytest.warns(rl.CoachWarning):
        comparison.compare(transitions([2.0], [-7.0], True, below=missed[1:]))


@pytest.mark.parametrize(
    ("environment", "ends", "message"),
    [
        ({}, False, None),
        ({"terminate": True}, True, None),
        ({"threshold": 0.6}, False, "the reward of a transition is 0, and .* gives -1"),
        ({"terminate": True}, False, "goal are terminal, and .* not terminal"),
        ({}, True, "goal are not terminal, and .* terminal"),
    ],
)
def test_comparison_run_contradicting_environment_warns(environment, ends, message):
    goal = replace(
        GOAL, low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.5, 0.5), reached_within="ball"
    )
    hindsight = rl.HindsightParameters(goal=goal, goal_ends_episode=ends)
    agent = rl.DDPGAgentParameters(
        memory=rl.ReplayMemoryParameters(capacity=2_000, relabelling=hindsight),
        learning=rl.LearningParameters(batch=8, learning_starts=100),
        update_mode="eager",
    )
    mass = rl.GoalPointMassParameters(**{"threshold": 0.5, **environment})
    manager = rl.BasicRLGraphManager(flat(agent, mass, num_envs=4))
    with manager, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        manager.create_graph()
        list(manager.heatup(rl.EnvironmentSteps(1_000)))
    texts = [str(each.message) for each in caught if "hindsight" in str(each.message)]
    assert len(texts) == (message is not None)
    assert message is None or re.search(f"agent 'agent' of level 'main': .*{message}", texts[0])
