"""A module whose parameters live in one flat tensor, with an optional target copy."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from coach_rl.core.errors import CheckpointError
from coach_rl.core.state import State


class NetworkWrapper:
    """The online parameters of a module, flat, and those of its target network.

    The module's own parameters are views into `online`, so calling `module` always uses the newest
    ones; `call` runs the module on any other flat tensor, e.g. `target` or the argument of a
    gradient.

    Args:
        module: The network; it is moved to `device` and its parameters become views.
        device: The device of its parameters.
        with_target: Whether to keep a target copy, equal to the online one at first.
    """

    def __init__(
        self, module: nn.Module, *, device: torch.device, with_target: bool = False
    ) -> None:
        self.module = module.to(device)
        parameters = dict(self.module.named_parameters())
        self._shapes = {name: parameter.shape for name, parameter in parameters.items()}
        self._sizes = [shape.numel() for shape in self._shapes.values()]
        every = [*self.module.named_parameters(remove_duplicate=False)]
        self._has_tied = len(every) > len(parameters)  # one parameter under several names
        self._buffers = {
            name: value
            for name, value in self.module.state_dict(keep_vars=True).items()
            if name not in parameters and not isinstance(value, nn.Parameter)
        }
        self.online = torch.cat([each.flatten() for each in parameters.values()]).detach()
        for name, view in self.named(self.online).items():
            parameters[name].data = view
            parameters[name].requires_grad_(False)
        self._target = self.online.clone() if with_target else None

    @property
    def size(self) -> int:
        """P, the number of parameters."""
        return self.online.numel()

    @property
    def has_target(self) -> bool:
        """True if there is a target copy."""
        return self._target is not None

    @property
    def target(self) -> Tensor:
        """The target's parameters [P]; only where there are any."""
        assert self._target is not None, "this network has no target"
        return self._target

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """A flat tensor [P] as the module's named parameters, views of it."""
        parts = zip(self._shapes.items(), flat.split_with_sizes(self._sizes), strict=True)
        return {name: part.view(shape) for (name, shape), part in parts}

    def call(self, flat: Tensor, *args: object, **kwargs: object) -> Any:
        """The module's forward with the parameters `flat` [P]; pure."""
        # Torch's search for tied weights at every call takes a tenth of an eager gradient step.
        named = self.named(flat)
        return functional_call(self.module, named, args, kwargs, tie_weights=self._has_tied)

    def sync_target(self, rate: float = 1.0) -> None:
        """Move the target towards the online parameters: target += rate * (online - target)."""
        self.target.lerp_(self.online, rate)

    def state_dict(self) -> State:
        """Both sets of parameters by name, and buffers that the module would save itself."""
        state: State = {"online": _clone(self.named(self.online))}
        if self._buffers:
            state["buffers"] = _clone(self._buffers)
        if self.has_target:
            state["target"] = _clone(self.named(self.target))
        return state

    def load_state_dict(self, state: State) -> None:
        """Load saved parameters and buffers; CheckpointError names what doesn't fit."""
        self._load(self.named(self.online), state["online"])
        self._load(self._buffers, state.get("buffers", {}))
        if self.has_target:
            if "target" not in state:
                raise CheckpointError("the checkpoint has no target network, this one needs it")
            self._load(self.named(self.target), state["target"])

    def summary(self) -> str:
        """The module's layers and its number of parameters, for people."""
        return f"{self.module}\n{self.size:,} parameters"

    def _load(self, own: dict[str, Tensor], named: dict[str, Tensor]) -> None:
        for name, view in own.items():
            if name not in named or named[name].shape != view.shape:
                found = tuple(named[name].shape) if name in named else "nothing"
                raise CheckpointError(
                    f"the checkpoint doesn't fit this network: '{name}' should have the shape "
                    f"{tuple(view.shape)}, found {found}"
                )
            view.copy_(named[name])
        strange = sorted(set(named) - set(own))
        if strange:
            raise CheckpointError(
                f"the checkpoint doesn't fit this network, which has no {', '.join(strange)}"
            )


def _clone(named: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in named.items()}
