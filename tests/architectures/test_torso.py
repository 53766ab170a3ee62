import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

from coach_rl.architectures.initial_weights import convolution, linear
from coach_rl.architectures.layers import ACTIVATIONS, OneHot
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.extensions.images.convolutions import CONVOLUTIONS, ImageScale


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def build(space, **changes):
    return TorsoParameters(**changes).build(spaces.Dict(space), rng())


def batch(space, size=3):
    observed = spaces.Dict(space, seed=0)
    rows = [observed.sample() for _ in range(size)]
    return {key: torch.from_numpy(np.stack([row[key] for row in rows])) for key in observed}


EVERY_KIND = {
    "vector": (spaces.Box(-1, 1, (5,)), 5),
    "float64 matrix": (spaces.Box(-1, 1, (2, 3), np.float64), 6),
    "bytes": (spaces.Box(0, 255, (4,), np.uint8), 4),
    "bits": (spaces.MultiBinary(3), 3),
    "discrete": (spaces.Discrete(4, start=-1), 4),
    "multidiscrete": (spaces.MultiDiscrete([2, 3], start=[5, 0]), 5),
}


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_kind_of_observation_becomes_a_vector(kind):
    space, width = EVERY_KIND[kind]
    torso = build({kind: space}, middleware=())
    assert torso.output_size == width
    features = torso(batch({kind: space}))
    assert features.shape == (3, width)
    assert features.dtype == torch.float32


def test_vectors_are_flattened_in_order():
    torso = build({"x": spaces.Box(-9, 9, (2, 2), np.float64)}, middleware=())
    values = torch.arange(8, dtype=torch.float64).reshape(2, 2, 2)
    assert torso({"x": values}).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_whole_numbers_become_one_hot_counted_from_their_start():
    torso = build({"x": spaces.MultiDiscrete([2, 3], start=[5, -1])}, middleware=())
    features = torso({"x": torch.tensor([[5, 1], [6, -1]])})
    assert features.tolist() == [[1, 0, 0, 0, 1], [0, 1, 1, 0, 0]]
    assert OneHot((3,), (2,))(torch.tensor([4, 2])).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_keys_are_joined_in_the_order_of_the_space():
    space = {"b": spaces.Discrete(2), "a": spaces.Box(-9, 9, (1,)), "c.d": spaces.Box(-9, 9, (1,))}
    torso = build(space, middleware=())
    observation = {
        "c.d": torch.tensor([[3.0]]),
        "b": torch.tensor([1]),
        "a": torch.tensor([[2.0]]),
    }
    by_key = {"a": [2.0], "b": [0.0, 1.0], "c.d": [3.0]}
    expected = [number for key in spaces.Dict(space) for number in by_key[key]]
    assert torso(observation).tolist() == [expected]


def test_each_key_has_an_embedder_of_its_own_and_the_middleware_takes_them_all():
    space = {"a": spaces.Box(-1, 1, (2,)), "b": spaces.Discrete(3)}
    torso = build(space, embedder=(7, 4), middleware=(6,))
    shapes = {name: tuple(p.shape) for name, p in torso.named_parameters() if "weight" in name}
    assert sorted(shapes.values()) == sorted([(7, 2), (4, 7), (7, 3), (4, 7), (6, 8)])
    features = torso(batch(space))
    assert features.shape == (3, 6)
    assert torso.output_size == 6
    assert features.abs().max() <= 1  # ends in tanh


@pytest.mark.parametrize(
    ("side", "given", "name", "layers"),
    [
        (3, {"convolutions": "shallow"}, "shallow", 1),
        (60, {"convolutions": "deep"}, "deep", None),
        (1, {}, "small", 0),
        (2, {}, "small", 0),
        (3, {}, "small", 1),
        (6, {}, "small", 1),
        (7, {}, "small", 2),
        (14, {}, "small", 2),
        (15, {}, "small", 3),
        (35, {}, "small", 3),
        (36, {}, "medium", 3),
        (84, {}, "medium", 3),
    ],
)
def test_images_go_through_convolutions_that_fit_their_size(side, given, name, layers):
    space = {"image": spaces.Box(0, 255, (side + 2, side, 3), np.uint8)}
    torso = build(space, middleware=(5,), **given)
    found = [m for m in torso.embedder.embedders[0].modules() if isinstance(m, nn.Conv2d)]
    shapes = tuple((m.out_channels, m.kernel_size[0], m.stride[0]) for m in found)
    assert shapes == CONVOLUTIONS[name][:layers]
    assert torso(batch(space)).shape == (3, 5)


