"""Environments that fail: the causes, and whether the row or the run ends there.

A failing row is a `RowFailure`. The `FaultLedger` of an environment decides by its
`FaultParameters`: it raises an error with a diagnosis, or has the row restarted from a fresh seed
and reports a `Fault`. The step of a restarted row is void: the episode ends, truncated, with the
observation before.
"""

import inspect
import math
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from operator import call
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import EnvironmentFault, NonFiniteError, RunError, close_failure, warn
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.records import Array, Fault, FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.seeding import integer_seed
from coach_rl.core.shown_text import shortened, shown_error, shown_level, shown_value
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.processes.worker_messages import LIBRARIES, MOST_OF_A_TRACEBACK, RemoteTraceback

Reaction = Literal["restart", "stop"]
Cause = Literal["raised", "died", "hung", "malformed", "non_finite", "unstable"]
"""raised: its code raised an error. died: its worker process ended. hung: it took longer than its
time limit. malformed: an observation, reward, flag or info of a wrong shape, type or number of
values. non_finite: NaN or infinity as observation or reward. unstable: MuJoCo warned that its state
was not finite or huge."""

WORKER_SECONDS = 300.0
"""Time limit of a step or reset in a worker process, where the parameters give none."""
_INTERFACE = (
    "Gymnasium has reset(*, seed=None, options=None) -> (observation, info) and step(action) -> "
    "(observation, reward, terminated, truncated, info)"
)
_OLD_INTERFACE = f"this is Gym's old interface, {_INTERFACE}"
_WRAPPERS = ("gymnasium.wrappers", "gymnasium.core")
_SETTINGS = (
    ("the default dtype", "get_default_dtype", "set_default_dtype", True),
    ("whether gradients are computed", "is_grad_enabled", "set_grad_enabled", True),
    ("the number of threads", "get_num_threads", "set_num_threads", False),
    (
        "the use of deterministic algorithms",
        "are_deterministic_algorithms_enabled",
        "use_deterministic_algorithms",
        False,
    ),
)
"""Name, getter and setter of torch's settings, and whether a change would end in errors elsewhere.
Each getter takes some 40 ns."""
_DEVICE = ("the default device", "get_default_device", "set_default_device", True)
"""Its getter takes 9 microseconds, so it is watched where environments are made and reset."""


@parameter_class
class FaultParameters:
    """The response to environments that fail: restart the row, or stop the run."""

    on_crash: Reaction = "restart"
    """Reaction where the environment raises an error, its worker process dies, or it hangs."""
    on_malformed: Reaction = "stop"
    """Reaction to observations, rewards, flags and infos of a wrong shape or type."""
    on_non_finite: Reaction = "stop"
    """Reaction to NaN or infinity in observations and rewards, and to MuJoCo's instabilities."""
    limit: NonNegative[int] = 10
    """Restarts allowed within the window; one more stops the run with the first cause."""
    window: Positive[EnvironmentSteps] = EnvironmentSteps(10_000)
    """Environment steps over all rows within which restarts are counted."""
    step_seconds: Positive[float] | None = None
    """Time limit of a step of one row; None: 300 s in a worker process, none in this process, where
    nothing can enforce it."""
    reset_seconds: Positive[float] | None = None
    """The same for a reset and for the construction of an environment."""

    def reaction(self, cause: Cause) -> Reaction:
        """The reaction to a fault of this cause."""
        match cause:
            case "malformed":
                return self.on_malformed
            case "non_finite" | "unstable":
                return self.on_non_finite
        return self.on_crash


class RowFailure(NamedTuple):
    """A picklable description of a failed row."""

    row: int
    cause: Cause
    verb: str
    """The call that failed: step, reset or construction."""
    message: str
    """The failure in one line, with the environment's name, file and line."""
    evidence: dict[str, Array | str]
    """The values that the environment returned, and the traceback."""


class OldInterface(EnvironmentFault):
    """An environment with the interface of Gym before 0.26."""


class Unstable(Exception):
    """MuJoCo's warning that a simulator's state was not finite or huge."""

    def __str__(self) -> str:
        return (
            "the simulation became unstable (MuJoCo found NaN, infinity or a huge number in its "
            "state); use smaller actions or a shorter time step"
        )


