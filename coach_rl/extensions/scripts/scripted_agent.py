"""An agent that acts by a function: it neither explores nor learns.

ScriptedAgentParameters(policy=walk)                     # a function at the top of a file
ScriptedAgentParameters(policy="my_package.gaits:walk")  # the same by name
ScriptedAgentParameters(policy="desired_goal")           # one that is built in
"""

import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gymnasium import spaces

from coach_rl.core.agents import AgentContext, RowState, TrainingReport
from coach_rl.core.box_ranges import clipped_to_space
from coach_rl.core.clock import Clock
from coach_rl.core.discrete_actions import choice_sizes, mask_key
from coach_rl.core.errors import ActionError, ConfigurationError, SpaceError, UnknownNameError, warn
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.parameter_classes import CodeNamingParameters, parameter_class
from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.core.records import (
    ACTION_MASK,
    Action,
    ActionRequest,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
)
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved
from coach_rl.core.spaces import Space, check_actions, check_counts
from coach_rl.core.state import State


class ActingOnly(Saved):
    """An agent without a memory or anything to learn; its kinds add `new_rows` and `act`.

    Args:
        name: The agent's name in logs.
    """

    is_on_policy = False

    def __init__(self, name: str) -> None:
        self.name = name

    def observe(self, row_state: RowState, outcome: Outcome, clock: Clock) -> None:
        """Nothing is kept."""

    def cut_off(self, row_state: RowState, rows: IntArray, clock: Clock) -> None:
        """Nothing is kept."""

    def restart_rows(self, row_state: RowState) -> None:
        """Nothing is kept."""

    def decisions_until_training(self) -> int:
        return sys.maxsize

    def train(self, clock: Clock) -> TrainingReport | None:
        return None

    def policy_state_dict(self) -> State:
        return {}

    def load_policy(self, state: State) -> None:
        raise SpaceError(f"agent '{self.name}' learns nothing, so nothing can be loaded into it")


@parameter_class
class UniformAgentParameters:
    """An agent that acts at random; see `core.spaces.actions_from_uniform`."""

    name: str = "uniform"
    """The agent's name in logs and files."""
    action_mask: str | None = ACTION_MASK
    """Observation key, if there is one, of which discrete actions are allowed."""

    def build(self, context: AgentContext) -> "UniformAgent":
        """The agent; SpaceError where nothing can be drawn, or the mask is not of its actions."""
        space = context.spaces.action
        observed = context.spaces.observation
        key = mask_key(observed, self.action_mask, self.name, space)
        wanted = sum(choice_sizes(space))
        if key is not None and np.prod(observed[key].shape or ()) != wanted:
            raise SpaceError(
                f"agent '{self.name}' takes the observation '{key}' for its action mask, which has "
                f"{wanted} entries for {space}: got {observed[key]}; correct it, or name another "
                "key by action_mask=..., None for no mask"
            )
        return UniformAgent(self.name, space, key)


@dataclass(kw_only=True)
class UniformRows(Saved):
    """The random streams of the rows, and the numbers last drawn from them."""

    SAVED = ("noise", "drawn")

    noise: RowNoise
    drawn: FloatArray
    """[N, D] the uniform numbers of each row's last action."""
    followed: FloatArray | None = None
    """Numbers to use for the next actions, [N, D], drawn by another copy of the agent; None: it
    draws its own."""

    def decisions(self) -> State:
        return {"drawn": self.drawn}

    def follow(self, decisions: State) -> None:
        self.followed = decisions["drawn"]


class UniformAgent(ActingOnly):
    """Acts at random in every phase.

    Args:
        name: The agent's name in logs.
        space: Where it acts.
        mask_key: Observation key of its action mask; None: it has none.
    """

    def __init__(self, name: str, space: Space, mask_key: str | None = None) -> None:
        super().__init__(name)
        self._space = space
        self._size = uniform_size(space)
        self.mask_key = mask_key
        self.own_keys = frozenset(() if mask_key is None else (mask_key,))
        """The observation keys about its own choices."""

    def new_rows(self, num_envs: int, seed: int) -> UniformRows:
        noise = RowNoise(
            num_rows=num_envs, size=self._size, kind="uniform", seed=seed, name="uniform"
        )
        return UniformRows(noise=noise, drawn=np.zeros((num_envs, self._size), np.float32))

    def act(self, row_state: UniformRows, request: ActionRequest, clock: Clock) -> Action:
        rows = request.rows
        followed = row_state.followed
        row_state.drawn[rows] = row_state.noise.draw(rows) if followed is None else followed[rows]
        allowed = None
        if self.mask_key is not None:
            allowed = request.observation[self.mask_key].reshape(len(rows), -1) > 0
        return actions_from_uniform(self._space, row_state.drawn[rows], allowed)

    def description(self) -> str:
        return f"uniform over {self._space}"


Policy = Callable[[Observation, Space], Action]
"""(observations [R, ...] each, where to act) to actions [R, ...]; a function of just these."""


def still(observation: Observation, space: Space) -> Action:
    """The number of a Box nearest to 0, the first of discrete choices."""
    rows = len(next(iter(observation.values())))
    match space:
        case spaces.Box():
            nearest = np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
            return np.broadcast_to(nearest, (rows, *space.shape)).copy()
        case spaces.Discrete() | spaces.MultiDiscrete():
            first = np.asarray(space.start)
            return np.broadcast_to(first, (rows, *first.shape)).copy()
    raise SpaceError(f"the script 'still' acts in Box, Discrete and MultiDiscrete, not in {space}")


