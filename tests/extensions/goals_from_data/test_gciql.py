"""GCIQL and GCBC against plain torch programs in double precision."""

from dataclasses import replace

import pytest
import torch
from decisions import context
from gymnasium import spaces
from plain_learners import SMALL, batches, values_of

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GoalSpace
from tests.extensions.offline.plain_iql import ADAM, PlainIQL

SEEN = {"desired_goal": spaces.Box(-9, 9, (1,)), "x": spaces.Box(-9, 9, (2,))}
BOX = spaces.Box(-1, 1, (2,))
GOAL = GoalSpace(low=(-9.0,), high=(9.0,), threshold=(0.5,), key="x", elements=(0,))
MEMORY = rl.ReplayMemoryParameters(capacity=200, parts=(rl.DataGoalsParameters(goal=GOAL),))
COMMON = {
    "learning": rl.LearningParameters(batch=16, learning_starts=1),
    "memory": MEMORY,
    "update_mode": "eager",
    "policy": rl.PolicyParameters(torso=SMALL),
}


def goal_batches(count):
    """Batches whose observations hold goals, with other goals for the policy."""
    made = []
    for batch in batches(count, box=BOX):
        seen, after = batch.observation["x"], batch.next_observation["x"]
        made.append(
            batch._replace(
                observation={"desired_goal": seen[:, :1], "x": seen[:, 1:]},
                next_observation={"desired_goal": seen[:, :1], "x": after[:, 1:]},
                extras={"actor_goal": after[:, :1]},
            )
        )
    return made


def joined(observation, goal=None):
    """What networks see: keys in alphabetical order, with another goal where one is given."""
    return torch.cat([observation["desired_goal"] if goal is None else goal, observation["x"]], 1)


class PlainGCIQL(PlainIQL):
    """Equations 5 and 6 of Kostrikov et al. 2022 with goals; the policy of OGBench's code."""

    def seen(self, observation):
        return joined(observation)

    def policy_loss(self, plain):
        settings = self.settings
        seen = joined(plain.observation, plain.extras["actor_goal"])
        if settings.extraction == "awr":
            advantage = self.advantage(self.critics, seen, plain.action)
            return self.policy.cloning_loss(plain, seen, advantage, settings)
        mean = torch.tanh(self.policy.mean(seen))
        values = values_of(self.critics, seen, mean).amin(dim=0)
        scale = 1 / (values.abs().mean().detach() + 1e-6)
        cloning = -(plain.weight * self.policy.log_prob(seen, plain.action)).mean()
        return settings.cloning * cloning - scale * (plain.weight * values).mean()


def gciql(**algorithm):
    return rl.GCIQLAgentParameters(
        algorithm=rl.GCIQLAlgorithmParameters(**algorithm),
        critic=rl.CriticParameters(torso=SMALL),
        value=SMALL,
        policy_optimizer=ADAM,
        critic_optimizer=ADAM,
        value_optimizer=ADAM,
        **COMMON,
    )


@pytest.mark.parametrize(
    "algorithm",
    [
        {},
        {"cloning": 0.003, "expectile": 0.7},
        {"extraction": "awr"},
        {"extraction": "awr", "temperature": 10.0, "largest_weight": 1.5},
    ],
    ids=str,
)
def test_gciql_equals_a_plain_program(algorithm):
    agent = gciql(**algorithm).build(context(SEEN, BOX))
    plain = PlainGCIQL(agent)
    for batch in goal_batches(8):
        plain.step(batch)
        agent.learn_from_batch(batch)
    plain.assert_same(agent)


def test_gciql_without_goals_of_the_policy_is_refused():
    without = rl.ReplayMemoryParameters(capacity=200)
    with pytest.raises(ConfigurationError, match=r"parts=\(DataGoalsParameters\(\),\)"):
        replace(gciql(), memory=without).build(context(SEEN, BOX))
    part = rl.DataGoalsParameters(goal=GOAL, actor=None)
    of_values = rl.ReplayMemoryParameters(capacity=200, parts=(part,))
    with pytest.raises(ConfigurationError, match="goals of the policy"):
        replace(gciql(), memory=of_values).build(context(SEEN, BOX))


def test_gciql_values_mean_actions_in_the_units_of_its_box(monkeypatch):
    wide = spaces.Box(-2, 2, (2,))
    agent = replace(gciql(), scale_actions=False).build(context(SEEN, wide))
    learner = agent.learner
    call = learner.critics.call
    valued = []

    def recording(flat, observation, action):
        valued.append(action)
        return call(flat, observation, action)

    monkeypatch.setattr(learner.critics, "call", recording)
    learner.policy_loss(50 * learner.policy.online, goal_batches(1)[0], {})
    assert 1.5 < valued[0].abs().max() <= 2


RECURRENT = rl.TorsoParameters(embedder=(), recurrence=rl.GRU(size=4), middleware=(4,))


@pytest.mark.parametrize(
    "networks",
    [
        {"policy": rl.PolicyParameters(torso=RECURRENT)},
        {"critic": rl.CriticParameters(torso=RECURRENT)},
        {"value": RECURRENT},
    ],
    ids=str,
)
def test_gciql_with_recurrent_networks_is_refused(networks):
    with pytest.raises(ConfigurationError, match="which no recurrent network can"):
        replace(gciql(), **networks).build(context(SEEN, BOX))


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({}, 0.5),
        ({"algorithm": "gcbc"}, 0.0),
        ({"algorithm": "gcbc", "random_goals": 0.3}, 0.3),
        ({"random_goals": 0.0}, 0.0),
    ],
    ids=str,
)
def test_preset_draws_random_goals_for_policies_unless_they_clone(changes, share):
    preset = rl.load_preset(rl.find_preset("PointMaze_GCIQL"))
    (part,) = preset.configure(changes).parameters.agent.memory.parts
    goals = part.actor or part.value
    assert (goals.random, goals.trajectory) == (share, 1 - share)


def test_gciql_with_filtered_rewards_is_refused():
    filters = rl.InputFilter(reward=(rl.RewardClippingFilter(low=-1.0),))
    with pytest.raises(ConfigurationError, match=r"leave InputFilter\.reward out"):
        replace(gciql(), input_filter=filters).build(context(SEEN, BOX))
