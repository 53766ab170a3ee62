"""Attributes that an object has once something is built.

class GraphManager:
    graph: Graph = unbuilt("the graph is not built yet; call create_graph() first")

    def create_graph(self) -> None:
        self.graph = Graph(...)
"""

from typing import Any

from coach_rl.core.errors import ConfigurationError


def unbuilt(message: str) -> Any:
    """The value of an attribute in its class; reading it raises `ConfigurationError`.

    Args:
        message: The error's, of objects that have not been given a value of their own.
    """
    return _Unbuilt(message)


class _Unbuilt:
    def __init__(self, message: str) -> None:
        self._message = message

    def __get__(self, owner: object | None, kind: type) -> object:
        if owner is None:
            return self
        raise ConfigurationError(self._message)
