"""Runs in two processes that average gradients: equal networks, exact resume, one end for all."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

import coach_rl as rl
from coach_rl.cli.main import main
from coach_rl.core.errors import ConfigurationError, RunError
from coach_rl.core.running_statistics import RunningStatistics
from coach_rl.extensions.parallel import parallel
from coach_rl.extensions.parallel.statistics import SharedStatistics
from tests.extensions.parallel import averaged_steps
from tests.extensions.parallel.torchrun import (
    coach,
    different,
    finished,
    kill_one,
    runs_of,
    started,
    state_of,
    steps_saved,
    waiting,
)

pytestmark = pytest.mark.timeout(600)
SHORT = ("--parallel", "--plain", "-c", "-ntb")


class OneRank:
    """A single rank, without torch's processes."""

    rank, size = 0, 1

    def gather(self, numbers):
        return numbers[None]

    def average(self, tensor):
        pass

    def everyone(self, value):
        return [value]


def by_hand(steps):
    """Parameters after steps on the mean of two replicas' gradients, with torch's own Adam."""
    model, adam = averaged_steps.module(), averaged_steps.ADAM
    optimizer = torch.optim.Adam(model.parameters(), adam.learning_rate, adam.betas, adam.epsilon)
    for step in range(steps):
        both = []
        for rank in range(2):
            loss = averaged_steps.error(model, averaged_steps.batch(rank, step))
            both.append(torch.autograd.grad(loss, list(model.parameters())))
        for parameter, one, other in zip(model.parameters(), *both, strict=True):
            parameter.grad = (one + other) / 2 + adam.l2 * parameter.detach()
        nn.utils.clip_grad_norm_(model.parameters(), adam.max_gradient_norm)
        optimizer.step()
    return torch.cat([each.detach().reshape(-1) for each in model.parameters()])


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_two_processes_equal_a_written_out_mean_of_two_replicas(tmp_path, device):
    if device == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip("NCCL needs a GPU for each of two processes")
    code, printed = finished(averaged_steps.main, tmp_path / "online.pt", device, folder=tmp_path)
    assert code == 0, printed
    found, expected = torch.load(tmp_path / "online.pt"), by_hand(averaged_steps.STEPS)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


def test_ranks_have_equal_networks_and_a_killed_rank_ends_all_and_all_resume_exactly(tmp_path):
    preset = ("-p", "CartPole_PPO", *SHORT, "--steps", "6144")
    preset += ("--checkpoint_steps", "2048", "-cp", "agent.algorithm.scale_returns=True")
    code, printed = finished(coach, *preset, "--as", "whole", folder=tmp_path)
    assert code == 0, printed
    assert printed.count("run folder:") == 2  # at the beginning and at the end, of rank 0
    experiments = tmp_path / "experiments"
    whole = runs_of(experiments / "whole")
    first, second = map(state_of, whole)
    own = different(first, second)
    assert all("shuffle" in path or "memory" in path or "means" in path for path in own), own
    seeds = [json.loads(run.manifest.read_text())["task"]["seed"] for run in whole]
    assert seeds[0] == 0 != seeds[1]
    scores = [json.loads(run.summary.read_text())["evaluated_episodes"] for run in whole]
    assert scores[0] == scores[1]

    broken = experiments / "broken"
    process = started("-m", "coach_rl", *preset, "--as", "broken", folder=tmp_path)
    is_saved = lambda: all(steps_saved(broken, rank) & {2048, 4096} for rank in range(2))  # noqa: E731
    assert kill_one(process, is_saved) != 0
    (place,) = broken.iterdir()
    code, printed = finished(coach, "-crd", place, *SHORT, folder=tmp_path)
    assert code == 0, printed
    for run, again in zip(whole, runs_of(broken), strict=True):
        assert not different(state_of(run), state_of(again))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "steps", "changes"),
    [
        ("Pendulum_SAC", 1_500, ()),
        ("CartPole_DQN", 3_000, ("agent.memory.prioritised=Prioritised()",)),
        ("TMaze_PPO", 8_192, ()),
        ("SpeakerListener_PPO", 4_000, ()),
        ("Pendulum_HAC", 3_000, ()),
    ],
    ids=["off-policy", "prioritised", "recurrent", "group", "hierarchy"],
)
def test_ranks_of_every_kind_have_equal_networks(tmp_path, preset, steps, changes):
    flags = [word for change in changes for word in ("-cp", change)]
    words = ("-p", preset, *SHORT, "--steps", steps, *flags)
    code, printed = finished(coach, *words, folder=tmp_path)
    assert code == 0, printed
    first, second = map(state_of, runs_of(tmp_path / "experiments" / preset))
    learned = [path for path in first if "/online/" in path or "moment" in path]
    assert any("moment" in path and np.any(first[path]) for path in learned)
    assert not set(different(first, second)).intersection(learned)


def test_one_rank_makes_the_numbers_of_a_run_alone(monkeypatch):
    monkeypatch.setattr(parallel, "Ranks", OneRank)
    networks = []
    for callbacks in ((), (ALONE,)):
        with experiment("CartPole_PPO", callbacks=callbacks) as manager:
            manager.create_graph(rl.Runtime(device="cpu", threads=1))
            manager.run()
            networks.append(manager.graph.agents["main"].network.online.clone())
    torch.testing.assert_close(*networks, rtol=0, atol=1e-6)


