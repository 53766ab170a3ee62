"""Decisions of agents as torch modules, from what the environment shows to what it is sent.

A `Decision` holds all of an agent: filters, masks, networks, hidden states, the choice, filters of
actions. Its modules are traced into graphs by `graphs`; what cannot be traced is refused here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, singledispatch
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.own_filters import ScaledOutput
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.agents.stages.action_masks import ActionMasks
from coach_rl.agents.stages.symmetry import SymmetricView
from coach_rl.architectures.action_masks import masked
from coach_rl.core.agents import AgentParameters
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.levels import LevelSpace
from coach_rl.core.records import HIDDEN_STATE
from coach_rl.core.spaces import Space
from coach_rl.extensions.exporting.numpy_functions import (
    Argument,
    UntraceableError,
    samples_of,
    traced,
)
from coach_rl.extensions.exporting.own_code import first_actions, is_own, own_acting
from coach_rl.extensions.exporting.policies import Tensors, policy_of
from coach_rl.extensions.exporting.torch_filters import torch_filter
from coach_rl.filters import BoxMasking, LinearBoxToBoxMap
from coach_rl.filters.stages import InputStage

MOST_ACTIONS = 1_000_000
"""Largest number of discrete actions whose meanings are written as a table."""
NOISE = ("normal", "uniform", "random")
"""Kinds of random numbers, the last of which greedy decisions take, too."""
Chosen = Tensor | Tensors
"""Actions [R, ...], or by key."""


class Request(NamedTuple):
    """Input of a decision in R rows."""

    seen: Tensors
    """Observations of the level, [R, ...] each, unfiltered."""
    state: Tensors
    """Memory of the rows, [R, ...] each."""
    starts: Tensor
    """[R] where a sub-episode begins."""
    episodes: Tensor
    """[R] where a real episode begins."""
    below: Tensor
    """[R] reasons for which the level below has answered, bits of `coach_policy`."""
    normal: Tensor | None
    """Standard normal numbers to sample with, [R, K]; None: the choice is greedy."""
    uniform: Tensor | None
    """Numbers in [0, 1) to sample with, [R, K]."""
    random: Tensor | None
    """Numbers in [0, 1) of agents that act at random, [R, K], in greedy decisions as well."""
    over: Tensor | None
    """[R, M] where the own episode of each of a group's members is over; None: they have none."""


class Decision(nn.Module, ABC):
    """An agent's decision; `forward` returns actions and the states after it."""

    def __init__(self) -> None:
        super().__init__()
        self.state: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        """Shape and dtype of what a row remembers, by name."""
        self.noise = dict.fromkeys(NOISE, 0)
        """Number of random numbers that a decision takes, by kind."""
        self.ending_members = 0
        """M, the number of a group's members, where some have ends of their own; else 0."""
        self.facts: dict[str, object] = {"members": {}, "needs_ends": False}
        """Entries about the agent in the description of its level."""

    ends_by_chance = False
    """True if the agent ends its sub-episodes by `chance_to_end`."""

    @abstractmethod
    def forward(self, request: Request) -> tuple[Chosen, Tensors]:
        """Actions [R, ...] for the environment, and the states after them."""

    def chance_to_end(self, _seen: Tensors, /) -> Tensor | None:
        """Chances [R] that an option ends in what is observed after a decision; None: never."""
        return None


@dataclass(frozen=True, kw_only=True)
class Place:
    """The place of an agent that decides."""

    acts_in: Space
    """The space of its actions, behind its filters."""
    prefix: str = ""
    """Begins the names of what its rows remember."""
    params: AgentParameters | None = None
    """The level's agent; None for a part of another agent."""
    sees: spaces.Dict = field(default_factory=spaces.Dict)
    """Its observation space, unfiltered."""
    own: LevelSpace | None = None
    """The goals or options of its level; None: it has none."""
    below: tuple[LevelSpace | None, ...] = ()
    """The goals or options of the levels below."""


@singledispatch
def decision_of(agent: object, place: Place) -> Decision:  # noqa: ARG001 - of other functions
    """The decision of an agent; methods register theirs, by the agent's class.

    Args:
        agent: A built agent that has loaded its policy.
        place: Where it decides.

    Raises:
        ConfigurationError: A part of it cannot be exported.
    """
    raise refused(agent, f"the exporter does not know a {type(agent).__name__}")


