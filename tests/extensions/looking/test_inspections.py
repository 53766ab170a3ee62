import sys
from dataclasses import replace

import pytest

from coach_rl.core.errors import CoachWarning
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.looking.data_points import DataPoint
from coach_rl.extensions.looking.inspection_text import parse_inspections
from coach_rl.extensions.looking.points import points_of, points_of_graph
from coach_rl.extensions.testing import assert_same_state
from coach_rl.presets import Pendulum_HAC
from tests.extensions.looking.inspected_runs import ddpg, manager, records_of
from tests.graph_managers.small_runs import ppo

EVERYWHERE = (
    "environment:stats; filter:stats; memory:stats; batch:stats; network:stats; update:stats"
)


def inspections_of(records):
    return [each for each in records if each.kind == "inspection"]


def places(records):
    return {
        name.removeprefix("inspect/").partition("/")[0]
        for each in inspections_of(records)
        for name in each.scalars
    }


def plain(records):
    """Records without what differs from one time to the next."""
    return [
        (each.kind, each.environment_steps, each.level, each.agent, each.text, numbers)
        for each in records
        for numbers in [{k: v for k, v in each.scalars.items() if not k.startswith("time/")}]
    ]


AGENTS = {"on-policy": ppo(), "off-policy": ddpg()}


@pytest.fixture(scope="module")
def looked_at():
    """The records of a run of each agent with all inspections."""
    return {kind: records_of(manager(EVERYWHERE, agent)) for kind, agent in AGENTS.items()}


@pytest.mark.parametrize("kind", AGENTS)
def test_every_point_reports_and_looking_changes_nothing(kind, looked_at):
    agent, looked_at = AGENTS[kind], looked_at[kind]
    without = records_of(manager(agent=agent))
    assert places(looked_at) == {"environment", "filter", "memory", "batch", "network", "update"}
    others = [each for each in looked_at if each.kind != "inspection"]
    assert plain(others) == plain(without)
    by_agent = {(each.level, each.agent) for each in inspections_of(looked_at)}
    assert by_agent == {("", ""), ("main", agent.name)}


def test_the_names_say_what_is_shown(looked_at):
    names = {
        name.removeprefix("inspect/").removesuffix("/mean")
        for each in inspections_of(looked_at["off-policy"])
        for name in each.scalars
    }
    assert {
        "environment/reward",
        "environment/observation/observation",
        "filter/observation/observation",
        "filter/reward",
        "filter/action",
        "memory/next_observation/observation",
        "batch/discount",
        "batch/age_in_decisions",
        "network",
        "update/critic_loss",
        "update/critic_gradient_norm",
        "update/samples/td_error",
    } <= names
    assert any(name.startswith("update/parameters/actor/") for name in names)
    assert any(name.startswith("update/gradients/critic/") for name in names)


def test_a_batch_has_the_ages_of_what_is_learned_from():
    ages = [
        each.scalars["inspect/batch/age_in_decisions/max"]
        for each in inspections_of(records_of(manager("batch:staleness@1", ddpg())))
    ]
    assert ages == sorted(ages) or max(ages) <= 100  # 400 transitions of 4 rows
    assert max(ages) > 50
    on_policy = inspections_of(records_of(manager("batch:staleness@1")))
    name = "inspect/batch/age_in_updates/max"
    assert [each.scalars[name] for each in on_policy[:9]] == [0, 1, 2, 3, 4, 5, 6, 7, 0]


def test_levels_are_told_apart_and_one_can_be_chosen():
    def seen(text):
        hac = Pendulum_HAC.graph_manager(Pendulum_HAC.Panel())
        with type(hac)(replace(hac.parameters, callbacks=parse_inspections(text))) as graph_manager:
            graph_manager.create_graph()
            found = inspections_of(graph_manager.heatup(EnvironmentSteps(800)))
            return {each.level for each in found}

    assert seen("memory:stats@2") == {"top", "low"}
    assert seen("low.memory:stats@2") == {"low"}


def test_inspections_warned_run_continues():
    looked_at = manager("environment/reward:range=0..1:dump")
    with pytest.warns(CoachWarning):
        records = records_of(looked_at)
    found = [each for each in inspections_of(records) if each.text]
    assert len(found) > 20
    dumped = [each for each in found if each.columns]
    names = ["inspections/environment_0", "inspections/environment_1"]
    assert [each.file for each in dumped[:2]] == names
    assert (dumped[0].columns["reward"] < 0).all()
    assert records[-1].kind == "evaluation"


def test_evaluations_are_not_looked_at():
    calls = [each for each in inspections_of(records_of(manager("filter/action:stats@1")))]
    assert len(calls) == 100  # 400 steps of 4 rows


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_a_run_continues_with_the_looks_that_come_next(agent):
    text = "environment:stats@7; batch:stats@5,shape@3; network:stats@11; filter/action:nan,stats@9"
    whole, states, later = manager(text, agent), [], []
    with whole:
        whole.create_graph()
        for record in whole.improve():
            later.append(record)
            if record.environment_steps >= 212 and whole.progress.is_settled and not states:
                states.append(whole.state_dict())
                later.clear()
        end = whole.state_dict()
    resumed = manager(text, agent)
    with resumed:
        resumed.create_graph()
        resumed.load_state_dict(states[0])
        assert plain(resumed.improve()) == plain(later)
        assert_same_state(resumed.state_dict()["callbacks"], end["callbacks"])
    assert inspections_of(later)
    fresh = manager(agent=agent)
    with fresh:
        fresh.create_graph()
        with pytest.warns(CoachWarning):  # of each
            fresh.load_state_dict(states[0])


def test_without_inspections_nothing_stands_before_any_call():
    graph_manager = manager(agent=ddpg())
    called = set()
    with graph_manager:
        graph_manager.create_graph()
        graph = graph_manager.graph
        sys.setprofile(lambda frame, *_: called.add(frame.f_code.co_filename))
        try:
            for _ in graph_manager.improve():
                pass
        finally:
            sys.setprofile(None)
        agent = graph.agents["main"]
        for each in (graph, graph_manager, agent, agent.input_filter, graph.training.simulators):
            assert not {"tick", "_settling", "act", "store", "observation", "recv"} & {*vars(each)}
    ours = ("/data_points.py", "looking/points.py", "/inspector.py", "/inspections.py")
    assert not [file for file in called if file.endswith(ours)]


def test_a_closed_run_is_as_it_was():
    graph_manager = manager("environment:stats@1")
    records_of(graph_manager)
    graph_manager.parameters = replace(graph_manager.parameters, callbacks=())
    assert not inspections_of(records_of(graph_manager))


def test_points_are_listed_by_level():
    with manager(agent=ddpg()) as graph_manager:
        graph_manager.create_graph()
        points = points_of_graph(graph_manager.graph)
    assert [point.name for point in points[""]] == ["environment"]
    rooms = list(dict.fromkeys(point.name.partition("/")[0] for point in points["main"]))
    assert rooms == ["filter", "memory", "sampler", "batch", "network", "update"]


class Step:
    """A part whose class names its points."""

    POINTS = (lambda step: [DataPoint(name="step", watch=step.watch)],)

    def watch(self, observe):
        """Nothing."""


class Stepping:
    """An agent with two such parts."""

    name = "mine"

    def act(self):
        """Nothing."""

    observe = train = act

    def parts(self):
        return {"own": Step(), "guide": Step()}


def test_points_of_second_part_have_its_name_in_front():
    names = [(point.agent, point.name) for point in points_of(Stepping())]
    assert names == [("mine", "step"), ("mine", "guide/step")]
