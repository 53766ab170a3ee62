"""Learners for further kinds of action space, found by the class of the space."""

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNLearner, dqn_learner
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.sac_agent import SACAgentParameters, SACLearner
from coach_rl.agents.variants.branching_dqn import BranchingLearner
from coach_rl.agents.variants.discrete_sac import DiscreteSACLearner
from coach_rl.core.agents import AgentContext
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.memories import ReplayMemoryParameters

SEEN = spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float32)})
SMALL = {
    "memory": ReplayMemoryParameters(capacity=100),
    "learning": LearningParameters(batch=8, learning_starts=20),
    "update_mode": "eager",
}


class Dial(spaces.Discrete):
    """A kind of space that only the variant below knows."""


class DialLearner(DQNLearner):
    """A learner of a user's own."""


@dqn_learner.register(Dial)
def dial_learner(space, params, agent):
    return DialLearner(params, agent)


def learner(params, action_space):
    context = AgentContext(
        spaces=EnvironmentSpaces(observation=SEEN, action=action_space), num_envs=1
    )
    return type(params.build(context).learner)


@pytest.mark.parametrize(
    ("params", "action_space", "expected"),
    [
        (DQNAgentParameters, spaces.Discrete(3), DQNLearner),
        (DQNAgentParameters, spaces.MultiDiscrete([3, 2]), BranchingLearner),
        (DQNAgentParameters, Dial(3), DialLearner),
        (SACAgentParameters, spaces.Box(-1, 1, (1,), np.float32), SACLearner),
        (SACAgentParameters, spaces.Discrete(3), DiscreteSACLearner),
        (SACAgentParameters, spaces.MultiDiscrete([3, 2]), DiscreteSACLearner),
        (SACAgentParameters, Dial(3), DiscreteSACLearner),
    ],
)
def test_learner_is_the_one_registered_for_the_action_space(params, action_space, expected):
    assert learner(params(**SMALL), action_space) is expected
