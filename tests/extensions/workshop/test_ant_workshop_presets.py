"""Presets of the workshop, with an ant."""

import math

import pytest

from coach_rl.agents.stages.symmetry import SymmetricView
from tests.presets.test_presets import ONE_THREAD, load_graph_manager, shortened


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize(
    ("name", "panel", "views"),
    [
        ("Workshop_PPO", {"task": "press"}, {"main": "press"}),
        ("Workshop_PPO", {"task": "all"}, {"main": "walk"}),
        ("Workshop_PPO", {"task": "all", "due_ahead": True}, {"main": "due"}),
        ("Workshop_PPO_Selector", {}, {"walk": "walk", "press": "press", "push": "push"}),
    ],
)
def test_workshop_of_an_ant_trains_with_the_place_of_the_task_ahead(name, panel, views):
    manager = shortened(load_graph_manager(name, {"robot": "ant", "num_envs": 16, **panel}))
    manager.create_graph(ONE_THREAD)
    records = list(manager.improve())
    agents = {name: manager.graph.agents[name] for name in views}
    for agent_name, view in views.items():
        assert f"task='{view}'" in agents[agent_name].stages.of(SymmetricView).symmetry.description
    manager.close()
    assert any(record.kind == "train" for record in records)
    assert all(math.isfinite(value) for record in records for value in record.scalars.values())
