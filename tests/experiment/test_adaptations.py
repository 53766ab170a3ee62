import pytest

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.inspection import InspectParameters, parse_inspections
from coach_rl.experiment.adaptations import inspected
from coach_rl.experiment.parameters_json import decode, encode
from coach_rl.presets import CartPole_PPO, Pendulum_DDPG

FOUND = parse_inspections("sample:nan@5; gather:shape")


def test_every_memory_of_an_experiment_gets_them_and_nothing_else_changes():
    before = Pendulum_DDPG.graph_manager(Pendulum_DDPG.Panel())
    after = inspected(before, FOUND)
    assert type(after) is type(before)
    assert after.parameters.agent.memory.inspect == (
        InspectParameters(point="sample", checks=("nan",), every=5),
        InspectParameters(point="gather", checks=("shape",), every=1),
    )
    assert before.parameters.agent.memory.inspect == ()
    bare = inspected(after, ()).parameters
    assert bare == after.parameters
    assert after.parameters.schedule == before.parameters.schedule


def test_they_are_added_to_those_that_are_there_and_survive_as_json():
    once = inspected(Pendulum_DDPG.graph_manager(Pendulum_DDPG.Panel()), FOUND[:1])
    twice = inspected(once, FOUND[1:])
    assert twice.parameters.agent.memory.inspect == FOUND
    assert decode(encode(twice.parameters)) == twice.parameters


def test_an_experiment_without_a_replay_memory_is_refused():
    with pytest.raises(ConfigurationError, match="no agent of this experiment has a replay memory"):
        inspected(CartPole_PPO.graph_manager(CartPole_PPO.Panel()), FOUND)
