"""Lengths of a run in steps, episodes, updates and hours, and the target that ends it."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

import coach_rl as rl
from coach_rl.core.clock import Clock
from coach_rl.core.log_records import LogRecord
from tests.agents.resuming import after, assert_resumes
from tests.graph_managers.small_runs import parameters, ppo


def created(params: rl.BasicGraphParameters) -> rl.BasicRLGraphManager:
    manager = rl.BasicRLGraphManager(params)
    manager.create_graph(rl.Runtime(seed=1, device="cpu"))
    return manager


@pytest.fixture
def seconds(monkeypatch):
    """A clock that moves on by four seconds whenever it is read, and by hand."""
    now = [0.0]

    def read() -> float:
        now[0] += 4.0
        return now[0]

    monkeypatch.setattr(time, "perf_counter", read)
    return now


@pytest.mark.parametrize(
    "length", [rl.EnvironmentEpisodes(6), rl.TrainingSteps(20), rl.EnvironmentSteps(90)]
)
def test_training_ends_when_its_length_is_reached(length):
    with created(parameters(training=length, heatup=0, progress_interval=4)) as manager:
        records = list(manager.improve())
        assert manager.progress.ending == length.noun
    assert length.is_reached(records[-1])
    ticks = [each for each in records if each.kind == "progress"]
    assert [length.is_reached(each) for each in ticks] == [False] * (len(ticks) - 1) + [True]


@pytest.mark.parametrize("interval", [rl.EnvironmentEpisodes(5), rl.TrainingSteps(16)])
def test_evaluations_come_at_intervals_of_any_unit(interval):
    with created(parameters(evaluation_interval=interval, training=1_000)) as manager:
        records = [each for each in manager.improve() if each.kind == "evaluation"]
    counts = [interval.counted(each) for each in records]
    assert len(counts) > 3
    for number, count in enumerate(counts[:-1], start=1):  # the last comes with the end
        assert number * interval.count <= count < (number + 1) * interval.count


def test_hours_are_the_runs_own_time_without_pauses(seconds):
    params = parameters(training=rl.Hours(0.2), heatup=0)
    with created(params) as manager:
        for record in manager.improve():
            if record.wall_seconds >= 300:
                break
        state = manager.state_dict()
    seconds[0] += 1e6
    with created(params) as resumed:
        resumed.load_state_dict(state)
        assert resumed.progress.ending is None
        *_, last = resumed.improve()
        assert resumed.progress.ending == "hours"
    assert 720 <= last.wall_seconds < 720 + 200


def test_a_limit_in_hours_leaves_the_planned_training_as_it_is(seconds):
    falling = rl.LinearSchedule(start=1.0, end=0.0)
    params = parameters(training=100_000, stop_after=rl.Hours(0.2))
    with created(params) as manager:
        *_, last = manager.improve()
        assert manager.progress.ending == "hours"
        assert falling(manager.graph.clock) == 1 - last.environment_steps / 100_000
    assert last.kind == "evaluation"  # always one at the end


@pytest.mark.parametrize(
    "length", [rl.EnvironmentEpisodes(25), rl.TrainingSteps(40), rl.EnvironmentSteps(400)]
)
def test_runs_of_every_unit_resume_bit_for_bit(tmp_path, length):
    falling = rl.LinearSchedule(start=1.0, end=0.0)
    params = replace(
        parameters(training=length, evaluation_interval=rl.EnvironmentEpisodes(7)),
        agent=ppo(learning_rate_schedule=falling),
    )
    kinds = ("train", "evaluation", "episode")
    assert_resumes(lambda seed: created(params), tmp_path, after(200), kinds=kinds)


@pytest.mark.parametrize(
    ("length", "half_way"),
    [
        (rl.EnvironmentSteps(10), Clock(environment_steps=5)),
        (rl.EnvironmentEpisodes(10), Clock(episodes=5)),
        (rl.TrainingSteps(10), Clock(training_steps=5)),
        (rl.Hours(2), Clock(wall_seconds=3600.0)),
    ],
)
def test_schedules_fall_by_the_share_of_a_length_in_any_unit(length, half_way):
    assert rl.LinearSchedule(start=1.0, end=0.0, over=length)(half_way) == 0.5
    planned = replace(half_way, planned=length)
    assert rl.LinearSchedule(start=1.0, end=0.0)(planned) == 0.5


def solving(*, stops: bool = True, reward: float = -1e9) -> rl.BasicGraphParameters:
    params = parameters()
    return replace(
        params,
        schedule=replace(params.schedule, until_solved=stops),
        validation=rl.ValidationParameters(reward=reward),
    )


def evaluated_at(records: Iterator[LogRecord]) -> list[int]:
    return [each.environment_steps for each in records if each.kind == "evaluation"]


def test_a_run_stops_with_the_evaluation_that_reaches_its_target():
    with created(solving()) as manager:
        assert evaluated_at(manager.improve()) == [140]  # after 40 steps of heat-up
        assert (manager.progress.ending, manager.progress.solved_at) == ("solved", 140)
        state = manager.state_dict()
    with created(solving()) as resumed:
        resumed.load_state_dict(state)
        assert list(resumed.improve()) == []


def test_the_target_is_noted_whether_or_not_the_run_stops_there():
    with created(solving(stops=False)) as manager:
        assert len(evaluated_at(manager.improve())) == 4
        assert (manager.progress.ending, manager.progress.solved_at) == ("environment steps", 140)
    with created(solving(reward=1e9)) as unsolved:
        assert len(evaluated_at(unsolved.improve())) == 4
        assert (unsolved.progress.ending, unsolved.progress.solved_at) == (
            "environment steps",
            None,
        )


def test_reaching_another_target_does_not_count():
    with created(solving()) as manager:
        list(manager.improve())
        state = manager.state_dict()
    with created(solving(reward=1e9)) as resumed:
        resumed.load_state_dict(state)
        assert (resumed.progress.ending, resumed.progress.solved_at) == (None, None)
    with created(parameters()) as without:
        without.load_state_dict(state)
        assert (without.progress.ending, without.progress.solved_at) == (None, None)


@pytest.mark.parametrize(
    ("target", "scalars", "is_reached"),
    [
        ({"reward": 475}, {"reward_mean": 475.0}, True),
        ({"reward": 475}, {"reward_mean": 474.9, "success_rate": 1.0}, False),
        ({"success_rate": 0.9}, {"reward_mean": -9.0, "success_rate": 0.9}, True),
        ({"success_rate": 0.9}, {"reward_mean": 999.0}, False),
        ({"success_rate": 0.9, "reward": 0}, {"reward_mean": -1.0, "success_rate": 1.0}, False),
        ({"reward": -5}, {"reward_mean": float("nan")}, False),
    ],
)
def test_a_target_is_a_reward_a_success_rate_or_both(target, scalars, is_reached):
    told = {f"evaluation/{name}": value for name, value in scalars.items()}
    assert rl.ValidationParameters(**target).is_reached(told) == is_reached  # type: ignore[arg-type]  # no steps


@pytest.mark.parametrize(
    ("solved_at", "report"),
    [
        (None, "mean reward 475 within 100,000 steps: not reached"),
        (90_000, "mean reward 475 within 100,000 steps: reached at step 90,000"),
        (110_000, "mean reward 475 within 100,000 steps: reached at step 110,000, too late"),
    ],
)
def test_a_target_is_reported_with_its_time(solved_at, report):
    target = rl.ValidationParameters(reward=475, within=rl.EnvironmentSteps(100_000))
    assert target.report(solved_at) == report


def test_progress_end_in_heatup_warns():
    params = parameters(training=rl.EnvironmentEpisodes(2), heatup=100_000)
    with created(params) as manager, pytest.warns(rl.CoachWarning):
        list(manager.improve())


def test_progress_length_without_growth_warns_once(monkeypatch):
    monkeypatch.setattr("coach_rl.graph_managers.run_warnings.STANDSTILL", 200)
    params = replace(parameters(training=rl.TrainingSteps(9)), agent=ppo(rollout=100_000))
    warned = pytest.warns(rl.CoachWarning)
    with created(params) as manager, warned as warnings:
        for record in manager.improve():
            if record.environment_steps >= 600:
                break
    assert len(warnings) == 1
