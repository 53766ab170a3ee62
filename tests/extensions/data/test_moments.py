"""Curves of a run from data are drawn over its updates, and its files are named by them."""

import json
from dataclasses import replace

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import coach_rl as rl
from coach_rl.cli.main import main
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.steps import EnvironmentEpisodes, TrainingSteps
from coach_rl.extensions.data.batch_graph import DataSourceParameters
from coach_rl.extensions.studies.logged import with_logged
from coach_rl.extensions.studies.runs import find_runs
from coach_rl.extensions.studies.scores import read_scores
from coach_rl.sessions.session import run_experiment
from coach_rl.telemetry.log_files import JsonlReader

SMALL = rl.TorsoParameters(middleware=(8,), activation="relu", orthogonal=False)
WORLD = rl.GymnasiumParameters(level="CartPole-v1", kwargs={"render_mode": "rgb_array"})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of ten updates from data, and then of twenty more in the world."""
    agent = rl.BCAgentParameters(
        policy=rl.PolicyParameters(torso=SMALL),
        learning=rl.LearningParameters(batch=64, learning_starts=1, report_every=5),
        memory=rl.ReplayMemoryParameters(capacity=20_000),
        update_mode="eager",
    )
    schedule = rl.batch_schedule(30, every=10, episodes=1)
    manager = rl.BatchGraphManager(
        rl.BatchGraphParameters(
            data="data:cartpole-expert",
            environment=WORLD,
            agent=agent,
            schedule=replace(schedule, progress_interval=TrainingSteps(10)),
            updates=10,
            validation=rl.ValidationParameters(reward=1.0),
        )
    )
    settings = rl.RunSettings(final_episodes=EnvironmentEpisodes(1), parts=(rl.VideoParameters(),))
    root = tmp_path_factory.mktemp("runs")
    run = run_experiment(manager, rl.Runtime(seed=1), name="x", root=root, settings=settings)
    assert run.environment_steps > 0
    return run


@pytest.fixture(scope="module")
def folder(run):
    return run.folder.path


def test_facts_have_its_length_in_updates(run):
    updates = {"gradient updates": "30"}
    assert run.facts().items() >= (updates | {"target reached at": "10 gradient updates"}).items()
    for shown in (run.folder, rl.load(run.folder.path), read_scores(run.folder.path)):
        assert shown.facts().items() >= updates.items()


def test_tensorboard_draws_over_updates(folder):
    events = EventAccumulator(str(folder)).Reload()
    for tag in ("evaluation/reward_mean", "main/agent/train/cloning_loss"):
        steps = [each.step for each in events.Scalars(tag)]
        assert steps == sorted(steps)
        assert {10, 20, 30} <= set(steps)


def test_films_and_checkpoints_have_the_same_numbers(folder):
    films = {each.stem for each in (folder / "videos").iterdir()}
    assert {"step_10", "step_20", "step_30_final"} <= films
    assert (folder / "checkpoints" / "step_30").exists()


def test_curves_of_studies_are_drawn_over_updates(folder):
    scores = read_scores(folder)
    assert scores.unit is TrainingSteps
    assert scores.curve.steps.tolist() == [10, 20, 30]
    assert scores.moments == 30
    assert scores.steps_per_second > 0
    frame, _ = find_runs([folder])
    (logged,) = with_logged(frame, "train/cloning_loss").runs
    assert logged.curve.steps.max() == 30


def test_target_is_reached_at_an_update(folder):
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["solved_at"] == 10
    assert summary["target"].endswith("reached at step 10")


def test_run_that_is_over_names_what_trains_it_further(folder, capsys):
    assert main(["resume", f"{folder}"]) == 2
    assert "give a total of environment steps above 20 with --steps" in capsys.readouterr().err
    source = DataSourceParameters(data="data:cartpole-expert")
    advice = source.how_to_train_further(Clock(phase=Phase.TRAIN))
    assert advice.endswith("or continue in the world with --online STEPS")


def test_records_of_the_log_keep_their_unit(folder):
    records = list(JsonlReader(folder / "log.jsonl").stream())
    assert {each.unit for each in records} == {TrainingSteps}
    assert records[-1].moment == records[-1].training_steps == 30