def test_the_medium_convolutions_of_an_atari_screen_have_the_published_size():
    torso = build({"image": spaces.Box(0, 255, (84, 84, 4), np.uint8)}, middleware=())
    assert torso.output_size == 7 * 7 * 64  # Mnih et al. 2015


def test_bytes_are_scaled_and_their_channels_come_first():
    image = torch.arange(2 * 3 * 4, dtype=torch.uint8).reshape(1, 2, 3, 4)
    scaled = ImageScale(channels_first=False, is_scaled=True)(image)
    assert scaled.shape == (1, 4, 2, 3)
    assert scaled.dtype == torch.float32
    assert scaled[0, 3, 1, 2] == pytest.approx(image[0, 1, 2, 3].item() / 255)


@pytest.mark.parametrize(
    ("shape", "kind", "changes"),
    [
        ((4,), np.uint8, {}),  # a machine's memory
        ((3, 2), np.uint8, {}),  # a grey picture
        ((3, 2), np.float32, {}),
        ((2, 2, 2), np.uint8, {"images": "flat"}),
        ((2, 2, 2), np.float32, {"images": "channels_last"}),
    ],
)
def test_numbers_from_0_to_255_are_divided_by_255(shape, kind, changes):
    torso = build({"x": spaces.Box(0, 255, shape, kind)}, middleware=(), **changes)
    values = torch.full((1, *shape), 51, dtype=torch.from_numpy(np.zeros(1, kind)).dtype)
    assert torso({"x": values}).flatten().tolist() == pytest.approx([0.2] * int(np.prod(shape)))


@pytest.mark.parametrize("bounds", [(0, 1), (0, 254), (1, 255)])
def test_bytes_with_other_bounds_are_left_alone(bounds):
    torso = build({"x": spaces.Box(*bounds, (2,), np.uint8)}, middleware=())
    assert torso({"x": torch.tensor([[1, 1]], dtype=torch.uint8)}).tolist() == [[1, 1]]


def test_numbers_that_a_normaliser_scales_are_not_divided():
    space = spaces.Dict({"x": spaces.Box(0, 255, (2,), np.float32)})
    normaliser = ObservationNormaliser(space, clip=10.0, device=torch.device("cpu"))
    torso = TorsoParameters(middleware=()).build(space, rng(), normaliser)
    assert torso({"x": torch.tensor([[1.0, 2.0]])}).tolist() == [[1.0, 2.0]]  # mean 0, scale 1


def test_keys_that_differ_only_by_a_dot_keep_their_own_embedders():
    space = {"a.b": spaces.Box(-1, 1, (2,)), "a_b": spaces.Box(-1, 1, (2,))}
    torso = build(space, embedder=(3,))
    assert sum(p.numel() for p in torso.embedder.embedders.parameters()) == 2 * (2 * 3 + 3)


@pytest.mark.parametrize("key", ["keys", "values", "type"])
def test_any_key_may_be_observed(key):
    assert build({key: spaces.Box(-1, 1, (2,))}).output_size == 64


@pytest.mark.parametrize("orthogonal", [True, False])
def test_weights_come_from_the_generator_alone(orthogonal):
    space = spaces.Dict(
        {"x": spaces.Box(-1, 1, (3,)), "image": spaces.Box(0, 255, (5, 5, 1), np.uint8)}
    )
    params = TorsoParameters(convolutions="shallow", orthogonal=orthogonal)
    before = torch.get_rng_state()
    first, same, other = (params.build(space, rng(seed)).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[name], same[name]) for name in first)
    weights = [name for name in first if name.endswith("weight")]
    assert len(weights) == 3
    assert not any(torch.equal(first[name], other[name]) for name in weights)


def test_orthogonal_layers_have_their_gain_and_no_bias():
    layer = linear(8, 5, rng=rng(), gain=1.5, orthogonal=True)
    torch.testing.assert_close(layer.weight @ layer.weight.T, 1.5**2 * torch.eye(5))
    assert not layer.bias.any()
    image = convolution(3, 4, kernel=2, stride=1, rng=rng(), gain=2.0, orthogonal=True)
    flat = image.weight.flatten(1)
    torch.testing.assert_close(flat @ flat.T, 4 * torch.eye(4), atol=1e-5, rtol=0)