class FaultLedger(Saved):
    """The count of an environment's faults, and the reaction to each.

    Args:
        parameters: The reactions.
        num_envs: N.
    """

    SAVED = (
        "steps",
        "_seeds",
        "_restarts",
        SavedAttribute("_recent_steps", varies=True),
        SavedAttribute("_recent_messages", varies=True),
        SavedAttribute("_warned", varies=True),
    )

    def __init__(self, parameters: FaultParameters, *, num_envs: int) -> None:
        self._parameters = parameters
        self.steps = 0
        """Environment steps so far, over all rows; the environment counts them."""
        self._seeds: list[int | None] = [None] * num_envs
        """The seeds of the last reset, from which those of restarts derive."""
        self._restarts = [0] * num_envs
        """Restarts of each row since then."""
        self._recent_steps: list[int] = []
        """Environment steps at the restarts within the window."""
        self._recent_messages: list[str] = []
        """Their messages."""
        self._first_evidence: dict[str, Array | str] = {}
        """Evidence of the first of them; not saved."""
        self._warned: list[str] = []
        """Causes that the user has been warned of."""

    def reset(self, seeds: Sequence[int] | None) -> None:
        """Store the seeds of a reset; None continues the random streams."""
        if seeds is not None:
            self._seeds = list(seeds)
            self._restarts = [0] * len(seeds)

    def fresh_seed(self, row: int) -> int:
        """The seed of a row's next restart, from a stream of the row's own."""
        self._restarts[row] += 1
        seed = self._seeds[row]
        if seed is None:
            return int(np.random.SeedSequence().generate_state(1)[0] >> 1)
        return integer_seed(seed, "restart", self._restarts[row])

    def record(self, failure: RowFailure, **context: Array) -> Fault:
        """The fault to report if the row is to be restarted.

        An environment that fails before its first step is not restarted.

        Args:
            failure: The failure of the row.
            context: Arrays for the evidence, such as the action.

        Raises:
            NonFiniteError: NaN, infinity or an instability stops the run.
            EnvironmentFault: Anything else stops it.
        """
        reaction = self._parameters.reaction(failure.cause)
        message = f"{failure.message}; environment step {self.steps:,}"
        evidence = {**failure.evidence, **context}
        is_numeric = failure.cause in ("non_finite", "unstable")
        kind = NonFiniteError if reaction == "stop" and is_numeric else EnvironmentFault
        if reaction == "stop" or not self.steps:
            raise _stopped(kind, message, evidence)
        window = self._parameters.window.count
        old = sum(step <= self.steps - window for step in self._recent_steps)
        del self._recent_steps[:old], self._recent_messages[:old]
        if not self._recent_steps:
            self._first_evidence = evidence
        self._recent_steps.append(self.steps)
        self._recent_messages.append(message)
        if len(self._recent_steps) > self._parameters.limit:
            raise _stopped(
                kind,
                f"the environment failed {len(self._recent_steps)} times within {window:,} steps, "
                f"faults.limit allows {self._parameters.limit}; the first time: "
                f"{self._recent_messages[0]}",
                self._first_evidence,
            )
        if failure.cause not in self._warned:
            self._warned.append(failure.cause)
            warn(
                f"{message}; the row is restarted and its episode cut off (further faults of this "
                "kind are counted in the log)"
            )
        return Fault(cause=failure.cause, row=failure.row, message=message)


class SpaceWatch:
    """A check that warns once if an observation lies outside its space.

    All rows of a step are compared at once, and only with bounds that the dtype does not imply.

    Args:
        spaces: Spaces of the environment.
        level: Its name.
    """

    def __init__(self, spaces: EnvironmentSpaces, *, level: str) -> None:
        self._spaces = spaces.observation.spaces
        self._level = level
        found = {key: _bounds(space) for key, space in self._spaces.items()}
        self._bounds = {key: bounds for key, bounds in found.items() if bounds is not None}
        """Lowest and highest values by key; empty once the user has been warned."""

    def check(self, rows: IntArray, observation: Observation) -> None:
        """Compare observations [R, ...] of these rows with their spaces."""
        for key, (low, high) in self._bounds.items():
            values = observation[key]
            outside = (values < low) | (values > high)  # false for NaN, which is a fault
            if np.count_nonzero(outside):
                place = int(np.argwhere(outside)[0, 0])
                self._warn(int(rows[place]), key, values[place])
                self._bounds.clear()
                return

    def _warn(self, row: int, key: str, value: Array) -> None:
        space = self._spaces[key]
        # Agents raise an error where a network would encode the value as a one-hot vector.
        is_encoded = isinstance(space, spaces.Discrete | spaces.MultiDiscrete)
        continues = "" if is_encoded else " (the run continues)"
        warn(
            f"row {row} of '{shown_level(self._level)}' showed an observation '{key}' outside of "
            f"its space {shown_value(space, 200)}: {shown_value(value, 200)}; correct the space in "
            f"the environment{continues}",
        )


