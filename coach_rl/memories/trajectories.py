"""The names under which a memory shows its content.

`/observations/<key>`, `/next_observations/<key>`, `/rewards`, `/terminated`, `/truncated`,
`/durations`, `/rows` and, of a rollout, `/follows` as in the columns; what belongs to an agent
under its name: `/agents/<name>/actions` (or `/agents/<name>/actions/<part>`) and, for every extra
it keeps, `/agents/<name>/artifacts/<extra>`.
"""

SHARED = ("/observations/", "/next_observations/")
SHARED_PATHS = ("/rewards", "/terminated", "/truncated", "/durations", "/rows", "/follows")


def shown_as(path: str, agent: str) -> str:
    """The name of a column among the trajectories.

    Args:
        path: Of the column.
        agent: The agent's name.
    """
    if path.startswith(SHARED) or path in SHARED_PATHS:
        return path
    if path == "/actions" or path.startswith("/actions/"):
        return f"/agents/{agent}{path}"
    return f"/agents/{agent}/artifacts{path}"
