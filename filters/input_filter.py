"""The InputFilter: what an agent does to observations and rewards before it sees them."""

from collections.abc import Mapping, Sequence

import numpy as np
from gymnasium import spaces

from coach_rl.core.equal_spaces import loss_of_cast
from coach_rl.core.errors import SpaceError, UnknownNameError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import TimedCall
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.spaces import Space
from coach_rl.core.state import State
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.filters.stages import (
    InputStage,
    InputStageParameters,
    RowMemory,
    load_stage_states,
    stage_states,
)

_NO_MEMORY: RowMemory = FrozenMapping[str]()
_Links = tuple[tuple[InputStage, str, tuple[tuple[str, str], ...]], ...]
"""A stage, where it stands, and the names of its row memory: its own and that of the chain."""


@parameter_class
class InputFilter:
    """The filters that observations and rewards pass, in order."""

    observation: Mapping[str, tuple[InputStageParameters, ...]] = FrozenMapping[str]()
    """Filters by observation key, first to last; keys that are not named stay as they are."""
    reward: tuple[InputStageParameters, ...] = ()
    """Filters of the reward, first to last."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "observation", FrozenMapping(self.observation))

    def build(self, space: spaces.Dict) -> "InputFilterChain":
        """The chain for an environment that shows `space`.

        Raises:
            UnknownNameError: A filter is listed for a key that isn't shown.
            SpaceError: A filter doesn't suit the values that reach it.
        """
        for key in self.observation:
            if key not in space.spaces:
                raise UnknownNameError("observation key", key, space.spaces, "in InputFilter")
        stages = {
            key: _build_stages(f"observation '{key}'", part, self.observation.get(key, ()))
            for key, part in space.spaces.items()
        }
        reward_space = spaces.Box(-np.inf, np.inf, shape=(), dtype=np.float64)
        reward_stages = _build_stages("the reward", reward_space, self.reward)
        chain = InputFilterChain(space=space, observation=stages, reward=reward_stages)
        named = {f"observation/{key}": filters for key, filters in self.observation.items()}
        for where, filters in {**named, "reward": self.reward}.items():
            for position, each in enumerate(filters):
                chain.names[f"{where}/{position}"] = f"{where}/{position} {type(each).__name__}"
        return chain


class InputFilterChain:
    """A built InputFilter.

    Row memory is named `observation/<key>/<position>/<name>` and `reward/<position>/<name>`; a
    chain whose filters remember nothing per row works with `{}`.

    Args:
        space: What the environment shows.
        observation: Stages by key, an entry for every key of `space`.
        reward: Stages of the reward.
    """

    def __init__(
        self,
        *,
        space: spaces.Dict,
        observation: Mapping[str, Sequence[InputStage]],
        reward: Sequence[InputStage],
    ) -> None:
        self.observation_space = spaces.Dict(
            {
                key: stages[-1].output_space if stages else space.spaces[key]
                for key, stages in observation.items()
            }
        )
        """Space of the observations that `observation` returns."""
        self.reward_space: Space = (
            reward[-1].output_space
            if reward
            else spaces.Box(-np.inf, np.inf, shape=(), dtype=np.float64)
        )
        """Space of the rewards that `reward` returns: a Box of shape ()."""
        self.changed_keys = frozenset(key for key, stages in observation.items() if stages)
        """Observation keys that pass a filter."""
        self.changes_reward = len(reward) > 0
        """True if rewards pass a filter."""
        self._observation = {
            key: _links(f"observation/{key}", stages) for key, stages in observation.items()
        }
        self._reward = _links("reward", reward)
        self.names: dict[str, str] = {}
        """Names of filters for people, by the prefix of their row memory."""

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        memory: dict[str, Array] = {}
        for links in (*self._observation.values(), self._reward):
            for stage, _, names in links:
                own = stage.new_rows(num_rows)
                memory.update({flat: own[name] for name, flat in names})
        return memory

    def observation(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """Filter the keys that are given; new arrays, [R, ...] each.

        Raises:
            UnknownNameError: A key is not in the space the chain was built for.
        """
        filtered: Observation = {}
        for key, values in observation.items():
            try:
                links = self._observation[key]
            except KeyError:
                raise UnknownNameError("observation key", key, self._observation) from None
            filtered[key] = (
                _pass(links, memory, rows, values, starts, learn=learn) if links else values.copy()
            )
        return filtered

    def reward(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        reward: FloatArray,
        *,
        ends: BoolArray,
        learn: bool,
    ) -> FloatArray:
        values = np.array(reward, dtype=np.float64)
        return _pass(self._reward, memory, rows, values, ends, learn=learn)

    def parts(self) -> dict[str, object]:
        """The filters, by what they filter and where they stand."""
        links = (link for own in (*self._observation.values(), self._reward) for link in own)
        return {self.names.get(where, where): stage for stage, where, _ in links}

    def timed_calls(self) -> list[TimedCall]:
        """The calls whose times a profile shows; none where nothing is filtered."""
        calls = {"observation": self.changed_keys, "reward": self.changes_reward}
        return [TimedCall(self, method, "filter") for method, filters in calls.items() if filters]

    def state_dict(self) -> State:
        observation = {
            key: stage_states([stage for stage, *_ in links])
            for key, links in self._observation.items()
        }
        return {
            "observation": {key: states for key, states in observation.items() if states},
            "reward": stage_states([stage for stage, *_ in self._reward]),
        }

    def load_state_dict(self, state: State) -> None:
        observation = state.get("observation", {})
        for key in observation:
            if key not in self._observation:
                raise UnknownNameError("observation key", key, self._observation, "in saved state")
        for key, links in self._observation.items():
            load_stage_states(
                [stage for stage, *_ in links],
                observation.get(key, {}),
                owner=f"InputFilter.observation['{key}']",
            )
        load_stage_states(
            [stage for stage, *_ in self._reward],
            state.get("reward", {}),
            owner="InputFilter.reward",
        )


def _pass(
    links: _Links,
    memory: dict[str, Array],
    rows: IntArray,
    values: Array,
    boundaries: BoolArray,
    *,
    learn: bool,
) -> Array:
    for stage, where, names in links:
        own = _NO_MEMORY
        if names:
            own = {name: memory[flat] for name, flat in names}
            stage.advance(values, own, rows, boundaries)
        if learn:
            stage.update(values, own, rows)
        values = stage.apply(values, own, rows)
        space = stage.output_space
        if values.dtype != space.dtype or values.shape[1:] != space.shape:
            _check_output(values, space, where)
    return values


def _check_output(values: Array, space: Space, where: str) -> None:
    """Raise `SpaceError` unless a filter's values [R, ...] can be those of its output space."""
    wrong = (loss_of_cast(values, np.dtype(space.dtype)) or (0, ""))[1]
    if values.shape[1:] != space.shape:
        wrong = f"values of shape {values.shape[1:]}"
    if wrong:
        raise SpaceError(
            f"InputFilter, {where}: the filter gave {wrong}, its output_space is {space}; "
            "correct one of them"
        )


def _links(prefix: str, stages: Sequence[InputStage]) -> _Links:
    return tuple(
        (
            stage,
            f"{prefix}/{position}",
            tuple((name, f"{prefix}/{position}/{name}") for name in stage.new_rows(0)),
        )
        for position, stage in enumerate(stages)
    )


def _build_stages(
    what: str, space: Space, filters: Sequence[InputStageParameters]
) -> tuple[InputStage, ...]:
    stages: list[InputStage] = []
    for position, parameters in enumerate(filters):
        try:
            stages.append(parameters.build(space))
        except SpaceError as error:
            raise SpaceError(f"InputFilter, filter {position} of {what}: {error}") from error
        space = stages[-1].output_space
    return tuple(stages)