def space_watches(spaces: EnvironmentSpaces, *, level: str) -> tuple[SpaceWatch, ...]:
    """The watches of an environment: one where it is named as `module:Class`, else none.

    Users of registered environments cannot change them, and not even all of Gymnasium's own keep to
    their bounds.
    """
    return (SpaceWatch(spaces, level=level),) if ":" in level else ()


def _getter(torch: Any, name: str) -> Callable[[], Any]:
    """The getter of a setting of torch; that of 2.8 fails where a default device was taken back."""
    getter: Callable[[], Any] = getattr(torch, name)
    if name != "get_default_device":
        return getter

    def default_device() -> Any:
        try:
            return getter()
        except AttributeError:
            return torch.device("cpu")

    return default_device


class SettingsWatch:
    """A context for an environment's code, which restores settings of the process afterwards.

    These are torch's settings, and standard streams that are None. A process that the environment
    has forked ends here: it must not continue the run.

    Args:
        level: The environment's name.
        with_device: Whether to watch the default device as well.
    """

    def __init__(self, level: str, *, with_device: bool = False) -> None:
        self._level = level
        self._settings = (*_SETTINGS, _DEVICE) if with_device else _SETTINGS
        self._getters: tuple[Callable[[], Any], ...] = ()
        """The values of the settings, in their order; empty until torch has been imported."""
        self._before: tuple[Any, ...] = ()
        """Values on entering; empty where torch has not been imported."""
        self._warned: set[str] = set()

    def __enter__(self) -> None:
        self._process = os.getpid()
        self._streams = (sys.stdout, sys.stderr)
        if not self._getters and (torch := sys.modules.get("torch")) is not None:
            self._getters = tuple(_getter(torch, getter) for _, getter, _, _ in self._settings)
        self._before = tuple(map(call, self._getters))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore changed settings.

        Raises:
            EnvironmentFault: A setting has changed that makes learning impossible.
        """
        if os.getpid() != self._process:
            os._exit(1)
        if sys.stdout is None or sys.stderr is None:
            sys.stdout, sys.stderr = self._streams
        if not self._before:
            return
        after = tuple(map(call, self._getters))
        if after == self._before:
            return
        torch = sys.modules["torch"]
        wrong = []
        for (name, _, setter, is_wrong), then, now in zip(
            self._settings, self._before, after, strict=True
        ):
            if then != now:
                is_usual_device = setter == "set_default_device" and then.type == "cpu"
                getattr(torch, setter)(None if is_usual_device else then)
                wrong += [f"{name} from {then} to {now}"] if is_wrong else []
                if not is_wrong and name not in self._warned:
                    self._warned.add(name)
                    warn(
                        f"'{shown_level(self._level)}' changed torch's settings for the whole "
                        f"process: {name} from {then} to {now}; it is put back after each call",
                    )
        if wrong and error is None:
            raise EnvironmentFault(
                f"'{shown_level(self._level)}' changed torch's settings for the whole process: "
                f"{', '.join(wrong)}; put them back before the environment returns (for gradients: "
                "`with torch.no_grad():`), or use vectorization='subprocess'"
            )


def _bounds(space: Space) -> tuple[Array, Array] | None:
    """The lowest and highest values in a space; None if every value of its dtype is inside."""
    low: Array
    high: Array
    match space:
        case spaces.Box():
            low, high = space.low, space.high
        case spaces.Discrete():
            low, high = np.asarray(space.start), np.asarray(space.start + space.n - 1)
        case spaces.MultiDiscrete():
            low, high = space.start, space.start + space.nvec - 1
        case spaces.MultiBinary():
            low, high = np.asarray(0), np.asarray(1)
        case _:
            return None
    dtype = np.dtype(space.dtype)
    if dtype.kind == "f":
        widest: tuple[float, float] = (-np.inf, np.inf)
    elif dtype.kind in "iu":
        widest = (np.iinfo(dtype).min, np.iinfo(dtype).max)
    else:
        return None
    return None if (low <= widest[0]).all() and (high >= widest[1]).all() else (low, high)


def is_users_interrupt(error: BaseException) -> bool:
    """Return whether an error is a Ctrl-C in the main process, not an error of the environment."""
    return isinstance(error, KeyboardInterrupt) and multiprocessing.parent_process() is None


def close_failure_of(env: Any, *, level: str, row: int | None) -> str:
    """A warning if closing an environment fails, else ""; row None is a vector environment."""
    what = "vector environment" if row is None else f"row {row} of"
    return close_failure(
        f"{what} '{shown_level(level)}'",
        lambda: env.close(),
        lambda error: f"{shown_error(error)} ({raised_at(error, env)})",
    )


def failure_of(
    error: BaseException, *, env: object, level: str, row: int, verb: str, given: object
) -> RowFailure:
    """The failure of a row whose environment raised an error or returned malformed values.

    Args:
        error: The error; an `EnvironmentFault` is about malformed values.
        env: The environment; None before it was made.
        level: Its name.
        row: Number of the row.
        verb: The call that failed.
        given: The last values that it returned.
    """
    cause: Cause = "raised"
    message = shown_value(error, form=str)
    trace = shortened("".join(traceback.format_exception(error)), MOST_OF_A_TRACEBACK)
    evidence: dict[str, Array | str] = {"traceback": trace}
    if isinstance(error, Unstable):
        cause = "unstable"
        text = f"{message}{_definition(env, verb)}"
    elif old := _other_interface(error, message, verb):
        cause = "malformed"
        text = f"{old}{_definition(env, verb)}"
    elif isinstance(error, EnvironmentFault | NonFiniteError):
        cause = "malformed" if isinstance(error, EnvironmentFault) else "non_finite"
        text = f"{message}{_definition(env, verb)}"
    else:
        text = f"{shown_error(error)} ({raised_at(error, env)})"
    if cause != "raised":
        evidence["given"] = shown_value(given)
    return RowFailure(
        row=row,
        cause=cause,
        verb=verb,
        message=f"row {row} of '{shown_level(level)}' failed in {verb}: {text}",
        evidence=evidence,
    )


def vector_fault(error: BaseException, *, env: object, level: str, verb: str) -> RunError:
    """The error for a ready vector environment, whose rows cannot be restarted one by one.

    The row is known where each has an environment of its own, in which the error was raised.
    """
    at_work = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
    envs = enumerate(getattr(getattr(env, "unwrapped", env), "envs", ()))
    row = next((row for row, own in envs if any(own is each for each in at_work)), None)
    failure = failure_of(error, env=env, level=level, row=0, verb=verb, given=None)
    text = failure.message.partition(f" failed in {verb}: ")[2]
    where = "" if row is None else f"row {row} of "
    kind = NonFiniteError if failure.cause == "non_finite" else EnvironmentFault
    return kind(
        f"{where}vector environment '{shown_level(level)}' failed in {verb}: {text}",
        evidence=failure.evidence,
    )


def unstable_failure(*, level: str, row: int) -> RowFailure:
    """The failure of a row of a batch whose simulator became unstable."""
    message = f"row {row} of '{level}' failed in step: {Unstable()}"
    return RowFailure(row=row, cause="unstable", verb="step", message=message, evidence={})


def non_finite(
    observation: Mapping[str, Array], reward: float, *, env: object, level: str, row: int, verb: str
) -> RowFailure:
    """The failure of a row with NaN or infinity in its observation or reward.

    Args:
        observation: Its observation, [...] each.
        reward: Its reward.
        env: The environment.
        level: Its name.
        row: Number of the row.
        verb: The call that failed.
    """
    what = f"the reward is {reward}"
    for key, values in observation.items():
        wrong = np.argwhere(~np.isfinite(values))
        if len(wrong):
            place = "".join(f"[{index}]" for index in wrong[0])
            what = f"the observation '{key}'{place} is {values[tuple(wrong[0])]}"
            break
    return RowFailure(
        row=row,
        cause="non_finite",
        verb=verb,
        message=f"row {row} of '{shown_level(level)}' failed in {verb}: {what}"
        f"{_definition(env, verb)}",
        evidence={
            **{f"observation/{key}": np.array(values) for key, values in observation.items()},
            "reward": np.array(reward),
        },
    )


def instability_counters(env: object) -> IntArray | None:
    """MuJoCo's counters of instabilities in a Gymnasium environment; None without MuJoCo.

    They are a view of the simulator's memory, which never moves.
    """
    data = getattr(getattr(env, "unwrapped", env), "data", None)
    if data is None or not type(data).__module__.startswith("mujoco."):
        return None
    import mujoco  # already imported by such an environment

    warning = mujoco.mjtWarning
    counters: IntArray = data.warning.number[warning.mjWARN_BADQPOS : warning.mjWARN_BADCTRL + 1]
    return counters


def first_of_each(failures: Sequence[tuple[int, RowFailure]]) -> dict[int, RowFailure]:
    """The first failure at each position, in the order of positions."""
    return dict(sorted(dict(reversed(failures)).items()))


def non_finite_places(observation: Observation, reward: FloatArray) -> list[int]:
    """Positions of the rows with NaN or infinity in an observation [R, ...] or a reward [R]."""
    failed = ~np.isfinite(reward)
    for values in observation.values():
        failed |= ~np.isfinite(values).reshape(len(reward), -1).all(axis=1)
    places: list[int] = np.flatnonzero(failed).tolist()
    return places


def is_finite(values: Array) -> bool:
    """Return whether an array of any kind has neither NaN nor infinity.

    A finite sum of squares proves it in a fifth of the time; it may overflow.
    """
    if values.dtype.kind != "f":
        return True
    flat = values.ravel()
    return math.isfinite(flat.dot(flat)) or bool(np.isfinite(flat).all())


def _stopped(kind: type[RunError], message: str, evidence: Mapping[str, Array | str]) -> RunError:
    """The error that ends a run, caused by the environment's traceback, for `--debug`."""
    error = kind(message, evidence=evidence)
    if "traceback" in evidence:
        error.__cause__ = RemoteTraceback(evidence["traceback"])
    return error


