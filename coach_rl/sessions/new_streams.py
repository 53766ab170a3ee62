"""Other random numbers from a saved state on: after a roll-back, and in a fork with a new seed."""

from collections.abc import Mapping

import numpy as np
import torch

from coach_rl.core.row_noise import BLOCK
from coach_rl.core.seeding import generator, generator_state, integer_seed
from coach_rl.core.state import State

_TORCH_STREAM = "noise"
"""Key of the state of a torch generator."""
_ROW_NOISE = {"generators", "blocks", "used"}
"""Keys of the state of a `RowNoise`."""


def with_new_streams(state: State, *, seed: int, names: tuple[str | int, ...]) -> State:
    """A saved state whose agents, on all levels, draw other random numbers from here on.

    Simulators keep their streams: other actions lead elsewhere anyway.

    Args:
        state: What a graph manager's `state_dict` returned.
        seed: The run's.
        names: The reason for new streams; equal ones give equal streams.
    """

    def changed(part: object, path: tuple[str, ...]) -> object:
        match part:
            case Mapping() if "bit_generator" in part:
                return generator_state(generator(seed, *names, *path))
            case Mapping():
                new = {
                    key: below if _is_simulator(key, below) else changed(below, (*path, key))
                    for key, below in part.items()
                }
                if new.keys() == _ROW_NOISE:  # numbers drawn ahead are of the old streams
                    new["used"] = np.full_like(part["used"], BLOCK)
                return new
            case list():
                return [changed(below, (*path, str(n))) for n, below in enumerate(part)]
            case torch.Tensor() if path[-1] == _TORCH_STREAM and part.dtype == torch.uint8:
                return torch.Generator().manual_seed(integer_seed(seed, *names, *path)).get_state()
        return part

    return {key: changed(part, (key,)) for key, part in state.items()}


def _is_simulator(key: str, part: object) -> bool:
    """True for the simulators below the lowest level; what other levels act on is a level."""
    return key == "environment" and not (isinstance(part, Mapping) and "agent_rows" in part)
