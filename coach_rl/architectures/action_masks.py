"""Action masks at a network's outputs: what stands for an action that is not allowed."""

import torch
from torch import Tensor

from coach_rl.architectures.output_rules import Forward
from coach_rl.core.discrete_actions import FORBIDDEN
from coach_rl.core.records import ALLOWED, FloatArray, Observation


def masked(outputs: Tensor, mask: Tensor) -> Tensor:
    """Outputs [B, P] whose first M are `FORBIDDEN` where a mask [B, M] bool is false.

    As a logit it has probability 0 and no gradient, and adds exactly 0 to an entropy or a
    divergence; as an action value it is never the largest.
    """
    count = mask.shape[1]
    if count == outputs.shape[1]:
        return outputs.masked_fill(~mask, FORBIDDEN)
    return torch.cat([outputs[:, :count].masked_fill(~mask, FORBIDDEN), outputs[:, count:]], dim=1)


class AllowedOutputs:
    """The outputs for observations that hold a mask, with `FORBIDDEN` among them."""

    def __call__(self, outputs: Tensor, observation: dict[str, Tensor]) -> Tensor:
        return masked(outputs, observation[ALLOWED])

    def acting(self, forward: Forward) -> Forward:
        def outputs(observation: Observation) -> FloatArray:
            values = forward(observation)
            mask = observation[ALLOWED]
            count = mask.shape[1]
            part = values if count == values.shape[1] else values[:, :count]
            part[~mask] = FORBIDDEN
            return values

        return outputs
