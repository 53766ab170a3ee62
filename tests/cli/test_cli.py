"""The `coach` command: one line for every mistake, the right exit code, and real runs."""

import json
import os
import re
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import coach_rl
import coach_rl as rl
from coach_rl.cli import main as main_module
from coach_rl.cli.commands import COMMANDS, RUNS, parse_arguments
from coach_rl.cli.parser import Command, Flag, Given
from coach_rl.cli.settings import overrides_of, run_parts, run_settings, settings
from coach_rl.cli.terminal import program, word
from coach_rl.configuration.extensions import own_extensions
from coach_rl.configuration.overrides import fitting, parameter_paths
from coach_rl.configuration.parameters_json import constructor_fields
from coach_rl.core.log_records import LogRecord
from coach_rl.extensions.testing import selftest
from coach_rl.runs.trained import trained_policies
from coach_rl.sessions.settings import RunPartParameters
from coach_rl.telemetry.console import ConsoleSink
from tests.cli.commands import coach, only_run
from tests.sessions.test_run_parts import CountParameters
from tests.small_runs import FAKE, change_manifest, manifest_of
from tests.waiting import wait_until

ALL_OF_TRAIN = (
    "-p x -lvl l -e name -ep some/path --seed 3 -n 4 -cp a=1 -cp b=2 --steps 1e6 -s 60 -ntb "
    "--message purpose "
    "--device cuda:1 --threads 2 --plain --print_networks_summary --debug "
    "--matmul_precision high --hours 0.5 "
    "--until_solved reward=475 --checkpoint_steps 5000 --keep 3 --keep_every 10 "
    "--best length_mean --no_memories"
)


def test_flags_of_train_make_settings_and_overrides():
    given = parse_arguments(ALL_OF_TRAIN.split())
    assert given.command is COMMANDS["train"]
    assert settings(given, rl.Runtime) == rl.Runtime(
        seed=3, device="cuda:1", threads=2, matmul_precision="high"
    )
    assert run_settings(given) == rl.RunSettings(tensorboard=False, message="purpose")
    assert overrides_of(given) == {
        "a": 1,
        "b": 2,
        "environment.level": "l",
        "num_envs": 4,
        "schedule.training": rl.EnvironmentSteps(1_000_000),
        "schedule.stop_after": rl.Hours(0.5),
        "schedule.until_solved": True,
        "validation": rl.ValidationParameters(reward=475),
        "checkpoints.every_seconds": 60.0,
        "checkpoints.every_steps": rl.EnvironmentSteps(5_000),
        "checkpoints.keep_last": 3,
        "checkpoints.keep_every": 10,
        "checkpoints.best_of": "length_mean",
        "checkpoints.memories": False,
    }
    assert (given.experiment_name, given.experiment_path) == ("name", Path("some/path"))
    assert given.plain
    assert given.debug
    assert given.print_networks_summary


def test_flags_not_given_leave_the_defaults_of_their_settings():
    given = parse_arguments(["train", "x"])
    assert settings(given, rl.Runtime) == rl.Runtime()
    assert settings(given, rl.RunSettings) == rl.RunSettings()
    assert overrides_of(given) == {}
    assert run_parts(given) == ()


def test_flag_requests_the_part_of_a_run_that_it_names():
    place = "tests.sessions.test_run_parts:CountParameters"
    plain = Flag("--count", "count", sets=place)
    refused = Flag("--count_refused", "refuse", sets=f"{place}.is_refused")
    command = Command("walk", "[flags]", table=(plain, refused))
    assert run_parts(Given(command, {})) == ()
    assert run_parts(Given(command, {"count": True})) == (CountParameters(),)
    both = {"count": True, "count_refused": True}
    assert run_parts(Given(command, both)) == (CountParameters(is_refused=True),)


def test_flags_set_fields_and_paths_that_exist():
    of_extensions = {name for each in own_extensions() for name in each.commands}
    check_flags(each for name, each in COMMANDS.items() if name not in of_extensions)