def checked_decision(agent: Any, place: Place) -> Decision:
    """The decision of an agent that acts by the code which the decision is written from.

    Args:
        agent: As of `decision_of`.
        place: Where it decides.

    Raises:
        ConfigurationError: A part of it cannot be exported, or its class acts in another way.
    """
    reason = own_acting(agent)
    if reason is not None:
        raise refused(agent, reason)
    made = decision_of(agent, place)
    if (
        is_own(agent)
        and isinstance(agent, FilteredAgent)
        and not _acts_alike(agent, made, place.sees)
    ):
        raise refused(agent, f"its {type(agent).__name__} acts in another way than its base")
    return made


def _acts_alike(agent: Any, decision: Decision, sees: spaces.Dict) -> bool:
    """True if a decision equals an agent's first actions in random observations."""
    seen, wanted = first_actions(agent, sees)
    rows = len(next(iter(seen.values())))
    nothing = torch.zeros(rows, dtype=torch.bool)
    state = {
        name: torch.from_numpy(np.zeros((rows, *shape), dtype))
        for name, (shape, dtype) in decision.state.items()
    }
    request = Request(
        seen={key: torch.from_numpy(values) for key, values in seen.items()},
        state=state,
        starts=~nothing,
        episodes=~nothing,
        below=nothing.to(torch.int64),
        normal=None,
        uniform=None,
        random=None,
        over=None,
    )
    with torch.no_grad():
        made, _ = decision(request)
    found = {"": made} if isinstance(made, Tensor) else made
    return all(
        np.allclose(found[key].numpy(), values, rtol=1e-5, atol=1e-5)
        for key, values in (wanted if isinstance(wanted, dict) else {"": wanted}).items()
    )


def refused(agent: Any, reason: str) -> ConfigurationError:
    """The error that an agent cannot be exported."""
    return ConfigurationError(
        f"agent '{agent.name}' cannot be exported: {reason}; coach_rl.load(RUN) acts with it"
    )


def function_of(
    agent: Any, what: str, function: Any, examples: Callable[[int], Sequence[Argument]]
) -> Callable[..., Any]:
    """A user's function of arrays as one of tensors; the error of `refused` where it is none."""
    try:
        return traced(function, examples)
    except UntraceableError as error:
        named = getattr(function, "__qualname__", type(function).__name__)
        raise refused(agent, f"{what} {named} is no graph ({error})") from error


class View(NamedTuple):
    """A symmetry of tensors."""

    canonical: Callable[[Tensors], Tensors]
    """`Symmetry.canonical`."""
    restored: Callable[[Chosen, Tensors], Chosen]
    """`Symmetry.restored`."""


@singledispatch
def symmetry_of(symmetry: Any, agent: Any, place: Place) -> View:
    """The symmetry of an agent; worlds register theirs, others are traced.

    Args:
        symmetry: A built `Symmetry`.
        agent: Whose, for messages.
        place: Where it decides.

    Raises:
        ConfigurationError: It cannot be traced.
    """

    def seen(rows: int) -> tuple[Tensors]:
        return (samples_of(place.sees, rows),)

    def acted(rows: int) -> tuple[Argument, Tensors]:
        action = samples_of(spaces.Dict({"": place.acts_in}), rows)[""]
        return action, samples_of(place.sees, rows)

    what = "its symmetry"
    return View(
        function_of(agent, what, symmetry.canonical, seen),
        function_of(agent, what, symmetry.restored, acted),
    )


