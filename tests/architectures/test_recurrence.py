"""Recurrent layers: one step at a time equals sequences, torch's own layers and numpy."""

from functools import partial

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.architectures.hidden_states import stateful_layers
from coach_rl.extensions.recurrent_layers.stage import hidden_state_of

window = partial(rl.Attention, window=4, heads=1)


KINDS = [rl.GRU, rl.LSTM, rl.MinGRU, window]
INPUTS = 5
SPACE = spaces.Dict({"x": spaces.Box(-9, 9, (INPUTS,), np.float32), "kind": spaces.Discrete(3)})


def cell_of(kind, *, size=7, dtype=torch.float32, orthogonal=True):
    cell = kind(size=size).cell(INPUTS, torch.Generator().manual_seed(3), orthogonal=orthogonal)
    return cell.to(dtype)


def stepped(cell, values, state):
    """Outputs [S, L, F] and the last state of inputs [S, L, I], one step at a time."""
    outputs = []
    for step in values.unbind(dim=1):
        output, state = cell.step(step, state)
        outputs.append(output)
    return torch.stack(outputs, dim=1), state


@pytest.mark.parametrize("length", [1, 17])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("kind", KINDS)
def test_sequence_equals_steps(kind, dtype, error, length):
    cell, draw = cell_of(kind, dtype=dtype), torch.Generator().manual_seed(length)
    values = torch.randn(4, length, INPUTS, dtype=dtype, generator=draw)
    state = torch.randn(4, cell.state_size, dtype=dtype, generator=draw)
    for found, expected in zip(
        cell.sequence(values, state), stepped(cell, values, state), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=0, atol=error)


def test_cell_weights_begin_as_asked():
    orthogonal, uniform = (cell_of(rl.GRU, size=64, orthogonal=each) for each in (True, False))
    for gate in orthogonal.weight_hh.chunk(3):
        torch.testing.assert_close(gate @ gate.T, torch.eye(64), rtol=0, atol=1e-5)
    assert not orthogonal.bias_ih.any()
    assert 0.12 < uniform.weight_ih.abs().max() < 1 / 8  # 1 / sqrt(64)


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_step_equals_the_step_and_follows_the_parameters(kind):
    cell = cell_of(kind)
    step = cell.numpy_step()
    for _ in range(2):
        values, state = torch.randn(6, INPUTS) * 30, torch.randn(6, cell.state_size)
        found = step(values.numpy(), state.numpy())
        for mine, expected in zip(found, cell.step(values, state), strict=True):
            np.testing.assert_allclose(mine, expected.detach().numpy(), rtol=1e-5, atol=2e-5)
            assert mine.dtype == np.float32
        with torch.no_grad():
            for parameter in cell.parameters():
                parameter.mul_(1.5)
    nothing = step(values.numpy()[:0], state.numpy()[:0])
    assert [each.shape[0] for each in nothing] == [0, 0]


def test_plain_networks_have_no_hidden_state():
    torso = rl.TorsoParameters().build(SPACE, torch.Generator())
    assert not stateful_layers([torso])


def test_networks_that_reset_at_different_starts_are_refused():
    torsos = [
        rl.TorsoParameters(recurrence=rl.GRU(reset=reset)).build(SPACE, torch.Generator())
        for reset in ("episode", "sub_episode")
    ]
    with pytest.raises(rl.ConfigurationError, match="episode and sub_episode"):
        hidden_state_of(torsos)


@pytest.mark.parametrize("kind", [rl.GRU, rl.LSTM, rl.MinGRU])
def test_span_sets_how_long_a_state_is_kept_at_first(kind):
    kept = {}
    for span in (None, 100):
        draw = torch.Generator().manual_seed(3)
        cell = kind(size=200, span=span).cell(INPUTS, draw, orthogonal=True)
        state = torch.ones(1, cell.state_size)
        for _ in range(20):
            _, state = cell.step(torch.zeros(1, INPUTS), state)
        kept[span] = float((state[:, -200:] > 0.3).float().mean())
    assert kept[None] < 0.05
    assert kept[100] > 0.5