def check_flags(commands: Iterable[Command], *more: type) -> None:
    """Args: more: Classes of which flags set fields, beside those of the core."""
    classes = {each.__name__: each for each in (rl.Runtime, rl.RunSettings, *more)}
    paths = {
        path
        for path, _, _ in parameter_paths(
            rl.load_preset(rl.find_preset("CartPole_PPO")).build().parameters
        )
    }
    for kind in fitting(rl.SourceParameters):
        paths |= {f"source.{each.name}" for each in constructor_fields(kind)}
    for command in commands:
        for flag in command.flags:
            if flag.is_about_part:
                name, _, field = str(flag.sets).removeprefix("coach_rl:").partition(".")
                part = getattr(coach_rl, name)
                assert issubclass(part, RunPartParameters)
                assert field in {"", *(each.name for each in fields(part))}
            elif isinstance(flag.sets, str) and flag.sets:
                owner, _, field = flag.sets.partition(".")
                known = (
                    {each.name for each in fields(classes[owner])} if owner in classes else paths
                )
                assert (field if owner in classes else flag.sets) in known


def test_flags_belong_to_commands_that_exist():
    takers = {name for each in RUNS for name in each.of.split()}
    commands = [each for extension in own_extensions() for each in extension.commands.values()]
    groups = {group for each in commands for group in each.get("flag_group", "").split()}
    assert takers <= {*COMMANDS, *groups, "seeds", "repeat", "untrained", "built", "begun"}


@pytest.mark.parametrize(
    ("short", "named"),
    [
        ("-p x --seed 3", "train x --seed 3"),
        ("-p x -c", "train -p x --device cpu"),
        ("-crd run --steps 5", "resume run --steps 5"),
        ("-crd run --evaluate", "evaluate run --episodes 20"),
        ("--evaluate 5 -crd run", "evaluate --episodes 5 run"),
        ("-p x --evaluate", "evaluate -p x --episodes 20"),
        (
            "-crd run --evaluate 5 -n 2 -lvl y --sampling",
            "evaluate run --episodes 5 -n 2 -lvl y --sampling",
        ),
        ("-crd run --last_good --drop_later", "resume run --last-good --drop-later"),
        ("fork run --as x", "fork -crd run -e x"),
        ("describe -p x", "describe x"),
        ("-l", "list"),
        ("-l mujoco", "list mujoco"),
        ("-p x --seed 3 --plain", "--plain --seed 3 train x"),
        ("-p x -e list", "-e list train x"),
        ("-p x", "run x"),
        ("list", "--plain list --debug"),
        ("describe x", "--plain describe x"),
    ],
)
def test_short_flags_and_named_commands_mean_the_same(short, named):
    one, other = (parse_arguments(words.split()) for words in (short, named))
    one.plain, one.debug = other.plain, other.debug
    assert vars(one) == vars(other)


@pytest.mark.parametrize("name", [*COMMANDS])
def test_every_command_takes_plain_and_debug_before_and_after_its_name(name, capsys):
    for words in (
        ["--plain", "--debug", *name.split(), "--help"],
        [*name.split(), "--plain", "--debug", "--help"],
    ):
        with pytest.raises(SystemExit):
            coach(*words)
        out = capsys.readouterr().out
        assert "--plain" in out
        assert "--debug" in out


@pytest.mark.parametrize("words", [["list", "--trained"], ["-l", "--trained"]])
def test_list_of_trained_agents_shows_their_scores(words, capsys):
    assert coach(*words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(
        re.match(r"trained:CartPole_PPO +[\d,]+ steps; reward \d+ \[.+\]; 100 ep", line)
        for line in lines
    )


def test_selftest_trains_continues_and_plays(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    one = [each for each in trained_policies() if each.name == "CartPole_PPO"]
    monkeypatch.setattr(selftest, "trained_policies", lambda: iter(one))
    assert coach("selftest") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "train CartPole_PPO",
        "continue from step_1024",
        "play trained:CartPole_PPO",
        "everything works",
    ]


def test_preset_file_beside_is_suggested(capsys):
    Path("two_level.py").touch()
    assert coach("-p", "two_level") == 2
    assert "unknown preset 'two_level'; did you mean 'two_level.py'?" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "steps"), [("100k", 100_000), ("1.1M", 1_100_000), ("2m", 2e6)])
