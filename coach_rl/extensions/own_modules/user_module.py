"""Networks of the user's own: any torch module in the place of a torso.

    class Pair(nn.Module):
        def __init__(self, space, width=64):
            super().__init__()
            self.layer = nn.Linear(space["position"].shape[0], width)

        def forward(self, observation):
            return torch.relu(self.layer(observation["position"]))

    ActorParameters(torso=ModuleParameters(module=Pair, arguments={"width": 128}))

What a module must be is tried out when it is built, on made-up observations.
"""

import copy
import importlib
from collections.abc import Mapping
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.continuous_control import CriticParameters, last_linear
from coach_rl.architectures.observation_normaliser import Normalise, ObservationNormaliser
from coach_rl.architectures.other_torso import OtherTorso
from coach_rl.architectures.torso import last_layer, selected
from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.core.parameter_classes import ADVICE, CodeNamingParameters, parameter_class
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.shown_text import shown_error
from coach_rl.core.spaces import Space
from coach_rl.core.typed_values import FrozenMapping, thawed

Input = Tensor | dict[str, Tensor]
"""Observations by key, or actions, [B, ...] each."""
TRIED_ROWS = 3
"""Made-up observations that a module is tried out on."""
RUN_ELSEWHERE = (
    "networks are run on parameters that are passed in, for many rows or for one, and are "
    "restored after a restart"
)


@parameter_class
class ModuleParameters(CodeNamingParameters):
    """A network of your own in the place of a torso.

    The class is called with the observation space, a critic's with the action space too, and with
    `arguments`. Its forward gets the observations [B, ...] by key, a critic's the actions [B, A]
    too, and gives float32 features [B, F].
    """

    module: type[nn.Module] | str = field(
        metadata={ADVICE: lambda _: "; write a class of torch.nn.Module, or its name module:Class"}
    )
    """The class, derived from `torch.nn.Module`, or its name as `module:Class`."""
    arguments: Mapping[str, object] = FrozenMapping[str]()
    """Keyword arguments of the class."""
    keys: NonEmpty[tuple[str, ...]] | None = None
    """Observation keys that it gets; None: all of them."""
    last_layer: bool = True
    """Features go through a linear layer to the network's outputs; False: they are the outputs, and
    there must be as many of them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "arguments", FrozenMapping(self.arguments))

    def code_names(self) -> tuple[str, ...]:
        return (self.module,) if isinstance(self.module, str) else ()

    @property
    def orthogonal(self) -> bool:
        """Last layers behind it begin as those behind a torso by default do."""
        return True

    def build(
        self,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> "ModuleTorso":
        """The module, tried out; ConfigurationError names why it cannot be a torso."""
        return ModuleTorso(self, space, rng, normaliser)

    def critics(self, *surroundings: Any) -> "ModuleCritics":
        """One module for each critic, which gets the actions too."""
        return ModuleCritics(*surroundings)


class ModuleTorso(OtherTorso):
    """A module of the user's own, which gets its keys, normalised on request.

    Args:
        params: The module's class and arguments.
        space: All observations.
        rng: Draws the seed of its initial weights.
        normaliser: Normalises observations first; None leaves them as they are.
        action_space: Flat Box of the actions that a critic judges; None for other networks.
    """

    def __init__(
        self,
        params: ModuleParameters,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
        *,
        action_space: Space | None = None,
    ) -> None:
        super().__init__()
        self.params = params
        self.last_layer = params.last_layer
        shown = selected(space, params.keys)
        self.keys = list(shown.spaces)
        self.normalise = nn.ModuleList(
            Normalise(normaliser, key)
            if normaliser is not None and key in normaliser.mean
            else nn.Identity()
            for key in self.keys
        )
        parts = (shown,) if action_space is None else (shown, action_space)
        seed = int(torch.randint(2**62, (), generator=rng))
        with torch.random.fork_rng(devices=[]):  # layers draw from torch's global generator
            torch.manual_seed(seed)
            self.module = _constructed(params, parts)
            self.name = type(self.module).__name__
            self.output_size = _tried(self, parts, seed % 2**31)

    def forward(self, observation: dict[str, Tensor], *action: Tensor) -> Tensor:
        pairs = zip(self.keys, self.normalise, strict=True)
        outputs: Tensor = self.module({k: normal(observation[k]) for k, normal in pairs}, *action)
        return outputs if outputs.ndim > 1 else outputs[:, None]


class ModuleCritics(nn.Module):
    """Outputs [K, B, P] by K modules of the user's own, which share nothing."""

    def __init__(
        self,
        params: CriticParameters,
        observation_space: spaces.Dict,
        action_space: Space | None,
        outputs: int,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None,
        members: int,
    ) -> None:
        super().__init__()
        assert isinstance(params.torso, ModuleParameters)
        make = partial(last_linear, bound=params.final_bound, rng=rng)
        self.torsos, self.heads = nn.ModuleList(), nn.ModuleList()
        for _ in range(members):
            torso = ModuleTorso(
                params.torso, observation_space, rng, normaliser, action_space=action_space
            )
            self.torsos.append(torso)
            self.heads.append(last_layer(torso, outputs, make))

    def forward(
        self, observation: dict[str, Tensor], action: Tensor | None, members: int
    ) -> Tensor:
        """[members, B, P], of actions [B, A] as the network sees them."""
        shown = () if action is None else (action,)
        pairs = zip(self.torsos[:members], self.heads[:members], strict=True)
        return torch.stack([head(torso(observation, *shown)) for torso, head in pairs])