class NetworkDecision(Decision):
    """Filters, one network and a choice.

    Args:
        agent: Whose.
        place: Where it decides.
    """

    def __init__(self, agent: PPOAgent | OffPolicyAgent, place: Place) -> None:
        super().__init__()
        prefix = place.prefix
        self._agent = agent
        self._prefix = prefix
        view = agent.stages.of(SymmetricView)
        self._view = None if view is None else symmetry_of(view.symmetry, agent, place)
        self.observer = Observer(agent, prefix)
        self.state |= self.observer.state
        policy = policy_of(agent)
        if isinstance(policy, str):
            raise refused(agent, policy)
        self.policy = policy
        self.noise[self.policy.noise_kind] = self.policy.noise_size
        if self.policy.hidden_size:
            shape = (self.policy.hidden_size,)
            self.state[f"{prefix}{HIDDEN_STATE}"] = shape, np.dtype(np.float32)
        self._sent = _action_map(agent, place.acts_in)

    def forward(self, request: Request) -> tuple[Chosen, Tensors]:
        view = self._view
        seen = request.seen if view is None else view.canonical(request.seen)
        filtered, mask, state = self.observer(seen, request.state, request.episodes)
        name = f"{self._prefix}{HIDDEN_STATE}"
        if self.policy.hidden_size:
            is_own = self.policy.reset == "sub_episode"
            begins = request.starts if is_own else request.episodes
            before = request.state[name]
            filtered[HIDDEN_STATE] = torch.where(begins[:, None], before.new_zeros(()), before)
        outputs, after = self.policy.outputs(filtered)
        if after is not None:
            state[name] = after
        if mask is not None:
            outputs = masked(outputs, mask)
        noise = request.normal if self.policy.noise_kind == "normal" else request.uniform
        if noise is not None and not self.policy.noise_size:
            noise = None
        action = self._sent(self.policy.choice(outputs, noise, filtered))
        return action if view is None else view.restored(action, request.seen), state


@decision_of.register(PPOAgent)
@decision_of.register(OffPolicyAgent)
def _network_decision(agent: PPOAgent | OffPolicyAgent, place: Place) -> Decision:
    return NetworkDecision(agent, place)


class Observer(nn.Module):
    """An agent's InputFilter and its mask.

    Args:
        agent: Whose.
        prefix: Begins the names of what its rows remember.
    """

    def __init__(self, agent: PPOAgent | OffPolicyAgent, prefix: str) -> None:
        super().__init__()
        self._mask = agent.stages.of(ActionMasks)
        chain: Any = agent.input_filter
        given = agent.params.input_filter
        self.state: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        self._stages: dict[str, list[tuple[str | None, Callable[..., Any]]]] = {}
        parts: Mapping[str, InputStage] = getattr(chain, "parts", dict)()
        built = {each.partition(" ")[0]: stage for each, stage in parts.items()}
        for key in agent.observation_space.spaces:
            self._stages[key] = []
            for number, params in enumerate(getattr(given, "observation", {}).get(key, ())):
                stage = built[f"observation/{key}/{number}"]
                function = torch_filter(params, stage)
                if function is None:
                    raise refused(agent, f"no graph for its {type(params).__name__} is known")
                memory = stage.new_rows(1)
                name = None
                if memory:
                    name = f"{prefix}{key}/{number}"
                    self.state[name] = memory["frames"].shape[1:], memory["frames"].dtype
                self._stages[key].append((name, function))

    def forward(
        self, seen: Tensors, state: Tensors, episodes: Tensor
    ) -> tuple[Tensors, Tensor | None, Tensors]:
        """The filtered observations, the mask of the agent's actions if any, and the memory."""
        filtered = {}
        after = {}
        for key, stages in self._stages.items():
            values = seen[key]
            for name, function in stages:
                if name is None:
                    values = function(values)
                else:
                    values, after[name] = function(values, state[name], episodes)
            filtered[key] = values
        if self._mask is None:
            return filtered, None, after
        allowed = seen[self._mask.key].flatten(1) > 0
        if self._mask.entries is not None:
            allowed = allowed[:, torch.from_numpy(self._mask.entries)].all(dim=2)
        return filtered, allowed, after


def _action_map(agent: PPOAgent | OffPolicyAgent, acts_in: Space) -> Callable[[Tensor], Chosen]:
    """Map from actions [R, ...] in the agent's space to those for the environment."""
    own = agent.action_space
    output = agent.output_filter
    if isinstance(own, spaces.Discrete) and own != acts_in:
        if own.n > MOST_ACTIONS:
            raise refused(agent, f"its OutputFilter maps {own} to {acts_in}")
        first = int(own.start)
        made = output.apply(np.arange(first, first + own.n, dtype=np.int64))
        table = torch.from_numpy(np.ascontiguousarray(made))
        return lambda action: table[action - first]
    passed = _passed(output, agent, acts_in)
    return lambda action: passed(in_space(own, action))


def _passed(
    output: Any, agent: PPOAgent | OffPolicyAgent, acts_in: Space
) -> Callable[[Chosen], Chosen]:
    """An OutputFilter as a function of tensors."""
    if output_functions.dispatch(type(output)) is output_functions.dispatch(object):
        return _filters(agent, acts_in)
    return output_functions(output, _passed(output.parts()["inner"], agent, acts_in))


