"""`coach -p PRESET --seeds`: a run for each seed, what they say together, and every mistake."""

import re
from pathlib import Path

import pytest

from coach_rl.cli.commands import forms_of, parse_arguments
from coach_rl.cli.settings import overrides_of
from coach_rl.core.seeding import integer_seed
from coach_rl.extensions.studies.job import JobResult
from coach_rl.runs.folder import RunFolder, read_manifest
from coach_rl.sessions.stop_requests import Interrupted
from tests.cli.commands import coach
from tests.small_runs import FAKE


def seeds_of(experiment: str = "fake_preset") -> list[int]:
    runs = (Path("experiments") / experiment).glob("*/manifest.json")
    return sorted(read_manifest(RunFolder(run.parent))["task"]["seed"] for run in runs)


def test_a_number_of_seeds_or_a_list_of_them() -> None:
    for text, seeds in {"3": (0, 1, 2), "3,5,8": (3, 5, 8), "1": (0,)}.items():
        given = parse_arguments(["-p", "x", "--seeds", text, "--jobs", "2"])
        assert given.command is forms_of("train")["seeds"]
        assert (given.seeds, given.jobs) == (seeds, 2)


def test_manifests_hold_the_command_that_trains_one_seed_alone() -> None:
    words = ("-p", FAKE, "--seeds=3,5", "-ntb", "--jobs", 1, "--steps", 20, "--plain")
    assert coach(*words) == 0
    commands = {
        manifest["task"]["seed"]: manifest["command"]
        for run in Path("experiments/fake_preset").glob("*/manifest.json")
        for manifest in [read_manifest(RunFolder(run.parent))]
    }
    alone = ["coach", "-p", str(FAKE), "-ntb", "--steps", "20", "--plain", "--seed"]
    assert commands == {seed: [*alone, str(seed)] for seed in (3, 5)}


def test_on_is_about_runs_with_seeds() -> None:
    runs = parse_arguments(["-p", "x", "--seeds", "2", "--on", "slurm:long"])
    assert runs.on == "slurm:long"
    assert overrides_of(runs, without=["on"]) == {}


def test_seeds_are_trained_shown_and_not_trained_twice(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("-p", FAKE, "--plain", "-ntb", "-c", "--jobs", "2", "--seeds")
    assert coach(*command, "2") == 0
    out = capsys.readouterr().out
    assert "fake_preset on line, 2 seeds, 2 at once" in out
    assert re.search(r"seed 1 +done +100 steps", out)
    assert "Over 2 seeds" in out
    assert seeds_of() == [0, 1]
    assert coach(*command, "0,1,7") == 0
    out = capsys.readouterr().out
    assert re.search(r"seed 7 +running", out)
    assert not re.search(r"seed 1 +running", out)
    assert "Over 3 seeds" in out
    assert seeds_of() == [0, 1, 7]


def test_a_seed_that_fails_does_not_end_the_others_and_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FAKE.read_text()
    broken = source.replace(
        "return Walker(",
        f"require(context.seed != {integer_seed(1, 'agent', 'main')}, 'no such start')\n"
        "        return Walker(",
    )
    assert broken != source
    Path("broken.py").write_text(broken)
    assert coach("-p", "broken.py", "--plain", "-ntb", "-c", "--seeds", "3") == 1
    out, err = capsys.readouterr()
    assert err == (
        "coach: error: 1 of 3 runs failed: seed 1: no such start; the same command tries them "
        "again and leaves out what is done\n"
    )
    assert "Over 2 seeds" in out
    assert seeds_of("broken") == [0, 2]


def test_seeds_an_interrupt_is_a_stop_and_no_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_args: object, **_named: object) -> list[JobResult]:
        raise Interrupted("stopped; 1 of 2 runs are done", signal=2)

    monkeypatch.setattr("coach_rl.extensions.studies.studies_command.conduct", interrupted)
    assert coach("-p", FAKE, "--plain", "-ntb", "-c", "--seeds", "2") == 130
    assert capsys.readouterr().err == "coach: stopped; 1 of 2 runs are done\n"
