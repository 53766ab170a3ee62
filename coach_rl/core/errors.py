"""The errors this package raises on purpose.

CoachError
├── ConfigurationError      what the user requested cannot be done (exit code 2)
│   ├── UnknownNameError    a name that does not exist; lists the nearest ones
│   ├── ParameterError      a parameter's value breaks its rule
│   │   └── ProblemsError   several problems, found at once
│   └── SpaceError          two spaces that had to fit do not
└── RunError                something went wrong while running (exit code 1)
    ├── EnvironmentFault    an environment broke its contract or died
    ├── NonFiniteError      NaN or infinity where a number was needed
    │   └── DivergedError   what an agent has learned is not finite any more
    ├── ActionError         an action outside its space, or for a row that cannot take one
    ├── CallbackError       a callback of the user's failed
    └── CheckpointError     a checkpoint that cannot be written or read

A message names what is wrong, the value received, what is allowed, and what to do next. What the
user should know and nothing has to stop for is a `CoachWarning`.
"""

import difflib
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import takewhile

from coach_rl.core.shown_text import shown_error

MOST_LISTED = 12
"""Number of names up to which a message lists all."""
_SIMILAR = 0.75
"""Similarity from which a name is suggested, of 1 for the same; above that of most other words."""
_SHARED_BEGINNING, _SHARED_LETTERS = 0.6, 3
"""Fraction of a name, and number of its letters, that a suggested name may begin with instead."""


class CoachError(Exception):
    """Every error raised on purpose; `exit_code` is what the command line returns for it."""

    exit_code = 1


class ConfigurationError(CoachError):
    """The user's settings cannot be used."""

    exit_code = 2


class ParameterError(ConfigurationError):
    """A parameter's value breaks its rule."""


class ProblemsError(ParameterError):
    """Several problems that keep a run from starting.

    Args:
        problems: One line each.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        numbered = (f"({number}) {each}" for number, each in enumerate(problems, start=1))
        super().__init__(f"{len(problems)} problems: {'; '.join(numbered)}")


class SpaceError(ConfigurationError):
    """Two spaces that had to fit do not."""


class UnknownNameError(ConfigurationError):
    """A name that does not exist.

    Args:
        kind: The kind of thing that the name stands for, e.g. "preset".
        name: The name received.
        allowed: Every name that would have been accepted.
        hint: What to do next, e.g. "`coach -l` lists them".
        near: The names most likely meant, where more than their spelling is known about them.
        where: The place that was searched, e.g. "in 'agent'".
    """

    def __init__(
        self,
        kind: str,
        name: str,
        allowed: Iterable[str],
        hint: str = "",
        near: Sequence[str] = (),
        *,
        where: str = "",
    ) -> None:
        self.kind = kind
        self.name = name
        self.allowed = sorted(allowed)
        advice = _did_you_mean(near) if near else suggestion(name, self.allowed)
        place = f" {where}" if where else ""
        aside = f" ({hint})" if hint else ""
        super().__init__(f"unknown {kind} '{name}'{place}{advice}{aside}")


class RunError(CoachError):
    """Something went wrong while running.

    Args:
        message: What, in one line.
        evidence: Arrays and text that show the cause, by name; written to a file where there is a
            run folder.
    """

    def __init__(self, message: str, *, evidence: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.evidence = dict(evidence or {})


class EnvironmentFault(RunError):
    """An environment broke its contract or died."""


class NonFiniteError(RunError):
    """NaN or infinity where a finite number was needed."""


class DivergedError(NonFiniteError):
    """An agent's gradients, parameters or answers are no longer finite."""


class ActionError(RunError):
    """An action outside its space, or for a row that cannot take one now."""


class CallbackError(RunError):
    """A callback of the user's failed."""


class CheckpointError(RunError):
    """A checkpoint that cannot be written or read."""


class CoachWarning(UserWarning):
    """A condition that the user should know about; the run continues."""


field_hints: list[Callable[[str, Collection[str]], Sequence[str]]] = []
"""Functions from an unknown field of a parameter class and the known ones to those that may be
meant; what runs the engine adds one that knows the names of other libraries."""


