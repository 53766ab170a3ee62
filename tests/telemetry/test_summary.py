import io
import json

from rich.console import Console

from coach_rl.core import Evaluation, LogRecord
from coach_rl.core.clock import Phase
from coach_rl.telemetry import Summary

SCALARS = {
    "evaluation/episodes": 20.0,
    "evaluation/reward_mean": 1234.5,
    "evaluation/reward_std": 12.25,
    "evaluation/reward_iqm": 1240.0,
    "evaluation/reward_iqm_low": 1230.0,
    "evaluation/reward_iqm_high": 1250.0,
    "evaluation/length_mean": 1000.0,
}


COUNTERS = {
    "phase": Phase.TEST,
    "environment_steps": 100_000,
    "training_steps": 15_000,
    "episodes": 100,
    "wall_seconds": 20.5,
}


def of_level(name, **scalars):
    named = {f"evaluation_level/{key}": value for key, value in scalars.items()}
    return LogRecord(kind="level", level=name, scalars=named, **COUNTERS)


def summary(best="checkpoints/step_90000", levels=(), **scalars):
    return Summary(
        evaluation=Evaluation(
            kind="evaluation", scalars=SCALARS | scalars, levels=tuple(levels), **COUNTERS
        ),
        steps_per_second=5000.0,
        best_checkpoint=best,
        last_checkpoint="checkpoints/step_100000",
        best="reward_mean 1,250 at environment step 90,000",
        ending="environment steps",
        target="mean reward 475.0 within 100,000 steps: reached at step 90,000",
        solved_at=90_000,
        signals={"signals/speed/mean": 2.0},
    )


def shown(table):
    output = io.StringIO()
    Console(file=output, width=80).print(table)
    return output.getvalue()


def test_summary_json_keys():
    document = {
        "env_steps": 100_000,
        "episodes": 100,
        "training_steps": 15_000,
        "wall_seconds": 20.5,
        "steps_per_second": 5000.0,
        "evaluation": {
            "episodes": 20,
            "reward_mean": 1234.5,
            "reward_std": 12.25,
            "reward_iqm": 1240.0,
            "reward_iqm_low": 1230.0,
            "reward_iqm_high": 1250.0,
            "length_mean": 1000.0,
            "reward_ci95": [1230.0, 1250.0],
            "success_rate": None,
            "success_any_rate": None,
        },
        "levels": {},
        "signals": {
            "training": {"speed": {"mean": 2.0}},
            "evaluation": {"main/gap": {"mean": 0.5}},
        },
        "ending": "environment steps",
        "target": "mean reward 475.0 within 100,000 steps: reached at step 90,000",
        "solved_at": 90_000,
        "best_checkpoint": "checkpoints/step_90000",
        "last_checkpoint": "checkpoints/step_100000",
        "incidents": [],
        "faults": {},
    }
    told = summary(**{"evaluation_signals/main/gap/mean": 0.5})
    assert told.as_json() == document
    assert json.loads(json.dumps(told.as_json())) == document


def test_summary_reported_success_is_shown():
    rates = {"evaluation/success_rate": 0.75, "evaluation/success_any_rate": 0.875}
    reported = summary(**rates)
    evaluation = reported.as_json()["evaluation"]
    assert isinstance(evaluation, dict)
    assert evaluation["success_rate"] == 0.75
    assert (
        summary(**{"evaluation/reward_mean/speaker": 2.0}).as_json()["evaluation"][
            "reward_mean/speaker"
        ]
        == 2.0
    )
    assert evaluation["success_any_rate"] == 0.875
    assert "75.0%  (at any step 87.5%)" in shown(reported.table())
    assert "75.0%" in shown(reported.table())
    assert "success" not in shown(summary().table())


def test_summary_levels_have_line_each():
    levels = [
        of_level(
            "top",
            **{"sub_episodes": 20.0, "decisions": 7.5, "steps": 67.5},
            **{"graph_places": 144.0, "graph_edges": 1_012.0, "graph_pruned_edges": 1_000.0},
            planning_seconds=2.5e-4,
        ),
        of_level(
            "low",
            **{"sub_episodes": 1_150.0, "decisions": 9.0, "steps": 9.0},
            **{"goal_share": 0.8125, "distance": 0.0625},
        ),
    ]
    told = summary(levels=levels)
    assert told.as_json()["levels"] == {
        "top": {
            "sub_episodes": 20.0,
            "decisions": 7.5,
            "steps": 67.5,
            "graph_places": 144.0,
            "graph_edges": 1_012.0,
            "graph_pruned_edges": 1_000.0,
            "planning_seconds": 2.5e-4,
        },
        "low": {
            "sub_episodes": 1_150.0,
            "decisions": 9.0,
            "steps": 9.0,
            "goal_share": 0.8125,
            "distance": 0.0625,
        },
    }
    text = " ".join(shown(told.table()).replace("│", " ").split())
    top = "level top 20 sub-episodes of 7.5 decisions (67.5 steps), "  # it has no goals
    graph = "graph of 144 places, 1,012 edges (1,000 pruned), 0.25 ms of planning a decision level"
    assert f"{top}{graph}" in text
    assert "1,150 sub-episodes of 9.0 decisions, 81.2% reach the goal, distance 0.0625" in text


def test_summary_table_fits_terminal():
    table = shown(summary().table())
    text = " ".join(table.replace("│", " ").split())
    assert max(map(len, table.splitlines())) <= 80
    for part in (
        "1,234.50",
        "12.25",
        "1,240.00 (95 % interval 1,230.00 to 1,250.00)",
        "100,000",
        "15,000",
        "5,000",
        "checkpoints/step_90000",
        "checkpoints/step_100000",
        "ended by",
        "environment steps",
        "reached at step 90,000",
        "reward_mean 1,250 at environment step 90,000",
    ):
        assert part in text


def test_summary_without_best_checkpoint():
    assert summary(best=None).as_json()["best_checkpoint"] is None
    assert "best checkpoint" in shown(summary(best=None).table())
