"""Sources of ticks that a stranger could write: they count, or play what was recorded."""

import copy
import json
from dataclasses import replace

import pytest

import coach_rl as rl
from coach_rl.core import parameter_class
from coach_rl.core.errors import CheckpointError
from coach_rl.core.saved import Saved
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.runs.checkpoint import list_checkpoints, steps_of
from tests.graph_managers.small_runs import parameters

TICKS = 90


class Counted(rl.TickSource):
    """Counts the ticks of this process."""

    def __init__(self):
        self.ticks = 0

    def begin(self, stack):
        self.ticks += 1
        return super().begin(stack)

    def metrics(self):
        return {"source/ticks": float(self.ticks)}


@parameter_class
class CountedParameters(rl.SourceParameters):
    CHANGEABLE = ("source.most_envs",)

    most_envs: int = 8

    def problems(self, experiment):
        if experiment.num_envs > self.most_envs:
            yield f"num_envs ({experiment.num_envs}) must be source.most_envs ({self.most_envs})"

    def build(self, context, clock):
        return replace(super().build(context, clock), source=Counted())


class Recorded(Saved, rl.TickSource):
    """Plays recorded ticks, in place of the simulators as well."""

    SAVED = ("played",)
    name = "recorded ticks"

    def __init__(self, spaces: EnvironmentSpaces, start, ticks):
        self.num_envs, self.spaces = len(start.rows), spaces
        self.start, self.ticks, self.played = start, ticks, 0

    def begin(self, stack):
        decisions, self.answer = self.ticks[self.played]
        self.played += 1
        for level, made in zip(stack.levels, decisions, strict=True):
            level.follow(made)

    def reset(self, seed=None):
        return self.start

    def send(self, directive, rows=None):
        """Does nothing: the answer is known."""

    def recv(self):
        return self.answer

    def close(self):
        pass


RECORDS = {}
"""Spaces, answer of the reset, and ticks, by name."""


@parameter_class
class RecordedParameters(rl.SourceParameters):
    """Plays a record."""

    name: str = "record"

    def build(self, context, clock):
        recorded = Recorded(*RECORDS[self.name])
        return replace(context.stack_on(recorded, clock), source=recorded)


def manager_of(source=None):
    params = replace(
        parameters(heatup=rl.EnvironmentSteps(0)), source=source or rl.SourceParameters()
    )
    manager = rl.BasicRLGraphManager(params)
    manager.create_graph(rl.Runtime(seed=3, device="cpu"))
    return manager


@pytest.fixture(scope="module")
def recorded():
    """The state of a run, whose ticks were recorded."""
    with manager_of() as manager:
        stack, ticks = manager.graph.training, []
        start = copy.deepcopy(stack.levels[0].reset(3))
        for _ in range(TICKS):
            answer = manager.graph.tick().answer
            ticks.append(copy.deepcopy(([level.decisions() for level in stack.levels], answer)))
        RECORDS["record"] = (stack.simulators.spaces, start, ticks)
        return manager.state_dict()


def test_source_adds_its_metrics_to_the_records():
    with manager_of(CountedParameters()) as manager:
        records = list(manager.improve())
    counts = [each.scalars["source/ticks"] for each in records if "source/ticks" in each.scalars]
    assert counts == [25.0, 50.0, 75.0, 100.0]


def test_experiment_that_a_source_does_not_fit_is_refused():
    with pytest.raises(rl.ParameterError, match=r"must be source\.most_envs"):
        manager_of(CountedParameters(most_envs=2))


def test_played_ticks_stopped_in_between_teach_what_the_recorded_ones_did(recorded):
    with manager_of(RecordedParameters()) as first, manager_of(RecordedParameters()) as second:
        for _ in range(40):
            first.graph.tick()
        second.load_state_dict(copy.deepcopy(first.state_dict()))
        for _ in range(TICKS - 40):
            second.graph.tick()
        state = second.state_dict()
    for part in ("agents", "tracker"):
        assert_same_state(recorded[part], state[part])


def test_open_episodes_of_another_source_are_refused(recorded):
    refused = pytest.raises(CheckpointError, match=r"the run's own process, not of recorded ticks")
    with manager_of(RecordedParameters()) as manager, refused:
        manager.load_state_dict(recorded)


@parameter_class
class CountedInUpdates(rl.SourceParameters):
    UNIT = rl.TrainingSteps


def in_updates(interval):
    """CartPole_PPO from a source that counts gradient updates, 20 for each 128 steps."""
    manager = rl.load_preset(rl.find_preset("CartPole_PPO")).configure(
        {"num_envs": 1, "steps": 256, "agent.algorithm.rollout": 128}
    )
    given = manager.parameters
    own = {
        "progress_interval": interval,
        "evaluation_interval": rl.TrainingSteps(20),
        "evaluation_episodes": rl.EnvironmentEpisodes(1),
    }
    checkpoints = replace(given.checkpoints, every_steps=rl.TrainingSteps(20), best_of=None)
    return type(manager)(
        replace(
            given,
            source=CountedInUpdates(),
            schedule=replace(given.schedule, **own),
            checkpoints=checkpoints,
        )
    )


def test_source_with_a_unit_of_its_own_tells_moments_and_checkpoints_by_it(tmp_path):
    result = rl.run_experiment(
        in_updates(rl.TrainingSteps(10)),
        rl.Runtime(seed=1, device="cpu"),
        name="updates",
        root=tmp_path,
        settings=rl.RunSettings(tensorboard=False),
    )
    records = [*map(json.loads, (result.folder.path / "log.jsonl").read_text().splitlines())]
    for kind, moments in (("progress", [20, 40]), ("evaluation", [20, 40])):
        found = [each["training_steps"] for each in records if each["kind"] == kind]
        assert found[:2] == moments
    assert {20, 40} == {*map(steps_of, list_checkpoints(result.folder.checkpoints))}
    again = rl.resume_experiment(result.folder.path, steps=rl.EnvironmentSteps(512))
    assert {20, 40, 60, 80} == {*map(steps_of, list_checkpoints(again.folder.checkpoints))}


def test_source_with_a_unit_of_its_own_refuses_intervals_in_another():
    with pytest.raises(
        rl.ParameterError, match="must be TrainingSteps, in which its source counts"
    ):
        in_updates(rl.EnvironmentSteps(100))
