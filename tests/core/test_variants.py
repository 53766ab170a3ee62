"""Variants of agents: learners for further kinds of action space, found by the kind's name."""

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNLearner
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.sac_agent import SACAgentParameters, SACLearner
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import SpaceError
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.variants import variant_for, variant_tables
from coach_rl.extensions.choices import BranchingLearner, DiscreteSACLearner
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


def dial_table(name):
    """The variants of an extension with a learner of dials."""
    here = f"{__name__}:DialLearner"
    return {"DQNAgentParameters": {f"{__name__}:Dial": here, "Discrete": here}}.get(name, {})


@pytest.fixture
def dials(monkeypatch):
    """The extensions that are there, and one with a learner of dials."""
    tables = [*variant_tables, dial_table]
    monkeypatch.setattr("coach_rl.core.variants.variant_tables", tables)


def learner(params, action_space):
    context = AgentContext(
        spaces=EnvironmentSpaces(observation=SEEN, action=action_space), num_envs=1
    )
    return type(params.build(context).learner)


@pytest.mark.usefixtures("dials")
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
def test_learner_is_the_one_listed_for_the_nearest_kind(params, action_space, expected):
    assert learner(params(**SMALL), action_space) is expected


def test_kind_that_is_served_already_keeps_its_class_and_reads_no_table(monkeypatch):
    monkeypatch.setattr("coach_rl.core.variants.variant_tables", [pytest.fail])
    assert variant_for("Agent", spaces.Discrete(3), {"Discrete": DQNLearner}, claim="x") is (
        DQNLearner
    )


def test_space_without_a_variant_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr("coach_rl.core.variants.variant_tables", [])
    with pytest.raises(SpaceError, match="agent 'agent' cannot act in Multi") as got:
        learner(DQNAgentParameters(**SMALL), spaces.MultiDiscrete([[2, 3], [4, 5]]))
    assert "a variant of DQNAgentParameters for MultiDiscrete" in str(got.value)
    assert "\n" not in str(got.value)
