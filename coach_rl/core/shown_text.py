"""Values as people see them: sizes, names of tasks, text without control characters."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_CHARACTERS = 2_000
"""Characters of a value or of an error's message that are shown or logged at most."""


def readable(size: float) -> str:
    """Bytes as people read them, in powers of 1000."""
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"


def name_of_class(level: object) -> str:
    """The end of an error message: the name of an object given instead of its name."""
    thing = level if hasattr(level, "__qualname__") else type(level)
    name = f"'{thing.__module__}:{thing.__qualname__}'"
    if thing.__module__.startswith("coach_preset_"):  # a name that changes with the preset
        name = f"f'{{__name__}}:{thing.__qualname__}'"
    if "<" in name:
        return "; name a class or function of a module as module:Class"
    return f"; name its class, here {name}" if thing is not level else f"; write {name}"


def shown_level(level: str) -> str:
    """The level as users know it: a class of a preset under the preset's file name.

    A preset's module has a name that changes with its content.
    """
    module, colon, name = level.rpartition(":")
    file = getattr(sys.modules.get(module), "__file__", None)
    if not (colon and file and module.startswith("coach_preset_")):
        return level
    return f"{Path(file).name}:{name}"


def printable(text: str) -> str:
    """The text in one line: control characters, line ends and invisible marks shown escaped."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def printable_lines(text: str) -> str:
    """The same for each line of a text."""
    return "\n".join(map(printable, text.split("\n")))


def one_line(text: str) -> str:
    """A message in one line: its line ends are spaces, other control characters shown escaped."""
    return printable(" ".join(text.split()))


def shortened(text: str, longest: int = MOST_CHARACTERS) -> str:
    """The text, or the beginning and the end of one that is longer."""
    half = longest // 2
    if len(text) <= longest:
        return text
    return f"{text[:half]} [... of {len(text):,} characters ...] {text[-half:]}"


def shown_value(
    value: object, longest: int = MOST_CHARACTERS, *, form: Callable[[Any], str] = repr
) -> str:
    """The text of a value of others' code in one printable line, shortened; `form` may raise."""
    try:
        text = form(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        name = type(value).__name__
        text = f"a value of {name}, whose __{form.__name__}__ raises {type(error).__name__}"
    return printable(shortened(" ".join(text.split()), longest))


def shown_error(error: BaseException) -> str:
    """The type and message of an error of others' code, as `shown_value` shows it."""
    return f"{type(error).__name__}: {shown_value(error, form=str)}".removesuffix(": ")
