"""Parameter trees and spaces as JSON, and back.

A frozen dataclass becomes `{"$type": "module:QualName", field: value, ...}`, a tuple a JSON array,
an enum member `{"$enum": "module:QualName", "value": ...}`, a class or function `{"$reference":
"module:QualName"}`. What `coach_rl` offers is named `coach_rl:NAME`, wherever its module is.
Numbers, strings, booleans and None stand for themselves; integers and booleans of numpy become
Python's. Decoding builds the dataclasses through their constructors, so every `__post_init__`
checks again. Only frozen dataclasses and enums are ever called, and only modules that are trusted
are imported, see `trust`. A field that its class got only after the document was written takes its
default, and a `CoachWarning` names it: give a new field the default under which nothing changes.

    >>> decode(encode(EnvironmentSteps(5)))
    EnvironmentSteps(count=5)

Spaces describe an agent's observations and actions without its environment. A bound that is the
same in all elements is written once:

    {"kind": "Box", "dtype": "float32", "shape": [4], "low": -1.0, "high": [1.0, 2.0, 1.0, 1.0]}
"""

import importlib
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from coach_rl.configuration.strict_json import (
    FLOAT_TAG,
    Json,
    float_to_json,
    plain_json,
)
from coach_rl.configuration.trust import OURS_ALONE, Trust, code_in_json, code_in_parameters
from coach_rl.core.errors import (
    CheckpointError,
    ConfigurationError,
    SpaceError,
    UnknownNameError,
    warn,
)
from coach_rl.core.lazy_names import public_name
from coach_rl.core.records import Array
from coach_rl.core.runtime import LIVE
from coach_rl.core.spaces import EnvironmentSpaces, Space

TYPE_TAG = "$type"
ENUM_TAG = "$enum"
REFERENCE_TAG = "$reference"
LIST_TAG = "$list"
ITEMS_TAG = "$items"


def encode(value: object, path: str = "parameters") -> Json:
    """A parameter tree as a JSON document.

    Args:
        value: Frozen dataclasses, tuples, lists, mappings, enums, numbers, strings, booleans,
            None, classes, functions.
        path: Where the value stands, for errors.

    Raises:
        ConfigurationError: Something in the tree could not be rebuilt from JSON.
    """
    match value:
        case Enum():
            return {
                ENUM_TAG: reference(type(value), path),
                "value": encode(value.value, f"{path}.value"),
            }
        case None | bool() | str() | int():
            return value
        case float():
            return float_to_json(value)
        case tuple() if type(value) is tuple:
            return [encode(part, f"{path}.{index}") for index, part in enumerate(value)]
        case list():
            return {LIST_TAG: [encode(part, f"{path}.{i}") for i, part in enumerate(value)]}
        case Mapping():
            return _encode_mapping(value, path)
        case type() | types.FunctionType() | types.BuiltinFunctionType():
            return {REFERENCE_TAG: reference(value, path)}
    if isinstance(value, np.integer | np.bool_):
        return bool(value) if isinstance(value, np.bool_) else int(value)
    return _encode_dataclass(value, path)


def decode(document: Json, path: str = "parameters", *, trust: Trust = OURS_ALONE) -> Any:
    """The parameter tree in a JSON document made by `encode`.

    Args:
        document: What `encode` returned.
        path: Where the value stands, for errors.
        trust: Modules that may be imported; also by what is built from the parameters.

    Raises:
        ConfigurationError: A name is not trusted, does not resolve or is not what its tag names, or
            fields do not fit.

    Warns:
        CoachWarning: A field is missing and takes its default.
    """
    trust.require(code_in_json(document), path)
    value = _decode(document, path)
    trust.require(code_in_parameters(value), path)
    return value


def reference(thing: Callable[..., object], path: str = "parameters") -> str:
    """The name of a class or function, `coach_rl:NAME` or `module:QualName`, for `resolve`.

    Raises:
        ConfigurationError: It is a lambda or stands inside a function, so no import can find it.
    """
    module = thing.__module__
    name = thing.__qualname__
    if module is None or "<" in name:
        raise ConfigurationError(
            f"{path} is {name}, which cannot be imported; define it at the top of a file"
        )
    return public_name(thing) or f"{module}:{name}"


def resolve(name: str, path: str = "parameters", *, trust: Trust = OURS_ALONE) -> Any:
    """Return the object named `module:QualName`.

    Raises:
        ConfigurationError: The module is not trusted, cannot be imported or has no such name.
    """
    trust.require([str(name)], path)
    return _resolved(name, path)


