"""One row: a single Gymnasium environment, stepped, and saved by what it went through."""

from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from coach_rl.core.errors import CheckpointError
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.core.state import State
from coach_rl.environments.gymnasium.infos import Info, flat_info
from coach_rl.environments.gymnasium.layout import Layout, Leaves
from coach_rl.environments.gymnasium.recipe import Env


class Stepped(NamedTuple):
    """What one step of one row led to."""

    leaves: Leaves
    reward: float
    terminated: bool
    truncated: bool
    info: Info


class Row:
    """A Gymnasium environment and the history of its present episode.

    An arbitrary environment cannot be written down, but its episode can be lived again: from
    the seed or the state of its random generator at the start, with the actions since.
    Restoring costs a reset and the steps of one unfinished episode; remembering costs one
    action per step, forgotten when the episode ends. What an environment or a wrapper carries
    over from one episode to the next, other than its `np_random`, is not restored; `restore`
    checks that it was led to the same place, and says so if not.

    Args:
        env: The environment; owned from now on.
        layout: How its values lie in flat arrays.
    """

    def __init__(self, env: Env, layout: Layout) -> None:
        self.env = env
        self._layout = layout
        self._seed: int | None = None
        """The last seed given; None when there never was one."""
        self._start: State | None = None
        """The generator before the episode's unseeded reset; None when it began with the seed."""
        self._actions: list[tuple[Any, ...]] = []
        self._rewards = 0.0
        self._last: Leaves = []

    def reset(self, seed: int | None = None) -> tuple[Leaves, Info]:
        """Begin an episode; with a seed, begin the random stream anew as well."""
        if seed is not None:
            self._seed, self._start = seed, None
        else:
            self._start = generator_of(self.env)
        observation, info = self.env.reset(seed=seed)
        self._actions, self._rewards = [], 0.0
        self._last = self._layout.leaves(observation)
        self._layout.check_kinds(self._last)
        return self._last, flat_info(info) if info else {}

    def step(self, leaves: tuple[Any, ...]) -> Stepped:
        """One step with the action that has these flat parts; the caller resets after an end."""
        self._actions.append(leaves)
        observation, reward, terminated, truncated, info = self.env.step(
            self._layout.nested_action(leaves)
        )
        reward = float(reward)
        self._rewards += reward
        self._last = self._layout.leaves(observation)
        return Stepped(
            self._last, reward, bool(terminated), bool(truncated), flat_info(info) if info else {}
        )

    def snapshot(self) -> State:
        """What `restore` needs, sharing no memory with the row."""
        parts = [np.stack(part) for part in zip(*self._actions, strict=True)]
        return {
            "seed": self._seed,
            "start": deepcopy(self._start),
            "steps": len(self._actions),
            "actions": {str(index): part for index, part in enumerate(parts)},
            "rewards": self._rewards,
            "observation": {str(index): np.array(leaf) for index, leaf in enumerate(self._last)},
            "generator": generator_of(self.env),
        }

    def restore(self, state: State) -> None:
        """Live the saved episode again.

        Raises:
            CheckpointError: The environment did not arrive where it was saved.
        """
        seed, start = state["seed"], state["start"]
        if seed is not None:
            self.reset(seed)
        if start is not None:
            load_generator_state(self.env.unwrapped.np_random, start)
            self.reset()
        elif seed is None:
            self.reset()
        parts = [state["actions"][str(index)] for index in range(len(state["actions"]))]
        for step in range(state["steps"]):
            self.step(tuple(part[step] for part in parts))
        self._check_arrival(state)

    def _check_arrival(self, state: State) -> None:
        saved = [state["observation"][str(index)] for index in range(len(state["observation"]))]
        pairs = zip(saved, self._last, strict=True)
        same_observation = all(_equal(there, np.asarray(here)) for there, here in pairs)
        same_rewards = _equal(np.float64(self._rewards), np.float64(state["rewards"]))
        same_generator = _same(state["generator"], generator_of(self.env))
        if not (same_observation and same_rewards and same_generator):
            raise CheckpointError(
                f"the environment is not reproducible: {state['steps']} replayed steps led to "
                "another state than the saved one; it (or a wrapper) uses randomness besides "
                "self.np_random, or carries something over from earlier episodes"
            )


def generator_of(env: Env) -> State | None:
    """The state of the environment's random generator; None when it has none of numpy's kind."""
    rng = getattr(env.unwrapped, "np_random", None)
    return generator_state(rng) if isinstance(rng, np.random.Generator) else None


def _same(left: Any, right: Any) -> bool:
    """Whether two generator states agree; some kinds hold arrays."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return bool(np.array_equal(left, right))


def _equal(left: Any, right: Any) -> bool:
    floating = np.issubdtype(left.dtype, np.inexact)
    return np.array_equal(left, right, equal_nan=floating)