def test_plain_layers_are_uniform_within_one_over_the_root_of_their_inputs():
    layer = linear(16, 500, rng=rng(), gain=100.0, orthogonal=False)
    for values in (layer.weight, layer.bias):
        assert values.abs().max() <= 0.25
        assert values.abs().max() > 0.24
    assert layer.weight.var().item() == pytest.approx(0.25**2 / 3, rel=0.05)
    image = convolution(4, 50, kernel=2, stride=1, rng=rng(), gain=1.0, orthogonal=False)
    assert 0.24 < image.weight.abs().max() <= 0.25


def test_activations_are_what_they_are_called():
    values = torch.tensor([-2.0, 3.0])
    found = {name: function(values).tolist() for name, function in ACTIVATIONS.items()}
    e = np.exp
    scale, alpha = 1.0507009873554805, 1.6732632423543772  # Klambauer et al. 2017
    expected = {
        "tanh": [np.tanh(-2), np.tanh(3)],
        "relu": [0, 3],
        "elu": [e(-2) - 1, 3],
        "selu": [scale * alpha * (e(-2) - 1), scale * 3],
        "leaky_relu": [-0.02, 3],
        "sigmoid": [1 / (1 + e(2)), 1 / (1 + e(-3))],
        "none": [-2, 3],
    }
    assert found.keys() == expected.keys()
    for name, numbers in expected.items():
        assert found[name] == pytest.approx(numbers, rel=1e-5), name


def test_layer_norm_comes_before_the_activation():
    space = spaces.Dict({"x": spaces.Box(-1, 1, (3,))})
    params = TorsoParameters(embedder=(5,), middleware=(4,), layer_norm=True)
    torso = params.build(space, torch.Generator().manual_seed(0))
    x = torch.tensor([[0.1, -0.5, 0.9], [0.3, 0.2, 0.1]])
    linears = [each for each in torso.modules() if isinstance(each, nn.Linear)]
    values = x
    for layer in linears:
        values = torch.tanh(nn.functional.layer_norm(layer(values), (layer.out_features,)))
    torch.testing.assert_close(torso({"x": x}), values)


@pytest.mark.parametrize(
    ("images", "shape", "dtype"),
    [
        ("auto", (20, 24, 2), np.uint8),
        ("channels_last", (20, 24, 2), np.float32),
        ("channels_first", (2, 20, 24), np.uint8),
        ("channels_first", (2, 20, 24), np.float32),
    ],
)
def test_images_of_every_layout_and_type_are_the_same_to_the_convolutions(images, shape, dtype):
    params = TorsoParameters(images=images, convolutions=((6, 5, 3), (4, 3, 1)), middleware=(8,))
    most = 255 if dtype == np.uint8 else 1
    space = spaces.Dict({"image": spaces.Box(0, most, shape, dtype)})
    torso = params.build(space, torch.Generator().manual_seed(0))
    pixels = np.random.default_rng(0).integers(0, 256, (2, 20, 24, 2))
    image = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
    values = image
    for layer in (each for each in torso.modules() if isinstance(each, nn.Conv2d)):
        values = torch.tanh(layer(values))
    assert values.shape == (2, 4, 4, 5)
    expected = torso.middleware(values.flatten(1))
    shown = pixels if shape[2] == 2 else pixels.transpose(0, 3, 1, 2)
    shown = shown.astype(dtype) if dtype == np.uint8 else (shown / 255).astype(dtype)
    found = torso({"image": torch.from_numpy(shown)})
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("images", ["auto", "channels_last", "channels_first"])
def test_stacks_of_images_have_the_channels_of_older_ones_first(images):
    params = TorsoParameters(images=images, convolutions=((6, 5, 3),), middleware=(8,))
    stacks = np.random.default_rng(0).integers(0, 256, (2, 20, 24, 3, 4)).astype(np.uint8)
    images_side_by_side = np.concatenate([stacks[..., age] for age in range(4)], axis=3)
    if images == "channels_first":
        stacks = stacks.transpose(0, 3, 1, 2, 4)
        images_side_by_side = images_side_by_side.transpose(0, 3, 1, 2)
    features = []
    for shown in (stacks, images_side_by_side):
        space = spaces.Dict({"image": spaces.Box(0, 255, shown.shape[1:], np.uint8)})
        torso = params.build(space, torch.Generator().manual_seed(0))
        features.append(torso({"image": torch.from_numpy(np.ascontiguousarray(shown))}))
    torch.testing.assert_close(*features)


def test_three_axes_may_be_a_vector():
    space = spaces.Dict({"grid": spaces.Box(0, 1, (2, 3, 4))})
    torso = TorsoParameters(images="flat", middleware=()).build(space, torch.Generator())
    assert torso({"grid": torch.arange(24.0).view(1, 2, 3, 4)}).tolist() == [list(range(24))]