def _other_interface(error: BaseException, text: str, verb: str) -> str:
    """The message about an answer of another form, if the error and its text show one; or empty."""
    if isinstance(error, ValueError) and verb == "step" and "expected 5, got" in text:
        count = text.partition("got ")[2].partition(")")[0]
        return f"step gave {count} values, not 5; {_OLD_INTERFACE}"
    if isinstance(error, TypeError) and verb == "reset":
        for name in ("seed", "options"):
            if f"unexpected keyword argument '{name}'" in text:
                return f"reset takes no {name}; {_OLD_INTERFACE}"
    if isinstance(error, OldInterface):
        return f"{text}; {_OLD_INTERFACE}"
    if "unpack" in text and isinstance(error, TypeError | ValueError):
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        if frame.f_globals.get("__name__", "").startswith(_WRAPPERS):
            return f"a wrapper cannot read what {verb} returned: {text}; {_INTERFACE}"
    return ""


def raised_at(error: BaseException, env: object = None) -> str:
    """File and line of the user's code that raised an error, the innermost.

    Args:
        error: The error.
        env: The environment whose code is preferred; None for any code outside libraries.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = _file_of(type(getattr(env, "unwrapped", env)))
    of_user = [frame for frame in frames if not frame.filename.startswith(LIBRARIES)]
    chosen = (
        [frame for frame in of_user if frame.filename == own]
        or of_user
        or [frame for frame in frames if frame.filename == own]
        or frames
    )
    return f"{Path(chosen[-1].filename).name}, line {chosen[-1].lineno}"


def _definition(env: object, verb: str) -> str:
    """File and line of the environment's method, where it is known; starts with a space."""
    code = getattr(getattr(type(getattr(env, "unwrapped", env)), verb, None), "__code__", None)
    return f" ({Path(code.co_filename).name}, line {code.co_firstlineno})" if code else ""


def _file_of(kind: type) -> str | None:
    try:
        return inspect.getfile(kind)
    except (TypeError, OSError):
        return None
