"""Filters beside hindsight: sub-goals go out and come back, goals stay as the environment shows."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import coach_rl as rl
from coach_rl.architectures.gradient_step import mapped
from coach_rl.core.errors import SpaceError
from coach_rl.filters import StatelessActionStage, StatelessInputStage
from tests.builders import created, graph

GOALS = rl.GoalSpace(key="achieved_goal", low=(-1.0,) * 2, high=(1.0,) * 2, threshold=(0.2,) * 2)
SUB_GOALS = replace(GOALS, key="observation", elements=(0, 1), threshold=(0.05, 0.05))
WAYS = replace(SUB_GOALS, relative=True, reach=(0.7, 1.3))
SETTINGS = {
    "learning": rl.LearningParameters(batch=16, updates_per_step=0.1, learning_starts=20),
    "update_mode": "eager",
}
IN_HINDSIGHT = rl.ReplayMemoryParameters(
    capacity=5_000,
    relabelling=rl.HindsightParameters(ratio=3.0, goal_ends_episode=True),
    parts=(rl.HindsightActionParameters(),),
)


def hac(**changes):
    memory = rl.ReplayMemoryParameters(capacity=5_000)
    return rl.HACAgentParameters(
        learner=rl.DDPGAgentParameters(memory=memory, **SETTINGS, **changes)
    )


def td3(**changes):
    return rl.TD3AgentParameters(memory=IN_HINDSIGHT, **SETTINGS, **changes)


def dqn(**changes):
    return rl.DQNAgentParameters(memory=IN_HINDSIGHT, **SETTINGS, **changes)


def stack(top, low=None, *, sub_goals=SUB_GOALS, training=600):
    tests = (rl.SubGoalTesting(rate=0.3),)
    return graph(
        rl.LevelParameters(name="top", agent=top, goal_space=GOALS, horizon=6, parts=tests),
        rl.LevelParameters(name="low", agent=low or hac(), goal_space=sub_goals, horizon=5),
        environment=rl.GoalPointMassParameters(terminate=True, threshold=0.2),
        num_envs=3,
        training=training,
    )


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("agent", [hac, td3])
@pytest.mark.parametrize("sub_goals", [SUB_GOALS, WAYS], ids=["places", "ways"])
def test_hindsight_actions_ask_for_the_place_reached_through_the_output_filter(agent, sub_goals):
    stretched = rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=(-5.0, 0.0), high=(5.0, 30.0)),))
    manager = created(stack(agent(output_filter=stretched), sub_goals=sub_goals))
    manager.run()
    top = manager.graph.agents["top"]
    batch = mapped(np.asarray, top.memory.sample(2_000))
    missed = top.memory.store.ledger["/missed"].take(batch.position)
    shown = missed & (batch.reward != -6.0)  # tests, worth the penalty, keep what was asked
    before, after = (
        {"observation": seen["observation"][shown]}
        for seen in (batch.observation, batch.next_observation)
    )
    asked = top.output_filter.apply(batch.action[shown])
    places = sub_goals.target(asked, before)
    within = np.abs(sub_goals.asked_by(sub_goals.achieved(after), before)) < sub_goals.space.high
    assert within.sum() > 500
    np.testing.assert_allclose(places[within], sub_goals.achieved(after)[within], atol=1e-5)
    assert all(top.action_space.contains(action) for action in batch.action)


@dataclass(frozen=True, kw_only=True)
class OneWay:
    """An action filter whose way back is not known."""

    def build(self, space):
        def backward(action):
            raise SpaceError("a one-way street")

        return StatelessActionStage(space, forward=lambda action: action, backward=backward)


def test_at_the_lowest_level_output_filters_need_no_way_back():
    one_way = rl.OutputFilter(action=(OneWay(),))
    manager = created(stack(hac(), hac(output_filter=one_way), training=200))
    manager.run()


@dataclass(frozen=True, kw_only=True)
class Halved:
    """Half of what there is to see, in the space it had."""

    def build(self, space):
        return StatelessInputStage(space, lambda values: values * 0.5)


def test_input_filters_of_other_keys_are_not_refused():
    halved = rl.InputFilter(observation={"achieved_goal": (Halved(),), "observation": ()})
    manager = created(
        stack(hac(), hac(input_filter=halved), training=200)
    )  # the lower level's goal: observation
    manager.run()
    batch = manager.graph.agents["low"].memory.sample(500)
    torch.testing.assert_close(
        batch.observation["achieved_goal"], batch.observation["observation"][:, :2] / 2
    )


def test_without_hindsight_every_filter_is_welcome():
    everything = rl.InputFilter(
        observation=dict.fromkeys(("observation", "desired_goal"), (Halved(),)),
        reward=(rl.RewardRescaleFilter(factor=0.1),),
    )
    masked = rl.OutputFilter(action=(rl.BoxMasking(low=-0.5, high=0.5),))
    plain = rl.DDPGAgentParameters(
        memory=rl.ReplayMemoryParameters(capacity=5_000),
        input_filter=everything,
        output_filter=masked,
        **SETTINGS,
    )
    created(stack(plain)).close()
