"""Extensions: what folders beside the core add, read from their tables without importing them.

Each has a file `extension.toml`:

    summary = "Graphs of places, on which a level plans its way"
    needs = ["hiro"]                               # extensions without which it does not work
    presets = ["AntMaze_Graph"]
    needed_by = []                                 # presets and helpers of others that need it
    used_by = []                                   # those that need it under some settings alone
    helpers = []                                   # files below presets that its presets import
    environments = []                              # folders and files below environments
    packages = []                                  # whose versions a run that imports them records
    pages = ["algorithms/graph.md"]                # below docs
    tests = ["tests/extensions/planning"]
    flags = "my_package.gaits.commands:FOR_RUNS"   # for commands about one run, see `cli.flags`

    [names]                                        # public names, by their module
    "coach_rl.extensions.planning.places" = ["GridPlaces", "FarthestPoints"]

    [tasks]                                        # environments by name, by their parameters
    "coach_rl.environments.gait.parameters:GaitParameters" = ["trot", "walk"]

    [variants.SACAgentParameters]                  # by kind of space, see `core.variants`
    MultiBinary = "my_package.switches:SwitchesLearner"

    [variants.update_mode]                         # by the mode's name, see the core's update_modes
    halved = "my_package.halved:Halved"

    [offers]                                       # modules that other extensions import, if there
    exporting = ["coach_rl.extensions.planning.exported"]

    [familiar.flags]                               # likewise settings, presets, ...
    "stride pace" = ["--gait"]                     # names of other libraries, and those here

    [commands.gait]                                # see `Command` of `cli.parser`
    arguments = "RUN [flags]"
    description = "Print the gait of a run."
    run = "my_package.gaits.commands:gait"         # from `Given` to the exit code
    flags = "my_package.gaits.commands:FLAGS"      # a sequence of `Flag`; none without it

A task is one that `coach_rl.environments.parameters` and `coach -lvl` find. Its parameters get its
name where they have a field `level`, and are made without any where they have none.

A command named `train --seeds` is the form of `train` that is meant where that flag is given.
`coach_rl.NAME` is a public name of the core or of an extension that is there; deleting a folder
takes its names and flags away. Another package offers an extension by naming the package that its
table lies in; `coach` has its commands and flags then, and `-cp` its components:

    [project.entry-points."coach.extensions"]
    gaits = "my_package.gaits"

Light on purpose: nothing is imported.
"""

import importlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

from coach_rl.configuration.entry_points import EXTENSIONS, EntryPoint, installed_entries
from coach_rl.core.errors import ConfigurationError, in_one_line

TABLE = "extension.toml"
"""The file that describes an extension."""
FOLDER = Path(__file__).parent.parent / "extensions"
"""The folder of the extensions that come with coach_rl."""
Document: TypeAlias = dict[str, object]
"""The content of a table."""
_MOST_BYTES = 100_000
"""Size of the largest table that is read."""
_LISTS = (
    "needs", "presets", "needed_by", "used_by", "helpers", "environments", "packages", "pages",
    "tests",
)  # fmt: skip
_TABLES = ("names", "tasks", "offers", "variants", "familiar", "commands")
_TEXTS = (
    "after_run", "arguments", "description", "run", "flags", "subject", "limits", "flag_group",
    "shown",
)  # fmt: skip
_REQUIRED = ("arguments", "description")
_FAMILIAR = ("settings", "flags", "commands", "classes", "presets", "methods")
_COMMAND = r"[a-z][a-z0-9_-]*( [a-z][a-z0-9_-]*)?( --?[a-z][a-z_]*)?"
_MODULE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_PLACE = rf"{_MODULE}(:[A-Za-z_]\w*)+"


@dataclass(frozen=True, kw_only=True)
class Extension:
    """The table of one extension."""

    name: str
    """The name of its folder."""
    summary: str
    """Its purpose, in a few words."""
    needs: tuple[str, ...] = ()
    """The extensions without which it does not work."""
    presets: tuple[str, ...] = ()
    """Its presets."""
    needed_by: tuple[str, ...] = ()
    """Presets of other extensions, and files that presets import, that do not work without it."""
    used_by: tuple[str, ...] = ()
    """Those that do, but for some of their settings."""
    helpers: tuple[str, ...] = ()
    """Files below `presets` that its presets import."""
    environments: tuple[str, ...] = ()
    """Its folders and files below `environments`."""
    packages: tuple[str, ...] = ()
    """Packages that may change its numbers; a run that has imported one records its version."""
    pages: tuple[str, ...] = ()
    """Its pages below `docs`."""
    tests: tuple[str, ...] = ()
    """The files and folders of its tests."""
    flags: str = ""
    """`module:NAME` of the flags that it adds to commands about one run; empty: none."""
    names: Mapping[str, tuple[str, ...]]
    """Its public names by module."""
    commands: Mapping[str, Mapping[str, str]]
    """Its commands by name, with the fields of each."""
    tasks: Mapping[str, tuple[str, ...]]
    """Names of the tasks of its environments, by the place of their parameters."""
    offers: Mapping[str, tuple[str, ...]]
    """Its modules that another extension imports, by the name of that one; with them it knows what
    this one adds, without needing it."""
    variants: Mapping[str, Mapping[str, str]]
    """Its classes, `module:NAME`, by what they are variants of and by the kind of space that each
    is for."""
    familiar: Mapping[str, Mapping[str, tuple[str, ...]]]
    """Its `flags`, `commands` and `classes` by the names that other libraries have for them, which
    blanks separate; messages about unknown names suggest them."""
    package: str = ""
    """The installed package that it belongs to, with its version; empty: coach_rl."""

    def public_names(self) -> dict[str, tuple[str, str]]:
        """The module of each public name, and the name there."""
        return {name: (module, name) for module, names in self.names.items() for name in names}


