"""ReBRAC against a plain torch program in double precision, and the actions that follow."""

import pytest
import torch
from decisions import context
from plain_actor_critics import PlainTD3, learn_alike
from plain_learners import BOX, HALF, MIDDLE, SEEN, SMALL, batches, doubles, values_of

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError
from coach_rl.presets.Mujoco_ReBRAC import Panel, graph_manager
from tests.extensions.offline.plain_iql import ADAM
from tests.memories.replay_worlds import Stream, build

MEMORY = rl.ReplayMemoryParameters(capacity=200, units=(rl.NextActionsParameters(),))


def rebrac(memory=MEMORY, **algorithm):
    return rl.ReBRACAgentParameters(
        algorithm=rl.ReBRACAlgorithmParameters(**algorithm),
        learning=rl.LearningParameters(batch=16, learning_starts=1),
        memory=memory,
        update_mode="eager",
        actor=rl.ActorParameters(torso=SMALL),
        critic=rl.CriticParameters(torso=SMALL),
        actor_optimizer=ADAM,
        critic_optimizer=ADAM,
    )


def followed_batches(count):
    """Batches with the actions that follow, of which every fourth has none."""
    made = batches(count)
    for batch, other in zip(made, batches(count, seed=1), strict=True):
        has_next = torch.arange(16) % 4 != 0
        following = torch.where(has_next[:, None], other.action, 0.0)
        extras = {"next_action": following, "has_next_action": has_next}
        yield batch._replace(extras=extras)


class PlainReBRAC(PlainTD3):
    """Tarasov et al. 2023, section 3: both penalties, on TD3."""

    def next_value(self, plain):
        after = plain.next_observation["x"]
        chosen = self.next_share(after)
        following = (plain.extras["next_action"] - MIDDLE) / HALF
        penalty = ((chosen - following) ** 2).sum(dim=1) * plain.extras["has_next_action"]  # [B]
        lower = values_of(self.critics_target, after, chosen).amin(dim=0)
        return lower - self.settings.critic_penalty * penalty

    def actor_loss(self, batch):
        plain, share = doubles(batch)
        before = plain.observation["x"]
        chosen = torch.tanh(self.actor(before))
        values = values_of(self.critics, before, chosen).amin(dim=0)
        scale = 1 / values.abs().mean().detach()
        cloning = ((chosen - share) ** 2).sum(dim=1).mean()
        self.metrics["cloning_loss"] = cloning.item()
        return self.settings.actor_penalty * cloning - scale * values.mean()


@pytest.mark.parametrize(
    "algorithm",
    [{}, {"actor_penalty": 1.0, "critic_penalty": 0.5}, {"critic_penalty": 5.0, "policy_delay": 1}],
    ids=str,
)
def test_rebrac_equals_a_plain_program(algorithm):
    agent = rebrac(**algorithm).build(context(SEEN, BOX))
    learn_alike(agent, PlainReBRAC(agent), followed_batches(8))


def test_next_actions_are_those_of_the_following_transitions_of_the_episode():
    memory = build(units=(rl.NextActionsParameters(),), capacity=60)
    stream = Stream(2, seed=4)
    for _ in range(100):  # the rings of 30 are overwritten
        memory.add(stream.step())
    batch = memory.sample(500)
    action = batch.action.numpy()[:, 0]  # the number of its state, one more with each in a row
    following = batch.extras["next_action"].numpy()[:, 0]
    has_next = batch.extras["has_next_action"].numpy()
    history = {each["number"]: each for row in stream.history for each in row}
    newest = {row[-1]["number"] for row in stream.history}
    for number, after, is_known in zip(action, following, has_next, strict=True):
        step = history[int(number)]
        ends = step["terminated"] or step["truncated"] or int(number) in newest
        assert is_known == (not ends)
        assert after == (0 if ends else number + 1)
    assert 0.5 < has_next.mean() < 1


def test_rebrac_without_the_actions_that_follow_is_refused():
    without = rl.ReplayMemoryParameters(capacity=200)
    with pytest.raises(ConfigurationError, match=r"units=\(NextActionsParameters\(\),\)"):
        rebrac(without).build(context(SEEN, BOX))
    summed = rl.ReplayMemoryParameters(capacity=200, units=MEMORY.units, n_step=3)
    with pytest.raises(ConfigurationError, match="got n_step=3"):
        rebrac(summed).build(context(SEEN, BOX))


@pytest.mark.parametrize(
    ("level", "quality", "penalties"),
    [
        ("hopper", "medium", (0.01, 0.01)),
        ("Walker2d-v5", "expert", (0.01, 0.5)),
        ("ant", "medium", (0.01, 0.01)),
    ],
)
def test_rebrac_preset_has_the_penalties_of_task_and_data(level, quality, penalties):
    panel = Panel(level=level, quality=quality)
    algorithm = graph_manager(panel).parameters.agent.algorithm
    assert (algorithm.actor_penalty, algorithm.critic_penalty) == penalties
    given = graph_manager(Panel(level=level, critic_penalty=0.0)).parameters.agent.algorithm
    assert given.critic_penalty == 0.0
