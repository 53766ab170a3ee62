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


@pytest.mark.parametrize("head", HEADS)
def test_parameters_survive_json(head):
    params = rl.QNetworkParameters(head=HEADS[head], dueling=True, streams=(5,))
    assert decode(encode(params)) == params
