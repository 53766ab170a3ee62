"""A graph that exists for as long as a `with` block."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import TaskParameters


@contextmanager
def live_graph(
    graph_manager: GraphManager, task: TaskParameters, *, threads: int
) -> Iterator[None]:
    """The graph is built inside and closed afterwards, whatever happens.

    Args:
        graph_manager: Whose graph.
        task: What it is built with; its precision of products holds while inside.
        threads: Threads of one tensor operation on the CPU while inside; put back afterwards.

    Raises:
        ConfigurationError: The graph cannot be built.
    """
    threads_before = torch.get_num_threads()
    precision_before = torch.get_float32_matmul_precision()
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(task.matmul_precision)
    try:
        graph_manager.create_graph(task)
        yield
    finally:
        graph_manager.close()
        torch.set_num_threads(threads_before)
        torch.set_float32_matmul_precision(precision_before)
