"""Games against the trained agent of another run."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy.connect_four import SPACES, ConnectFourParameters
from coach_rl.extensions.groups import trained_opponent
from coach_rl.extensions.groups.trained_opponent import TrainedOpponent, TrainedPlayer
from coach_rl.extensions.studies.job import Job, run_job
from coach_rl.extensions.testing import ENVIRONMENT_CHECKS, Trial
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.checkpoint import find_checkpoint
from coach_rl.sessions import (
    RunSettings,
    evaluate_run,
    fork_experiment,
    load,
    repeat_experiment,
    resume_experiment,
    run_experiment,
)
from tests.small_runs import manifest_of

SETTINGS = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(2))
IN_BACKGROUND = (rl.BackgroundEvaluation(),)
SMALL = {
    "steps": 256,
    "num_envs": 4,
    "agent.algorithm.rollout": 64,
    "agent.algorithm.minibatch": 32,
    "schedule.evaluation_interval": 128,
    "schedule.progress_interval": 64,
    "schedule.evaluation_episodes": 2,
}


def trained(root, name="ConnectFour_PPO", settings=SETTINGS, **changes):
    """The folder of a short run."""
    manager = load_preset(find_preset(name)).configure(SMALL | changes)
    runtime = Runtime(seed=0, device="cpu")
    return run_experiment(manager, runtime, name="games", root=root, settings=settings).folder.path


@pytest.fixture(scope="module")
def champion(tmp_path_factory):
    """The folder of a run against a random player."""
    return trained(tmp_path_factory.mktemp("champion"))


def test_opponent_plays_greedily_what_load_plays(champion):
    player = TrainedOpponent(run=str(champion), random_moves=0.0).opponent(SPACES)
    environment = ConnectFourParameters().build(num_envs=50)
    seen = environment.reset(seed=0).observation
    for _ in range(8):
        columns = player.columns(seen, np.zeros(50))
        np.testing.assert_array_equal(columns, load(champion).act(seen))
        environment.send(columns)
        seen = environment.recv().first_observation


def test_opponent_plays_the_share_of_random_moves(champion):
    player = TrainedOpponent(run=str(champion), random_moves=0.7).opponent(SPACES)
    seen = ConnectFourParameters().build(num_envs=1).reset(seed=1).observation
    seen = {key: np.repeat(values, 1_000, axis=0) for key, values in seen.items()}
    columns = player.columns(seen, np.arange(1_000) / 1_000)
    greedy = int(load(champion).act({key: values[0] for key, values in seen.items()}))
    assert np.bincount(columns, minlength=7).tolist() == [
        400 if column == greedy else 100 for column in range(7)
    ]


@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=lambda check: check.__name__)
def test_environment_with_opponent_keeps_the_contract(check, champion):
    description = ConnectFourParameters(opponent=TrainedOpponent(run=str(champion)))
    check(Trial(build=lambda num_envs: description.build(num_envs=num_envs), steps=8))


def test_run_against_opponent_resumed_elsewhere_equals_one_without_stop(
    champion, tmp_path, monkeypatch
):
    monkeypatch.chdir(champion.parent)
    often = CheckpointParameters(every_steps=EnvironmentSteps(128))
    whole = trained(tmp_path, settings=replace(SETTINGS, checkpoints=often), opponent=champion.name)
    monkeypatch.chdir(tmp_path)
    copy = shutil.copytree(whole, tmp_path / "copy")
    resume_experiment(Path(f"{copy}@128"), drop_later=True, settings=SETTINGS)
    networks = [load(run).network["actor_critic"].state_dict() for run in (whole, copy)]
    assert_same_state(*networks)
    logs = [(run / "episodes.csv").read_text().splitlines() for run in (whole, copy)]
    assert len(logs[0]) == len(logs[1]) > 10


def test_members_in_turn_play_against_their_frozen_selves_in_the_background(
    tmp_path, served_evaluations
):
    """Two moves of one member, then one of the other; a generation later they are the opponent."""
    preset, opponent = load_preset(find_preset("ConnectFour_PPO")), "random"
    for background in (False, True):
        parameters = preset.configure(SMALL | {"opponent": opponent}).parameters
        names = ("opener", "finisher")
        members = [rl.GroupMember(agent=replace(parameters.agent, name=name)) for name in names]
        arbiter = rl.Turns(order=("opener", "opener", "finisher"))
        group = rl.AgentGroupParameters(members=tuple(members), arbiter=arbiter)
        manager = rl.BasicRLGraphManager(replace(parameters, agent=group))
        settings = replace(SETTINGS, parts=IN_BACKGROUND if background else ())
        runtime = Runtime(seed=0, device="cpu")
        run = run_experiment(manager, runtime, name="turns", root=tmp_path, settings=settings)
        opponent = str(run.folder.path)
        log = (run.folder.path / "log.jsonl").read_text().splitlines()
        assert [json.loads(line)["kind"] for line in log].count("evaluation") >= 2


def test_run_whose_opponent_was_moved_is_forked_with_its_new_place(champion, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(champion, first)
    run = trained(tmp_path, opponent=str(first), steps=128)
    first.rename(second)
    with pytest.raises(ConfigurationError) as refused:
        resume_experiment(run, steps=EnvironmentSteps(256), settings=SETTINGS)
    assert str(first) in str(refused.value)
    assert "fork the run with environment.opponent.run=" in str(refused.value)
    assert "\n" not in str(refused.value)
    moved = {"environment.opponent.run": str(second)}
    fork = fork_experiment(
        run,
        name="fork",
        root=tmp_path,
        overrides=moved,
        steps=EnvironmentSteps(256),
        settings=SETTINGS,
    )
    assert fork.environment_steps == 256


USES = {
    "resume": lambda run, _: resume_experiment(run, steps=EnvironmentSteps(192), settings=SETTINGS),
    "in the background": lambda run, _: resume_experiment(
        run,
        steps=EnvironmentSteps(192),
        settings=replace(SETTINGS, parts=IN_BACKGROUND),
    ),
    "fork": lambda run, root: fork_experiment(
        run, name="fork", root=root, steps=EnvironmentSteps(192), settings=SETTINGS
    ),
    "repeat": lambda run, root: repeat_experiment(run, root=root, settings=SETTINGS),
    "evaluate": lambda run, _: evaluate_run(run, episodes=EnvironmentEpisodes(2)),
}
"""What is done with a run against an opponent; its folder and that of the experiments are given."""


@pytest.fixture(scope="module")
def lengthened(tmp_path_factory):
    """A run whose opponent has trained on since: its folder, the opponent's, and
    the checkpoint that it had then."""
    root = tmp_path_factory.mktemp("lengthened")
    opponent = trained(root, steps=128)
    recorded = find_checkpoint(opponent / "checkpoints")
    run = trained(root, opponent=str(opponent), steps=128)
    kept = shutil.copytree(recorded, root / "kept")
    resume_experiment(opponent, steps=EnvironmentSteps(256), settings=SETTINGS)
    if not recorded.exists():
        shutil.copytree(kept, recorded)
    return run, opponent, recorded


@pytest.fixture
def copied(lengthened, tmp_path):
    """The same, with a copy of the run."""
    run, *opponent = lengthened
    return Path(shutil.copytree(run, tmp_path / "games" / "copy")), *opponent


SLOW = "in the background"


@pytest.mark.parametrize(
    "use", [pytest.param(use, marks=[pytest.mark.slow] * (use == SLOW)) for use in USES]
)
def test_run_plays_against_the_recorded_opponent(use, copied, tmp_path, monkeypatch):
    run, _, recorded = copied
    loaded = []

    def noted(path, **given):
        loaded.append(Path(path))
        return load(path, **given)

    monkeypatch.setattr(trained_opponent, "load", noted)
    USES[use](run, tmp_path)
    assert {*loaded} == {recorded}
    for manifest in tmp_path.rglob("manifest.json"):
        taken = json.loads(manifest.read_text())["parameters"]["environment"]["opponent"]["taken"]
        assert taken["checkpoint"] == str(recorded)


@pytest.mark.parametrize("change", ["gone", "changed"])
@pytest.mark.parametrize("use", [use for use in USES if use != SLOW])
def test_run_whose_opponent_has_changed_is_refused_with_what_to_do(use, change, copied, tmp_path):
    run, opponent, recorded = copied
    aside = recorded.rename(tmp_path / "aside")
    if change == "changed":
        shutil.copytree(find_checkpoint(opponent / "checkpoints"), recorded)
    try:
        with pytest.raises(ConfigurationError) as refused:
            USES[use](run, tmp_path)
    finally:
        shutil.rmtree(recorded, ignore_errors=True)
        aside.rename(recorded)
    what = {"gone": "is not there any more", "changed": "has been changed since"}[change]
    assert f"the checkpoint {recorded}, with which the run began, {what}" in str(refused.value)
    assert "fork the run with environment.opponent.run=... as it is now" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_fork_that_names_another_opponent_records_that(copied, tmp_path):
    run, opponent, _ = copied
    changes = {"environment.opponent.run": f"{opponent}@last"}
    fork = fork_experiment(
        run, name="fork", root=tmp_path, overrides=changes, steps=EnvironmentSteps(192)
    )
    taken = manifest_of(fork)["parameters"]["environment"]["opponent"]["taken"]
    assert taken["checkpoint"] == str(find_checkpoint(opponent / "checkpoints"))


def test_study_finds_its_run_against_an_opponent_that_has_trained_on(lengthened, tmp_path):
    _, opponent, _ = lengthened
    overrides = {**SMALL, "steps": 128, "opponent": str(opponent)}
    job = Job(
        preset="ConnectFour_PPO",
        overrides=overrides,
        task=Runtime(seed=0, device="cpu"),
        name="study",
        root=tmp_path,
    )
    first = run_job(job)
    assert first.state == "done", first.error
    assert run_job(job).folder == first.folder


def test_opponent_of_another_game_is_refused(tmp_path):
    run = trained(tmp_path, name="Cables_PPO", places=4)
    with pytest.raises(SpaceError, match="was trained for another game"):
        ConnectFourParameters(opponent=TrainedOpponent(run=str(run))).build(num_envs=1)


def test_opponent_that_is_a_group_is_given_that_no_member_is_over():
    given = []

    class Group:
        def reset(self):
            given.clear()

        def act(self, observation, *, over=None):
            given.append(over)
            return np.zeros(len(observation["action_mask"]), np.int64)

    player = TrainedPlayer(Group(), random_moves=0.5)
    player.columns({"action_mask": np.ones((2, 7))}, np.ones(2))
    assert given == [{}]