def desired_goal(observation: Observation, space: Space) -> Action:
    """The goal it receives itself, handed on to the level below."""
    if GOAL_KEY not in observation:
        raise SpaceError(
            f"the script 'desired_goal' hands on the '{GOAL_KEY}' it receives, and receives none; "
            f"observed: {sorted(observation)}"
        )
    return observation[GOAL_KEY].reshape(-1, *(space.shape or ()))


BUILT_IN: dict[str, Policy] = {"still": still, "desired_goal": desired_goal}
"""Scripts by name."""


@parameter_class
class ScriptedAgentParameters(CodeNamingParameters):
    """An agent whose policy is a function."""

    name: str = "script"
    """The agent's name in logs and files."""
    policy: Policy | str
    """The policy: a function of (observations by key, [R, ...] each; action space) that returns the
    actions [R, ...] of the R rows; `module:function`, or `still` or `desired_goal`. A function must
    be at the top level of a file, or a run's manifest could not name it.
    """

    def __post_init__(self) -> None:
        policy = self.policy
        if isinstance(policy, str) and ":" not in policy and policy not in BUILT_IN:
            raise UnknownNameError("script", policy, BUILT_IN, "others are named 'module:function'")

    def code_names(self) -> tuple[str, ...]:
        is_name = isinstance(self.policy, str) and self.policy not in BUILT_IN
        return (str(self.policy),) if is_name else ()

    def build(self, context: AgentContext) -> "ScriptedAgent":
        """The agent; ConfigurationError where there is no such function."""
        return ScriptedAgent(self, space=context.spaces.action)


class ScriptedRows(Saved):
    """Row state of an agent whose decisions are a function of what it sees, and of this state.

    A worker's copy then decides as the agent itself. A subclass adds what is kept of rows; one
    whose agent draws random numbers or calls a service returns decisions, and follows a copy's.
    """

    def decisions(self) -> State:
        return {}

    def follow(self, decisions: State) -> None:
        """Nothing to follow."""


class ScriptedAgent(ActingOnly):
    """Acts by a function in every phase, heat-up and tested decisions included.

    Actions beyond the bounds of a Box are clipped to them, with one warning.

    Args:
        params: The agent's parameters.
        space: Where it acts.
    """

    def __init__(self, params: ScriptedAgentParameters, *, space: Space) -> None:
        super().__init__(params.name)
        self._space = space
        self._label = _label(params.policy)
        is_name = isinstance(params.policy, str)
        self.built_in = str(params.policy) if is_name and params.policy in BUILT_IN else None
        """The name of the script, where it is one of `BUILT_IN`."""
        found = _found(params.policy) if isinstance(params.policy, str) else params.policy
        self.policy = _checked(found, self._label)
        """The function."""
        self._has_warned = found in BUILT_IN.values()  # which are clipped on purpose

    def new_rows(self, num_envs: int, seed: int) -> ScriptedRows:
        return ScriptedRows()

    def act(self, row_state: ScriptedRows, request: ActionRequest, clock: Clock) -> Action:
        try:
            made = _actions_of(self.policy(request.observation, self._space))
            check_counts(made, len(request.rows))
            action = clipped_to_space(self._space, made)
            check_actions(self._space, action)
        except (ActionError, SpaceError) as error:
            raise type(error)(f"script {self._label}: {error}") from error
        self._warn_of_clipping(made)
        return action

    def _warn_of_clipping(self, made: Action) -> None:
        """Warn once of numbers beyond the bounds of a Box by more than rounding."""
        for key, values in (made if isinstance(made, dict) else {"": made}).items():
            space = self._space[key] if isinstance(self._space, spaces.Dict) else self._space
            if self._has_warned or not isinstance(space, spaces.Box):
                continue
            clipped = np.clip(values, space.low, space.high)
            with np.errstate(invalid="ignore"):  # inf - inf, where a Box has no bounds
                beyond = abs(values - clipped) > 1e-6 * np.maximum(1, abs(clipped))
            if beyond.any():
                self._has_warned = True
                warn(
                    f"script {self._label} returned {values[beyond][0]:g}, which lies outside of "
                    f"{space} and is clipped to it, as later numbers are; let the script clip them"
                )

    def load_policy(self, state: State) -> None:
        raise SpaceError(f"agent '{self.name}' follows a script, into which nothing can be loaded")

    def description(self) -> str:
        return f"script: {self._label}"


def _label(policy: Policy | str) -> str:
    if isinstance(policy, str):
        return f"'{policy}'"
    return f"'{policy.__module__}:{getattr(policy, '__qualname__', policy)}'"


def _checked(policy: Policy, label: str) -> Policy:
    """The script, if it can be called with observations and a space; nothing else ever is."""
    try:
        inspect.signature(policy).bind({}, None)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"the script {label} cannot act: {error}; a script is a function of (observation, "
            "space) that returns actions"
        ) from error
    return policy


def _actions_of(made: object) -> Action:
    """The actions that a script returned, lists as arrays."""
    if isinstance(made, dict):
        return {key: np.asarray(part) for key, part in made.items()}
    actions = np.asarray(made)
    if actions.dtype.kind not in "biuf":
        raise ActionError(
            f"it returned {made!r:.40}, and actions are an array [R, ...] of numbers, or a dict of "
            "such arrays"
        )
    return actions


def _found(name: str) -> Policy:
    """The script of that name."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    module_name, _, function_name = name.partition(":")
    try:
        module = importlib.import_module(module_name)
    except (ImportError, ValueError) as error:
        raise ConfigurationError(
            f"the script '{name}' needs the module '{module_name}': {error}"
        ) from error
    function: Policy | None = getattr(module, function_name, None)
    if not callable(function):
        functions = [known for known, thing in vars(module).items() if callable(thing)]
        raise UnknownNameError(
            "function", function_name, functions, where=f"in module '{module_name}'"
        )
    return function
