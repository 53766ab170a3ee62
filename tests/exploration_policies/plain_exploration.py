"""Exploration policies as plain programs: one row and one element at a time, in double precision.

Each decision takes numbers from the row's own stream. What is made of them is written as the papers
have it: a number below epsilon explores, and inverse distributions turn numbers into draws.
"""

import math

import numpy as np
from gymnasium import spaces
from scipy.stats import truncnorm

import coach_rl as rl
from coach_rl.core.clock import Clock
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.seeding import integer_seed

CLOCK = Clock(environment_steps=500, planned=rl.EnvironmentSteps(1000))


class PlainPolicy:
    """The network's choice; policies that explore add `decide`.

    Args:
        params: The policy's parameters.
        space: Where it acts.
        seed: Of the row state.
        row: The row whose decisions it makes.
    """

    STREAM, KIND, MORE = "", "uniform", 0
    """Name and kind of its stream, and the numbers of a decision beside one for each element."""

    def __init__(self, params, space, seed, row):
        self.params, self.space, self.row = params, space, np.array([row])
        self.is_box = isinstance(space, spaces.Box)
        self.size = space.shape[0] if self.is_box else 1
        self.stream = RowNoise(
            num_rows=row + 1,
            size=self.MORE + self.size,
            kind=self.KIND,
            seed=seed,
            name=self.STREAM,
        )
        inner = getattr(params, "noise", None)
        if inner is not None:
            self.inner = plain(inner, space, integer_seed(seed, self.STREAM), row)

    def numbers(self):
        return self.stream.draw(self.row)[0].tolist()

    @property
    def elements(self):
        """Bounds and half the width of each element."""
        pairs = zip(self.space.low.tolist(), self.space.high.tolist(), strict=True)
        return [(low, high, (high - low) / 2) for low, high in pairs]

    def clipped(self, action):
        return [
            min(max(each, low), high)
            for each, (low, high, _) in zip(action, self.elements, strict=True)
        ]

    def even(self, numbers):
        """An action of which all are equally likely."""
        if self.is_box:
            pairs = zip(numbers, self.elements, strict=True)
            return [low + number * (high - low) for number, (low, high, _) in pairs]
        return int(self.space.start) + int(numbers[0] * int(self.space.n))

    def greedy(self, values):
        if self.is_box:
            return self.clipped(values)
        return int(self.space.start) + values.index(max(values))

    def decide(self, values, starts):
        return self.greedy(values)


class PlainEpsilonGreedy(PlainPolicy):
    """Watkins 1989."""

    STREAM, MORE = "epsilon_greedy", 1

    def decide(self, values, starts):
        whether, *which = self.numbers()
        return self.even(which) if whether < self.params.epsilon(CLOCK) else self.greedy(values)


class PlainSoftmax(PlainPolicy):
    """Probabilities in proportion to exp(value / temperature); of logits, the temperature is 1."""

    STREAM = "softmax"

    def decide(self, values, starts):
        schedule = getattr(self.params, "temperature", None)
        temperature = 1.0 if schedule is None else schedule(CLOCK)
        weights = [math.exp((value - max(values)) / temperature) for value in values]
        (number,), passed = self.numbers(), 0.0
        for action, weight in enumerate(weights):
            passed += weight / sum(weights)
            if number < passed:
                return int(self.space.start) + action
        raise AssertionError("probabilities sum to 1")


class PlainGaussian(PlainPolicy):
    """Fujimoto et al. 2018, section 6.1."""

    STREAM, KIND = "gaussian", "normal"

    def decide(self, values, starts):
        scale, is_raw = self.params.scale(CLOCK), self.params.unit == "raw"
        noise = [
            number * scale * (1 if is_raw else half)
            for number, (_, _, half) in zip(self.numbers(), self.elements, strict=True)
        ]
        return self.clipped([value + each for value, each in zip(values, noise, strict=True)])


