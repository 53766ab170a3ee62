"""A graph that exists for as long as a `with` block."""

from collections.abc import Iterator
from contextlib import contextmanager

from coach_rl.core.activity import OnActivity, untold
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.task import TaskParameters, torch_settings


@contextmanager
def live_graph(
    graph_manager: GraphManager,
    task: TaskParameters,
    *,
    training: bool = True,
    on_activity: OnActivity = untold,
) -> Iterator[None]:
    """The graph is built inside and closed afterwards, whatever happens.

    Args:
        graph_manager: Whose graph.
        task: What it is built with; its threads and precision hold while inside.
        training: Whether it has environments to train in; without them it can only evaluate.
        on_activity: Told what takes long: compiling, evaluating.

    Raises:
        ConfigurationError: The graph cannot be built.
    """
    with torch_settings(task):
        try:
            graph_manager.create_graph(task, training=training, on_activity=on_activity)
            yield
        finally:
            graph_manager.close()
