"""Parts of flat actions as functions of tensors, as an exported policy sends them."""

from collections.abc import Callable

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.core.discrete_actions import first_action
from coach_rl.core.random_actions import uniform_size
from coach_rl.extensions.exporting.decisions import Chosen, dtype_of, in_space, output_functions
from coach_rl.extensions.mixed_actions.flattened_output import FlatParts, FlattenedOutput


@output_functions.register
def _(output: FlattenedOutput, inner: Callable[[Chosen], Chosen]) -> Callable[[Chosen], Chosen]:
    space = output.space
    flat = output.flat

    def parted(action: Chosen) -> Chosen:
        assert isinstance(action, Tensor)
        parts = split(action, flat)
        return inner(in_space(space, parts if isinstance(space, spaces.Dict) else parts["action"]))

    return parted


def split(action: Tensor, flat: FlatParts) -> dict[str, Tensor]:
    """`FlatParts.split` of tensors."""
    found = {}
    begin = 0
    for key, space in flat.parts.items():
        end = begin + uniform_size(space)
        values = action[:, begin:end].reshape(-1, *(space.shape or ()))
        if flat.counts_from_0:
            values = values + torch.from_numpy(np.asarray(first_action(space)))
        found[key] = values.to(dtype_of(space))
        begin = end
    return found
