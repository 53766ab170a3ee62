"""What a run's numbers depend on, and what they don't."""

import json
from dataclasses import replace
from functools import cache

import pytest
from golden_runs import RUNS, GoldenRun
from killed_processes import coach
from killed_runs import OFTEN, OFTEN_RECORDS, difference, flat, made, without_times

from coach_rl.configuration.overrides import parse_overrides
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.runtime import Runtime

NUMBERS = ("train", "episode", "evaluation", "level")
"""Kinds of records whose figures are the run's numbers."""


def changed(name: str, changes: str) -> GoldenRun:
    return replace(RUNS[name], changes=f"{RUNS[name].changes}; {changes}")


def log(run: GoldenRun, root, *flags: str) -> list[dict[str, object]]:
    """The numbers of a run of the command line."""
    root.mkdir()
    changes = run.settings
    words = ["-p", run.preset, "--seed", "7", "-cp", changes, "-c", "--plain", "-ntb"]
    words += ["--threads", "1", "-ep", str(root), "-e", "run", *flags]
    words += ["-lvl", run.level] if run.level else []
    ended = coach(words, root)
    assert ended.code == 0, ended.output
    lines = (made(root) / "log.jsonl").read_text().splitlines()
    return [numbers(each) for each in map(json.loads, lines) if each["kind"] in NUMBERS]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The numbers of a golden run in a process of its own, which is made once."""
    return cache(lambda name: log(RUNS[name], tmp_path_factory.mktemp("alone") / "run"))


def numbers(record: dict[str, object]) -> dict[str, object]:
    names = ("kind", "level", "agent", "environment_steps", "training_steps", "scalars")
    return without_times(dict(flat({name: record[name] for name in names})))


@pytest.mark.parametrize(
    ("name", "other", "flags"),
    [
        pytest.param("CartPole_PPO", "", (), id="made twice"),
        pytest.param("two levels, TD3 above TD3", "", (), id="a hierarchy made twice"),
        pytest.param("CartPole_DQN", OFTEN_RECORDS, OFTEN, id="checkpoints all the time"),
        pytest.param("CartPole_PPO", "environment.vectorization=subprocess", (), id="in workers"),
        pytest.param("Mujoco_PPO", "environment.threads=2", (), id="simulated by two threads"),
    ],
)
def test_numbers_do_not_depend_on(name, other, flags, alone, tmp_path):
    one = alone(name)
    assert any(record["/kind"] == "train" for record in one)
    assert not difference(log(changed(name, other), tmp_path / "other", *flags), one)


def test_numbers_depend_on_the_seed(alone, tmp_path):
    name = "CartPole_PPO"
    assert difference(log(RUNS[name], tmp_path / "other", "--seed", "8"), alone(name))


@pytest.mark.parametrize("name", ["CartPole_PPO", "Pendulum_SAC"])
def test_a_program_gives_the_numbers_of_the_command_line(name, alone):
    run = RUNS[name]
    changes = parse_overrides(run.settings)
    graph_manager = load_preset(find_preset(run.preset)).configure(changes)
    graph_manager.create_graph(Runtime(seed=7, device="cpu", threads=1))
    with graph_manager:
        told = [each for each in graph_manager.improve() if each.kind in NUMBERS]
    records = [{**vars(each), "scalars": dict(each.scalars)} for each in told]
    typed = alone(name)
    assert typed[: len(records)] == [numbers(each) for each in records]  # then the final evaluation
