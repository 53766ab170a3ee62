"""A world with random action masks, in which a forbidden action is an error."""

from collections import Counter

import numpy as np
from gymnasium import spaces

from coach_rl.core.discrete_actions import choice_sizes, first_action, forbidden
from coach_rl.core.options import OPTION_KEY
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.world import WorldEnvironment, WorldStep

TAKEN = Counter()
"""Number of actions taken, by choice and action."""
ACTIONS = {
    "one": spaces.Discrete(5, start=2),
    "several": spaces.MultiDiscrete([2, 4], start=[1, 0]),
    "mixed": spaces.Dict(
        {
            "far": spaces.Box(0, 9, (2, 1)),
            "kind": spaces.Discrete(5, start=2),
            "lamps": spaces.MultiBinary((1, 2)),
        }
    ),
}


@parameter_class
class MaskedWorldParameters:
    """Masks of actions change with every step, those of options with every episode."""

    level: str = "masked"
    kind: str = "one"
    """Of `ACTIONS`."""
    options: int = 3
    hidden: tuple[str, ...] = ()
    """Keys that are not shown."""
    max_episode_steps: int | None = 7

    def build(self, *, num_envs):
        world = MaskedWorld(self)
        return WorldEnvironment(world, num_envs=num_envs, max_episode_steps=self.max_episode_steps)


class MaskedWorld:
    """Its state is what it shows; the reward is for the first allowed action of each choice."""

    def __init__(self, params):
        self.action, self.hidden = ACTIONS[params.kind], params.hidden
        self.sizes, self.options = choice_sizes(self.action), params.options
        self.start_numbers = self.step_numbers = 3 + 2 * (sum(self.sizes) + self.options)
        shown = {
            "observation": spaces.Box(-1, 1, (2,), np.float32),
            "action_mask": spaces.MultiBinary(sum(self.sizes)),
            "option_mask": spaces.MultiBinary(self.options),
        }
        self.spaces = EnvironmentSpaces(
            observation=spaces.Dict({k: v for k, v in shown.items() if k not in self.hidden}),
            action=self.action,
        )

    def chosen(self, action):
        """The choices of actions side by side, [R, K]."""
        parts = list(action.values()) if isinstance(action, dict) else [action]
        return np.concatenate(
            [np.reshape(part, (len(part), -1)) for part in parts if part.dtype.kind == "i"], axis=1
        )

    def start(self, uniform):
        whole = self.masks(uniform[:, 3:], (*self.sizes, self.options))
        count = sum(self.sizes)
        return {
            "observation": (2 * uniform[:, :2] - 1).astype(np.float32),
            "action_mask": whole[:, :count],
            "option_mask": whole[:, count:],
        }

    def masks(self, uniform, sizes):
        drawn, columns, begin = len(uniform), [], 0
        for size in sizes:
            mask = uniform[:, begin : begin + size] < 0.3
            sure = (uniform[:, begin + size] * size).astype(int)
            mask[np.arange(drawn), np.minimum(sure, size - 1)] = True
            columns.append(mask)
            begin += 2 * size
        return np.concatenate(columns, axis=1).astype(np.int8)

    def observe(self, state):
        return {key: values.copy() for key, values in state.items() if key not in self.hidden}

    def step(self, state, action, uniform):
        mask = state["action_mask"]
        assert not forbidden(self.action, action, mask).any(), "a forbidden action"
        chosen = self.chosen(action)
        for number, column in enumerate(chosen.T):
            TAKEN.update((number, int(each)) for each in column)
        first = np.stack(
            [part.argmax(axis=1) for part in np.split(mask, np.cumsum(self.sizes)[:-1], axis=1)], 1
        )
        reward = (chosen - self.chosen(first_actions(self.action)) == first).mean(axis=1)
        after = self.start(uniform)
        after["option_mask"] = state["option_mask"]
        terminated = uniform[:, 2] < 0.1
        after["action_mask"][terminated] = 0  # nothing is allowed any more
        return WorldStep(after, reward, terminated, {})


def first_actions(space):
    """The first action of each choice, [1, ...]."""
    if isinstance(space, spaces.Dict):
        return {key: first_actions(part) for key, part in space.items()}
    return first_action(space)[None].astype(space.dtype) * np.ones((1, *space.shape), space.dtype)


def walk(observation, space):
    """Each option takes an allowed action of its own; it is one that the option mask allows."""
    chosen = observation[OPTION_KEY].argmax(axis=1)
    assert observation["option_mask"][np.arange(len(chosen)), chosen].all(), "a forbidden option"
    TAKEN.update(("option", int(each)) for each in chosen)
    mask = observation["action_mask"] > 0
    number = chosen % mask.sum(axis=1)
    return space.start + (mask.cumsum(axis=1) > number[:, None]).argmax(axis=1)
