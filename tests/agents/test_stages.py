"""Stages of agents: their order, and one that a stranger adds in a class of their own."""

import numpy as np
import pytest
from decisions import context, outcome, request, stored_by
from gymnasium import spaces

from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.agents.stages.stage import INSIDE, OUTSIDE, Stage, StageKind
from coach_rl.agents.stages.stages import Stages
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.filters import InputFilter, ObservationClippingFilter

LAST = "last_action"
SEEN = {"observation": spaces.Box(-9, 9, (1,), np.float32)}
TRAIN = Clock(phase=Phase.TRAIN)


class LastAction(Stage):
    """Shows the row's last action, 0 at first."""

    is_stateless = False

    def shown(self, space):
        return spaces.Dict({**space.spaces, LAST: spaces.Box(-9, 9, (1,), np.float32)})

    def new_rows(self, num_rows):
        return {LAST: np.zeros((num_rows, 1), np.float32)}

    def enter(self, memory, rows, observation, *, starts, learn):
        memory[LAST][rows[starts]] = 0
        return {**observation, LAST: memory[LAST][rows]}

    def leave(self, row_state, rows, action, observation):
        row_state.filters[LAST][rows] = action.reshape(len(rows), 1)
        return action


class LastActionPPO(PPOAgent):
    STAGES = (StageKind(order=OUTSIDE, build=lambda _: LastAction()),)


@parameter_class
class LastActionParameters(PPOAgentParameters):
    """PPO that sees its last action."""

    def build(self, context):
        return LastActionPPO(self, context)


SMALL = PPOAlgorithmParameters(rollout=EnvironmentSteps(40), minibatch=20, epochs=1)


@pytest.mark.parametrize("limit", [None, 0.5])
def test_stage_of_a_class_shows_what_it_remembers_to_policy_and_filters(limit):
    clipped = {LAST: (ObservationClippingFilter(low=-0.5, high=0.5),)}
    filters = InputFilter(observation=clipped) if limit else None
    agent = LastActionParameters(algorithm=SMALL, input_filter=filters).build(
        context(SEEN, spaces.Discrete(3))
    )
    stored = stored_by(agent)
    rows = agent.new_rows(2, seed=0)
    seen = {"observation": np.zeros((2, 1), np.float32)}
    sent, starts = [np.zeros(2)], [True, True]
    for _ in range(6):
        sent.append(agent.act(rows, request(seen, starts=starts), TRAIN))
        agent.observe(rows, outcome(seen), TRAIN)
        starts = [False, False]
    shown = [np.minimum(each, limit or 9) for each in sent]
    assert len({tuple(each) for each in sent}) > 2
    for number, transition in enumerate(stored):
        np.testing.assert_array_equal(transition.observation[LAST][:, 0], shown[number])
        np.testing.assert_array_equal(transition.next_observation[LAST][:, 0], shown[number + 1])


class Noting(Stage):
    """Notes that observations and actions pass."""

    def __init__(self, name, passed):
        self.name, self.passed = name, passed

    def enter(self, memory, rows, observation, *, starts, learn):
        self.passed.append(f"enter {self.name}")
        return observation

    def leave(self, row_state, rows, action, observation):
        self.passed.append(f"leave {self.name}")
        return action


def test_observations_enter_through_the_outermost_stage_first_and_actions_leave_it_last():
    passed = []

    class Noted(PPOAgent):
        STAGES = (
            StageKind(order=INSIDE, build=lambda _: Noting("inside", passed)),
            StageKind(order=OUTSIDE, build=lambda _: Noting("outside", passed)),
        )

    agent = Noted(PPOAgentParameters(), context(SEEN, spaces.Discrete(3)))
    rows = agent.new_rows(1, seed=0)
    agent.act(rows, request({"observation": np.zeros((1, 1), np.float32)}), TRAIN)
    assert passed == ["enter outside", "enter inside", "leave inside", "leave outside"]


def test_agent_without_optional_parts_has_no_stages():
    agent = PPOAgentParameters().build(context(SEEN, spaces.Discrete(3)))
    assert agent.stages.all == ()
    boxed = PPOAgentParameters().build(context(SEEN, spaces.Box(-1, 1, (2,), np.float32)))
    assert [type(each).__name__ for each in boxed.stages.all] == ["ActionBounds"]


def test_methods_that_a_stage_does_not_override_are_not_called():
    stages = Stages("agent")
    stages.add(LastAction())
    assert stages.leaving
    assert not stages.checking
    assert not stages.rewarding
    assert not stages.storing


def test_stage_that_remembers_behind_one_that_transforms_observations_alone_is_refused():
    class Alone(Stage):
        single = "its mirror transforms each observation by itself"

    class Remembering(Stage):
        remembers = "its notebook remembers earlier ones; leave one of them out"

    stages = Stages("walker")
    stages.add(Alone())
    with pytest.raises(ConfigurationError, match=r"its mirror .*, and its notebook"):
        stages.add(Remembering())