def test_numbers_may_end_in_k_or_m(text, steps):
    given = parse_arguments(["-p", "x", "--steps", text])
    assert given.steps == rl.EnvironmentSteps(int(steps))


def test_listing_names_every_preset(capsys):
    assert coach("-l") == 0
    assert re.search(r"^CartPole_PPO +\w", capsys.readouterr().out, re.MULTILINE)
    assert coach("list", "cartpole_p") == 0
    assert capsys.readouterr().out.split()[0] == "CartPole_PPO"


@pytest.mark.parametrize("words", [["help", "resume"], ["resume", "-h"]])
def test_help_of_a_command_shows_its_flags_only(words, capsys):
    with pytest.raises(SystemExit):
        coach(*words)
    out = capsys.readouterr().out
    assert out.startswith("usage: coach resume RUN [flags]\n")
    assert "--steps" in out
    assert "  --seed" not in out


@pytest.mark.parametrize(
    "body", ["raise SystemExit(0)", "def graph_manager():\n    raise SystemExit(0)"]
)
def test_preset_that_ends_the_process_is_refused(tmp_path, capsys, body):
    preset = tmp_path / "leaves.py"
    preset.write_text(body)
    assert coach("-p", preset) == 2
    assert re.search(r"leaves.py:\d: SystemExit: 0\n$", capsys.readouterr().err)


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit()])
def test_exit_raised_by_code_of_others_is_no_success(monkeypatch, capsys, error):
    def exits(_: object) -> int:
        raise error

    monkeypatch.setattr(main_module, "_run", exits)
    assert coach("-l") == 1
    assert f"coach: error: {type(error).__name__}" in capsys.readouterr().err


def test_version(capsys):
    with pytest.raises(SystemExit):
        coach("--version")
    assert capsys.readouterr().out == f"coach_rl {coach_rl.__version__}\n"


def test_a_run_its_evaluation_and_more_training(capsys):
    assert coach("-p", FAKE, "-ntb", "--seed", 3, "--steps", 60, "-cp", "agent.layers=[8]") == 0
    run = only_run()
    out = capsys.readouterr().out
    assert f"run folder: {run}" in out
    assert "Evaluation" in out
    assert "interquartile mean" in out
    manifest = manifest_of(run)
    assert manifest["command"][:2] == ["coach", "-p"]
    assert manifest["panel"]["steps"] == 60
    assert manifest["task"]["seed"] == 3
    assert manifest["parameters"]["agent"]["layers"] == [8]
    assert manifest["versions"]["python"]
    assert manifest["hardware"]["memory_bytes"] > 0
    assert coach("-crd", run, "--evaluate", 5) == 0
    assert "95 % interval" in capsys.readouterr().out
    assert run.name.startswith("line_seed3_")
    assert manifest["level"] == "line"
    assert "curves:" not in out
    assert coach("-crd", run) == 2
    assert "nothing left to train: step_60" in capsys.readouterr().err
    del manifest["parameters"]["num_envs"]
    change_manifest(run, parameters=manifest["parameters"])
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert coach("-crd", run, "--steps", 80, "-ntb") == 0
    assert capsys.readouterr().err == (
        "coach: warning: parameters was written before BasicGraphParameters had the field "
        "num_envs; it takes its default, 1\n"
    )
    assert json.loads((run / "summary.json").read_text())["env_steps"] == 80
    assert coach("-crd", run / "checkpoints" / "step_61") == 2
    assert "unknown checkpoint" in capsys.readouterr().err


