"""Going back to a checkpoint with other random numbers than the first time."""

from collections.abc import Mapping

import torch

from coach_rl.core.seeding import generator, generator_state, integer_seed
from coach_rl.core.state import State

_ENVIRONMENT = "environment"
"""Key of a simulator's state, which keeps its streams: other actions lead elsewhere anyway."""
_TORCH_STREAM = "noise"
"""Key of the state of a torch generator."""


def with_new_randomness(state: State, *, seed: int, attempt: int) -> State:
    """A saved state whose agents draw other random numbers from here on.

    Numbers drawn ahead are used up first.

    Args:
        state: What a graph manager's `state_dict` returned.
        seed: The run's.
        attempt: How many times the run has been rolled back; each has streams of its own.
    """

    def changed(part: object, path: tuple[str, ...]) -> object:
        names: tuple[str | int, ...] = ("roll back", attempt, *path)
        match part:
            case Mapping() if "bit_generator" in part:
                return generator_state(generator(seed, *names))
            case Mapping():
                return {
                    key: below if key == _ENVIRONMENT else changed(below, (*path, key))
                    for key, below in part.items()
                }
            case list():
                return [changed(below, (*path, str(n))) for n, below in enumerate(part)]
            case torch.Tensor() if path[-1] == _TORCH_STREAM and part.dtype == torch.uint8:
                return torch.Generator().manual_seed(integer_seed(seed, *names)).get_state()
        return part

    return {key: changed(part, (key,)) for key, part in state.items()}
