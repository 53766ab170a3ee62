"""Settings in TOML files: `--config FILE`, and `coach describe --toml`, which writes one."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from coach_rl.configuration.config_file import config_text, read_config
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset, shipped_presets
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.shown_text import printable
from coach_rl.core.steps import EnvironmentEpisodes
from tests.cli.commands import coach, only_run
from tests.small_runs import FAKE, manifest_of, preset


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def written(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The file that `coach describe --toml` writes."""
    assert coach("describe", *words, "--toml") == 0
    text = capsys.readouterr().out
    Path("file.toml").write_text(text)
    return text


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", sorted(shipped_presets()))
def test_written_file_leaves_a_preset_as_it_is(name):
    loaded = load_preset(find_preset(name))
    usual = loaded.build().parameters
    Path("file.toml").write_text(config_text(loaded, usual, {}))
    config = read_config(Path("file.toml"))
    assert config.preset == name
    assert loaded.configure(config.values).parameters == usual


def test_every_line_of_a_written_file_can_be_set(capsys):
    text = written(capsys, "CartPole_PPO")
    above, _, below = text.partition("# all other parameters: without the '# ' a line sets one\n")
    below = "\n".join(line.removeprefix("# ") for line in below.splitlines())
    Path("file.toml").write_text(above + below)
    values = read_config(Path("file.toml")).values
    assert len(values) > 50
    loaded = load_preset(find_preset("CartPole_PPO"))
    assert loaded.configure(values).parameters == loaded.build().parameters


def test_training_with_a_written_file_equals_training_without(capsys):
    changes = ("-cp", "learning_rate=0.5; agent.layers=(3, 4)", "--steps", 20)
    written(capsys, FAKE, *changes)
    assert coach("-p", FAKE, "-ntb", "-e", "plain", *changes) == 0
    assert coach("-p", FAKE, "-ntb", "-e", "file", "--config", "file.toml") == 0
    plain, file = manifest_of(only_run("plain")), manifest_of(only_run("file"))
    for part in ("parameters", "panel", "differences"):
        assert file[part] == plain[part]


def test_flags_win_over_a_file():
    Path("file.toml").write_text("learning_rate = 0.5\nsteps = 40\n[agent]\nlayers = [3]\n")
    words = ("--config", "file.toml", "-cp", "learning_rate=0.25", "--steps", 20)
    assert coach("-p", FAKE, "-ntb", *words) == 0
    parameters = manifest_of(only_run())["parameters"]
    assert parameters["agent"]["learning_rate"] == 0.25
    assert parameters["schedule"]["training"]["count"] == 20
    assert parameters["agent"]["layers"] == [3]


def test_texts_are_read_as_on_the_command_line():
    Path("file.toml").write_text(
        "a = 'word'\nb = 'None'\nc = 'EnvironmentEpisodes(5)'\nd = 'two words'\ne = [1, 'None']\n"
        "f = \"'None'\"\n"
    )
    values = dict(read_config(Path("file.toml")).values)
    assert repr(values.pop("c")) == "EnvironmentEpisodes(count=5)"
    assert values == {"a": "word", "b": None, "d": "two words", "e": (1, None), "f": "None"}


def test_step_units_and_components_are_written_as_calls():
    loaded = preset("CartPole_PPO")
    changes = {"schedule.training": EnvironmentEpisodes(5), "load": "None"}
    text = config_text(loaded, loaded.configure(changes).parameters, changes)
    assert 'schedule.training = "EnvironmentEpisodes(count=5)"' in text
    assert "load = \"'None'\"" in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read file.toml: No such file or directory"),
        ("learning_rate = x", "file.toml is no TOML: Invalid value (at line 1, column"),
        ("\xff", "file.toml is damaged: byte 0 and what follows is no text"),
        (
            "steps = 20\npreset = 'other'",
            "file.toml, line 2: the file is for the preset other, not for fake_preset; `coach "
            "describe fake_preset --toml` writes one",
        ),
        ("preset = 3", "file.toml, line 1: 'preset' must be a name"),
        (
            "steps = 20\n[agent]\nlayrs = [3]",
            "file.toml, line 3: unknown parameter 'layrs' of 'agent'; did you mean 'layers'",
        ),
        ("agent.layers = 'x'", "file.toml, line 1: agent.layers must be"),
        ("learning_rat = 1", "file.toml, line 1: unknown parameter 'learning_rat'; did you mean"),
        ("learning_rate = -1.0", "file.toml, line 1: "),
        ("learning_rate = 2026-01-01", "file.toml, line 1: learning_rate is a date"),
        (
            'agent.layers = [1]\n\n"agent.layers" = [2]',
            "file.toml, lines 1 and 3: agent.layers is given twice; give one",
        ),
        (
            "steps = 300\nschedule.training = 400",
            "file.toml, lines 1 and 2: steps and schedule.training set the same parameter",
        ),
    ],
)
def test_config_invalid_file_error(text, message, capsys):
    if text is not None:
        Path("file.toml").write_text(text, encoding="latin-1")
    assert coach("-p", FAKE, "--config", "file.toml") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"coach: error: {message}")
    assert not Path("experiments").exists()


