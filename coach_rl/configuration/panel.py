"""The control panel of a preset: the few settings that are changed most often.

A preset's function takes one frozen dataclass, whose fields are the panel, or keyword arguments,
and what they mean is read from the docstrings beside them:

    def graph_manager(panel: Panel) -> GraphManager: ...
    def graph_manager(steps: int = 100_000, learning_rate: float = 1e-3) -> GraphManager: ...
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, is_dataclass
from functools import cache
from typing import Any

from coach_rl.configuration.parameters_json import constructor_fields, is_frozen_dataclass
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.typed_values import declared_types

REQUIRED = inspect.Parameter.empty
"""The default of a panel argument that has none."""


@dataclass(frozen=True, kw_only=True)
class PanelArgument:
    """One setting of a preset's control panel."""

    name: str
    """The argument's name."""
    annotation: object
    """Its type; its default's where the preset doesn't say."""
    default: object
    """Its default, `REQUIRED` when there is none."""
    meaning: str
    """Meaning from its docstring; empty if there is none."""


def panel_type(function: Callable[..., object]) -> Callable[..., object] | None:
    """The dataclass of a function's only argument, `panel`; None where it takes others.

    Raises:
        ConfigurationError: The dataclass is not frozen.
    """
    annotation = declared_types(function).get("panel")
    is_alone = list(inspect.signature(function).parameters) == ["panel"]
    if not (is_alone and isinstance(annotation, type) and is_dataclass(annotation)):
        return None
    if not is_frozen_dataclass(annotation):
        raise ConfigurationError(
            f"{annotation.__name__} must be frozen; write @dataclass(frozen=True, kw_only=True) "
            "above it"
        )
    return annotation


def panel_arguments(definition: Callable[..., object]) -> dict[str, PanelArgument]:
    """The fields of a panel's dataclass, or the keyword arguments of a function, by name.

    Raises:
        ConfigurationError: The function takes positional arguments, or a type does not exist.
    """
    annotations, meanings = declared_types(definition), documented(definition)
    if is_dataclass(definition):
        defaults = {field.name: _default(field) for field in constructor_fields(definition)}
    else:
        defaults = _defaults(definition)
    return {
        name: PanelArgument(
            name=name,
            annotation=annotations.get(name, _type_of(default)),
            default=default,
            meaning=meanings.get(name, ""),
        )
        for name, default in defaults.items()
    }


def documented(thing: Callable[..., object]) -> dict[str, str]:
    """The meaning of a dataclass's fields or a function's arguments, by name, each in one line.

    Of a class, the string under each field counts, and that of a base class where a field has none
    of its own; of a function, the `Args:` of its docstring. What is not documented is left out.
    """
    if not inspect.isclass(thing):
        return _arguments(inspect.getdoc(thing) or "")
    meanings: dict[str, str] = {}
    for each in reversed(thing.__mro__):
        meanings |= _field_docstrings(each.__module__).get(each.__qualname__, {})
    return meanings


def _default(field: Field[object]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING else field.default


def _defaults(function: Callable[..., object]) -> dict[str, object]:
    defaults = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise ConfigurationError(
                f"{function.__name__}() must take keyword arguments only, '{parameter.name}' is "
                "positional"
            )
        if parameter.kind is not parameter.VAR_KEYWORD:
            defaults[parameter.name] = parameter.default
    return defaults


def _type_of(default: object) -> object:
    return Any if default is REQUIRED or default is None else type(default)


@cache
def _field_docstrings(module_name: str) -> dict[str, dict[str, str]]:
    """The strings under the fields of every class in a module, by qualified name."""
    try:
        source = inspect.getsource(sys.modules[module_name])
    except (KeyError, OSError, TypeError):
        return {}  # made at run time, so there is nothing to read
    found: dict[str, dict[str, str]] = {}
    _collect(ast.parse(source).body, "", found)
    return found


def _collect(body: list[ast.stmt], prefix: str, found: dict[str, dict[str, str]]) -> None:
    for node in body:
        if isinstance(node, ast.ClassDef):
            name = f"{prefix}{node.name}"
            found[name] = dict(
                (field.target.id, _in_one_line(below.value.value))
                for field, below in zip(node.body, node.body[1:], strict=False)
                if isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            )
            _collect(node.body, f"{name}.", found)


def _arguments(docstring: str) -> dict[str, str]:
    """The entries of a docstring's `Args:`, whose continued lines are indented further."""
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", docstring, re.MULTILINE)
    if section is None:
        return {}
    entries = re.split(r"^ {4}(\w+)(?: \([^)]*\))?:", section[1], flags=re.MULTILINE)
    return {
        name: _in_one_line(text) for name, text in zip(entries[1::2], entries[2::2], strict=True)
    }


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
