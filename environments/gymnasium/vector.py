"""A ready `gymnasium.vector.VectorEnv` as an `Environment`, without phantom transitions.

The autoreset mode of a vector environment is its behaviour at the end of an episode:

- SAME_STEP resets at once and puts the true last observation into its info.
- DISABLED waits: the ended rows are reset with a mask right after the step.
- NEXT_STEP resets in the *next* step and ignores the action: the row's answer is held back until
  its next first observation is there, and the step in between is no transition. Such a row answers
  one `recv` later than the others.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from coach_rl.core.errors import (
    ActionError,
    CheckpointError,
    ConfigurationError,
    EnvironmentFault,
    NonFiniteError,
    warn,
)
from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    Directive,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
    take,
)
from coach_rl.core.shown_text import shown_value
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.core.typed_values import Arguments, thawed
from coach_rl.environments.faults import (
    SettingsWatch,
    close_failure_of,
    is_finite,
    is_users_interrupt,
    non_finite,
    non_finite_places,
    space_watches,
    vector_fault,
)
from coach_rl.environments.gymnasium.environment import response_of
from coach_rl.environments.gymnasium.layout import (
    Info,
    as_array,
    as_dict,
    batched_infos,
    column_of,
    entry,
    flat_info,
    layout_of,
)
from coach_rl.environments.gymnasium.recipe import (
    Wrapper,
    entry_point,
    guarded,
    registered,
    wrapped,
)
from coach_rl.environments.gymnasium.rows import RowsAnswer, start_pair, step_values
from coach_rl.environments.inbox import Inbox, row_seeds

T = TypeVar("T")

BatchInfo = Mapping[str, Any]
"""Arrays by name, beside masks of the rows that they hold for."""
Vector = VectorEnv[Any, Any, Any]


class VectorEnvironment:
    """A vector environment that steps all its rows together; an `Environment`.

    Its rows cannot be sent to one by one: `recv` raises `ActionError` until every row that is not
    held back was sent. Whether a row's episodes depend on the other rows is up to the vector
    environment. It can't be saved, so a resumed run starts new episodes: use single environments
    (`sync`, `subprocess`) if runs must be resumed exactly.

    Args:
        vector: The vector environment; owned from now on.
        level: Its name, for messages.
    """

    def __init__(self, vector: Vector, *, level: str) -> None:
        self._vector = vector
        self._level = level
        self.unsaved = (
            f"'{level}' is a ready vector environment, which has no way to be saved; "
            "vectorization='sync' and 'subprocess' have"
        )
        """See `UnsavedEnvironment`."""
        self._mode = autoreset_mode(vector, level=level)
        self._layout = layout_of(
            getattr(vector, "single_observation_space", None),
            getattr(vector, "single_action_space", None),
            level=level,
        )
        self._inbox = Inbox(self._layout.spaces.action, num_envs=vector.num_envs)
        self._actions = [
            np.zeros((vector.num_envs, *(part.shape or ())), part.dtype)
            for part in self._layout.action_parts
        ]
        """The last action of every row, [N, ...] each."""
        self._held = np.zeros(vector.num_envs, np.bool_)
        """[N] whether the row's episode has ended without its next first observation."""
        self._steps = 0
        self._reset_infos: set[str] = set()
        """Names of the infos of an episode's start, as the last reset gave them."""
        self._watches = space_watches(self._layout.spaces, level=level)
        self._settings = SettingsWatch(level)
        self._last: RowsAnswer | None = None
        """All rows' answers to the last step, also those held back; None before the first."""
        self._nothing = EnvResponse.reset(
            self._layout.buffers(vector.num_envs), num_envs=vector.num_envs
        ).empty_like()
        self._closed = False

    @property
    def num_envs(self) -> int:
        return self._vector.num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        return self._layout.spaces

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        seeds = row_seeds(seed, self.num_envs)
        given: Any = seeds[0] if seeds is not None and not np.iterable(seed) else seeds
        self._inbox.stop("the last reset failed; call reset first")
        shown, infos = self._guarded("reset", lambda: self._started(given))
        for watch in self._watches:
            watch.check(np.arange(self.num_envs), shown)
        self._inbox.start()
        self._held[:] = False
        return EnvResponse.reset(shown, num_envs=self.num_envs, info=batched_infos(infos))

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        self._inbox.put(directive, rows)

    def recv(self) -> EnvResponse:
        sent = self._inbox.open & ~self._held
        missing = ~(sent | self._held)
        if sent.any() and missing.any():
            raise ActionError(
                f"'{self._level}' is a ready vector environment and steps all rows together; "
                f"rows {np.flatnonzero(missing).tolist()} were not sent; "
                "send all rows, or use vectorization='sync'"
            )
        rows, action = self._inbox.take()
        for values, part in zip(self._actions, self._layout.action_arrays(action), strict=True):
            values[rows] = part
        response = self._nothing
        while len(rows) and not len(response):
            response = response_of(*self._step())
        self._inbox.hold(np.flatnonzero(self._held))
        return response

    def state_dict(self) -> State:
        """CheckpointError: Gymnasium has no way to save a vector environment."""
        raise CheckpointError(self.unsaved)

    def load_state_dict(self, state: State) -> None:  # noqa: ARG002 - there is no such state
        self.state_dict()

    def close(self) -> None:
        """Close the vector environment; may be repeated.

        Warns:
            CoachWarning: It failed to close, without consequences.
        """
        if not self._closed:
            self._closed = True
            self._inbox.stop("the environment is closed; build a new one")
            try:
                with self._settings:
                    if failure := close_failure_of(self._vector, level=self._level, row=None):
                        # Gymnasium 1.2 would close it once more as it is deleted.
                        self._vector.unwrapped.closed = True
                        warn(failure)
            except EnvironmentFault as error:  # about settings, which are put back
                warn(str(error))

    def _started(self, seed: Any) -> tuple[Observation, list[Info]]:
        """Copies of the observations and infos after a reset of every row."""
        observation, info = start_pair(self._vector.reset(seed=seed))
        known = _by_rows(as_dict(info, "the info"), self.num_envs)
        self._reset_infos = set(known)
        shown = self._finite("reset", self._arrays(observation))
        return shown, [_row_info(known, row) for row in range(self.num_envs)]

    def _step(self) -> tuple[IntArray, RowsAnswer]:
        """Rows that can be answered after one step of the vector environment, and their answer."""
        answer, ended = self._guarded("step", self._stepped)
        if self._mode is AutoresetMode.DISABLED and ended.any():
            answer = answer._replace(
                first_observation=self._guarded("reset", lambda: self._reset_rows(answer, ended))
            )
        for watch in self._watches:
            watch.check(np.arange(self.num_envs), answer.observation)
        if self._mode is not AutoresetMode.NEXT_STEP:
            return np.arange(self.num_envs), answer
        return self._released(answer, ended)

    def _stepped(self) -> tuple[RowsAnswer, BoolArray]:
        """Copies of the results of one step, and the rows that ended, [N]."""
        given = self._layout.nested_action([values.copy() for values in self._actions])
        seen, reward, terminated, truncated, info = step_values(self._vector.step(given))
        self._steps += 1
        terminated = self._column("terminated", terminated, np.bool_)
        truncated = self._column("truncated", truncated, np.bool_)
        has_start = self._held.any() or (terminated | truncated).any()
        observation = now = self._arrays(seen, 0 if has_start else self._steps)
        known = _by_rows(as_dict(info, "the info"), self.num_envs)
        ended = (terminated | truncated) & ~self._held
        if self._mode is AutoresetMode.SAME_STEP and ended.any():
            observation = {key: values.copy() for key, values in now.items()}
            for row in np.flatnonzero(ended).tolist():
                for values, leaf in zip(observation.values(), self._final(info, row), strict=True):
                    values[row] = leaf
        reward = self._column("reward", reward, np.float64)
        answer = RowsAnswer(
            observation=self._finite("step", observation, np.where(self._held, 0.0, reward)),
            first_observation=now if observation is now else self._finite("reset", now),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            infos=[self._step_info(known, row) for row in range(self.num_envs)],
        )
        return answer, ended

    def _reset_rows(self, answer: RowsAnswer, ended: BoolArray) -> Observation:
        """Next observations of all rows, [N, ...] each, after a reset of those that ended."""
        again, _ = start_pair(self._vector.reset(options={"reset_mask": ended.copy()}))
        fresh = self._arrays(again)
        first = {key: values.copy() for key, values in answer.observation.items()}
        for key, values in first.items():
            values[ended] = fresh[key][ended]
        return self._finite("reset", first)

    def _released(self, answer: RowsAnswer, ended: BoolArray) -> tuple[IntArray, RowsAnswer]:
        """Answer of all rows but those that ended now, which are held back."""
        held = self._held
        before = self._last
        if held.any():  # this step is no transition of theirs: it returned their first observation
            assert before is not None
            answer = answer._replace(
                observation={
                    key: _picked(held, before.observation[key], values)
                    for key, values in answer.observation.items()
                },
                reward=_picked(held, before.reward, answer.reward),
                terminated=_picked(held, before.terminated, answer.terminated),
                truncated=_picked(held, before.truncated, answer.truncated),
                infos=[
                    (before if waited else answer).infos[row]
                    for row, waited in enumerate(held.tolist())
                ],
            )
        self._last = answer
        self._held = ended
        answered = np.flatnonzero(~ended)
        return answered, RowsAnswer(
            observation=take(answer.observation, answered),
            first_observation=take(answer.first_observation, answered),
            reward=answer.reward[answered],
            terminated=answer.terminated[answered],
            truncated=answer.truncated[answered],
            infos=[answer.infos[row] for row in answered.tolist()],
        )

    def _step_info(self, info: BatchInfo, row: int) -> Info:
        """One row's info of the step, also where the row was reset in the same step.

        There `final_info` has what the environment gave. Of the other entries, those of the next
        episode's start are left out; the rest was added by wrappers, for the rows in their masks.
        """
        final = info.get("final_info")
        marks = info.get("_final_info")
        own = None if marks is not None and not marks[row] else final
        if own is not None:
            own = _row_info(own, row) if isinstance(own, Mapping) else own[row]
        if own is None:
            return _row_info(info, row)
        added = {
            name: values
            for name, values in info.items()
            if name not in self._reset_infos and (name.startswith("_") or f"_{name}" in info)
        }
        return _row_info(added, row) | flat_info(own)

    def _final(self, info: BatchInfo, row: int) -> list[object]:
        """The true last observation of a row that was reset in the same step."""
        final: Any = info.get("final_obs")
        marks: Any = info.get("_final_obs")
        is_known = isinstance(final, Mapping | tuple) or _has_rows(final, self.num_envs)
        if not is_known or (_has_rows(marks, self.num_envs) and not marks[row]):
            raise EnvironmentFault(
                f"'{self._level}' resets in the same step, but gave no final_obs for row {row}; "
                "its last observation is lost; use another autoreset mode"
            )
        if isinstance(final, Mapping | tuple):
            return [values[row] for values in self._arrays(final).values()]
        return self._layout.leaves(final[row])

    def _arrays(self, observation: Any, step: int = 0) -> Observation:
        """Copies of the batched observation's flat arrays, [N, ...] each; see `check_cast`."""
        arrays: Observation = {}
        parts = self._layout.spaces.observation.spaces.items()
        for path, (key, space) in zip(self._layout.observation_paths, parts, strict=True):
            values = observation
            for name in path:
                values = entry(values, name)
            given = as_array(values, key, observation)
            if given.shape != (self.num_envs, *(space.shape or ())):
                raise EnvironmentFault(
                    f"'{self._level}' gave observation '{key}' the shape {given.shape}, "
                    f"its space has {(self.num_envs, *(space.shape or ()))}"
                )
            self._layout.check_cast(key, given, step)
            arrays[key] = np.array(given, space.dtype)
        return arrays

    def _column(self, name: str, values: object, dtype: type[np.generic]) -> Array:
        """A copy of the values of all rows, [N] float64 or bool.

        Raises:
            EnvironmentFault: They have another shape, or are no numbers, or neither 0 nor 1.
        """
        given = column_of(values)
        fits = given.shape == (self.num_envs,) and given.dtype.kind in "biuf"
        column = given.astype(dtype) if fits else given
        if not fits or (dtype is np.bool_ and (column != given).any()):
            raise EnvironmentFault(
                f"'{self._level}' gave {name} as {given.dtype} of the shape {given.shape}, "
                f"{shown_value(values, 80)}; it must be one "
                f"{'bool' if dtype is np.bool_ else 'number'} for each row, of the shape "
                f"{(self.num_envs,)}"
            )
        return column

    def _finite(
        self, verb: str, shown: Observation, reward: FloatArray | None = None
    ) -> Observation:
        """The observation; NonFiniteError about the first row with NaN or infinity."""
        reward = np.zeros(self.num_envs) if reward is None else reward
        if not all(map(is_finite, (reward, *shown.values()))):
            row = non_finite_places(shown, reward)[0]
            own = {key: values[row] for key, values in shown.items()}
            where: dict[str, Any] = {
                "env": self._vector,
                "level": self._level,
                "row": row,
                "verb": verb,
            }
            failure = non_finite(own, float(reward[row]), **where)
            raise NonFiniteError(failure.message, evidence=failure.evidence)
        return shown

    def _guarded(self, verb: str, call: Callable[[], T]) -> T:
        try:
            with self._settings:
                return call()
        except BaseException as error:
            self._inbox.stop_after(error)
            is_named = isinstance(error, NonFiniteError) and error.evidence  # by `_finite`
            if is_named or is_users_interrupt(error):
                raise
            raise vector_fault(error, env=self._vector, level=self._level, verb=verb) from error