def test_mistake_on_the_command_line_is_not_blamed_on_the_file(capsys):
    Path("file.toml").write_text("learning_rate = 0.5")
    assert coach("-p", FAKE, "--config", "file.toml", "-cp", "agent.layrs=3") == 2
    assert "file.toml" not in capsys.readouterr().err


@pytest.mark.parametrize("text", ["steps = 300", "schedule.training = 300"])
@pytest.mark.parametrize("given", [("--steps", "500"), ("-cp", "schedule.training=500")])
def test_length_of_the_command_line_replaces_that_of_a_file(text, given):
    Path("file.toml").write_text(f"{text}\n")
    words = ("-p", FAKE, "-ntb", "--plain", "-e", "run", "--config", "file.toml", *given)
    assert coach(*words) == 0
    assert manifest_of(only_run("run"))["parameters"]["schedule"]["training"]["count"] == 500


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("agent = \"PPOAgent(name='walker')\"", ("-cp", "agent.algorithm.clip=0.1")),
        ('schedule = "Schedule(training=300)"', ("--steps", "500")),
    ],
)
def test_part_on_the_command_line_of_a_whole_value_in_a_file_is_refused(text, words, capsys):
    Path("file.toml").write_text(f"{text}\n")
    assert coach("describe", "CartPole_PPO", "--config", "file.toml", *words) == 2
    message = capsys.readouterr().err
    assert "file.toml, line 1: " in message
    assert "give one" in message


def test_written_file_with_a_length_by_its_path_sets_the_same(capsys):
    written(capsys, "CartPole_PPO", "-cp", "schedule.training=1000")
    preset = load_preset(find_preset("CartPole_PPO"))
    read = preset.configure(read_config(Path("file.toml")).values)
    assert read.parameters == preset.configure({"schedule.training": 1000}).parameters


HOSTILE = {
    "arrays nested too deeply": "a = " + "[" * 3000 + "]" * 3000,
    "arrays nested deeply": "learning_rate = " + "[" * 40 + "]" * 40,
    "tables nested too deeply": "a = " + "{a = " * 3000,
    "a path of 5,000 parts": ".".join(["a"] * 5000) + " = 1",
    "a path of 200,000 parts": ".".join(["a"] * 200_000) + " = 1",
    "a header of 200 parts": f"[{'.'.join(['a'] * 200)}]\nb = 1",
    "a key of 1 MB": "a" * 1_000_000 + " = 1",
    "a key of 100 kB": "a" * 100_000 + " = 1",
    "a number of 5,000 digits": "learning_rate = " + "9" * 5000,
    "3,000 unknown names": "".join(f"k{number} = 1\n" for number in range(3000)),
    "300 unknown names": "".join(f"k{number} = 1\n" for number in range(300)),
    "many blanks": f'agent.layers = """\n{" " * 3000}!\n"""\nlearning_rate = -1',
    "blanks in a header": f'x = """\n[{" " * 3000}a\n"""',
    "a path and a quoted key": 'agent.layers = [1]\n"agent.layers" = [2]',
    "a table and a quoted key": '"agent.layers" = [1]\n[agent]\nlayers = [2]',
    "an empty name in a path": '"agent." = "FakeAgent()"',
    "more text than is read": "#" * 65_000_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_config_hostile_file_is_refused_in_one_line_that_names_it(text, capsys):
    Path("file.toml").write_text(text)
    assert coach("-p", FAKE, "--config", "file.toml") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "file.toml" in line
    assert len(line) < 1000


@pytest.mark.parametrize(
    "name", ["/dev/zero", "pipe", "folder", "a\0b.toml", "~no_such_user/a", "a" * 300]
)
def test_config_that_is_no_file_is_refused_in_one_line(name, capsys):
    os.mkfifo("pipe")
    Path("folder").mkdir()
    assert coach("-p", FAKE, "--config", name) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert printable(name) in line


def test_blamed_finds_all_lines_of_an_error_with_few_builds():
    Path("file.toml").write_text("".join(f"k{number} = {number}\n" for number in range(500)))
    config, built = read_config(Path("file.toml")), []

    def build(values: Mapping[str, object]) -> None:
        built.append(values)
        if {"k20", "k400"} <= values.keys():
            raise ConfigurationError("they don't fit")

    with (
        pytest.raises(ConfigurationError, match="lines 21 and 401: they don't fit"),
        config.blamed(build),
    ):
        build(config.values)
    assert len(built) < 50
