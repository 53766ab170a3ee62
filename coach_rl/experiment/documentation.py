"""Meaning of fields and arguments, read from the docstrings beside them."""

import ast
import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any


def documented(thing: Callable[..., Any]) -> dict[str, str]:
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