ALONE = rl.ParallelParameters(ranks=1)


def experiment(preset, *, callbacks=(ALONE,), **changes):
    """A preset's experiment of 4,096 steps."""
    manager = rl.load_preset(rl.find_preset(preset)).configure(
        {
            "schedule.training": 4_096,
            "checkpoints.lost_at_most_seconds": None,
            **{path.replace("__", "."): value for path, value in changes.items()},
        }
    )
    return type(manager)(replace(manager.parameters, callbacks=callbacks))


@pytest.mark.parametrize(
    ("preset", "changes", "message"),
    [
        ("CartPole_PPO", {"schedule__training": rl.EnvironmentEpisodes(9)}, "training counts"),
        ("CartPole_PPO", {"schedule__stop_after": 1.0}, "own time"),
        ("CartPole_PPO", {"divergence__response": "skip"}, "response='skip'"),
        ("CartPole_PPO", {"checkpoints__every_seconds": 9.0}, "every_seconds"),
        ("CartPole_PPO", {"source": rl.CollectionParameters(workers=2, on="inline")}, "workers"),
        ("CartPole_PPO", {"callbacks": (rl.ParallelParameters(ranks=2),)}, "it has 2 ranks"),
        ("AntMaze_HRAC", {}, "learn at moments of their own"),
        ("PointMaze_METRA", {}, "learn at moments of their own"),
        ("FourRooms_PPO_Options", {}, "PPO agent whose decisions take different"),
        ("TicTacToe_PPO", {}, "PPO agent whose decisions take different"),
        ("Workshop_PPO_Selector", {}, "PPO agent whose decisions take different"),
    ],
)
def test_what_ranks_cannot_do_together_is_refused(monkeypatch, preset, changes, message):
    monkeypatch.setattr(parallel, "Ranks", OneRank)
    with (
        experiment(preset, **changes) as manager,
        pytest.raises(ConfigurationError, match=message),
    ):
        manager.create_graph(rl.Runtime(device="cpu"))


def test_ppo_of_members_that_act_together_is_accepted(monkeypatch):
    monkeypatch.setattr(parallel, "Ranks", OneRank)
    with experiment("Workshop_PPO") as manager:
        manager.create_graph(rl.Runtime(device="cpu"))
        assert manager.graph.agents


def test_a_run_of_several_cannot_be_trained_alone(capsys):
    with experiment("CartPole_PPO") as manager, pytest.raises(ConfigurationError, match="torchrun"):
        manager.create_graph(rl.Runtime(device="cpu"))
    assert main(["-p", "CartPole_PPO", "--parallel"]) == 2
    assert "--parallel needs torchrun" in capsys.readouterr().err
    assert main(["-p", "CartPole_PPO", "--parallel", "--background_evaluation"]) == 2
    assert "leave out --background_evaluation" in capsys.readouterr().err


def test_ranks_at_different_moments_are_an_error(monkeypatch):
    class Other(OneRank):
        def gather(self, numbers):
            return np.stack([numbers, numbers + 1])

    monkeypatch.setattr(parallel, "Ranks", Other)
    with experiment("CartPole_PPO") as manager:
        manager.create_graph(rl.Runtime(device="cpu"))
        with pytest.raises(RunError, match="different moments"):
            manager.run()


def test_merged_statistics_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    owners = [SimpleNamespace(one=RunningStatistics((2,)), many={"x": RunningStatistics(())})
              for _ in range(2)]  # fmt: skip
    shared = [SharedStatistics(owner) for owner in owners]
    seen = []
    for number in range(3):
        for rank, owner in enumerate(owners):
            rows = rng.normal(rank, 1 + number, (20, 3)) * 5
            seen.append(rows)
            owner.one.update(rows[:, :2])
            owner.many["x"].update(rows[:, 2])
        numbers = np.stack([each.numbers() for each in shared])
        for each in shared:
            each.merge(numbers)
    rows = np.concatenate(seen)
    for owner in owners:
        assert owner.one.count == owner.many["x"].count == len(rows) / 2
        np.testing.assert_allclose(owner.one.mean, rows[:, :2].mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(owner.one.variance, rows[:, :2].var(axis=0), rtol=1e-12)
        np.testing.assert_allclose(owner.many["x"].variance, rows[:, 2].var(), rtol=1e-12)


def test_a_request_to_stop_stops_all_ranks_after_the_same_step(tmp_path):
    words = ("-m", "coach_rl", "-p", "CartPole_PPO", *SHORT, "--steps", "1000000")
    words += ("-cp", "agent.update_mode=eager")  # so many steps would be compiled
    process = started(*words, "--checkpoint_steps", "2048", folder=tmp_path)
    folder = tmp_path / "experiments" / "CartPole_PPO"
    waiting(lambda: all(steps_saved(folder, rank) for rank in range(2)), process)
    process.terminate()
    printed, _ = process.communicate(timeout=240)
    assert "stopped by SIGTERM" in printed, printed
    first, second = (max(steps_saved(folder, rank)) for rank in range(2))
    assert first == second
