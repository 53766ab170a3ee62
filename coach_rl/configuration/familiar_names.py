"""Names that other libraries give to settings, flags, commands and classes, and those here.

Ours stand in `elsewhere.toml`, those of an extension in its table. Only messages about unknown
names use them.
"""

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Literal

from coach_rl.configuration.extensions import installed_extensions, own_extensions

Kind = Literal["settings", "flags", "commands", "classes", "presets", "methods"]
MOST_SUGGESTED = 3
"""Names that a message suggests at most."""


@cache
def names_here(kind: Kind) -> Mapping[str, tuple[str, ...]]:
    """The names here by each name elsewhere; the first one is the most likely.

    Settings are names of control panels, or paths as most presets have them. Flags have no dashes
    elsewhere. Presets may be patterns.
    """
    text = resources.files("coach_rl.configuration").joinpath("elsewhere.toml").read_text("utf-8")
    tables = [tomllib.loads(text)[kind]]
    # Packages are read for messages about commands alone: a program may try a name in vain.
    others = () if kind == "classes" else installed_extensions()[0]
    extensions = (*own_extensions(), *others)
    tables += [extension.familiar.get(kind, {}) for extension in extensions]
    return {
        name: tuple(here)
        for table in tables
        for names, here in table.items()
        for name in names.split()
    }


def familiar_settings(name: str, known: Iterable[str]) -> list[str] | None:
    """The settings that a name from elsewhere stands for.

    Args:
        name: The name, in any case.
        known: The names of a control panel and the paths of parameters.

    Returns:
        Those of the known ones that it stands for, of the panel if it has one; None where the name
        is not from elsewhere.
    """
    targets = names_here("settings").get(name.lower())
    if targets is None:
        return None
    names = list(known)
    found = dict.fromkeys(each for target in targets for each in names if _is_at(each, target))
    return [each for each in found if "." not in each] or list(found)


def familiar_fields(name: str, fields: Collection[str]) -> list[str]:
    """The fields of a parameter class, or paths below them, that an unknown name stands for."""
    ends = [
        target.split(".", first)[-1]
        for target in names_here("settings").get(name.lower(), ())
        for first in range(target.count(".") + 1)
    ]
    return list(dict.fromkeys(end for end in ends if end.partition(".")[0] in fields))


def familiar_presets(name: str) -> Sequence[str]:
    """The presets, or pages, that a preset or program of another library stands for.

    Args:
        name: Its name, in any case; those in the table may be patterns, such as `Atari_*`.
    """
    lowered = name.lower()
    named = names_here("presets").items()
    return next((here for each, here in named if fnmatchcase(lowered, each.lower())), ())


def familiar_flags(flag: str, flags: Collection[str], settings: Collection[str]) -> list[str]:
    """The flags that an unknown one may stand for, a command or a page, or `-cp` with a setting.

    Args:
        flag: A flag of another library, or the name of a setting with dashes.
        flags: All flags that exist.
        settings: The panel and the paths of the preset that is named; empty where none is, and the
            settings that most presets have are suggested.
    """
    name = flag.lstrip("-").replace("-", "_").lower()
    meant = names_here("flags").get(name, ())
    here = [each for each in meant if each in flags or not each.startswith("-")]
    if here or "-cp" not in flags:
        return here
    own = [each for each in settings if each == name or each.endswith(f".{name}")]
    found = own or familiar_settings(name, settings) or []
    usual = names_here("settings").get(name, ())
    if usual and not found:
        if settings:
            return [f"the setting {usual[0]} of other presets"]
        found = [usual[0]]
    return [f'-cp "{each}=..."' for each in found[:MOST_SUGGESTED]]


def _is_at(name: str, target: str) -> bool:
    """True if a name is a target, or its path in another agent."""
    _, dot, below = target.partition("agent.")
    return name == target or (bool(dot) and name.endswith(f".{below}"))