def vector_environment(
    level: str, *, kwargs: Arguments, wrappers: tuple[Wrapper, ...], num_envs: int
) -> VectorEnvironment:
    """The vector environment that a level names.

    Args:
        level: An id registered with a vector entry point, or `module:Class` of a VectorEnv or of a
            function annotated to return one; called with `num_envs` and `kwargs`.
        kwargs: Its keyword arguments.
        wrappers: Vector wrappers, `module:Class` or pairs of that and keyword arguments.
        num_envs: N.

    Raises:
        ConfigurationError: There is no such vector environment, or it cannot be made.
    """
    spec = registered(level)
    what = f"vector environment '{level}'"
    if spec is None:
        vector = guarded(
            entry_point(level, kind="environment", makes=(VectorEnv,)),
            what=what,
            num_envs=num_envs,
            **thawed(kwargs),
        )
    elif spec.vector_entry_point is None:
        raise ConfigurationError(
            f"'{level}' is not registered with a vector entry point; use vectorization='sync'"
        )
    else:
        vector = guarded(
            gymnasium.make_vec,
            spec,
            what=what,
            num_envs=num_envs,
            vectorization_mode="vector_entry_point",
            **thawed(kwargs),
        )
    if not isinstance(vector, VectorEnv) or vector.num_envs != num_envs:
        made = f"{type(vector).__name__} with {getattr(vector, 'num_envs', 'no')} rows"
        raise ConfigurationError(f"{what} is a {made}; it must be a VectorEnv with {num_envs} rows")
    return VectorEnvironment(wrapped(vector, wrappers, makes=(VectorEnv,)), level=level)


