"""Optimisers against PyTorch's own, and in the update engine."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from coach_rl.architectures.gradient_step import AdamParameters
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.extensions.optimizers.adamw import AdamWParameters
from coach_rl.extensions.optimizers.rmsprop import RMSpropParameters
from coach_rl.extensions.testing import assert_same_state
from tests.architectures import test_update_engine as engines
from tests.extensions.update_modes import test_recorded_steps as recorded

CPU = torch.device("cpu")
OTHERS = [
    AdamWParameters(learning_rate=0.02, weight_decay=0.1, max_gradient_norm=0.5),
    RMSpropParameters(learning_rate=0.02, max_gradient_norm=0.5),
    RMSpropParameters(learning_rate=0.02, momentum=0.9, centered=True, l2=0.01),
]
PAIRS = [
    (AdamParameters(betas=(0.8, 0.99), l2=0.1), torch.optim.Adam, {}),
    (AdamWParameters(betas=(0.8, 0.99)), torch.optim.AdamW, {}),
    (
        AdamWParameters(betas=(0.8, 0.99), weight_decay=0.3),
        torch.optim.AdamW,
        {"weight_decay": 0.3},
    ),
    (
        AdamWParameters(betas=(0.8, 0.99), weight_decay=0.0),
        torch.optim.AdamW,
        {"weight_decay": 0.0},
    ),
    (RMSpropParameters(), torch.optim.RMSprop, {}),
    (RMSpropParameters(alpha=0.9, epsilon=1e-5), torch.optim.RMSprop, {"alpha": 0.9, "eps": 1e-5}),
    (RMSpropParameters(momentum=0.9), torch.optim.RMSprop, {"momentum": 0.9}),
    (RMSpropParameters(centered=True), torch.optim.RMSprop, {"centered": True}),
    (
        RMSpropParameters(momentum=0.5, centered=True, l2=0.2),
        torch.optim.RMSprop,
        {"momentum": 0.5, "centered": True},
    ),
]


def gradients(steps=50, size=40):
    """Gradients [steps, P]: normal numbers, tiny ones, and zero for good or for a time."""
    rng = torch.Generator().manual_seed(0)
    values = torch.randn(steps, size, generator=rng, dtype=torch.float64)
    values[:, 10:20] *= torch.logspace(-25, -3, 10, dtype=torch.float64)
    values[:, 20:25] = 0
    values[10:30, 25:30] = 0
    values[5:, 30:35] = 0
    return values


def network(dtype=torch.float64):
    rng = torch.Generator().manual_seed(1)
    module = nn.Module()
    module.weight = nn.Parameter(torch.randn(40, generator=rng, dtype=dtype))
    return NetworkWrapper(module, device=CPU)


def stepping(params, wrapped):
    """A function that steps a network by a gradient; it returns the metrics of the transforms."""
    optimizer = params.build(wrapped)
    transforms = params.gradient_transforms(wrapped, name="", seed=0)

    def step(gradient, rate):
        metrics = {}
        for transform in transforms:
            gradient, found = transform(gradient)
            metrics |= found
        optimizer.step(gradient, rate)
        return metrics

    return optimizer, step


@pytest.mark.parametrize(("params", "kind", "more"), PAIRS)
@pytest.mark.parametrize("largest", [None, 2.0])
def test_optimizer_equals_torch_over_fifty_steps(params, kind, more, largest):
    wrapped = network()
    theirs = wrapped.online.clone().requires_grad_()
    _, step = stepping(replace(params, max_gradient_norm=largest), wrapped)
    betas = {"betas": params.betas} if hasattr(params, "betas") else {}
    optimizer = kind([theirs], lr=params.learning_rate, **betas, **more)
    rates = torch.linspace(params.learning_rate, 0.1, 50, dtype=torch.float64)
    regularised = getattr(params, "l2", 0.0)
    for gradient, rate in zip(gradients(), rates, strict=True):
        optimizer.param_groups[0]["lr"] = float(rate)
        theirs.grad = gradient + regularised * theirs.detach()
        norm = nn.utils.clip_grad_norm_([theirs], largest or torch.inf)
        optimizer.step()
        found = step(gradient, rate)["gradient_norm"].item()
        assert found == pytest.approx(float(norm), rel=1e-12)
        torch.testing.assert_close(wrapped.online, theirs.detach(), rtol=1e-10, atol=1e-10)


def test_optimizer_l2_equals_the_weight_decay_of_torch():
    wrapped = network()
    theirs = wrapped.online.clone().requires_grad_()
    _, step = stepping(RMSpropParameters(l2=0.2), wrapped)
    optimizer = torch.optim.RMSprop([theirs], weight_decay=0.2)
    for gradient in gradients():
        theirs.grad = gradient.clone()
        optimizer.step()
        step(gradient, torch.tensor(0.01, dtype=torch.float64))
    torch.testing.assert_close(wrapped.online, theirs.detach(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("params", OTHERS)
def test_optimizer_moments_never_become_denormal(params):
    wrapped = network(torch.float32)
    optimizer, step = stepping(params, wrapped)
    rows = [*gradients().to(torch.float32), *torch.zeros(3_000, 40)]
    for gradient in rows:
        step(gradient, torch.tensor(0.001))
    assert torch.isfinite(wrapped.online).all()
    for values in optimizer.tensors()[1:]:
        size = values.abs()
        assert ((size == 0) | (size >= torch.finfo(torch.float32).tiny)).all()


@pytest.mark.parametrize("params", OTHERS)
def test_mean_gradient_is_that_of_the_last_steps(params):
    optimizer, step = stepping(params, network())
    assert not optimizer.mean_gradient().any()
    gradient = gradients()[0] / 100  # which is not clipped
    if getattr(params, "l2", 0.0):
        gradient = gradient - params.l2 * optimizer.network.online
    step(gradient, torch.zeros((), dtype=torch.float64))
    torch.testing.assert_close(optimizer.mean_gradient(), gradients()[0] / 100)


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param("compiled", marks=[*recorded.compiles, pytest.mark.slow]),
        pytest.param("captured", marks=pytest.mark.gpu),
    ],
)
@pytest.mark.parametrize("params", OTHERS)
def test_recorded_step_equals_eager_to_rounding(mode, params):
    device = torch.device("cuda" if mode == "captured" else "cpu")
    (eager, plain), (fast_network, fast) = (
        recorded.learner(each, device=device, optimizer=params) for each in ("eager", mode)
    )
    expected, found = recorded.train(plain, device), recorded.train(fast, device)
    assert fast.mode == mode
    assert found == pytest.approx(expected, rel=1e-4)
    torch.testing.assert_close(fast_network.online, eager.online, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("params", OTHERS)
def test_restored_engine_continues_bit_for_bit(params):
    runs = [engines.made(params) for _ in range(2)]
    columns, (first, second) = engines.data(), (engines.minibatches(8)[:4], engines.minibatches(8))
    for index in second:
        runs[0][1].step(columns, index)
    for index in first:
        runs[1][1].step(columns, index)
    network, engine = engines.made(params)
    network.load_state_dict(runs[1][0].state_dict())
    engine.load_state_dict(runs[1][1].state_dict())
    for index in second[4:]:
        engine.step(columns, index)
    assert torch.equal(network.online, runs[0][0].online)
    assert_same_state(engine.state_dict()["optimizers"], runs[0][1].state_dict()["optimizers"])


@pytest.mark.parametrize("params", OTHERS)
def test_optimizer_parameters_survive_json(params):
    assert decode(encode(params)) == params
