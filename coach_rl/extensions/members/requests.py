"""The requests of levels that share their rows with others, and the end that is theirs alone."""

from dataclasses import dataclass

from coach_rl.core.records import ActionRequest, BoolArray, End

SWITCHED = End.EXTENSION
"""End of a sub-episode: the level above took control back before any other end, and gave it to
another level or to another goal."""


@dataclass(frozen=True, kw_only=True)
class GraphRequest(ActionRequest):
    """The request of an agent in whose rows others may have acted: of a graph, or of a group."""

    real: BoolArray
    """[R] the agent's first decision of a real episode."""


def real_starts(request: ActionRequest) -> BoolArray:
    """True where a request has the first decision of a real episode, [R]."""
    return request.real if isinstance(request, GraphRequest) else request.episode_start
