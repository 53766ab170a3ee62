"""Acting with parameters of one's own in every row, for agents that explore with parameters."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.core.interfaces import RowState
from coach_rl.core.records import BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.spaces import Space
from coach_rl.core.state import State
from coach_rl.exploration_policies import ParameterExplorationParameters


@dataclass(kw_only=True)
class PerturbedRows:
    """Row state of an agent that explores with its parameters as well as with its actions."""

    actions: RowState
    """Of the exploration policy."""
    parameters: RowState
    """Of the perturbations."""

    def state_dict(self) -> State:
        """Both."""
        return {"actions": self.actions.state_dict(), "parameters": self.parameters.state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Take over both."""
        self.actions.load_state_dict(state["actions"])
        self.parameters.load_state_dict(state["parameters"])


class PerturbedPolicy:
    """An actor of which every row has its own perturbed copy.

    Args:
        params: How the parameters are perturbed.
        actor: Maps observations [B, ...] to actions [B, A].
        action_space: Where it acts.
    """

    def __init__(
        self, params: ParameterExplorationParameters, actor: NetworkWrapper, action_space: Space
    ) -> None:
        self.exploration = params.build(action_space, perturbable=np.ones(actor.size, np.bool_))
        self._actor = actor
        self._news: dict[str, float] = {}

        def one_row(flat: Tensor, observation: dict[str, Tensor]) -> Tensor:
            single = {key: values[None] for key, values in observation.items()}
            action: Tensor = actor.call(flat, single)
            return action[0]

        self._forward: Callable[[Tensor, dict[str, Tensor]], Tensor] = torch.func.vmap(one_row)

    def actions(
        self,
        state: PerturbedRows,
        rows: IntArray,
        observation: Observation,
        greedy: FloatArray,
        starts: BoolArray,
    ) -> FloatArray:
        """Actions [R, A] of the rows' own parameters.

        Args:
            state: The rows' state, which is advanced.
            rows: [R].
            observation: [R, ...] each.
            greedy: [R, A], what the unperturbed parameters say.
            starts: [R] the (sub-)episode begins with this decision.
        """
        online = self._actor.online
        own = self.exploration.perturbed(
            state.parameters, rows, online.cpu().numpy(), starts=starts
        )
        with torch.inference_mode():
            tensors = {
                key: torch.from_numpy(values).to(online.device)
                for key, values in observation.items()
            }
            chosen = self._forward(torch.from_numpy(own).to(online.device), tensors)
        actions: FloatArray = chosen.cpu().numpy()
        self.exploration.note_actions(state.parameters, rows, perturbed=actions, greedy=greedy)
        self._news = self.exploration.scalars(state.parameters)
        return actions

    def scalars(self) -> dict[str, float]:
        """What the perturbations of the rows last spoken of look like."""
        return self._news