def _is_module_class(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, nn.Module)


def _found(name: str) -> type[nn.Module]:
    """The class of that name.

    A name may come from a run folder made by another person, together with the arguments of
    the call, so nothing but a class of modules is returned.
    """
    module_name, _, attribute = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:
        raise ConfigurationError(
            f"the network '{name}' cannot be imported: {error}; it is named as module:Class"
        ) from error
    found = getattr(module, attribute, None)
    if found is None:
        offers = [known for known, thing in vars(module).items() if _is_module_class(thing)]
        raise UnknownNameError("network", attribute, offers, where=f"in module '{module_name}'")
    if not _is_module_class(found):
        raise ConfigurationError(
            f"the network '{name}' is not a class derived from torch.nn.Module, and is not called"
        )
    return found  # type: ignore[no-any-return]  # just checked


def _constructed(params: ModuleParameters, parts: tuple[Space, ...]) -> nn.Module:
    kind = _found(params.module) if isinstance(params.module, str) else params.module
    try:
        return kind(*parts, **thawed(params.arguments))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        given = "observation space" if len(parts) == 1 else "observation space, action space"
        raise ConfigurationError(
            f"the network {kind.__name__} cannot be built: {shown_error(error)}; it is called with "
            f"({', '.join([given, *params.arguments])})"
        ) from error


def _tried(torso: ModuleTorso, parts: tuple[Space, ...], seed: int) -> int:
    """The number of features of a module that is fit for training; ConfigurationError if not."""
    inputs = [_made_up(part, seed) for part in parts]
    name = torso.name
    _run(torso, inputs)  # lazy layers find their sizes
    buffers = {path: buffer.clone() for path, buffer in torso.module.named_buffers()}
    outputs = _run(torso, inputs)
    for path, buffer in torso.module.named_buffers():
        if not torch.equal(buffer, buffers[path]):
            raise ConfigurationError(
                f"the network {name} changes its buffer '{path}' when it is run, as BatchNorm "
                f"does; {RUN_ELSEWHERE}. Use nn.LayerNorm"
            )
    if not torch.equal(outputs, _run(torso, inputs)):
        raise ConfigurationError(
            f"the network {name} gives other outputs for the same inputs, as dropout does; a run "
            "could not be repeated. Leave the randomness out"
        )
    alone = _run(torso, [_first(part) for part in inputs])
    if not torch.allclose(alone, outputs[:1], rtol=1e-3, atol=1e-4):
        raise ConfigurationError(
            f"the network {name} gives other outputs for a row alone than among others; "
            f"{RUN_ELSEWHERE}"
        )
    for path, parameter in torso.module.named_parameters():
        if parameter.dtype != torch.float32 or not parameter.requires_grad:
            kind = "frozen" if parameter.dtype == torch.float32 else parameter.dtype
            raise ConfigurationError(
                f"the parameter '{path}' of the network {name} is {kind}; parameters are float32 "
                "and learned, register others as buffers"
            )
    return outputs.shape[1]


def _run(torso: ModuleTorso, inputs: list[Input]) -> Tensor:
    name = torso.name
    try:
        with torch.no_grad():
            outputs: Tensor = torso(*inputs)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ConfigurationError(
            f"the network {name} cannot be run on made-up observations: {shown_error(error)}"
        ) from error
    observation = inputs[0]
    assert isinstance(observation, dict)
    rows = len(next(iter(observation.values())))
    if outputs.dtype != torch.float32 or outputs.ndim != 2 or len(outputs) != rows:
        raise ConfigurationError(
            f"the network {name} must give float32 [{rows}, features] for {rows} observations, "
            f"got {outputs.dtype} {list(outputs.shape)}"
        )
    return outputs


def _made_up(space: Space, seed: int) -> Input:
    """Observations by key, or actions, as tensors [TRIED_ROWS, ...]."""
    space = copy.deepcopy(space)  # drawing changes it
    space.seed(seed)
    drawn = [space.sample() for _ in range(TRIED_ROWS)]
    if not isinstance(space, spaces.Dict):
        return torch.from_numpy(np.stack(drawn))
    return {key: torch.from_numpy(np.stack([each[key] for each in drawn])) for key in space.spaces}


def _first(inputs: Input) -> Input:
    if isinstance(inputs, Tensor):
        return inputs[:1]
    return {key: values[:1] for key, values in inputs.items()}
