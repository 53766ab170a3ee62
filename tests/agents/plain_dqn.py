"""DQN and its descendants once more: one sample after the other, in double precision.

Mnih et al. 2015 ("DQN"), van Hasselt et al. 2016 (arXiv:1509.06461, double), Wang et al. 2016
(arXiv:1511.06581, dueling), Dabney et al. 2018 (arXiv:1710.10044, quantiles) and Bellemare et al.
2017 (arXiv:1707.06887, C51). Adam is torch's own.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from coach_rl.architectures.gradient_step import mapped
from coach_rl.architectures.q_network import MeanHead
from coach_rl.core.records import ALLOWED
from coach_rl.extensions.distributional.heads import CategoricalHead
from coach_rl.memories import TransitionBatch


class PlainQNetwork:
    """Numbers [n, K] of each action for one observation [O], with relu layers.

    Args:
        named: The agent's parameters by name.
        count: n.
    """

    def __init__(self, named: dict[str, Tensor], count: int) -> None:
        self.named = {name: nn.Parameter(value.double()) for name, value in named.items()}
        self.count = count

    def layers(self, prefix: str) -> list[str]:
        """The layers under a prefix, first to last."""
        weights = [name for name in self.named if name.startswith(prefix) and "weight" in name]
        return [name.removesuffix(".weight") for name in weights]

    def through(self, prefix: str, values: Tensor, *, last_is_linear: bool) -> Tensor:
        names = self.layers(prefix)
        for name in names:
            values = linear(values, self.named[f"{name}.weight"], self.named[f"{name}.bias"])
            if name != names[-1] or not last_is_linear:
                values = values.clamp(min=0)
        return values

    def __call__(self, observation: Tensor) -> Tensor:
        """Dueling streams are joined by equation 9 of Wang et al.: V + A - mean A."""
        features = self.through("torso", observation, last_is_linear=False)
        numbers = self.through("actions", features, last_is_linear=True).view(self.count, -1)
        if not self.layers("state"):
            return numbers
        value = self.through("state", features, last_is_linear=True)
        return torch.stack([value + each - sum(numbers) / self.count for each in numbers])


class PlainDQN:
    """Starts from the network of a new DQN agent and learns from the batches it is given."""

    def __init__(self, params, agent) -> None:
        self.settings, self.head = params.algorithm, params.network.head
        named, space = agent.learner.network.named(agent.learner.network.online), agent.action_space
        self.first_action, count = int(space.start), int(space.n)
        self.online, self.target = PlainQNetwork(named, count), PlainQNetwork(named, count)
        optimizer = params.optimizer
        self.max_gradient_norm = optimizer.max_gradient_norm or math.inf
        self.adam = torch.optim.Adam(
            self.online.named.values(),
            optimizer.learning_rate,
            optimizer.betas,
            optimizer.epsilon,
        )
        self.taken = 0

    def step(self, batch: TransitionBatch) -> list[float]:
        """A gradient step, and what it says of each sample's error."""
        losses, errors = [], []
        for index in range(len(batch.reward)):
            sample = mapped(lambda column, index=index: column[index], batch)
            loss, error = self.loss(sample)
            losses.append(loss * sample.weight.double())
            errors.append(float(error))
        self.adam.zero_grad()
        (sum(losses) / len(losses)).backward()
        nn.utils.clip_grad_norm_(self.online.named.values(), self.max_gradient_norm)
        self.adam.step()
        self.taken += 1
        sync = self.settings.target_sync
        if self.taken % sync.every == 0:
            for name, value in self.target.named.items():
                value.data = (1 - sync.rate) * value.data + sync.rate * self.online.named[name].data
        return errors

    def loss(self, sample: TransitionBatch) -> tuple[Tensor, Tensor]:
        """The loss of one sample without its weight, and how wrong the network was."""
        reward, discount = float(sample.reward), float(sample.discount)
        taken = int(sample.action) - self.first_action
        predicted = self.online(sample.observation["x"].double())[taken]  # [K]
        with torch.no_grad():
            after = sample.next_observation["x"].double()
            judged = self.target(after)
            chooser = self.online(after) if self.settings.double else judged
            worth = [float(self.mean(numbers)) for numbers in chooser]
            if ALLOWED in sample.next_observation:
                mask = sample.next_observation[ALLOWED].tolist()
                worth = [
                    each if allowed else -math.inf
                    for each, allowed in zip(worth, mask, strict=True)
                ]
            best = judged[worth.index(max(worth))]  # [K]
        if isinstance(self.head, CategoricalHead):
            return self.categorical(predicted, best, reward, discount)
        targets = [self.clipped(reward + discount * float(number)) for number in best]
        if isinstance(self.head, MeanHead):
            return self.regression(predicted[0] - targets[0]), (predicted[0] - targets[0]).detach()
        loss = self.quantiles(predicted, targets)
        return loss, loss.detach()

    def mean(self, numbers: Tensor) -> Tensor:
        """The expected return."""
        if isinstance(self.head, CategoricalHead):
            return sum(p * z for p, z in zip(numbers.softmax(0), self.atoms(), strict=True))
        return sum(numbers) / len(numbers)

    def clipped(self, value: float) -> float:
        if self.settings.clip_targets is None:
            return value
        low, high = self.settings.clip_targets
        return min(max(value, low), high)

    def regression(self, error: Tensor) -> Tensor:
        """Half the square, or Huber's loss: linear beyond a bound."""
        bound = self.settings.huber
        if bound is None or abs(error) <= bound:
            return 0.5 * error**2
        return bound * (abs(error) - 0.5 * bound)

    def quantiles(self, predicted: Tensor, targets: list[float]) -> Tensor:
        """Algorithm 1 of Dabney et al.: sum over i of the mean over j of rho_tau_i(T_j - q_i).

        rho is that of equation 10 divided by the Huber bound, of equation 8 where there is none.
        """
        bound = self.settings.huber
        count = len(predicted)
        total = torch.zeros((), dtype=torch.float64)
        for number, quantile in enumerate(predicted):
            midpoint = (2 * (number + 1) - 1) / (2 * count)
            for target in targets:
                error = target - quantile
                size = abs(error) if bound is None else self.regression(error) / bound
                total = total + abs(midpoint - float(error < 0)) * size / len(targets)
        return total

    def categorical(
        self, predicted: Tensor, best: Tensor, reward: float, discount: float
    ) -> tuple[Tensor, Tensor]:
        """Algorithm 1 of Bellemare et al.: m_i of the projected target, then cross-entropy."""
        head, atoms = self.head, self.atoms()
        gap = (head.high - head.low) / (head.atoms - 1)
        projected = [0.0] * head.atoms
        for probability, atom in zip(best.softmax(0).tolist(), atoms, strict=True):
            position = self.clipped(reward + discount * atom)
            place = (min(max(position, head.low), head.high) - head.low) / gap
            below, above = math.floor(place), math.ceil(place)
            if below == above:  # algorithm 1 would lose this mass
                projected[below] += probability
            else:
                projected[below] += probability * (above - place)
                projected[above] += probability * (place - below)
        log_predicted = predicted.log_softmax(0)
        loss = -sum(mass * each for mass, each in zip(projected, log_predicted, strict=True))
        entropy = -sum(mass * math.log(mass) for mass in projected if mass > 0)
        return loss, loss.detach() - entropy

    def atoms(self) -> list[float]:
        head = self.head
        gap = (head.high - head.low) / (head.atoms - 1)
        return [head.low + number * gap for number in range(head.atoms)]
