import math

import numpy as np
import pytest
import torch
from gymnasium import spaces

from coach_rl.architectures.continuous_control import (
    ActorParameters,
    CriticParameters,
    Critics,
    DeterministicActor,
    SquashedGaussianActor,
    scale_to,
)
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.filters import LinearBoxToBoxMap

SEEN = spaces.Dict({"a": spaces.Box(-9, 9, (2,)), "b": spaces.Box(-9, 9, (1,))})
BOX = spaces.Box(np.float32([-1, -2, 10]), np.float32([3, 0.5, 11]))
SMALL = TorsoParameters(middleware=(7, 5), activation="relu", orthogonal=False)


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def observations(rows=4, seed=1):
    generator = rng(seed)
    return {
        "a": torch.randn(rows, 2, generator=generator),
        "b": torch.randn(rows, 1, generator=generator),
    }


# Scaling to a Box.


def test_scaling_by_hand():
    to_box = scale_to(BOX)
    shares = torch.tensor([[-1.0, -1.0, -1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.5, -0.5, 0.2]])
    expected = [[-1.0, -2.0, 10.0], [1.0, -0.75, 10.5], [3.0, 0.5, 11.0], [2.0, -1.375, 10.6]]
    torch.testing.assert_close(to_box(shares), torch.tensor(expected))
    torch.testing.assert_close(to_box.inverse(torch.tensor(expected)), shares)


WIDEST = float(np.finfo(np.float32).max)
WIDE = (
    spaces.Box(-WIDEST, WIDEST, (2,)),
    spaces.Box(np.float32([0, -WIDEST]), np.float32([1, 1e38])),
    spaces.Box(-1e300, 1e300, (2,), np.float64),
)
"""Ranges whose half is no float32."""


def test_linear_map_widest_box_scales_to_its_bounds():
    for box in WIDE:
        to_whole = LinearBoxToBoxMap(low=-1, high=1).build(box)
        assert scale_to(to_whole.agent_space).half_range.tolist() == [1.0] * box.shape[0]
        ends = np.array([[-1.0] * box.shape[0], [1.0] * box.shape[0]], box.dtype)
        np.testing.assert_array_equal(to_whole.apply(ends), [box.low, box.high])


# Critics.


@pytest.mark.parametrize("layers", [(0, 1), (1,), (2, 0)])
@pytest.mark.parametrize("unit", ["half_range", "raw"])
def test_the_action_joins_the_inputs_of_the_critic_s_action_layers(layers, unit):
    params = CriticParameters(torso=SMALL, action_layers=layers, action_unit=unit)
    critics = Critics(params, SEEN, BOX, rng(), members=2)
    seen = observations()
    share = 2 * torch.rand(4, 3, generator=rng(5)) - 1
    action = torch.tensor([1.0, -0.75, 10.5]) + share * torch.tensor([2.0, 1.25, 0.5])
    shown = {"half_range": share, "raw": action}[unit].double()
    found = critics(seen, action)
    for member in range(2):
        values = critics.values.embedder(seen).double()
        for number, layer in enumerate(critics.values.layers):
            inputs = torch.cat([values, shown], dim=1) if number in layers else values
            values = inputs @ layer.weight[member].double() + layer.bias[member, 0].double()
            if number < len(critics.values.layers) - 1:
                values = torch.relu(values) if SMALL.activation == "relu" else torch.tanh(values)
        torch.testing.assert_close(found[member].double(), values[:, 0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(critics(seen, action, members=1), found[:1])


# Initial weights.


def limits(weight):
    return weight.detach().min().item(), weight.detach().max().item()


def test_initial_weights_are_torch_s_own():
    torso = TorsoParameters(middleware=(100, 400), activation="relu", orthogonal=False)
    critics = Critics(CriticParameters(torso=torso), SEEN, BOX, rng(), members=2)
    for layer, inputs in zip(critics.values.layers, (6, 100, 400), strict=True):
        bound = 1 / math.sqrt(inputs)
        for member in range(2):
            low, high = limits(layer.weight[member])
            assert -bound <= low < -0.9 * bound
            assert 0.9 * bound < high <= bound
    actor = DeterministicActor(ActorParameters(torso=torso), SEEN, BOX, rng())
    low, high = limits(actor.head[0].weight)
    assert -1 / 20 <= low < -0.9 / 20
    assert 0.9 / 20 < high <= 1 / 20


def test_orthogonal_weights_where_asked_in_critics_too():
    torso = TorsoParameters(middleware=(8, 8), activation="relu", orthogonal=True)
    critics = Critics(CriticParameters(torso=torso), SEEN, BOX, rng(), members=2)
    for layer in critics.values.layers[:-1]:
        for member in range(2):
            weight = layer.weight[member]  # [inputs, outputs], at most as many inputs as outputs
            torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(len(weight)))
            assert layer.bias[member].abs().max() == 0
    one, other = critics.values.layers[0].weight
    assert not torch.allclose(one, other)


def test_layer_norm_comes_before_the_activation_of_every_critic():
    torso = TorsoParameters(middleware=(4,), activation="relu", layer_norm=True)
    critics = Critics(CriticParameters(torso=torso), SEEN, BOX, rng(), members=2)
    seen, action = observations(), torch.zeros(4, 3)
    features = torch.cat([critics.values.embedder(seen), critics.to_box.inverse(action)], dim=-1)
    first, last = critics.values.layers
    for member, values in enumerate(critics(seen, action)):
        hidden = features @ first.weight[member] + first.bias[member]
        hidden = torch.nn.functional.layer_norm(hidden, (4,))
        expected = torch.relu(hidden) @ last.weight[member] + last.bias[member]
        torch.testing.assert_close(values, expected[:, 0])
    torch.testing.assert_close(critics(seen, action, members=1), critics(seen, action)[:1])


@pytest.mark.parametrize("bound", [3e-3, 0.5])
def test_the_last_layer_begins_within_its_bound(bound):
    params = {"torso": SMALL, "final_bound": bound}
    networks = [
        DeterministicActor(ActorParameters(**params), SEEN, BOX, rng()).head[0],
        SquashedGaussianActor(ActorParameters(**params), SEEN, BOX, rng()).head[0],
        Critics(CriticParameters(**params), SEEN, BOX, rng(), members=2).values.layers[-1],
    ]
    for layer in networks:
        for parameter in (layer.weight, layer.bias):
            assert parameter.abs().max() <= bound
        assert layer.weight.abs().max() > 0.5 * bound


def test_the_network_of_the_ddpg_paper():
    """400 on the observation alone, then 300 on it and the action, section 7."""
    torso = TorsoParameters(embedder=(400,), middleware=(300,), activation="relu", orthogonal=False)
    seen = spaces.Dict({"x": spaces.Box(-1, 1, (17,))})
    critics = Critics(CriticParameters(torso=torso, final_bound=3e-3), seen, BOX, rng())
    assert [tuple(layer.weight.shape) for layer in critics.values.layers] == [
        (1, 403, 300),
        (1, 300, 1),
    ]
    assert critics.values.embedder.output_size == 400


def test_the_same_generator_makes_the_same_networks_and_torch_s_own_is_left_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    one, same, other = (
        Critics(CriticParameters(final_bound=0.1), SEEN, BOX, rng(seed), members=2)
        for seed in (0, 0, 1)
    )
    assert torch.equal(torch.get_rng_state(), before)
    for mine, theirs, strange in zip(
        one.parameters(), same.parameters(), other.parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)
        assert not torch.equal(mine, strange)
