"""Decisions of scripts that are built in, as torch modules."""

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.spaces import Space, first_action
from coach_rl.extensions.exporting.decisions import (
    Chosen,
    Decision,
    Place,
    Request,
    clipped,
    decision_of,
    refused,
)
from coach_rl.extensions.exporting.policies import Tensors
from coach_rl.extensions.scripts.scripted_agent import ScriptedAgent, UniformAgent


@decision_of.register
def _script_decision(agent: ScriptedAgent, place: Place) -> Decision:
    if agent.built_in is None:
        raise refused(agent, "it acts by a function of Python")
    return ScriptDecision(agent.built_in, place.acts_in)


@decision_of.register
def _random_decision(agent: UniformAgent, place: Place) -> Decision:  # noqa: ARG001 - of no kind
    raise refused(agent, "it acts at random")


class ScriptDecision(Decision):
    """A script that is built in.

    Args:
        name: `still` or `desired_goal`.
        space: Where it acts.
    """

    def __init__(self, name: str, space: Space) -> None:
        super().__init__()
        self._name = name
        self._space = space

    def forward(self, request: Request) -> tuple[Chosen, Tensors]:
        """The goal it receives, or the action that is nearest to 0."""
        space, rows = self._space, next(iter(request.seen.values()))
        if self._name == "desired_goal":
            assert isinstance(space, spaces.Box)
            return clipped(space, request.seen[GOAL_KEY].reshape(-1, *space.shape)), {}
        if isinstance(space, spaces.Box):
            still = np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
        else:
            still = np.asarray(first_action(space), space.dtype)
        constant = torch.from_numpy(np.asarray(still))
        zeros = torch.zeros_like(rows.reshape(rows.shape[0], -1)[:, 0], dtype=constant.dtype)
        return constant + zeros.reshape(-1, *[1] * constant.ndim), {}
