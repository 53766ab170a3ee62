"""The points where data pass, in `coach describe`."""

from collections.abc import Iterator

from coach_rl.cli.describe import SECTIONS, Row
from coach_rl.extensions.looking.points import points_of_graph
from coach_rl.graph_managers.graph import Graph


def point_rows(graph: Graph) -> Iterator[Row]:
    """The points of each level, those below one name in one row."""
    for level, own in points_of_graph(graph).items():
        rooms: dict[str, list[str]] = {}
        for point in own:
            room, _, part = point.name.partition("/")
            rooms.setdefault(room, []).extend([part] * bool(part))
        for room, parts in rooms.items():
            below = f"{room}/...: {', '.join(dict.fromkeys(parts))}" if parts else ""
            yield f"{level}.{room}".lstrip("."), below


SECTIONS["points where data pass"] = point_rows