def constructor_fields(dataclass_type: type) -> tuple[Field[object], ...]:
    """The fields a dataclass's constructor takes, but those of a running process."""
    return tuple(each for each in fields(dataclass_type) if each.init and LIVE not in each.metadata)


def _decode_dataclass(name: Json, document: dict[str, Json], path: str) -> object:
    dataclass_type = _resolved(name, path)
    if not is_frozen_dataclass(dataclass_type):
        raise ConfigurationError(f"{path} names '{name}', which is not a frozen dataclass")
    given = dict(document)
    del given[TYPE_TAG]
    missing: list[Field[object]] = []
    required: list[str] = []
    known: list[str] = []
    for field in constructor_fields(dataclass_type):
        known.append(field.name)
        if field.name not in given:
            missing.append(field)
            if field.default is MISSING and field.default_factory is MISSING:
                required.append(field.name)
    for key in given:
        if key not in known:
            where = f"of {dataclass_type.__name__} in {path}"
            raise UnknownNameError("field", key, known, where=where)
    if required:
        raise ConfigurationError(
            f"{path} lacks the fields {', '.join(required)} of {dataclass_type.__name__}; "
            "it was written by another version of that class"
        )
    value = dataclass_type(**{key: _decode(part, f"{path}.{key}") for key, part in given.items()})
    for field in missing:
        if field.default == ():  # a list of parts that there were none of
            continue
        warn(
            f"{path} was written before {dataclass_type.__name__} had the field {field.name}; "
            f"it takes its default, {getattr(value, field.name)!r}"
        )
    return value


def is_frozen_dataclass(thing: object) -> bool:
    """Return whether something is a class, a dataclass, and frozen."""
    if not (isinstance(thing, type) and is_dataclass(thing)):
        return False
    kind: Any = thing  # whose settings the type stubs don't know
    return bool(kind.__dataclass_params__.frozen)


def _decode_enum(name: Json, value: Json, path: str) -> Enum:
    enum_type = _resolved(name, path)
    # Called without members of its own, an enum would make a new class.
    if not (isinstance(enum_type, type) and issubclass(enum_type, Enum) and len(enum_type)):
        raise ConfigurationError(f"{path} names '{name}', which is not an enum")
    try:
        return enum_type(_decode(value, path))
    except ValueError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _decode_reference(name: Json, path: str) -> object:
    thing = _resolved(name, path)
    if not isinstance(thing, type | types.FunctionType | types.BuiltinFunctionType):
        raise ConfigurationError(f"{path} names '{name}', which is no class and no function")
    return thing


def spaces_to_json(known: EnvironmentSpaces) -> Json:
    """The spaces of an environment as JSON."""
    document = {
        "observation": space_to_json(known.observation),
        "action": space_to_json(known.action),
    }
    if isinstance(known.action, spaces.Dict):
        document["own_action"] = space_to_json(known.own_action)
    return document


def spaces_from_json(document: Json, *, source: str) -> EnvironmentSpaces:
    """The spaces that `spaces_to_json` wrote.

    Args:
        document: What it returned.
        source: Where the document stands, for the error.

    Raises:
        CheckpointError: It describes no spaces.
    """
    try:
        observation = _from_json(document["observation"])
        if not isinstance(observation, spaces.Dict):
            raise ValueError("the observation is no Dict")
        action = _from_json(document["action"])
        nested = _from_json(document["own_action"]) if isinstance(action, spaces.Dict) else None
        return EnvironmentSpaces(observation=observation, action=action, nested=nested)
    except (
        AssertionError,
        AttributeError,
        LookupError,
        OverflowError,
        TypeError,
        ValueError,
    ) as error:
        raise CheckpointError(f"{source} describes no spaces: {error}") from error


def _resolved(name: str, path: str) -> Any:
    module_name, _, qualified_name = str(name).partition(":")
    if not module_name or not qualified_name:
        raise ConfigurationError(f"{path} names '{name}', expected 'module:QualName'")
    try:
        thing: object = importlib.import_module(module_name)
    except ImportError as error:
        raise ConfigurationError(f"{path} needs the module '{module_name}': {error}") from error
    for part in qualified_name.split("."):
        if not hasattr(thing, part):
            raise UnknownNameError(
                "name", qualified_name, dir(thing), where=f"in module '{module_name}'"
            )
        thing = getattr(thing, part)
    home = getattr(thing, "__module__", module_name)
    is_public = isinstance(thing, type | types.FunctionType) and public_name(thing) == name
    if home != module_name and not is_public:  # a module's imports may come from anywhere
        raise ConfigurationError(f"{path} names '{name}', which is not of that module, but {home}")
    return thing


