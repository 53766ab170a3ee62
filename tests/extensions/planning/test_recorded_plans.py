"""Figures of goals and plans are in each record, table and file of evaluations."""

import json
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]
    EventAccumulator,
)

from coach_rl.cli.main import main
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.sessions.session import RunSettings, run_experiment
from tests.small_runs import preset


def test_goals_and_plans_are_in_every_record_of_evaluations(tmp_path: Path) -> None:
    changes = {
        "hierarchy": "graph",
        "spacing": 1.0,
        "level": "point_maze_u",
        "steps": 200,
        "evaluation_interval": 100,
        "layers": (8, 8),
        "batch": 16,
        "environment.max_episode_steps": 60,
        "stack.1.agent.learner.learning.learning_starts": 100,
    }
    graph_manager = preset("PointMaze_HAC").configure(changes)
    result = run_experiment(
        graph_manager,
        Runtime(seed=3, device="cpu"),
        name="run",
        root=tmp_path,
        settings=RunSettings(final_episodes=EnvironmentEpisodes(3)),
    )
    folder = result.folder.path
    goals, plans = {"goal_share", "distance"}, {"graph_places", "graph_edges", "planning_seconds"}
    known = {"top": goals | plans, "low": goals}

    summary = json.loads(result.folder.summary.read_text())["levels"]
    assert {level: {*of} & (goals | plans) for level, of in summary.items()} == known
    top = summary["top"]
    # 3 by 3 places, 1 m apart: 12 pairs of neighbours along the axes and 8 across, both ways
    assert (top["graph_places"], top["graph_edges"]) == (9, 40)
    assert 0 < top["planning_seconds"] < 1
    assert 0 < top["distance"] < 10

    events = EventAccumulator(str(folder)).Reload()
    for level, names in known.items():
        for name in names:
            (event,) = events.Scalars(f"{level}/final_evaluation_level/{name}")
            assert event.value == pytest.approx(summary[level][name])
            assert len(events.Scalars(f"{level}/evaluation_level/{name}")) == 2  # while training

    assert main(["--evaluate", "3", "-crd", str(folder)]) == 0
    (file,) = (folder / "evaluations").glob("*.json")
    again = {
        level: {name.rpartition("/")[2]: value for name, value in scalars.items()}
        for level, scalars in json.loads(file.read_text())["levels"].items()
    }
    assert again["top"].pop("planning_seconds") > 0
    del top["planning_seconds"]
    assert again == summary