def autoreset_mode(vector: Vector, *, level: str) -> AutoresetMode:
    """The autoreset mode of a vector environment.

    Raises:
        ConfigurationError: It declares none; guessing would corrupt transitions.
    """
    mode = (vector.metadata or {}).get("autoreset_mode")
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        raise ConfigurationError(
            f"vector environment '{level}' has autoreset_mode {mode!r} in its metadata; "
            f"allowed: {', '.join(str(known) for known in AutoresetMode)}"
        ) from error


def _by_rows(info: BatchInfo, count: int) -> BatchInfo:
    """The entries of a vector environment's info that have a value for each row, and their masks.

    Those of the whole, such as its speed, are left out.
    """
    known = {
        str(name): _by_rows(values, count) if isinstance(values, Mapping) else values
        for name, values in info.items()
        if isinstance(values, Mapping) or _has_rows(values, count)
    }
    marks = {f"_{name}" for name in info} - {f"_{name}" for name in known}
    return {name: values for name, values in known.items() if name not in marks}


def _has_rows(values: object, count: int) -> bool:
    """Return whether an array or a list has as many values."""
    if isinstance(values, np.ndarray):
        return bool(values.shape[:1] == (count,))
    return isinstance(values, list | tuple) and len(values) == count


def _row_info(info: BatchInfo, row: int) -> Info:
    """One row of a vector environment's info; `_name` is the mask of rows that have `name`."""
    found: dict[str, object] = {}
    for name, values in info.items():
        is_mask = name.startswith("_") and name[1:] in info
        if is_mask or name in ("final_obs", "final_info"):
            continue
        is_given = info.get(f"_{name}")
        if is_given is not None and not is_given[row]:
            continue
        found[name] = _row_info(values, row) if isinstance(values, Mapping) else values[row]
    return flat_info(found)


def _picked(held: BoolArray, before: Array, now: Array) -> Array:
    """[N, ...] values of `before` for held rows, of `now` for the others."""
    return np.where(held.reshape(-1, *[1] * (now.ndim - 1)), before, now)