def test_a_folder_of_runs_stands_for_its_newest(capsys):
    for seed in (7, 3):
        assert coach("-p", FAKE, "-ntb", "--seed", seed, "--steps", 20) == 0
    runs = Path("experiments/fake_preset")
    (newest,) = runs.glob("line_seed3_*")
    for run in runs.iterdir():  # both may be of the same second
        change_manifest(run, created=f"2026-05-01T10:00:{10 + (run == newest)}+00:00")
    capsys.readouterr()
    assert coach("evaluate", runs, "--episodes", 2) == 0
    assert coach("-crd", runs, "--steps", 40, "-ntb") == 0
    said = f"newest of 2 runs in {runs}: {newest.name}\n"
    assert capsys.readouterr().out.count(said) == 2
    assert (newest / "checkpoints" / "step_40").is_dir()
    assert coach("evaluate", f"{runs}@40", "--episodes", 2) == 0
    assert f"{newest.name}/evaluations/step_40.json" in capsys.readouterr().out
    assert coach("fork", f"{runs}@40", "--as", "forked", "--steps", 60, "-ntb") == 0
    (forked,) = Path("experiments/forked").iterdir()
    (parent,) = manifest_of(forked)["ancestry"]
    assert (Path(parent["run"]).name, parent["checkpoint"]) == (newest.name, "step_40")
    assert coach("fork", runs, "--as", "forked", "-cp", "learning_rate=1") == 2
    said = capsys.readouterr().err
    assert "did you mean 'agent.learning_rate'? ('learning_rate' is on the control panel" in said
    assert coach("-crd", "experiments") == 2
    assert "there are runs of the experiments fake_preset, forked in it" in capsys.readouterr().err


def test_where_nothing_can_be_written_an_evaluation_is_shown(capsys):
    assert coach("-p", FAKE, "-ntb", "--steps", 20) == 0
    (only_run() / "evaluations").touch()  # whoever runs this may be allowed to write anywhere
    capsys.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert coach("evaluate", only_run()) == 0
    out, err = capsys.readouterr()
    assert "interquartile mean" in out
    assert "written to" not in out
    assert re.fullmatch(r"coach: warning: the evaluation cannot be written to .*: .*\n", err)


def test_shortcuts_go_to_the_panel_or_into_the_parameters():
    assert coach("-p", f"{FAKE}:ready_made", "-ntb", "-n", 2, "--steps", 40, "-lvl", "hill") == 0
    parameters = json.loads(next(Path().rglob("manifest.json")).read_text())["parameters"]
    assert parameters["num_envs"] == 2
    assert parameters["schedule"]["training"]["count"] == 40
    assert parameters["environment"]["level"] == "hill"


def test_run_has_its_name_its_place_and_tensorboard_and_shows_its_networks(tmp_path, capsys):
    place = ("-e", "mine", "-ep", tmp_path / "there")
    assert coach("-p", FAKE, "--steps", 20, *place, "--print_networks_summary") == 0
    assert "3 weights" in capsys.readouterr().out
    assert list(only_run("mine", tmp_path / "there").glob("events.out.tfevents.*"))


def test_describe(capsys):
    assert coach("describe", FAKE, "-cp", "learning_rate=0.5") == 0
    out = capsys.readouterr().out
    assert re.search(r"^  learning_rate +float +0\.1", out, re.MULTILINE)
    assert re.search(r"^  agent\.learning_rate +0\.5", out, re.MULTILINE)
    assert re.search(r"^  schedule\.training +100  \(EnvironmentSteps\) +Length", out, re.M)
    allowed = r"^  schedule\.progress_interval .*; allowed: EnvironmentSteps \| TrainingSteps > 0$"
    assert re.search(allowed, out, re.MULTILINE)
    assert "walk with 3 weights" in out
    assert list(Path().iterdir()) == []


def test_evaluating_before_training(capsys):
    assert coach("-p", FAKE, "--evaluate", 3) == 0
    assert "before any training" in capsys.readouterr().out
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("fail_at", [5, 30])
def test_failed_run_takes_one_line_that_offers_to_resume_what_was_saved(fail_at, capsys):
    assert coach("-p", FAKE, "-ntb", "-cp", f"fail_at={fail_at}") == 1
    said, run = capsys.readouterr().err, only_run()
    done = f"coach: error: the loss is NaN. The run had done {fail_at} environment steps; "
    offer = (
        f"its last checkpoint, {run / 'checkpoints' / 'step_20'}, was written before; "
        f"resume with: {program('coach')} -crd {word(run)}\n"
    )
    assert said.startswith(done)
    assert said.count("\n") == 1
    assert (said == done + offer) == ("resume with" in said) == (fail_at == 30)