@cache
def own_extensions() -> tuple[Extension, ...]:
    """The extensions that come with coach_rl, by name."""
    files = {file.parent.name: file for file in sorted(FOLDER.glob(f"*/{TABLE}"))}
    return _cached(files)


@cache
def public_names() -> dict[str, tuple[str, str]]:
    """The public names of the extensions that come with coach_rl: their module, the name there."""
    return {
        name: place
        for extension in own_extensions()
        for name, place in extension.public_names().items()
    }


def installed_extensions(
    points: Sequence[EntryPoint] | None = None,
) -> tuple[list[Extension], dict[str, str]]:
    """The extensions of installed packages, and the reasons why others cannot be used, by name.

    Args:
        points: What `entry_points` returned; None reads them now.
    """
    extensions: list[Extension] = []
    problems: dict[str, str] = {}
    own = [each.name for each in own_extensions()]
    for entry in installed_entries(EXTENSIONS, own, points):
        problem = entry.problem
        if entry.file is not None and not problem:
            try:
                found = read_extension(entry.name, entry.file.with_name(TABLE))
                extensions.append(replace(found, package=entry.package))
            except ConfigurationError as error:
                problem = str(error)
        if problem:
            problems[f"{entry.name} ({entry.package})"] = problem
    return extensions, problems


def variants_of(name: str) -> dict[str, str]:
    """The places `module:NAME` of the variants that all extensions there have, by kind of space.

    Args:
        name: What they are variants of.

    Raises:
        ConfigurationError: Two extensions have one for the same kind.
    """
    owners: dict[str, str] = {}
    places: dict[str, str] = {}
    for extension in (*own_extensions(), *installed_extensions()[0]):
        for kind, place in extension.variants.get(name, {}).items():
            if kind in owners:
                raise ConfigurationError(
                    f"the extensions '{owners[kind]}' and '{extension.name}' both have a variant "
                    f"of {name} for {kind}; uninstall one of them"
                )
            owners[kind] = extension.name
            places[kind] = place
    return places


def import_offers(name: str) -> None:
    """Import what all extensions that are there offer to one of them, or to `describe`.

    Raises:
        ConfigurationError: A module of another package cannot be imported.
    """
    for extension in (*own_extensions(), *installed_extensions()[0]):
        for module in extension.offers.get(name, ()):
            try:
                importlib.import_module(module)
            except Exception as error:
                if not extension.package:
                    raise
                raise ConfigurationError(
                    f"the extension '{extension.name}' ({extension.package}) offers {module} to "
                    f"{name}, which cannot be imported: {in_one_line(error)}"
                ) from error


def read_extension(name: str, file: Path) -> Extension:
    """The extension that a table describes.

    Args:
        name: Of the extension.
        file: The table.

    Raises:
        ConfigurationError: It cannot be read, or has another form.
    """
    return _extension(name, _read(name, file))


def _read(name: str, file: Path) -> Document:
    """The content of a table; ConfigurationError where it has another form."""
    import tomllib  # not at the top: what is cached needs none of it

    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"it has more than {_MOST_BYTES:,} bytes")
        document = tomllib.loads(content.decode())
        _check_names(_extension(name, document))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"the extension '{name}' cannot be read, {file}: {error}"
        ) from error
    return document


def _cached(files: Mapping[str, Path]) -> tuple[Extension, ...]:
    """The extensions in our tables: from one file if none has changed since it was written.

    As Python keeps compiled modules, they are kept in `__pycache__` where that can be written.
    """
    import json  # not at the top: importing coach_rl alone needs none of it

    about = {name: file.stat() for name, file in files.items()}
    stamps = {name: [each.st_mtime_ns, each.st_size] for name, each in about.items()}
    cache = FOLDER / "__pycache__" / "tables.json"
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        kept = json.loads(cache.read_bytes())
        if kept["stamps"] == stamps:
            return tuple(_extension(name, kept["tables"][name]) for name in files)
    tables = {name: _read(name, file) for name, file in files.items()}
    if not sys.dont_write_bytecode:
        with suppress(OSError):
            cache.parent.mkdir(exist_ok=True)
            unfinished = cache.with_suffix(f".{os.getpid()}")
            unfinished.write_text(json.dumps({"stamps": stamps, "tables": tables}))
            unfinished.replace(cache)
    return tuple(_extension(name, table) for name, table in tables.items())


