"""Reading changes as the user writes them: `panel=1e-3; agent.algorithm.discount=0.98`.

Values are Python literals, bare words are strings, and what is written like a call is a component
(`agent.exploration=EpsilonGreedy(epsilon=0.1)`); nothing is ever executed.
"""

import ast
import re

from coach_rl.configuration.components import Component, component_type
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.steps import StepUnit

_PATH = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
_BARE_WORD = re.compile(r"[^\s'\"()\[\]{},=]+")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def parse_overrides(text: str) -> dict[str, object]:
    """The assignments in `name=value; path.to.name=value`.

    Args:
        text: Assignments separated by `;`; a `;` inside quotes or brackets belongs to the value.

    Returns:
        Values by name: literals and components.

    Raises:
        ConfigurationError: Something is no assignment, has no readable value, or is given twice.
    """
    return {name: _value(name, literal) for name, literal in assignments(text).items()}


def assignments(text: str) -> dict[str, str]:
    """The texts of the values in `name=value; path.to.name=value`, by name.

    Raises:
        ConfigurationError: Something is no assignment, or is given twice.
    """
    found: dict[str, str] = {}
    for part in _split(text):
        name, equals, literal = (piece.strip() for piece in part.partition("="))
        if not equals or not _PATH.fullmatch(name):
            raise ConfigurationError(
                f"cannot read the override '{part}'; write name=value or path.to.name=value, "
                "separated by ';'"
            )
        if name in found:
            raise ConfigurationError(f"the override '{name}' is given twice; give one")
        found[name] = literal
    return found


def read_call(text: str) -> tuple[str, list[object], dict[str, object]] | None:
    """The name, the values and the named values of `name(value, name=value)`.

    Values are read as those of overrides are; nothing is executed.

    Returns:
        None where the text is no call, or a value in it cannot be read.

    Raises:
        ConfigurationError: A component in it does not exist, or its arguments have no names.
    """
    try:
        match ast.parse(text.strip(), mode="eval").body:
            case ast.Call(func=ast.Name(id=name), args=values, keywords=named):
                by_name = {each.arg: _read(_quoted(each.value)) for each in named if each.arg}
                if len(by_name) == len(named):
                    return name, [_read(_quoted(value)) for value in values], by_name
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    return None


def _split(text: str) -> list[str]:
    """The parts between the `;` that stand outside quotes and brackets."""
    parts, start, quote, open_brackets, is_escaped = [], 0, "", 0, False
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote and not is_escaped else quote
            is_escaped = character == "\\" and not is_escaped
        elif character in "'\"":
            quote = character
        elif character in _CLOSING:
            open_brackets += 1
        elif character in _CLOSING.values():
            open_brackets -= 1
        elif character == ";" and open_brackets <= 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _value(name: str, text: str) -> object:
    """The literal, bare word or component that a text is."""
    if _BARE_WORD.fullmatch(text) and not _is_literal(text):
        return text
    try:
        return _read(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    if re.search(r",\s*[A-Za-z_][\w.]*\s*=", text):
        raise ConfigurationError(f"cannot read '{name}={text}'; separate changes with ';'")
    raise ConfigurationError(
        f"cannot read the value {text!r} of '{name}'; write a number, a word, 'quoted text', True, "
        "False, None, a tuple such as (64, 64) or ('x', 'y'), or a component such as "
        "EpsilonGreedy(epsilon=0.1)"
    )


def _is_literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True


def _read(node: ast.expr) -> object:
    """A literal that may contain components, and bare words in their arguments.

    Raises:
        ValueError: It is something else.
        ConfigurationError: A component's arguments are not given by name.
    """
    match node:
        case ast.Call(func=ast.Name(id=name), args=positional, keywords=keywords):
            arguments = {each.arg: _read(_quoted(each.value)) for each in keywords if each.arg}
            if len(positional) == 1 and name in [
                unit.__name__ for unit in StepUnit.__subclasses__()
            ]:
                arguments["count"] = _read(positional.pop())
            if positional or len(arguments) < len(keywords):
                component_type(name)  # a name that is unknown is reported first
                raise ConfigurationError(f"give the arguments of {name}(...) by name, each once")
            return Component(name, arguments)
        case ast.Tuple(elts=parts):
            return tuple(map(_read, parts))
        case ast.List(elts=parts):
            return list(map(_read, parts))
        case ast.Dict(keys=keys, values=values) if None not in keys:
            read = (_read(_quoted(key)) for key in keys if key is not None)
            return dict(zip(read, map(_read, values), strict=True))
    return ast.literal_eval(node)


def _quoted(node: ast.expr) -> ast.expr:
    return ast.Constant(node.id) if isinstance(node, ast.Name) else node