@singledispatch
def output_functions(
    output: object, inner: Callable[[Chosen], Chosen]
) -> Callable[[Chosen], Chosen]:
    """An OutputFilter around another as a function of tensors, by its class.

    A form of actions that an extension has registers its own.

    Args:
        output: The filter.
        inner: What actions pass next, as such a function.
    """
    raise NotImplementedError(f"{type(output).__name__} has no inner filter")


@output_functions.register
def _(output: ScaledOutput, inner: Callable[[Chosen], Chosen]) -> Callable[[Chosen], Chosen]:
    scaled = output.scaled

    def moved(action: Chosen) -> Chosen:
        if isinstance(action, Tensor):
            (one,) = scaled.values()
            return inner(_stretched(*one, action))
        changed = {key: _stretched(*each, action[key]) for key, each in scaled.items()}
        return inner(action | changed)

    return moved


def _filters(agent: PPOAgent | OffPolicyAgent, acts_in: Any) -> Callable[[Chosen], Chosen]:
    """The filters of actions that an agent was given, all of Boxes."""
    steps: list[Callable[[Any], Any]] = []
    for params in getattr(agent.params.output_filter, "action", ()):  # from the environment on
        given = params.build(acts_in).agent_space
        if isinstance(params, LinearBoxToBoxMap):
            steps.insert(0, partial(_stretched, np.ones(given.shape, np.bool_), given, acts_in))
        elif isinstance(params, BoxMasking):
            steps.insert(0, partial(clipped, given))
        else:
            raise refused(agent, f"no graph for its {type(params).__name__} is known")
        acts_in = given

    def sent(action: Any) -> Any:
        for step in steps:
            action = step(action)
        return action

    return sent


def in_space(space: Space, action: Chosen) -> Any:
    """`core.spaces.clipped_to_space` of tensors, in the dtypes of the space."""
    if isinstance(space, spaces.Dict) and not isinstance(action, Tensor):
        return {key: in_space(space[key], part) for key, part in action.items()}
    assert isinstance(action, Tensor)
    if isinstance(space, spaces.Box):
        return clipped(space, action)
    return action if space.dtype is None else action.to(dtype_of(space))


def dtype_of(space: Space) -> torch.dtype:
    """The dtype in which a graph computes with the values of a space."""
    kind = np.dtype(space.dtype)
    if kind.kind == "f":
        return torch.float64 if kind == np.float64 else torch.float32
    return torch.int64


def in_dtypes(space: Space, action: Chosen) -> Tensors:
    """Actions [R, ...] by flat name in the dtypes of their spaces; one alone is called ''.

    Unsigned integers of more than a byte, which torch can't convert to, stay int64.
    """
    parts = {"": action} if isinstance(action, Tensor) else action
    of = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    dtypes = {key: getattr(torch, str(np.dtype(each.dtype))) for key, each in of.items()}
    wide = (torch.uint16, torch.uint32, torch.uint64)
    return {k: part if dtypes[k] in wide else part.to(dtypes[k]) for k, part in parts.items()}


def clipped(box: spaces.Box, values: Tensor) -> Tensor:
    """Values [R, ...] within a Box, in its dtype."""
    low, high = (torch.from_numpy(each).to(dtype_of(box)) for each in (box.low, box.high))
    return torch.minimum(torch.maximum(values, low), high).to(low.dtype)


def _stretched(moves: Any, given: spaces.Box, wanted: spaces.Box, values: Tensor) -> Tensor:
    """`core.spaces.stretched` of the elements that move."""
    bounds = [given.low, given.high, wanted.low, wanted.high]
    chosen = torch.from_numpy(moves)
    with np.errstate(all="ignore"):
        finite = [np.where(moves, bound, float(i % 2)) for i, bound in enumerate(bounds)]
    low, high, to_low, to_high = (torch.from_numpy(each.astype(np.float64)) for each in finite)
    share = ((values.to(torch.float64) - low) / (high - low)).clamp(0, 1)
    dtype = dtype_of(wanted)
    moved = (to_low * (1 - share) + to_high * share).to(dtype)
    return torch.where(chosen, moved, values.to(dtype))
