"""The requests of levels that share their rows with others."""

from dataclasses import dataclass

from coach_rl.core.records import ActionRequest, BoolArray


@dataclass(frozen=True, kw_only=True)
class GraphRequest(ActionRequest):
    """The request of a level of a graph, in whose rows other levels may have acted."""

    real: BoolArray
    """[R] the first decision of a real episode."""


def real_starts(request: ActionRequest) -> BoolArray:
    """True where a request has the first decision of a real episode, [R]."""
    return request.real if isinstance(request, GraphRequest) else request.episode_start