def test_a_run_that_cannot_be_resumed_is_not_offered_to_be(capsys):
    assert coach("-p", FAKE, "-ntb", "--no_checkpoints") == 0
    assert coach("-crd", only_run(), "--steps", 1_000) == 1
    said = capsys.readouterr().err
    assert "so it cannot be resumed; start a new run\n" in said


def test_resumed_run_shows_the_best_evaluation_of_before(capsys):
    assert coach("-p", FAKE, "-ntb", "--plain", "--steps", 80) == 0
    before = re.findall(r"\(best (.*?)\)", capsys.readouterr().out)
    assert before[-1] == "1.13"  # of an evaluation that was not the last
    assert coach("-crd", only_run(), "--steps", 100, "--plain") == 0
    after = re.findall(r"evaluation (\S+) \(best (.*?)\)", capsys.readouterr().out)
    assert float(after[0][0]) < 1.13
    assert after[0][1] == "1.13"


def test_a_second_ctrl_c_says_where_the_run_can_be_resumed(capsys, monkeypatch):
    def interrupted(sink: ConsoleSink, record: LogRecord) -> None:
        if record.environment_steps == 30:
            raise KeyboardInterrupt

    monkeypatch.setattr(ConsoleSink, "write", interrupted)
    assert coach("-p", FAKE, "-ntb") == 130
    checkpoint = only_run() / "checkpoints" / "step_20"
    assert capsys.readouterr().err == (
        "coach: interrupted. The run had done 30 environment steps; "
        f"its last checkpoint, {checkpoint}, was written before; "
        f"resume with: {program('coach')} -crd {word(only_run())}\n"
    )


def test_the_unexpected_takes_one_line_unless_debugging(capsys):
    broken = Path("broken.py")
    source = FAKE.read_text().replace('raise NonFiniteError("the loss is NaN")', "[][3]")
    broken.write_text(source)
    assert coach("-p", broken, "-ntb", "-cp", "fail_at=30") == 1
    err = capsys.readouterr().err
    assert re.fullmatch(
        r"coach: error: IndexError: list index out of range \(.*broken\.py:\d+\); "
        r"run again with --debug for the traceback\n",
        err,
    )
    assert coach("-p", broken, "-ntb", "-cp", "fail_at=30", "--debug") == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def start(*words: Any, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "coach_rl", *map(str, words)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
    )


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGXCPU, 152)])
def test_stopping_says_how_to_resume(number, exit_code):
    panel = "steps=1_000_000; seconds_per_step=0.001"
    process = start("-p", FAKE, "-ntb", "-cp", panel)
    saved = "experiments/*/*/checkpoints/step_20"  # a new run's folder is renamed meanwhile
    wait_until(lambda: list(Path().glob(saved)), is_possible=lambda: process.poll() is None)
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == exit_code
    assert "stopping after this step" in err
    run = only_run()
    assert f"resume with: {program('coach')} -crd {run}" in out
    assert (run / "checkpoints" / "last").is_file()


@pytest.mark.parametrize("words", ["--help", "-l", "-p no_such_preset", "--no_such_flag"])
def test_quick_answers_do_not_wait_for_torch(words):
    code = (
        "import sys\nfrom coach_rl.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, *words.split()],
        check=True,
        capture_output=True,
        env=os.environ,
    )


def test_only_our_own_warnings_are_lines_of_ours(capsys, monkeypatch):
    def warned() -> list[tuple[str, str]]:
        warnings.warn("ours", rl.CoachWarning, stacklevel=1)
        warnings.warn("theirs", UserWarning, stacklevel=1)
        return []

    monkeypatch.setattr(main_module, "describe_presets", warned)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert coach("-l") == 0
    ours, theirs, *_ = capsys.readouterr().err.splitlines()
    assert ours == "coach: warning: ours"
    assert re.fullmatch(r".+test_cli\.py:\d+: UserWarning: theirs", theirs)
