"""Seed, device, threads and precision: what a run is given when it starts."""

from dataclasses import replace

import pytest
import torch

from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.graph_managers import BasicRLGraphManager
from tests.graph_managers.small_runs import parameters


class Probe:
    """An agent that notes torch's settings whenever it computes."""

    def __init__(self, agent):
        self.seen = {}
        for name in ("act", "train"):
            setattr(agent, name, self._noting(name, getattr(agent, name)))

    def _noting(self, name, call):
        def noting(*arguments, **keywords):
            self.seen.setdefault(name, set()).add(torch_settings())
            return call(*arguments, **keywords)

        return noting


def torch_settings():
    return torch.get_num_threads(), torch.get_float32_matmul_precision()


def test_threads_and_precision_of_a_task_hold_while_the_graph_computes_and_nowhere_else():
    before = torch_settings()
    wanted = before[0] + 1, "medium"
    manager = BasicRLGraphManager(parameters())
    task = Runtime(device="cpu", threads=wanted[0], matmul_precision=wanted[1])
    manager.create_graph(task)
    assert torch_settings() == before
    probe = Probe(manager.graph.agents["main"])
    between = {torch_settings() for _ in manager.improve()}
    assert probe.seen == {"act": {wanted}, "train": {wanted}}
    assert between == {before}
    probe.seen.clear()
    manager.evaluate(EnvironmentEpisodes(2))
    assert probe.seen == {"act": {wanted}}
    manager.close()
    assert torch_settings() == before


def test_one_thread_is_the_default_whatever_the_process_uses():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with BasicRLGraphManager(parameters()) as manager:
            manager.create_graph(Runtime(device="cpu"))
            probe = Probe(manager.graph.agents["main"])
            manager.run()
        assert {threads for seen in probe.seen.values() for threads, _ in seen} == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_threads_of_an_experiment_hold_unless_the_task_has_others():
    own = torch.get_num_threads() + 1
    for given, expected in ((None, own), (own + 1, own + 1)):
        with BasicRLGraphManager(replace(parameters(), threads=own)) as manager:
            manager.create_graph(Runtime(device="cpu", threads=given))
            probe = Probe(manager.graph.agents["main"])
            manager.run()
            assert manager.graph.runtime.threads == expected
        assert {threads for seen in probe.seen.values() for threads, _ in seen} == {expected}


def test_torch_settings_are_put_back_where_computing_fails():
    before = torch_settings()
    manager = BasicRLGraphManager(parameters())
    manager.create_graph(Runtime(device="cpu", threads=before[0] + 1))
    manager.graph.agents["main"].act = lambda *_, **__: 1 / 0
    with manager, pytest.raises(ZeroDivisionError):
        manager.run()
    assert torch_settings() == before
