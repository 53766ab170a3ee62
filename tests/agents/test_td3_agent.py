import pytest
import torch
from plain_actor_critics import PlainTD3, learn_alike
from plain_learners import HALF, MIDDLE, batches, build, frozen, moved

from coach_rl.agents.td3_agent import TD3Batch
from coach_rl.architectures.gradient_step import TargetSync

STEPS = 9


@pytest.mark.parametrize(
    ("algorithm", "adam"),
    [
        ({}, {}),
        ({"huber": 0.7}, {}),
        ({"policy_delay": 1}, {}),
        ({"policy_delay": 3, "target_sync": TargetSync(rate=0.3)}, {}),
        ({"target_sync": TargetSync(every=2)}, {}),
        ({"target_noise": 1.5, "target_noise_clip": 0.25}, {}),
        ({"target_noise": 1.5, "target_noise_clip": 1.2}, {}),
        ({"target_noise": 0.0}, {}),
        ({"clip_targets": (-1.0, 1.5)}, {}),
        ({}, {"l2": 0.3}),
        ({}, {"max_gradient_norm": 0.05}),
    ],
    ids=lambda value: ", ".join(value) or "plain",
)
def test_it_learns_as_a_plain_torch_version_does(algorithm, adam):
    agent = build("td3", algorithm=algorithm, adam={"epsilon": 1e-4, **adam})
    plain = PlainTD3(agent)
    start = frozen(plain.actor)
    learn_alike(agent, plain, batches(STEPS))
    assert moved(plain.actor, start) > 0.02


def constant_networks(agent, *, target_share, first, second):
    """The target actor says one share everywhere; target critics say theirs + the shares' sum."""
    actor, critics = (
        agent.learner.actor.named(agent.learner.actor.target),
        agent.learner.critics.named(agent.learner.critics.target),
    )
    for values in (*actor.values(), *critics.values()):
        values.zero_()
    actor["head.0.bias"].copy_(torch.atanh(torch.tensor(target_share)))
    # relu(3 + share) - 3 = share for shares of -1 or more: element a goes through unit a
    for element in range(2):
        critics["values.layers.0.weight"][:, 3 + element, element] = 1
        critics["values.layers.0.bias"][:, 0, element] = 3
        critics["values.layers.1.weight"][:, element, element] = 1
        critics["values.layers.2.weight"][:, element, 0] = 1
    critics["values.layers.2.bias"][:, 0, 0] = torch.tensor([first - 6, second - 6])


def test_the_lower_target_critic_is_believed_at_an_action_with_clipped_noise():
    agent = build("td3", algorithm={"target_noise": 0.2, "target_noise_clip": 0.5})
    constant_networks(agent, target_share=[0.8, -0.3], first=10.0, second=7.0)
    for values in agent.learner.critics.named(agent.learner.critics.online).values():
        values.zero_()
    (batch,) = batches(1, size=4)
    # noise 0.2 * 1 = 0.2 goes beyond 1 and is clipped there; 0.2 * 10 and 0.2 * -9 are cut to 0.5
    noise = torch.tensor([[1.0, 1.0], [10.0, -9.0], [-9.0, 10.0], [0.0, 0.0]])
    batch = batch._replace(
        reward=torch.tensor([0.0, 0.0, 1.0, 50.0]), discount=torch.tensor([1.0, 0.5, 1.0, 0.0])
    )
    shares = [(1.0, -0.1), (1.0, -0.8), (0.3, 0.2), (0.8, -0.3)]
    sums = [sum(each) for each in shares]
    expected = [7 + sums[0], 0.5 * (7 + sums[1]), 1 + 7 + sums[2], 50.0]
    _, said = agent.learner.critic_loss(agent.learner.critics.online, TD3Batch(batch, noise), {})
    assert said["td_error"].tolist() == pytest.approx(expected, abs=1e-4)
    assert float(said["q_value"]) == 0.0


@pytest.mark.parametrize(
    ("unit", "added"), [("half_range", torch.tensor([0.1, 0.15]) * HALF), ("raw", [0.1, 0.15])]
)
def test_target_noise_is_measured_in_its_unit(unit, added):
    """Halves of each element's range, the same in every box; or the box's own units."""
    algorithm = {"target_noise": 0.1, "target_noise_clip": 0.15, "target_noise_unit": unit}
    agent = build("td3", algorithm=algorithm)
    seen = []
    forward = agent.learner.critics.call

    def spy(flat, observation, action, **kwargs):
        if flat is agent.learner.critics.target:
            seen.append(action)
        return forward(flat, observation, action, **kwargs)

    agent.learner.critics.call = spy
    (batch,) = batches(1, size=4)
    noise = torch.tensor([[1.0, 2.0]] * 4)
    agent.learner.critic_loss(agent.learner.critics.online, TD3Batch(batch, noise), {})
    with torch.no_grad():
        plain = agent.learner.actor.call(
            agent.learner.actor.target, {"x": batch.next_observation["x"]}
        )
    expected = plain + torch.as_tensor(added)
    torch.testing.assert_close(seen[0], torch.minimum(expected, MIDDLE + HALF))


def test_errors_of_opposite_signs_do_not_cancel():
    """One critic too high and one too low is no reason to look away."""
    agent = build("td3")
    (batch,) = batches(1, size=2)
    named = agent.learner.critics.named(agent.learner.critics.online)
    for values in named.values():
        values.zero_()
    named["values.layers.2.bias"][:, 0, 0] = torch.tensor([3.0, -3.0])
    batch, noise = batch._replace(reward=torch.zeros(2), discount=torch.zeros(2)), torch.zeros(2, 2)
    _, said = agent.learner.critic_loss(agent.learner.critics.online, TD3Batch(batch, noise), {})
    assert said["td_error"].tolist() == [3.0, 3.0]


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_actor_and_targets_move_only_with_every_step_of_the_delay(delay):
    agent = build("td3", algorithm={"policy_delay": delay})

    def now():
        return [
            each.clone()
            for each in (
                agent.learner.critics.online,
                agent.learner.actor.online,
                agent.learner.actor.target,
                agent.learner.critics.target,
            )
        ]

    before = now()
    for number, batch in enumerate(batches(7), start=1):
        agent.learn_from_batch(batch)
        after = now()
        changed = [not torch.equal(*pair) for pair in zip(before, after, strict=True)]
        assert changed == [True] + [number % delay == 0] * 3, number
        before = after
    assert agent.training_steps == 7


def test_the_actor_s_metrics_are_means_over_its_own_steps():
    agent, single = build("td3"), build("td3")
    losses = []
    for number, batch in enumerate(batches(6), start=1):
        agent.learn_from_batch(batch)
        single.learn_from_batch(batch)
        said = single.learner.engine.drain_metrics()
        assert ("actor_loss" in said) == (number % 2 == 0)
        losses += [said["actor_loss"]] if "actor_loss" in said else []
    assert agent.learner.engine.drain_metrics()["actor_loss"] == pytest.approx(sum(losses) / 3)