class PlainTruncatedNormal(PlainPolicy):
    """Inverse of the distribution at the middle of a number's cell of 2^-24."""

    STREAM = "truncated_normal"

    def decide(self, values, starts):
        found, scale = [], self.params.scale(CLOCK)
        means = self.clipped(values)
        for mean, number, (low, high, half) in zip(
            means, self.numbers(), self.elements, strict=True
        ):
            std = scale * half
            ends = [(bound - mean) / (std or 1) for bound in (low, high)]
            drawn = truncnorm.ppf(number + 2**-25, *ends, mean, std) if std else mean
            found.append(float(drawn))
        return found


class PlainOrnsteinUhlenbeck(PlainPolicy):
    """Lillicrap et al. 2016, section 7."""

    STREAM, KIND = "ornstein_uhlenbeck", "normal"

    def __init__(self, *given):
        super().__init__(*given)
        self.level = [self.params.mean] * self.size

    def decide(self, values, starts):
        params = self.params
        if starts:
            self.level = [params.mean] * self.size
        diffusion = params.sigma(CLOCK) * math.sqrt(params.dt)
        self.level = [
            x + params.theta * (params.mean - x) * params.dt + diffusion * number
            for x, number in zip(self.level, self.numbers(), strict=True)
        ]
        moved = zip(values, self.level, self.elements, strict=True)
        return self.clipped([value + x * half for value, x, (_, _, half) in moved])


class PlainEpsilonGreedyNoise(PlainPolicy):
    """Plappert et al. 2018, appendix A."""

    STREAM, MORE = "epsilon_greedy_noise", 1

    def decide(self, values, starts):
        whether, *which = self.numbers()
        otherwise = self.inner.decide(values, starts)
        return self.even(which) if whether < self.params.epsilon(CLOCK) else otherwise


class PlainEpsilonZGreedy(PlainPolicy):
    """Dabney et al. 2021, algorithm 1."""

    STREAM, MORE = "epsilon_z_greedy", 2

    def __init__(self, *given):
        super().__init__(*given)
        weights = [n**-self.params.mu for n in range(1, self.params.longest + 1)]
        self.ends = np.cumsum(weights) / sum(weights)
        self.left, self.repeated = 0, None

    def decide(self, values, starts):
        whether, how_long, *which = self.numbers()
        otherwise = self.inner.decide(values, starts)
        if starts:
            self.left = 0
        if self.left == 0 and whether < self.params.epsilon(CLOCK):
            self.left = 1 + sum(bool(how_long >= end) for end in self.ends)
            self.repeated = self.even(which)
        if self.left == 0:
            return otherwise
        self.left -= 1
        return self.repeated


class PlainChoices:
    """A policy of its own for each choice of a MultiDiscrete."""

    def __init__(self, params, space, seed, row):
        self.sizes = space.nvec.tolist()
        self.policies = [
            plain(params, spaces.Discrete(size, start=start), own, row)
            for size, start, own in zip(
                self.sizes,
                space.start.tolist(),
                [seed, *(integer_seed(seed, str(number)) for number in range(1, len(self.sizes)))],
                strict=True,
            )
        ]

    def decide(self, values, starts):
        found, rest = [], values
        for size, policy in zip(self.sizes, self.policies, strict=True):
            found.append(policy.decide(rest[:size], starts))
            rest = rest[size:]
        return found


PLAIN = {
    rl.Greedy: PlainPolicy,
    rl.EpsilonGreedy: PlainEpsilonGreedy,
    rl.Boltzmann: PlainSoftmax,
    rl.Categorical: PlainSoftmax,
    rl.GaussianNoise: PlainGaussian,
    rl.TruncatedNormalNoise: PlainTruncatedNormal,
    rl.OrnsteinUhlenbeckNoise: PlainOrnsteinUhlenbeck,
    rl.EpsilonGreedyNoise: PlainEpsilonGreedyNoise,
    rl.EpsilonZGreedy: PlainEpsilonZGreedy,
}


def plain(params, space, seed, row):
    """The plain program of a policy, for one row."""
    kind = PlainChoices if isinstance(space, spaces.MultiDiscrete) else PLAIN[type(params)]
    return kind(params, space, seed, row)
