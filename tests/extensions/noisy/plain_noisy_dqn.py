"""A DQN with noise in its network once more: whole noisy matrices, one sample after the other.

Fortunato et al. 2018, arXiv:1706.10295, equations 9 to 11 and section 3.1, in double precision.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import linear

from tests.agents.plain_dqn import PlainDQN, PlainQNetwork


def scaled(number: float) -> float:
    """f of equation 10."""
    return math.copysign(math.sqrt(abs(number)), number)


class PlainNoisyNetwork(PlainQNetwork):
    """The network with matrices W + S * (f(e_out) f(e_in)^T) and biases b + s * f(e_out)."""

    noise: list[float]
    """Normal numbers: of inputs and outputs of each layer of the actions' stream, then of the
    state's."""

    def layers(self, prefix: str) -> list[str]:
        names = [name for name in self.named if name.startswith(prefix)]
        return [name.removesuffix(".weight") for name in names if name.endswith(".weight")]

    def __call__(self, observation: Tensor) -> Tensor:
        self.left = list(self.noise)
        numbers = super().__call__(observation)
        assert not self.left
        return numbers

    def through(self, prefix: str, values: Tensor, *, last_is_linear: bool) -> Tensor:
        names = self.layers(prefix)
        for name in names:
            weight, bias = self.named[f"{name}.weight"], self.named[f"{name}.bias"]
            if prefix != "torso":
                outputs, inputs = weight.shape
                before = torch.tensor([scaled(self.left.pop(0)) for _ in range(inputs)])
                after = torch.tensor([scaled(self.left.pop(0)) for _ in range(outputs)])
                noise = after.double()[:, None] * before.double()[None, :]
                weight = weight + self.named[f"{name}.weight_noise"] * noise
                bias = bias + self.named[f"{name}.bias_noise"] * after.double()
            values = linear(values, weight, bias)
            if name != names[-1] or not last_is_linear:
                values = values.clamp(min=0)
        return values


class PlainNoisyDQN(PlainDQN):
    """Learns with the noise of the agent that it repeats.

    Args:
        params: Of the agent.
        agent: A new one.
    """

    def __init__(self, params, agent) -> None:
        super().__init__(params, agent)
        self.size = agent.learner.network.module.noise_size
        self.rng = torch.Generator()
        self.rng.set_state(agent.noise_rng.get_state())
        count = self.online.count
        named = agent.learner.network.named
        self.online = PlainNoisyNetwork(named(agent.learner.network.online), count)
        self.target = PlainNoisyNetwork(named(agent.learner.network.target), count)
        self.adam = torch.optim.Adam(
            self.online.named.values(),
            params.optimizer.learning_rate,
            params.optimizer.betas,
            params.optimizer.epsilon,
        )

    def step(self, batch):
        self.draws = torch.randn(3, self.size, generator=self.rng).double().tolist()
        return super().step(batch)

    def loss(self, sample):
        own, judging, choosing = self.draws
        learned, online = self.online, self.online.named
        self.target.noise = judging
        shown = iter((own, choosing))

        def with_next_noise(observation):
            learned.noise = next(shown)
            return learned(observation)

        with_next_noise.named = online
        self.online = with_next_noise
        try:
            return super().loss(sample)
        finally:
            self.online = learned
