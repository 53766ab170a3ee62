"""Spaces as JSON, and back: what an agent sees and where it acts, known without its environment.

    {"kind": "Box", "dtype": "float32", "shape": [4], "low": -1.0, "high": [1.0, 2.0, 1.0, 1.0]}

A bound that is the same in all elements is written once.
"""

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from coach_rl.configuration.strict_json import FLOAT_TAG, Json, float_from_json, plain_json
from coach_rl.core.errors import CheckpointError, SpaceError
from coach_rl.core.records import Array
from coach_rl.core.spaces import EnvironmentSpaces, Space


def spaces_to_json(known: EnvironmentSpaces) -> Json:
    """The spaces of an environment as JSON."""
    return {"observation": _to_json(known.observation), "action": _to_json(known.action)}


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
        return EnvironmentSpaces(observation=observation, action=_from_json(document["action"]))
    except (
        AssertionError,
        AttributeError,
        LookupError,
        OverflowError,
        TypeError,
        ValueError,
    ) as error:
        raise CheckpointError(f"{source} describes no spaces: {error}") from error


def _to_json(space: Space) -> Json:
    match space:
        case spaces.Dict():
            parts = {key: _to_json(part) for key, part in space.spaces.items()}
            return {"kind": "Dict", "spaces": parts}
        case spaces.Box():
            bounds = {"low": _numbers(space.low), "high": _numbers(space.high)}
            return {"kind": "Box", **_array(space), **bounds}
        case spaces.Discrete():
            return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
        case spaces.MultiDiscrete():
            sizes = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
            return {"kind": "MultiDiscrete", **_array(space), **sizes}
        case spaces.MultiBinary():
            return {
                "kind": "MultiBinary",
                "n": space.n if isinstance(space.n, int) else list(space.n),
            }
    raise SpaceError(f"a run cannot record a {type(space).__name__} space")


def _from_json(document: Json) -> Space:
    match document["kind"]:
        case "Dict":
            parts = document["spaces"].items()
            return spaces.Dict({key: _from_json(part) for key, part in parts})
        case "Box":
            dtype, shape = np.dtype(document["dtype"]), tuple(document["shape"])
            low, high = (_bound(document[name], shape, dtype) for name in ("low", "high"))
            return spaces.Box(low, high, shape=shape, dtype=dtype.type)
        case "Discrete":
            return spaces.Discrete(document["n"], start=document["start"])
        case "MultiDiscrete":
            dtype = np.dtype(document["dtype"])
            return spaces.MultiDiscrete(document["nvec"], dtype.type, start=document["start"])
        case "MultiBinary":
            return spaces.MultiBinary(document["n"])
    raise ValueError(f"there is no space of kind {document['kind']!r}")


def _array(space: Space) -> Json:
    return {"dtype": np.dtype(space.dtype).name, "shape": list(space.shape or ())}


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
            return float_from_json(document[FLOAT_TAG])
    return document
