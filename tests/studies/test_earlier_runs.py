from dataclasses import replace

import pytest

from coach_rl import Runtime, find_preset, load_preset
from coach_rl.configuration.parameters_json import encode
from coach_rl.studies.earlier_runs import difference, is_run_of


def recorded(**panel):
    graph_manager = load_preset(find_preset("Pendulum_HAC")).configure({"levels": 2, **panel})
    task = Runtime(seed=3, device="cpu", threads=1)
    manifest = {
        "graph_manager": "coach_rl.graph_managers.graph_manager:HACGraphManager",
        "parameters": encode(graph_manager.parameters),
        "task": encode(task),
    }
    return manifest, graph_manager, task


def test_the_same_parameters_are_the_same_run():
    manifest, graph_manager, task = recorded()
    assert is_run_of(manifest, graph_manager, task)
    assert is_run_of(manifest, graph_manager, replace(task, device="cuda"))
    assert not is_run_of(manifest, graph_manager, replace(task, seed=4))
    assert not is_run_of(manifest, graph_manager, replace(task, threads=2))


@pytest.mark.parametrize("changed", [{"steps": 3}, {"layers": (4,)}, {"noise": 0.3}])
def test_another_parameter_is_another_run(changed):
    manifest, _, task = recorded()
    _, other, _ = recorded(**changed)
    assert not is_run_of(manifest, other, task)
    assert difference(manifest["parameters"], other.parameters)


def test_checkpoints_do_not_matter():
    manifest, graph_manager, task = recorded()
    manifest["parameters"]["checkpoints"] = {}
    assert is_run_of(manifest, graph_manager, task)


def test_field_that_was_added_later_stands_for_its_default():
    manifest, graph_manager, task = recorded()
    del manifest["parameters"]["schedule"]["stop_after"]
    del manifest["task"]["threads"]
    assert is_run_of(manifest, graph_manager, task)
    limited = load_preset(find_preset("Pendulum_HAC")).configure(
        {"levels": 2, "schedule.stop_after": 1.0}
    )
    assert difference(manifest["parameters"], limited.parameters) == "schedule.stop_after"


def test_the_preset_s_threads_do_not_matter_beside_those_of_the_run():
    manifest, _, task = recorded()
    del manifest["parameters"]["threads"]  # a run of an earlier version
    graph_manager = load_preset(find_preset("Pendulum_HAC")).configure({"levels": 2, "threads": 2})
    assert is_run_of(manifest, graph_manager, task)
    assert not is_run_of(manifest, graph_manager, replace(task, threads=None))


def test_field_that_is_gone_makes_another_run():
    manifest, graph_manager, _ = recorded()
    manifest["parameters"]["schedule"]["burn_in"] = 3
    assert difference(manifest["parameters"], graph_manager.parameters) == "schedule.burn_in"


def test_classes_and_values_are_known_by_what_they_were():
    manifest, graph_manager, task = recorded()
    manifest["graph_manager"] = "coach_rl.graph_managers.hac_graph_manager:HACGraphManager"
    for level in manifest["parameters"]["stack"]:
        assert level["testing_rate"] is None
        level["testing_rate"] = 0.0
    assert is_run_of(manifest, graph_manager, task)
    manifest["parameters"]["stack"][0]["testing_rate"] = 0.1
    assert difference(manifest["parameters"], graph_manager.parameters) == "stack.0.testing_rate"
    manifest["graph_manager"] = "somewhere:HACGraphManager"
    manifest["parameters"]["stack"][0]["testing_rate"] = None
    assert not is_run_of(manifest, graph_manager, task)


def test_fields_may_have_had_other_names():
    graph_manager = load_preset(find_preset("AntMaze_Graph")).configure({})
    then = {
        "lowest_probability": "worst",
        "retry_discount": "doubt",
        "fixed_goal": "besides",
    }
    manifest = encode(graph_manager.parameters)
    agent = manifest["levels"][0]["agent"]
    renamed = {then.get(name, name): value for name, value in agent.items()}
    assert renamed.keys() - agent.keys() == set(then.values())
    manifest["levels"][0]["agent"] = renamed
    assert difference(manifest, graph_manager.parameters) is None
    renamed["doubt"] = 0.25
    path = "levels.0.agent.retry_discount"
    assert difference(manifest, graph_manager.parameters) == path
