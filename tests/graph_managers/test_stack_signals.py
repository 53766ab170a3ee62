import warnings
from dataclasses import replace
from functools import partial

import pytest

import coach_rl as rl
from coach_rl.telemetry.summary import by_signal
from tests.agents.resuming import after, assert_resumes
from tests.builders import created
from tests.graph_managers.signalling import ShiftParameters, TellingPPOParameters
from tests.graph_managers.small_runs import parameters, ppo

VECTORIZATIONS = {"sync": "Counting", "subprocess": "Counting", "vector": "CountingRows"}


def counting(*infos, vectorization="sync", **changes):
    schedule = rl.ScheduleParameters(
        training=160, evaluation_interval=80, evaluation_episodes=3, progress_interval=40
    )
    level = f"signalling:{VECTORIZATIONS[vectorization]}"
    environment = rl.GymnasiumParameters(level=level, vectorization=vectorization, processes=1)
    return replace(
        parameters(),
        environment=environment,
        schedule=schedule,
        signals=rl.SignalParameters(infos=infos),
        **changes,
    )


def records_of(params):
    with rl.BasicRLGraphManager(params) as graph_manager:
        return list(graph_manager.improve())


def signals_of(records):
    return [by_signal(r.scalars, "signals") for r in records if r.kind == "signals"]


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("vectorization", VECTORIZATIONS)
def test_infos_are_logged_by_name_and_pattern(vectorization):
    params = counting("steps", "cost_*", "bonus", vectorization=vectorization)
    params = replace(params, evaluation_environment=counting().environment)
    reports = signals_of(records_of(params))
    assert len(reports) == 4
    for report in reports:  # 4 rows of 10 steps each: two episodes of 5
        assert set(report) == {"steps", "cost_a", "bonus"}
        assert report["cost_a"] == {"mean": 0.5, "std": 0, "min": 0.5, "max": 0.5, "count": 40}
        assert report["steps"]["mean"] == 3
        assert (report["steps"]["min"], report["steps"]["max"]) == (1, 5)
        only_where_reported = {"mean": 4, "std": 0, "min": 4, "max": 4, "count": 16}
        assert report["bonus"] == only_where_reported


def test_mujoco_tasks_log_what_gymnasium_reports():
    params = replace(
        counting("x_velocity", "reward_*"), environment=rl.MujocoParameters(level="half_cheetah")
    )
    schedule = replace(params.schedule, evaluation_interval=None)
    assert set(signals_of(records_of(replace(params, schedule=schedule)))[0]) == {
        "x_velocity", "reward_forward", "reward_ctrl",
    }  # fmt: skip


def test_evaluations_have_statistics_of_their_own_over_their_episodes():
    evaluations = [r for r in records_of(counting("steps")) if r.kind == "evaluation"]
    for record in evaluations:
        counted = by_signal(record.scalars, "evaluation_signals")["steps"]
        assert counted["count"] == record.arrays["episode/length"].sum() == 15
        assert counted["max"] == 5


def test_nothing_is_logged_where_nothing_is_asked_for():
    records = records_of(counting())
    assert not [r for r in records if r.kind == "signals"]
    assert not [n for r in records for n in r.scalars if "signals/" in n]


def test_agents_and_filters_note_signals_in_training_and_evaluations():
    filters = rl.InputFilter(observation={"observation": (ShiftParameters(),)})
    agent = TellingPPOParameters(**{**vars(ppo()), "input_filter": filters})
    records = records_of(replace(parameters(), agent=agent))
    trained = [each for each in signals_of(records) if "main/round" in each]
    assert trained
    assert set(trained[-1]) == {"main/action", "main/round", "main/passing"}
    evaluation = next(r for r in records if r.kind == "evaluation")
    assert set(by_signal(evaluation.scalars, "evaluation_signals")) == {
        "main/action", "main/passing",
    }  # fmt: skip


def test_ranges_of_observations_are_logged_by_key():
    params = replace(counting(), signals=rl.SignalParameters(observations=True))
    (first, *_) = signals_of(records_of(params))
    ranges = first["main/observations/observation"]
    assert (ranges["min"], ranges["max"], ranges["count"]) == (0, 0, 80), (
        "40 decisions on 2 zeros each"
    )


def test_listening_changes_no_number():
    def learned(*infos):
        return [
            {k: v for k, v in r.scalars.items() if "signals" not in k}
            for r in records_of(counting(*infos))
            if r.kind in ("train", "episode", "evaluation")
        ]

    assert learned("steps", "bonus") == learned()


def test_a_resumed_run_has_the_same_statistics(tmp_path):
    params = counting("steps", "bonus")
    params = replace(params, signals=replace(params.signals, observations=True))
    moments = after(12), after(60)
    assert_resumes(partial(created, params), tmp_path, *moments, kinds=("signals",))


def test_a_pattern_without_a_match_is_said_once_with_the_names_there_are():
    with pytest.warns(rl.CoachWarning) as said:
        records_of(counting("stepz", "colour", "place", "cost_*"))
    lines = [str(each.message) for each in said]
    assert [line for line in lines if "'stepz'" in line] == [
        "signals.infos: no info of the environment has matched 'stepz' so far; it has reported "
        "bonus, colour, cost_a, place, steps"
    ]
    assert sum("'colour'" in line for line in lines) == 1
    assert sum("'place', which is float64 of shape (3,) and" in line for line in lines) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        records_of(counting("steps"))
