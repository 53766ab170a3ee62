"""Recurrent networks as a plain program: one sequence and one step after the other, in doubles."""

import numpy as np
import torch
from decisions import context, outcome, request
from torch import Tensor

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.records import HIDDEN_STATE
from coach_rl.extensions.recurrent_layers.sequences import BURN_IN, BURN_IN_MASK

TRAIN = Clock(phase=Phase.TRAIN)


def gru(w: dict[str, Tensor], seen: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Output and state [H] of Cho et al. 2014, with the reset gate inside the candidate."""
    size = len(state)
    of_input = w["weight_ih"] @ seen + w["bias_ih"]
    of_state = w["weight_hh"] @ state + w["bias_hh"]
    reset, update = (
        1 / (1 + torch.exp(-of_input[part] - of_state[part]))
        for part in (slice(size), slice(size, 2 * size))
    )
    candidate = torch.tanh(of_input[2 * size :] + reset * of_state[2 * size :])
    state = (1 - update) * candidate + update * state
    return state, state


def lstm(w: dict[str, Tensor], seen: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Output [H] and state [2H] of Hochreiter & Schmidhuber 1997, with a forget gate."""
    size = len(state) // 2
    output, cell = state[:size], state[size:]
    sums = w["weight_ih"] @ seen + w["bias_ih"] + w["weight_hh"] @ output + w["bias_hh"]
    into, forget, new, out = (sums[at * size : (at + 1) * size] for at in range(4))
    cell = cell / (1 + torch.exp(-forget)) + torch.tanh(new) / (1 + torch.exp(-into))
    output = torch.tanh(cell) / (1 + torch.exp(-out))
    return output, torch.cat([output, cell])


CELLS = {3: gru, 4: lstm}
"""By the number of gates."""


class PlainRecurrentNetwork:
    """Embedder and recurrent layer of a network with other parameters, a leaf in doubles.

    Args:
        network: The network's wrapper.
        flat: Its parameters, which are copied.
        place: Columns of its state in the agent's hidden state.
        embedder: Where the embedder is in the module, e.g. `torso.embedder`.
    """

    def __init__(self, network, flat: Tensor, place: slice, embedder: str) -> None:
        self.flat = flat.detach().double().clone().requires_grad_()
        self.named = network.named(self.flat)
        self.place, self.prefix = place, embedder

    def under(self, path: str) -> dict[str, Tensor]:
        """Parameters below a path, by the rest of their names."""
        return {
            name.removeprefix(f"{path}."): values
            for name, values in self.named.items()
            if name.startswith(f"{path}.")
        }

    def dense(self, path: str, hidden: Tensor, *, last_is_linear: bool) -> Tensor:
        """An input through the layers below a path, with tanh behind each."""
        own = self.under(path)
        weights = [name for name in own if name.endswith("weight")]
        for name in weights:
            hidden = own[name] @ hidden + own[name.replace("weight", "bias")]
            if name != weights[-1] or not last_is_linear:
                hidden = torch.tanh(hidden)
        return hidden

    def step(self, seen: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Output and state after an observation."""
        embedded = self.dense(f"{self.prefix}.embedders.0", seen, last_is_linear=False)
        weights = self.under(f"{self.prefix}.recurrence.cell")
        gates = len(weights["bias_hh"]) // weights["weight_hh"].shape[1]
        return CELLS[gates](weights, embedded, state)

    def outputs(self, state: Tensor, earlier: list[Tensor], later: list[Tensor]) -> list[Tensor]:
        """Outputs of the recurrent layer after each of `later`, without gradients in `earlier`.

        Args:
            state: The agent's whole hidden state.
            earlier: Observations that the network passes over first.
            later: The observations behind them.
        """
        state, found = state[self.place].double(), []
        with torch.no_grad():
            for seen in earlier:
                _, state = self.step(seen, state)
        for seen in later:
            output, state = self.step(seen, state)
            found.append(output)
        return found


class PlainRecurrentCritics(PlainRecurrentNetwork):
    """K critics behind one recurrent layer; the action joins where their middleware begins."""

    def __init__(self, network, flat: Tensor, place: slice) -> None:
        super().__init__(network, flat, place, "values.embedder")
        self.members = network.module.members

    def values(self, hidden: Tensor, action: Tensor | None = None) -> list[Tensor]:
        """Outputs [P] of each critic; `action` lies in [-1, 1]."""
        own, found = self.under("values.layers"), []
        for member in range(self.members):
            values = hidden if action is None else torch.cat([hidden, action])
            count = len(own) // 2
            for layer in range(count):
                weight, bias = own[f"{layer}.weight"][member], own[f"{layer}.bias"][member, 0]
                values = values @ weight + bias
                values = torch.tanh(values) if layer < count - 1 else values
            found.append(values)
        return found


class PlainSequence:
    """A sequence of a batch without its padding: lists with one entry per transition, in doubles.

    `index` are the places in the batch, `state` the hidden state that it begins in, `burnt` the
    observations to pass over before, `now` and `after` those of the transitions.
    """

    def __init__(self, batch, number: int) -> None:
        states = batch.observation[HIDDEN_STATE]
        length, burnt = len(batch.reward) // len(states), batch.observation[BURN_IN_MASK]
        span = len(burnt) // len(states)
        places = range(number * length, (number + 1) * length)
        self.index = [at for at in places if batch.valid[at]]
        self.state = states[number]
        earlier = range(number * span, (number + 1) * span)
        seen = batch.observation[f"{BURN_IN}x"].double()
        self.burnt = [seen[at] for at in earlier if burnt[at]]
        self.now = [batch.observation["x"][at].double() for at in self.index]
        self.after = [batch.next_observation["x"][at].double() for at in self.index]
        self.action = [batch.action[at].double() for at in self.index]
        self.reward, self.discount, self.weight = (
            [float(values[at]) for at in self.index]
            for values in (batch.reward, batch.discount, batch.weight)
        )

    @property
    def before_after(self) -> list[Tensor]:
        """Observations before the next ones: a sequence of next observations begins behind them."""
        return [*self.burnt, self.now[0]]


def plain_sequences(batch) -> list[PlainSequence]:
    """The sequences of a batch."""
    return [PlainSequence(batch, at) for at in range(len(batch.observation[HIDDEN_STATE]))]


def played(params, seen, action, *, seed=5, steps=150, rows=3):
    """An agent that has stored random observations, and has targets of their own.

    Args:
        params: Its parameters.
        seen: Spaces of its observations, whose only key is `x`.
        action: Its action space.
        seed: Of observations, rewards and ends.
        steps: Decisions in each row.
        rows: Rows.
    """
    agent = params.build(context(seen, action, num_envs=rows))
    state, rng = agent.new_rows(rows, seed), np.random.default_rng(seed)
    drift = rng.normal(size=(rows, 3)).astype(np.float32)
    starts = np.ones(rows, np.bool_)
    for _ in range(steps):
        agent.act(state, request({"x": drift}, starts=starts), TRAIN)
        drift = (0.5 * drift + rng.normal(size=(rows, 3))).astype(np.float32)
        terminated, truncated = rng.random((2, rows)) < 0.08
        reward = rng.normal(size=rows)
        ends = {"terminated": terminated, "truncated": truncated}
        agent.observe(state, outcome({"x": drift}, reward=reward, **ends), TRAIN)
        starts = terminated | truncated
        drift[starts] = rng.normal(size=(int(starts.sum()), 3))
    torch.manual_seed(seed)
    for network in agent.learner.networks.values():
        network.online.add_(0.5 * torch.randn(network.size))
        if network.has_target:
            network.target.copy_(network.online + 0.3 * torch.randn(network.size))
    return agent


def weighted_batch(agent, size: int = 48):
    """A batch of sequences, some of them padded and burnt in, whose transitions weigh unequally."""
    batch = agent.memory.sample(size)
    assert not batch.valid.all()
    assert 0 < batch.observation[BURN_IN_MASK].sum() < len(batch.observation[BURN_IN_MASK])
    assert batch.observation[HIDDEN_STATE].abs().sum() > 0
    return batch._replace(weight=batch.weight * (0.5 + torch.rand(len(batch.weight))))


def assert_same_loss(loss, network, given, scalars, expected, flat):
    """Compare a loss and its gradient with those of the plain program; returns the metrics.

    The network computes in float32, the plain program in doubles.
    """
    own = network.online.clone().requires_grad_()
    found, metrics = loss(own, given, scalars)
    (gradient,) = torch.autograd.grad(found, own)
    (wanted,) = torch.autograd.grad(expected, flat)
    assert wanted.abs().max() > 1e-3
    torch.testing.assert_close(found.double(), expected.detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient.double(), wanted, rtol=1e-4, atol=2e-6)
    return metrics


def halves(error: Tensor, huber: float | None) -> Tensor:
    """Half the square of an error, or what Huber's loss makes of it."""
    if huber is None or abs(error.item()) <= huber:
        return error**2 / 2
    return huber * (error.abs() - huber / 2)
