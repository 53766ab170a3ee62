import numpy as np
from gymnasium import spaces

from coach_rl.extensions.discrete_maps import BoxDiscretization
from coach_rl.filters import BoxMasking, LinearBoxToBoxMap, OutputFilter

ARM = spaces.Box(np.array([-1.0, 0.0], np.float32), np.array([3.0, 0.5], np.float32))


def test_three_filters_there_and_back():
    chain = OutputFilter(
        action=(BoxMasking(low=0.0, high=0.5), LinearBoxToBoxMap(), BoxDiscretization(num_bins=3))
    ).build(ARM)
    assert chain.agent_space == spaces.Discrete(9)
    np.testing.assert_array_equal(
        chain.apply(np.array([0, 4, 8])), [[0, 0], [0.25, 0.25], [0.5, 0.5]]
    )
    np.testing.assert_array_equal(chain.inverse(chain.apply(np.arange(9))), np.arange(9))


def test_without_filters_actions_go_through():
    space = spaces.Dict({"arm": ARM, "gripper": spaces.Discrete(2)})
    chain = OutputFilter().build(space)
    assert chain.agent_space is space
    action = {"arm": np.zeros((1, 2), np.float32), "gripper": np.array([1])}
    assert chain.apply(action) is action
    assert chain.inverse(action) is action
    chain.load_state_dict(chain.state_dict())


def test_output_filter_list_becomes_tuple():
    assert OutputFilter(action=[LinearBoxToBoxMap()]) == OutputFilter(action=(LinearBoxToBoxMap(),))


class CountedActions:
    """An action filter with a state of its own, as a user might write it."""

    def __init__(self, space):
        self.agent_space, self.count = space, 0

    def apply(self, action):
        self.count += len(action)
        return action

    def inverse(self, action):
        return action

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]


class CountedActionsParameters:
    def build(self, space):
        return CountedActions(space)


def test_a_filter_of_ones_own_with_a_state():
    parameters = OutputFilter(action=(LinearBoxToBoxMap(), CountedActionsParameters()))
    chain, other = parameters.build(ARM), parameters.build(ARM)
    chain.apply(np.zeros((3, 2), np.float32))
    other.load_state_dict(chain.state_dict())
    assert other.state_dict() == {"action": {"1": {"count": 3}}}
