from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.core.inspection import parse_inspections
from coach_rl.presets import Pendulum_DDPG
from coach_rl.sessions.opening import inspected

FOUND = parse_inspections("batch:nan@5; low.network/x:range=-1..1:dump")


def test_an_experiment_gets_inspections_instead_of_its_own_and_nothing_else_changes():
    before = Pendulum_DDPG.graph_manager(Pendulum_DDPG.Panel())
    after = inspected(before, FOUND)
    assert type(after) is type(before)
    assert after.parameters.inspect == FOUND
    assert before.parameters.inspect == ()
    assert inspected(after, ()).parameters == before.parameters


def test_inspections_survive_as_json():
    parameters = inspected(Pendulum_DDPG.graph_manager(Pendulum_DDPG.Panel()), FOUND).parameters
    assert decode(encode(parameters)) == parameters