def suggestion(name: str, allowed: Iterable[str], limit: int = MOST_LISTED) -> str:
    """The tail of a message about an unknown name: the nearest names, or all when there are few.

    Args:
        name: The name received.
        allowed: The names accepted.
        limit: How many names may be listed when none is near.

    Returns:
        A string that starts with a separator, ready to append; empty when nothing is allowed.
    """
    names = list(allowed)
    near = near_names(name, names)
    if near:
        return _did_you_mean(near)
    if names and len(names) <= limit:
        return f"; allowed: {', '.join(names)}"
    return ""


def near_names(name: str, allowed: Iterable[str]) -> list[str]:
    """Up to three names that one may be a misspelling of, in any case, the most similar first."""
    by_lower = {known.lower(): known for known in allowed}
    similar = {key: _similarity(name.lower(), key) for key in by_lower}
    near = sorted(similar, key=lambda key: (similar[key], key), reverse=True)[:3]
    return [by_lower[key] for key in near if similar[key] >= _SIMILAR]


def _similarity(name: str, known: str) -> float:
    """Similarity of two names, 1 for the same; high for swapped letters and a shared beginning."""
    ratio = difflib.SequenceMatcher(None, known, name).ratio()
    shared = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, known, strict=False))
    )
    begins_alike = shared >= max(_SHARED_LETTERS, _SHARED_BEGINNING * len(name))
    is_near = begins_alike or sorted(name) == sorted(known)
    return max(ratio, _SIMILAR) if is_near else ratio


def how_to_install(extra: str) -> str:
    """The command that installs one of our extras, for messages; the package is not published."""
    return f'`pip install -e ".[{extra}]"` in the checkout installs it'


def in_one_line(error: BaseException) -> str:
    """An error's message; with its type and place where it is not one of ours."""
    if isinstance(error, CoachError):
        return " ".join(str(error).split())
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{shown_error(error)} ({where.filename}:{where.lineno})"


@contextmanager
def exits_as_errors() -> Iterator[None]:
    """Raise what ends a process silently, such as SystemExit, as a RunError; Ctrl-C stays itself.

    For code of others, which must not decide that a run has succeeded.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        function = [each.name for each in frames if "_sitebuiltins" not in each.filename][-1]
        raise RunError(
            f"{in_one_line(error)} was raised inside the run, in {function}(); environments, "
            "callbacks and other code of a run must not end the process"
        ) from error


def close_failure(
    what: str,
    close: Callable[[], object],
    described: Callable[[BaseException], str] = in_one_line,
) -> str:
    """A warning where closing a part of the user's own fails, which changes no exit code; else "".

    A KeyboardInterrupt of a signal to the run, which has the signal's number, is raised.

    Args:
        what: The part, for the warning.
        close: Closes it.
        described: The error in one line.
    """
    try:
        close()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and hasattr(error, "signal"):
            raise
        return f"{what} failed in close: {described(error)}; the run is not affected"
    return ""


def close_safely(what: str, close: Callable[[], object]) -> None:
    """Close a part of the user's own; where that fails, warn."""
    if failure := close_failure(what, close):
        warn(failure)


def warn(message: str) -> None:
    """Issue a `CoachWarning`, located where a program calls this package."""
    frames = (frame for frame, _ in traceback.walk_stack(sys._getframe()))
    ours = [str(frame.f_globals.get("__name__")).startswith("coach_rl") for frame in frames]
    warnings.warn(message, CoachWarning, stacklevel=len(ours) + 1 - ours[::-1].index(True))


def require(condition: bool, message: str) -> None:
    """Raise `ParameterError` with `message` unless `condition` holds."""
    if not condition:
        raise ParameterError(message)


def problems_of(
    check: Callable[..., object], *args: object, **named: object
) -> Iterator[ConfigurationError]:
    """The error that a check raises about what the user has configured, if it raises one."""
    try:
        check(*args, **named)
    except ConfigurationError as error:
        yield error


def require_no_problems(problems: Iterable[str | ConfigurationError]) -> None:
    """Raise the only problem as its own error, and several as one `ProblemsError`."""
    found = list(problems)
    if len(found) > 1:
        lines = (
            each.problems if isinstance(each, ProblemsError) else [str(each)] for each in found
        )
        raise ProblemsError([line for several in lines for line in several])
    for each in found:
        raise ParameterError(each) if isinstance(each, str) else each


def _did_you_mean(names: Sequence[str]) -> str:
    return f"; did you mean {' or '.join(repr(name) for name in names)}?"