def _extension(name: str, document: Document) -> Extension:
    """The extension of a document; ValueError where it has another form."""
    known = ("summary", *_LISTS, "flags", *_TABLES)
    if unknown := sorted(document.keys() - set(known)):
        raise ValueError(f"unknown key '{unknown[0]}'; known are {', '.join(known)}")
    summary = document.get("summary")
    if not isinstance(summary, str) or not summary:
        raise ValueError("it lacks a summary, which states its purpose")
    lists_by_name = {key: _lists(document, key) for key in ("names", "tasks", "offers")}
    commands, variants = (
        {each: _texts(texts, f"{key}.{each}") for each, texts in _table(document, key).items()}
        for key in ("commands", "variants")
    )
    flags = document.get("flags", "")
    if not isinstance(flags, str) or (flags and not re.fullmatch(_PLACE, flags)):
        raise ValueError(f"flags is {flags!r}; write package.module:NAME")
    lists = {key: _list(document.get(key, []), key) for key in _LISTS}
    return Extension(
        name=name,
        summary=summary,
        needs=lists["needs"],
        presets=lists["presets"],
        needed_by=lists["needed_by"],
        used_by=lists["used_by"],
        helpers=lists["helpers"],
        environments=lists["environments"],
        packages=lists["packages"],
        pages=lists["pages"],
        tests=lists["tests"],
        flags=flags,
        names=lists_by_name["names"],
        tasks=lists_by_name["tasks"],
        commands=commands,
        offers=lists_by_name["offers"],
        variants=variants,
        familiar=_familiar(_table(document, "familiar")),
    )


def _check_names(extension: Extension) -> None:
    """Raise ValueError unless names and commands can be found by what stands in the table."""
    for public, (module, _) in extension.public_names().items():
        if not re.fullmatch(_PLACE, f"{module}:{public}"):
            raise ValueError(f'names has \'{module}:{public}\'; write "package.module" = ["Name"]')
    for place in extension.tasks:
        if not re.fullmatch(_PLACE, place):
            raise ValueError(f'tasks has \'{place}\'; write "package.module:Name" = ["task"]')
    for name, modules in extension.offers.items():
        for module in modules:
            if not re.fullmatch(_MODULE, module):
                raise ValueError(f"offers.{name} has '{module}'; write package.module")
    for name, variants in extension.variants.items():
        _check_variants(name, variants)
    for command, fields in extension.commands.items():
        _check_command(command, fields)


def _check_variants(name: str, places: Mapping[str, str]) -> None:
    """Raise ValueError unless kinds of space and the places of variants have their form."""
    for kind, place in places.items():
        if not re.fullmatch(_PLACE, place) or not re.fullmatch(rf"\w+|{_PLACE}", kind):
            raise ValueError(
                f"variants.{name} has '{kind}' = '{place}'; write a kind of space, MultiBinary or "
                '"package.module:Space", and package.module:Name'
            )


def _check_command(name: str, fields: Mapping[str, str]) -> None:
    """Raise ValueError unless a command can be called by its name and has all that it needs."""
    if not re.fullmatch(_COMMAND, name):
        raise ValueError(f"a command cannot be called {name!r}; use small letters, digits, - and _")
    for key in fields:
        if key not in _TEXTS:
            raise ValueError(f"unknown key '{key}' in commands.{name}")
    for key in _REQUIRED:
        if not fields.get(key):
            raise ValueError(f"commands.{name} lacks '{key}'")
    for key in ("run", "flags"):
        if fields.get(key) and not re.fullmatch(_PLACE, fields[key]):
            raise ValueError(f"commands.{name}.{key} is '{fields[key]}'; write package.module:name")


def _table(document: Document, key: str) -> Document:
    table = document.get(key, {})
    if not isinstance(table, dict):
        raise ValueError(f"'{key}' is no table")
    return table


def _familiar(table: Document) -> dict[str, dict[str, tuple[str, ...]]]:
    for kind in table:
        if kind not in _FAMILIAR:
            raise ValueError(f"unknown key 'familiar.{kind}'; known are {', '.join(_FAMILIAR)}")
    return {kind: _lists(table, kind) for kind in table}


def _lists(document: Document, key: str) -> dict[str, tuple[str, ...]]:
    return {name: _list(each, f"{key}.{name}") for name, each in _table(document, key).items()}


def _texts(table: object, key: str) -> dict[str, str]:
    if not isinstance(table, dict) or not all(isinstance(each, str) for each in table.values()):
        raise ValueError(f"'{key}' is no table of texts")
    return table


def _list(value: object, key: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"'{key}' is no list of texts")
    return tuple(value)
