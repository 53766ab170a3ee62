"""Evaluations that somebody else makes: when they are asked for, awaited and taken in."""

from dataclasses import replace

import pytest

import coach_rl as rl
from coach_rl.graph_managers.evaluations import MAX_PENDING
from tests.graph_managers.small_runs import parameters

TASK = rl.Runtime(seed=1, device="cpu")


class SlowEvaluator:
    """Answers when it has been looked at so many times since it was asked."""

    def __init__(self, experiment, looks):
        self._manager = rl.BasicRLGraphManager(experiment)
        self._manager.create_graph(TASK, training=False)
        self._looks, self._left = looks, looks
        self.asked, self.most, self.forgotten = [], 0, 0

    def submit(self, evaluation):
        self.asked.append(evaluation)
        self.most = max(self.most, len(self.asked))

    def has_answered(self, *, wait_seconds=0.0):
        self._left -= 1
        return self._left <= 0 or wait_seconds > 0

    def answer(self):
        self._left = self._looks
        return self._manager.evaluations.scores_of(self.asked.pop(0).policies)

    def forget(self):
        self.forgotten += len(self.asked)
        self.asked.clear()


def manager_of(experiment):
    manager = rl.BasicRLGraphManager(experiment)
    manager.create_graph(TASK)
    return manager


def evaluations(records):
    return [
        (each.environment_steps, each.training_steps, each.episodes, each.scalars)
        for each in records
        if each.kind == "evaluation"
    ]


@pytest.fixture(scope="module")
def here():
    """The evaluations of a run that makes them itself."""
    return evaluations(manager_of(parameters()).improve())


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("looks", [1, 7, 40, 10_000])
def test_late_results_are_those_of_evaluations_in_between(looks, here):
    evaluator = SlowEvaluator(parameters(), looks)
    manager = manager_of(parameters())
    assert evaluations(manager.improve(evaluator=evaluator)) == here
    assert len(here) == 4
    assert not manager.evaluations.is_awaited


def test_a_late_result_ends_a_run_that_is_solved_and_nobody_needs_later_ones():
    schedule = replace(parameters().schedule, until_solved=True)
    target = rl.ValidationParameters(reward=-1e9)
    solved = replace(parameters(), schedule=schedule, validation=target)
    evaluator = SlowEvaluator(solved, looks=60)
    manager = manager_of(solved)
    found = evaluations(manager.improve(evaluator=evaluator))
    assert [steps for steps, *_ in found] == [manager.progress.solved_at] == [140]
    assert manager.progress.ending == "solved"
    assert manager.graph.clock.environment_steps > 140
    assert evaluator.forgotten == 2
    assert not manager.evaluations.is_awaited


def test_training_waits_where_too_many_evaluations_are_to_come():
    often = parameters(evaluation_interval=rl.EnvironmentSteps(20))
    evaluator = SlowEvaluator(often, looks=10_000)
    here = evaluations(manager_of(often).improve())
    assert evaluations(manager_of(often).improve(evaluator=evaluator)) == here
    assert evaluator.most == MAX_PENDING + 1


def test_a_run_says_that_it_waits_for_evaluations():
    experiment, said = manager_of(parameters()), []
    graph = experiment.graph
    graph.runtime = replace(graph.runtime, on_activity=said.append)
    evaluations(experiment.improve(evaluator=SlowEvaluator(parameters(), looks=10_000)))
    waits = [text for text in said if text.startswith("waiting for")]
    assert waits
    assert waits[-1] == "waiting for 1 background evaluation"
    assert said[-1] == ""


def test_evaluator_saved_state_has_pending_evaluations(here):
    first, heard = manager_of(parameters()), []
    for record in first.improve(evaluator=SlowEvaluator(parameters(), 10_000)):
        heard.append(record)
        if record.environment_steps >= 280 and first.progress.is_settled:
            break
    state = first.state_dict()
    assert not evaluations(heard)
    resumed = manager_of(parameters())
    resumed.load_state_dict(state)
    assert resumed.evaluations.is_awaited
    with pytest.raises(rl.ConfigurationError):
        next(resumed.improve())
    rest = resumed.improve(evaluator=SlowEvaluator(parameters(), 30))
    assert evaluations(rest) == here
