"""Evaluations recorded as data sets, and what a run learns from them."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import coach_rl as rl
from coach_rl.cli.main import main
from coach_rl.extensions.data.files import open_file
from coach_rl.extensions.data.memory_data import memory_of
from coach_rl.memories.batches import NEXT_OBSERVATIONS, OBSERVATIONS
from coach_rl.sessions.settings import Audience
from tests.refusals import check_refused
from tests.small_runs import QUIET, experiment, folder_of, lines_of, ppo


def evaluated(run, file, *, episodes=7, **more):
    parts = (rl.RecordingParameters(file=file),)
    given = {"episodes": rl.EnvironmentEpisodes(episodes), "parts": parts, **more}
    evaluation, _ = rl.evaluate_run(run, **given)
    return evaluation, open_file(str(file))


@pytest.fixture(scope="module")
def cartpole(tmp_path_factory):
    file = tmp_path_factory.mktemp("recorded") / "cartpole.npz"
    return evaluated("trained:CartPole_PPO", file, num_envs=3, sampling=True)


def test_recorded_returns_are_those_of_the_evaluation(cartpole):
    evaluation, opened = cartpole
    recorded = opened.recorded
    returns = np.add.reduceat(recorded.columns["/rewards"], recorded.begins)
    assert sorted(returns) == sorted(evaluation.arrays["episode/reward"])
    assert sorted(recorded.lengths) == sorted(evaluation.arrays["episode/length"])


def test_recorded_transitions_are_those_of_the_simulator(cartpole):
    """The simulator is put into each observation and sent the recorded action."""
    recorded = cartpole[1].recorded
    columns = recorded.columns
    env = gymnasium.make("CartPole-v1").unwrapped
    env.reset(seed=0)
    before = columns[f"{OBSERVATIONS}observation"]
    after = columns[f"{NEXT_OBSERVATIONS}observation"]
    assert set(columns["/actions"].tolist()) == {0, 1}
    for place in range(0, len(recorded), 7):
        env.state = before[place].astype(np.float64)
        env.steps_beyond_terminated = None
        found, reward, terminated, _, _ = env.step(int(columns["/actions"][place]))
        np.testing.assert_allclose(found, after[place], rtol=1e-4, atol=1e-5)
        assert reward == columns["/rewards"][place]
        assert terminated == columns["/terminated"][place]


def test_file_describes_the_spaces_of_the_environment(cartpole):
    known = cartpole[1].spaces
    assert known.action == gymnasium.spaces.Discrete(2)
    assert known.observation["observation"].shape == (4,)


def test_actions_are_recorded_behind_the_filters(tmp_path):
    """PPO acts in [-1, 1] here, the pendulum takes torques in [-2, 2]."""
    _, opened = evaluated("trained:Pendulum_SAC", tmp_path / "pendulum.npz", episodes=2)
    assert opened.spaces.action == gymnasium.spaces.Box(-2, 2, (1,))
    actions = opened.recorded.columns["/actions"]
    assert 1 < np.abs(actions).max() <= 2
    assert opened.recorded.lengths.tolist() == [200, 200]
    assert opened.recorded.columns["/truncated"].sum() == 2


def test_evaluation_is_the_same_without_recording(cartpole):
    again, _ = rl.evaluate_run(
        "trained:CartPole_PPO", episodes=rl.EnvironmentEpisodes(7), num_envs=3, sampling=True
    )
    np.testing.assert_array_equal(
        again.arrays["episode/reward"], cartpole[0].arrays["episode/reward"]
    )


@pytest.mark.parametrize("name", ["mine.csv", "mine.npz"])
def test_command_refuses_a_file_before_it_plays(name, tmp_path, capsys):
    (tmp_path / "mine.npz").touch()
    file = tmp_path / name
    assert main(["evaluate", "trained:CartPole_PPO", "--record", str(file)]) != 0
    shown = capsys.readouterr().err.strip()
    assert "record" in shown
    assert len(shown.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "message"), [("~/mine.npz", "exists already"), ("mine.npz/new.npz", "cannot write")]
)
def test_file_that_cannot_be_written_is_refused(name, message, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.npz").touch()
    file = Path(name) if name.startswith("~") else tmp_path / name
    check_refused(
        lambda: rl.RecordingParameters(file=file).check(QUIET), rl.ConfigurationError, message
    )


def test_check_leaves_no_folders(tmp_path):
    rl.RecordingParameters(file=tmp_path / "a" / "b" / "new.npz").check(QUIET)
    assert not list(tmp_path.iterdir())


class Odd(gymnasium.Env):
    """Counts to 5, where it terminates and truncates; has numbers, a vector and NaN as infos."""

    observation_space = gymnasium.spaces.Box(0, 5, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.count = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.count += 1
        info = {
            "count": self.count,
            "vector": np.zeros(2),
            "rough": np.nan if self.count == 3 else 1.0,
        }
        if self.count == 5:
            info["is_late"] = True
        shown = np.full(1, self.count, np.float32)
        return shown, 1.0, self.count == 5, self.count == 5, info


@pytest.fixture(scope="module")
def odd_run(tmp_path_factory):
    environment = rl.GymnasiumParameters(level=f"{__name__}:Odd")
    root = tmp_path_factory.mktemp("odd")
    manager = experiment(ppo(), environment, training=64)
    return folder_of(rl.run_experiment(manager, name="odd", root=root, settings=QUIET))


def test_infos_are_recorded_and_learned_from(odd_run, tmp_path):
    file = tmp_path / "odd.npz"
    parts = (rl.RecordingParameters(file=file, infos=("count", "is_late", "none")),)
    notes = []
    rl.evaluate_run(
        odd_run, episodes=3, parts=parts, on_written=lambda each: notes.append(each.note)
    )
    assert notes == [
        " (15 transitions of 3 episodes; the environment has never reported none, which is 0)"
    ]
    recorded = open_file(str(file)).recorded
    assert recorded.columns["/terminated"].sum() == 3
    assert not recorded.columns["/truncated"].any()  # beside terminated
    assert {name: each.tolist() for name, each in recorded.infos.items()} == {
        "count": [1, 2, 3, 4, 5] * 3,
        "is_late": [0, 0, 0, 0, 1] * 3,
        "none": [0] * 15,
    }
    agent = rl.BCAgentParameters(
        infos=("count",), learning=rl.LearningParameters(batch=4, learning_starts=1)
    )
    parameters = rl.BatchGraphParameters(
        data=str(file),
        agent=agent,
        environment=rl.GymnasiumParameters(level=f"{__name__}:Odd"),
        schedule=rl.batch_schedule(1),
    )
    with rl.BatchGraphManager(parameters) as manager:
        manager.run()
        kept = manager.graph.agents["main"].memory.trajectories()["/infos/count"]
    np.testing.assert_array_equal(kept[0], [1, 2, 3, 4, 5] * 3)


@pytest.mark.parametrize(
    ("name", "message"), [("vector", "of shape (2,)"), ("rough", "'rough' is nan")]
)
def test_infos_that_are_no_numbers_are_refused(odd_run, tmp_path, name, message):
    parts = (rl.RecordingParameters(file=tmp_path / "odd.npz", infos=(name,)),)
    with pytest.raises(rl.CoachError) as raised:
        rl.evaluate_run(odd_run, episodes=1, parts=parts)
    assert message in str(raised.value)
    assert not (tmp_path / "odd.npz").exists()


def trained(folder, *, name="mass", parts=(), kind=rl.SACAgentParameters):
    """The result of a short run of SAC, or of another agent."""
    agent = kind(
        memory=rl.ReplayMemoryParameters(capacity=1_000),
        learning=rl.LearningParameters(batch=8, learning_starts=8),
        update_mode="eager",
    )
    manager = experiment(
        agent,
        rl.PointMassParameters(max_episode_steps=14),
        num_envs=3,
        heatup=30,
        training=90,
        evaluation_interval=30,
    )
    settings = replace(QUIET, parts=parts)
    return rl.run_experiment(manager, name=name, root=folder, settings=settings)


def test_recorded_training_is_what_its_memory_keeps(tmp_path):
    file = tmp_path / "training.npz"
    result = trained(tmp_path, parts=(rl.RecordingParameters(file=file),))
    (written,) = result.parts["recording"].written
    assert written.path == file
    found = open_file(str(file)).recorded
    kept, _ = memory_of(result.folder.path)
    assert len(found) == len(kept) == 90
    order = [sorted(range(len(each.begins)), key=partial(first_of, each)) for each in (found, kept)]
    for path in kept.columns:
        for one, two in zip(*order, strict=True):
            mine, its = (
                each.columns[path][each.begins[at] : each.begins[at] + each.lengths[at]]
                for each, at in ((found, one), (kept, two))
            )
            np.testing.assert_allclose(mine, its, rtol=1e-6, atol=1e-6)
    log_prob = found.columns["/action_log_prob"]
    np.testing.assert_allclose((log_prob == -2 * np.log(2)).sum(), 30)  # even in HEATUP


def first_of(recorded, episode):
    """The first observation of an episode, by which episodes are ordered."""
    return recorded.columns[f"{OBSERVATIONS}observation"][recorded.begins[episode]].tolist()


def test_recording_changes_no_number_of_training(tmp_path):
    plain = trained(tmp_path, name="plain")
    parts = (rl.RecordingParameters(file=tmp_path / "training.npz"),)
    again = trained(tmp_path, name="recorded", parts=parts)
    found = [
        [
            each["scalars"]["evaluation/reward_mean"]
            for each in lines_of(run)
            if each["kind"] == "evaluation"
        ]
        for run in (plain, again)
    ]
    assert found[0] == found[1]
    assert len(found[0]) >= 2


def test_episodes_of_a_resumed_run_begin_where_it_is(tmp_path):
    first = trained(tmp_path)
    file = tmp_path / "training.npz"
    settings = rl.RunSettings(parts=(rl.RecordingParameters(file=file),))
    rl.resume_experiment(first.folder.path, steps=rl.EnvironmentSteps(120), settings=settings)
    found = open_file(str(file)).recorded
    assert len(found) == 30
    kept, _ = memory_of(first.folder.path)
    assert len(kept) == 120
    known = {tuple(each) for each in kept.columns[f"{OBSERVATIONS}observation"].round(5).tolist()}
    seen = found.columns[f"{OBSERVATIONS}observation"].astype(np.float32).round(5)
    assert all(tuple(each) in known for each in seen.tolist())


def test_run_that_acts_nowhere_records_nothing(tmp_path):
    parameters = rl.BatchGraphParameters(
        data="data:cartpole-expert",
        agent=rl.BCAgentParameters(
            memory=rl.ReplayMemoryParameters(capacity=20_000), update_mode="eager"
        ),
        environment=rl.GymnasiumParameters(level="CartPole-v1"),
        schedule=rl.batch_schedule(2),
    )
    file = tmp_path / "none.npz"
    settings = rl.RunSettings(
        parts=(rl.RecordingParameters(file=file),), final_episodes=rl.EnvironmentEpisodes(1)
    )
    with pytest.warns(rl.CoachWarning, match="nothing was acted in the world"):
        rl.run_experiment(
            rl.BatchGraphManager(parameters), name="none", root=tmp_path, settings=settings
        )
    assert not file.exists()


def test_log_probabilities_are_left_out_where_some_actions_have_none(tmp_path):
    """TD3 draws uniformly in HEATUP and has no density after; episodes are of both."""
    file = tmp_path / "training.npz"
    parts = (rl.RecordingParameters(file=file),)
    result = trained(tmp_path, parts=parts, kind=rl.TD3AgentParameters)
    (written,) = result.parts["recording"].written
    assert "log-probabilities are left out" in written.note
    found = open_file(str(file)).recorded
    assert len(found) == 90
    assert "/action_log_prob" not in found.columns


class Failing(Odd):
    """Fails once, in the third step of an episode, while it is armed."""

    armed = False

    def step(self, action):
        if Failing.armed and self.count == 2:
            Failing.armed = False
            raise RuntimeError("the cable is out")
        return super().step(action)


def recorded_ppo(folder, file, level="Odd", **audience):
    """The result of a short run of PPO whose training is recorded."""
    manager = experiment(ppo(), rl.GymnasiumParameters(level=f"{__name__}:{level}"), training=64)
    settings = replace(QUIET, parts=(rl.RecordingParameters(file=file),))
    return rl.run_experiment(
        manager, name="odd", root=folder, settings=settings, audience=Audience(**audience)
    )


def test_episode_of_a_failing_simulator_is_cut_off(tmp_path):
    file = tmp_path / "training.npz"

    def arm(*_):
        Failing.armed = True

    with pytest.warns(rl.CoachWarning, match="the cable is out"):
        recorded_ppo(tmp_path, file, "Failing", on_start=arm)
    recorded = open_file(str(file)).recorded
    lengths = recorded.lengths.tolist()
    cut = lengths.index(2)
    assert lengths[:-1].count(5) == len(lengths) - 2
    assert recorded.columns["/truncated"][recorded.begins[cut] + 1]


@pytest.mark.parametrize("is_there", [True, False])
def test_recording_that_cannot_be_written_is_elsewhere(is_there, tmp_path):
    """Its file exists by then, or its folder cannot be made."""
    file = tmp_path / "data" / "training.npz"

    def hinder(*_):
        if is_there:
            file.parent.mkdir()
        (file if is_there else file.parent).touch()

    with pytest.warns(rl.CoachWarning, match="the recording is written to"):
        result = recorded_ppo(tmp_path, file, on_start=hinder)
    (written,) = result.parts["recording"].written
    other = file.with_stem("training_2") if is_there else result.folder.path / file.name
    assert written.path == other
    assert len(open_file(str(other)).recorded) == 64


def test_recording_that_memory_may_not_hold_warns(tmp_path, monkeypatch):
    monkeypatch.setattr("coach_rl.extensions.data.recording.free_host_bytes", lambda: 1000)
    with pytest.warns(rl.CoachWarning, match="some 512 B of observations in 64 steps"):
        recorded_ppo(tmp_path, tmp_path / "training.npz")
