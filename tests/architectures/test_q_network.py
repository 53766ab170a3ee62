import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.architectures.q_network import QNetwork, discrete_choices
from coach_rl.configuration.parameters_json import decode, encode

SEEN = spaces.Dict({"x": spaces.Box(-1, 1, (3,)), "y": spaces.Discrete(2)})
BATCH = {
    "x": torch.tensor([[0.1, -0.5, 0.9], [0.3, 0.0, -1.0]]),
    "y": torch.tensor([0, 1]),
}
HEADS = {
    "mean": rl.MeanHead(),
    "quantiles": rl.QuantileHead(count=7),
    "categorical": rl.CategoricalHead(atoms=5, low=-1.0, high=3.0),
}
SMALL = rl.TorsoParameters(middleware=(8,))
BUTTONS = spaces.Discrete(4, start=2)


def build(*, action=BUTTONS, seed=0, **changes):
    params = rl.QNetworkParameters(**{"torso": SMALL, **changes})
    return QNetwork(params, SEEN, action, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("streams", [(), (6, 5)])
@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("head", HEADS)
def test_every_action_has_its_numbers(head, dueling, streams):
    network = build(head=HEADS[head], dueling=dueling, streams=streams)
    assert network(BATCH).shape == (2, 4, HEADS[head].size)
    assert network.returns.mean(network(BATCH)).shape == (2, 4)


@pytest.mark.parametrize("head", HEADS)
def test_a_duel_is_value_plus_centred_advantages(head):
    network = build(head=HEADS[head], dueling=True, streams=(6,))
    size, features = HEADS[head].size, network.torso(BATCH)
    advantage = network.actions(features).reshape(2, 4, size)
    value = network.state(features)
    for action in range(4):
        expected = value + advantage[:, action] - advantage.sum(dim=1) / 4
        torch.testing.assert_close(network(BATCH)[:, action], expected)


def test_discrete_choices_ignore_the_start():
    assert discrete_choices(spaces.Discrete(3, start=7)) == (3,)
    assert discrete_choices(spaces.MultiDiscrete([3, 2], start=[7, 1])) == (3, 2)


def test_only_a_duel_has_a_stream_for_the_state():
    # Torso 5 * 8 + 8; actions 8 * 6 + 6 and 6 * 4 + 4; state 8 * 6 + 6 and 6 + 1.
    plain, dueling = build(streams=(6,)), build(streams=(6,), dueling=True)
    assert sum(each.numel() for each in plain.parameters()) == 48 + 82
    assert sum(each.numel() for each in dueling.parameters()) == 48 + 82 + 61


def test_the_seed_makes_the_weights():
    one, same, other = build(seed=1), build(seed=1), build(seed=2)
    torch.testing.assert_close(one(BATCH), same(BATCH), rtol=0, atol=0)
    assert not torch.allclose(one(BATCH), other(BATCH))


def test_images_are_convolved():
    seen = spaces.Dict({"image": spaces.Box(0, 255, (84, 84, 4), np.uint8)})
    network = QNetwork(
        rl.QNetworkParameters(), seen, spaces.Discrete(6), torch.Generator().manual_seed(0)
    )
    # Mnih et al. 2015: 32 of 8x8x4, 64 of 4x4x32, 64 of 3x3x64, 3136 to 512, to one per action.
    layers = (8 * 8 * 4 + 1) * 32, (4 * 4 * 32 + 1) * 64, (3 * 3 * 64 + 1) * 64
    dense = (3136 + 1) * 512, (512 + 1) * 6
    assert sum(each.numel() for each in network.parameters()) == sum(layers) + sum(dense)
    assert network({"image": torch.zeros(2, 84, 84, 4, dtype=torch.uint8)}).shape == (2, 6, 1)


# Heads, by hand.


def test_means_by_hand():
    assert rl.MeanHead().mean(torch.tensor([[3.0], [4.0]])).tolist() == [3.0, 4.0]
    assert rl.QuantileHead(count=3).mean(torch.tensor([[0.0, 1.0, 5.0]])).tolist() == [2.0]
    # Probabilities 1/4 and 3/4 of the returns -1 and 3.
    head = rl.CategoricalHead(atoms=2, low=-1.0, high=3.0)
    assert head.mean(torch.tensor([[0.0, math.log(3.0)]])).item() == pytest.approx(2.0)


REWARD, DISCOUNT = torch.tensor([1.0, 1.0]), torch.tensor([0.5, 0.0])  # goes on, terminated


@pytest.mark.parametrize("head", [rl.MeanHead(), rl.QuantileHead(count=1)])
def test_targets_by_hand(head):
    numbers = torch.tensor([[10.0], [10.0]])
    assert head.target(numbers, REWARD, DISCOUNT, None).tolist() == [[6.0], [1.0]]
    assert head.target(numbers, REWARD, DISCOUNT, (1.5, 4.0)).tolist() == [[4.0], [1.5]]


def test_every_quantile_has_a_target():
    numbers = torch.tensor([[10.0, 20.0], [10.0, 20.0]])
    target = rl.QuantileHead(count=2).target(numbers, REWARD, DISCOUNT, None)
    assert target.tolist() == [[6.0, 11.0], [1.0, 1.0]]


def test_categorical_targets_by_hand():
    # Atoms 0, 1, 2 with 1/4, 1/4, 1/2. Going on they move to 1, 1.5, 2: 1 has 1/4 + 1/8,
    # 2 has 1/8 + 1/2. At a termination everything lies at 1.
    head = rl.CategoricalHead(atoms=3, low=0.0, high=2.0)
    numbers = torch.log(torch.tensor([[0.25, 0.25, 0.5]] * 2))
    target = head.target(numbers, REWARD, DISCOUNT, None)
    torch.testing.assert_close(target, torch.tensor([[0.0, 0.375, 0.625], [0.0, 1.0, 0.0]]))
    clipped = head.target(numbers, REWARD, DISCOUNT, (0.0, 0.5))
    torch.testing.assert_close(clipped, torch.tensor([[0.5, 0.5, 0.0]] * 2))


def test_mean_losses_by_hand():
    # Errors 3 and -0.5, weights 1 and 2: squared (4.5 + 0.25) / 2, Huber (2.5 + 0.25) / 2.
    numbers, target = torch.tensor([[5.0], [1.0]]), torch.tensor([[2.0], [1.5]])
    weight = torch.tensor([1.0, 2.0])
    loss, error = rl.MeanHead().loss(numbers, target, weight, None)
    assert loss.item() == pytest.approx(2.375)
    assert error.tolist() == [3.0, -0.5]
    assert rl.MeanHead().loss(numbers, target, weight, 1.0)[0].item() == pytest.approx(1.375)


@pytest.mark.parametrize("head", HEADS)
def test_weights_weigh_the_samples(head):
    head = HEADS[head]
    rng = torch.Generator().manual_seed(0)
    numbers = torch.randn(2, head.size, generator=rng)
    target = head.target(torch.randn(2, head.size, generator=rng), REWARD, DISCOUNT, None)
    alone = [head.loss(numbers[i : i + 1], target[i : i + 1], torch.ones(1), 1.0) for i in range(2)]
    loss, error = head.loss(numbers, target, torch.tensor([1.0, 0.25]), 1.0)
    expected = (alone[0][0] + 0.25 * alone[1][0]) / 2
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(error, torch.cat([alone[0][1], alone[1][1]]))


@pytest.mark.parametrize("head", HEADS)
def test_no_error_where_the_target_is_met(head):
    head = HEADS[head]
    numbers = torch.full((1, head.size), 0.3)
    nothing, same = torch.zeros(1), torch.ones(1)
    target = head.target(numbers, nothing, same, None)
    loss, error = head.loss(numbers, target, same, 1.0)
    assert error.item() == pytest.approx(0.0, abs=1e-6)
    entropy = math.log(5) if isinstance(head, rl.CategoricalHead) else 0.0
    assert loss.item() == pytest.approx(entropy, abs=1e-6)


# Parameters.


@pytest.mark.parametrize("head", HEADS)
def test_parameters_survive_json(head):
    params = rl.QNetworkParameters(head=HEADS[head], dueling=True, streams=(5,))
    assert decode(encode(params)) == params
