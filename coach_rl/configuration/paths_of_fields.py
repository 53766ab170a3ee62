"""Paths that `-cp` takes, added to errors that name a field as `Class.field`."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from coach_rl.configuration.overrides import parameter_paths
from coach_rl.core.errors import ConfigurationError

_FIELD = re.compile(r"\b([A-Z]\w*)\.(\w+)")
MOST_NAMED = 4
"""Paths that a message names at most: the networks of an agent or two."""


@contextmanager
def paths_named(parameters: object) -> Iterator[None]:
    """Errors of settings inside that name fields also give their paths in an experiment.

    Args:
        parameters: Those of the experiment.
    """
    try:
        yield
    except ConfigurationError as error:
        text = str(error)
        fields = dict.fromkeys(_FIELD.findall(text))
        paths = [path for field in fields for path in paths_of_field(parameters, *field)]
        if not paths or any(path in text for path in paths):
            raise
        others = ", ..." if len(paths) > MOST_NAMED else ""
        error.args = (f"{text}; by path: {', '.join(paths[:MOST_NAMED])}{others}", *error.args[1:])
        raise


def paths_of_field(parameters: object, kind: str, field: str) -> list[str]:
    """The paths of a field in all parameters that are of a class of that name, or derive from it.

    Args:
        parameters: Those of an experiment.
        kind: Name of the class.
        field: Name of its field.
    """
    owners = {
        path
        for path, value, _ in parameter_paths(parameters)
        if kind in (each.__name__ for each in type(value).__mro__)
    }
    paths = [path for path, _, _ in parameter_paths(parameters)]
    fields = {f"{owner}.{field}" for owner in owners}
    return [path for path in paths if path in fields]
