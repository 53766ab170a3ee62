"""RND and NovelD in plain numpy, in double precision, apart from the random numbers that are drawn.

Written from Burda et al. 2018 and Zhang et al. 2021: networks and their gradients by hand, Adam by
its paper, statistics by keeping everything that was observed.
"""

import numpy as np


def copied(network):
    """The weights and biases of a network's layers, in their order, in double precision."""
    named = list(network.named(network.online).items())
    arrays = [value.detach().cpu().numpy().astype(np.float64) for _, value in named]
    return [(weight.T, bias) for weight, bias in zip(arrays[::2], arrays[1::2], strict=True)]


def outputs(layers, values):
    """What each layer was given, and the latents; relu after every layer but the last."""
    given = []
    for number, (weight, bias) in enumerate(layers):
        given.append(values)
        values = values @ weight + bias
        if number + 1 < len(layers):
            values = np.maximum(values, 0.0)
    return given, values


class PlainDistillation:
    """The two networks, their normalisation, and the predictor's learning."""

    def __init__(self, params, bonus):
        own = bonus.distillation
        self.params = params
        self.keys = own.keys
        self.target = copied(own.target)
        self.predictor = copied(own.predictor)
        self.random = np.random.Generator(type(own.shuffle.bit_generator)())
        self.random.bit_generator.state = own.shuffle.bit_generator.state
        self.seen = []
        self.waiting = []
        shapes = [part.shape for layer in self.predictor for part in layer]
        self.first, self.second = ([np.zeros(shape) for shape in shapes] for _ in range(2))
        self.steps = 0

    def row(self, observation):
        """Everything of one observation, one after the other."""
        return np.concatenate([np.ravel(observation[key]).astype(np.float64) for key in self.keys])

    def normal(self, rows):
        seen = np.array(self.seen)
        normal = (np.array(rows) - seen.mean(axis=0)) / np.sqrt(seen.var(axis=0) + 1e-8)
        return np.clip(normal, -self.params.clip, self.params.clip)

    def squares(self, rows):
        """The squared errors, summed over the latents."""
        rows = self.normal(rows)
        error = outputs(self.predictor, rows)[1] - outputs(self.target, rows)[1]
        return (error**2).sum(axis=1)

    def observe(self, rows):
        was_initialised = len(self.seen) >= self.params.warmup
        self.seen += list(rows)
        if not was_initialised:
            return
        self.waiting += list(rows)
        while len(self.waiting) >= self.params.batch:
            batch, self.waiting = np.split(np.array(self.waiting), [self.params.batch])
            self.waiting = list(self.waiting)
            batch = self.normal(batch)
            for _ in range(self.params.updates):
                self.step(batch, self.random.random(len(batch)) < self.params.proportion)

    def step(self, batch, chosen):
        batch = batch[chosen]
        given, latents = outputs(self.predictor, batch)
        error = latents - outputs(self.target, batch)[1]
        slope = 2 * error / error.shape[1] / max(1, len(batch))
        gradients = []
        for (weight, _), values in zip(reversed(self.predictor), reversed(given), strict=True):
            gradients = [values.T @ slope, slope.sum(axis=0), *gradients]
            slope = (slope @ weight.T) * (values > 0)
        self.steps += 1
        settings = self.params.optimizer
        moved = []
        for number, gradient in enumerate(gradients):
            self.first[number] = 0.9 * self.first[number] + 0.1 * gradient
            self.second[number] = 0.999 * self.second[number] + 0.001 * gradient**2
            first = self.first[number] / (1 - 0.9**self.steps)
            second = self.second[number] / (1 - 0.999**self.steps)
            moved.append(settings.learning_rate * first / (np.sqrt(second) + settings.epsilon))
        parts = [part for layer in self.predictor for part in layer]
        parts = [part - move for part, move in zip(parts, moved, strict=True)]
        self.predictor = list(zip(parts[::2], parts[1::2], strict=True))


class PlainBonus:
    """The bonus of RND, or of NovelD with dictionaries of what an episode has visited."""

    def __init__(self, params, bonus, num_envs, visited=None):
        self.params = params
        self.distillation = PlainDistillation(params, bonus)
        self.sums = [0.0] * num_envs
        self.noted = []
        self.visited = visited
        self.episodes = [None] * num_envs

    def __call__(self, before, rows, after, begins):
        """The bonus of decisions; everything by row."""
        plain = self.distillation
        old, new = ([plain.row(each) for each in side] for side in (before, after))
        counts = [1.0] * len(rows)
        if self.visited is not None:
            for place, row in enumerate(rows):
                if begins[place]:
                    self.episodes[row] = {self.visited(before[place])}
                counts[place] = float(self.visited(after[place]) not in self.episodes[row])
                self.episodes[row].add(self.visited(after[place]))
        bonus = [0.0] * len(rows)
        if len(plain.seen) >= self.params.warmup:
            squares = plain.squares(new)
            if self.visited is None:
                novelty = squares / self.params.latents
            else:
                difference = np.sqrt(squares) - self.params.alpha * np.sqrt(plain.squares(old))
                novelty = np.maximum(difference, 0) * counts
            for row, value in zip(rows, novelty, strict=True):
                self.sums[row] = self.params.discount * self.sums[row] + value
                self.noted.append(self.sums[row])
            if len(self.noted) >= self.params.warmup:
                unit = np.sqrt(np.var(self.noted) + 1e-8)
                bonus = [self.params.weight * value / unit for value in novelty]
        plain.observe([each for each, is_first in zip(old, begins, strict=True) if is_first] + new)
        return bonus