def _encode_dataclass(value: object, path: str) -> Json:
    if is_frozen_dataclass(type(value)):
        document: dict[str, Json] = {TYPE_TAG: reference(type(value), path)}
        for field in constructor_fields(type(value)):
            document[field.name] = encode(getattr(value, field.name), f"{path}.{field.name}")
        return document
    raise ConfigurationError(
        f"{path} is a {type(value).__name__}, which JSON cannot rebuild; "
        "parameters hold frozen dataclasses, tuples, mappings, enums, numbers, strings, "
        "classes and functions"
    )


def _encode_mapping(value: Mapping[object, object], path: str) -> Json:
    plain = all(isinstance(key, str) and not key.startswith("$") for key in value)
    if plain:
        return {str(key): encode(part, f"{path}.{key}") for key, part in value.items()}
    return {
        ITEMS_TAG: [
            [encode(key, f"{path} key"), encode(part, f"{path}.{key}")]
            for key, part in value.items()
        ]
    }


def _decode(document: Json, path: str) -> object:
    match document:
        case list():
            return tuple(_decode(part, f"{path}.{index}") for index, part in enumerate(document))
        case {"$type": name}:
            return _decode_dataclass(name, document, path)
        case {"$enum": name}:
            return _decode_enum(name, document["value"], path)
        case {"$reference": name}:
            return _decode_reference(name, path)
        case {"$list": parts}:
            return [_decode(part, f"{path}.{i}") for i, part in enumerate(parts)]
        case {"$items": pairs}:
            return {_decode(key, path): _decode(part, path) for key, part in pairs}
        case {"$float": text}:
            return float(text)
        case dict():
            return {key: _decode(part, f"{path}.{key}") for key, part in document.items()}
    return document


def space_to_json(space: Space) -> Json:
    """A space as JSON."""
    match space:
        case spaces.Dict():
            parts = {str(key): space_to_json(part) for key, part in space.spaces.items()}
            keys = list[Any](space.spaces)
            has_texts = all(isinstance(key, str) for key in keys)  # as keys of JSON have to be
            return {"kind": "Dict", "spaces": parts, **({} if has_texts else {"keys": keys})}
        case spaces.Tuple():
            parts = {str(i): space_to_json(part) for i, part in enumerate(space.spaces)}
            return {"kind": "Tuple", "spaces": parts}
        case spaces.Box():
            about = {"kind": "Box", "low": _numbers(space.low), "high": _numbers(space.high)}
        case spaces.Discrete():
            about = {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
        case spaces.MultiDiscrete():
            sizes = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
            about = {"kind": "MultiDiscrete", **sizes}
        case spaces.MultiBinary():
            about = {"kind": "MultiBinary", "n": plain_json(space.n)}
        case _:
            raise SpaceError(f"a run cannot record a {type(space).__name__} space")
    return {**about, "dtype": np.dtype(space.dtype).name, "shape": list(space.shape or ())}


def _from_json(document: Json) -> Space:
    match document["kind"]:
        case "Dict":
            parts = map(_from_json, document["spaces"].values())
            keys = document.get("keys", document["spaces"])
            return spaces.Dict(dict(zip(keys, parts, strict=True)))
        case "Tuple":
            return spaces.Tuple(map(_from_json, document["spaces"].values()))
        case "Box":
            dtype = np.dtype(document["dtype"])
            shape = tuple(document["shape"])
            low, high = (_bound(document[name], shape, dtype) for name in ("low", "high"))
            return spaces.Box(low, high, shape=shape, dtype=dtype.type)
        case "Discrete":
            dtype = np.dtype(document["dtype"])
            return spaces.Discrete(document["n"], start=document["start"], dtype=dtype.type)
        case "MultiDiscrete":
            dtype = np.dtype(document["dtype"])
            return spaces.MultiDiscrete(document["nvec"], dtype.type, start=document["start"])
        case "MultiBinary":
            return spaces.MultiBinary(document["n"])
    raise ValueError(f"there is no space of kind {document['kind']!r}")


def _numbers(values: Array) -> Json:
    """Numbers of any shape as nested lists; one number where all are the same."""
    if values.size and (values == values.flat[0]).all():
        return plain_json(values.flat[0].item())
    return plain_json(values.tolist())


def _bound(document: Json, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    return np.broadcast_to(np.array(_floats(document), dtype), shape).copy()


def _floats(document: Json) -> Json:
    match document:
        case list():
            return [_floats(part) for part in document]
        case dict():
            return float(document[FLOAT_TAG])
    return document
