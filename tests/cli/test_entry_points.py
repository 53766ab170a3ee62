"""Presets and commands of installed packages, found by entry points."""

import os
import sys

import pytest

from coach_rl.configuration.presets import find_preset
from tests.cli.commands import coach, install_gaits, only_run
from tests.small_runs import FAKE, manifest_of

ENTRY_POINTS = """
[coach.presets]
Walk = gaits.presets.walk
Jump = gaits.presets.walk:jump
CartPole_PPO = gaits.presets.walk
Lost = gaits.presets.lost

[coach.commands]
gait = gaits.commands:gait
exact = gaits.commands:exact
ends = gaits.commands:ends
returns = gaits.commands:returns
leaving = gaits.leaving:gait
train = gaits.commands:gait
lost_command = gaits.lost:gait
moduleless = gaits.commands
missing = gaits.commands:nothing
number = gaits.commands:NUMBER
"""
COMMANDS = """
import sys
from ast import literal_eval

NUMBER = 3


def gait(words):
    print("gait", *words)


def exact(words):
    raise ValueError(f"no {words[0]}")


def ends(words):
    sys.exit(*map(literal_eval, words))


def returns(words):
    return literal_eval(words[0])
"""


@pytest.fixture(autouse=True)
def package(tmp_path, monkeypatch):
    """An installed package, whose `__init__` fails where anything imports it too early."""
    site = tmp_path / "site"
    presets = site / "gaits" / "presets"
    presets.mkdir(parents=True)
    (site / "gaits" / "__init__.py").write_text("LOADED = True\n")
    (presets / "__init__.py").write_text("raise ImportError('of no use')\n")
    source = FAKE.read_text()
    (presets / "walk.py").write_text(f"{source}\n\njump = graph_manager\n")
    (site / "gaits" / "commands.py").write_text(COMMANDS)
    (site / "gaits" / "leaving.py").write_text("import sys\n\nsys.exit(0)\n")
    install_gaits(site, ENTRY_POINTS, monkeypatch)
    return site / "gaits"


def test_list_names_presets_and_commands_with_their_package(capsys):
    assert coach("-l") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    (walk,) = (line for line in lines if line.startswith("Walk "))
    assert walk.endswith(" (gaits 1.2)")
    for line in (
        "CartPole_PPO cannot be used: coach_rl has one of that name (gaits 1.2)",
        "Lost cannot be used: there is no module gaits.presets.lost (gaits 1.2)",
        "coach gait command (gaits 1.2)",
        "coach train cannot be used: coach_rl has one of that name (gaits 1.2)",
        "coach lost_command cannot be used: there is no module gaits.lost (gaits 1.2)",
        "coach moduleless cannot be used: 'gaits.commands' names no function; write "
        "module:function (gaits 1.2)",
    ):
        assert line in lines
    assert "gaits" not in sys.modules


def test_preset_of_a_package_is_trained_and_resumed():
    assert coach("train", "walk", "-ntb", "--steps", 20) == 0
    run = only_run("Walk")
    assert manifest_of(run)["preset"]["name"] == "Walk"
    assert coach("resume", run, "--steps", 40) == 0
    assert find_preset("Jump").function == "jump"
    assert find_preset("Walk:jump").name == "walk_jump"
    assert find_preset("CartPole_PPO").path.name == "CartPole_PPO.py"


def test_broken_metadata_of_a_package_leaves_shipped_presets_alone(package):
    (package / "presets" / "walk.py").write_text("def graph_manager(:\n")
    assert coach("describe", "CartPole_PPO", "--toml") == 0
    assert coach("-l") == 0


def test_command_of_a_package_gets_its_words(capsys):
    assert coach("gait", "--fast", "3") == 0
    assert capsys.readouterr().out == "gait --fast 3\n"


@pytest.mark.parametrize(
    ("words", "code", "printed"),
    [
        (("ends",), 0, ""),
        (("ends", "None"), 0, ""),
        (("ends", "0"), 0, ""),
        (("ends", "5"), 5, ""),
        (("ends", "True"), 1, ""),
        (("ends", "'no gait'"), 1, "no gait\n"),
        (("returns", "5"), 5, ""),
        (("returns", "True"), 0, ""),
        (("returns", "'text'"), 0, ""),
    ],
)
def test_command_of_a_package_ends_with_its_exit_code(words, code, printed, capsys):
    assert coach(*words) == code
    assert capsys.readouterr().err == printed


MALFORMED = {
    "a line without a value": b"Walk",
    "an empty value": b"Walk =",
    "no name": b" = gaits.lost",
    "no module": b"Walk = :go",
    "punctuation": b"Walk = !!!",
    "dots alone": b"Walk = ..",
    "a control character in the value": b"Walk = gaits.lo\x1b[2Jst:go",
    "NUL in the value": b"Walk = gaits.lo\x00st:go",
    "a control character in the name": b"W\x1b[2Jalk = gaits.lost:go",
    "a mark of direction in the name": "W\u202ealk = gaits.lost:go".encode(),
    "bytes that are no UTF-8": b"W\xffalk = gaits.lost:go",
    "many blanks": b"Walk = a" + b" " * 100_000 + b"!",
    "a name of 100,000 letters": b"W" * 100_000 + b" = gaits.lost",
    "a module of 100,000 parts": b"Walk = " + b"a." * 100_000 + b"a",
}


@pytest.mark.drawn(one_of=2, each="line")
@pytest.mark.parametrize("group", ["coach.presets", "coach.commands"])
@pytest.mark.parametrize("line", MALFORMED.values(), ids=MALFORMED)
def test_malformed_entry_point_is_a_line_of_the_list(line, group, package, capsys):
    broken = package.parent / "broken-0.1.dist-info"
    broken.mkdir()
    (broken / "entry_points.txt").write_bytes(b"[%s]\n%s\n" % (group.encode(), line))
    assert coach("-l") == 0
    listed = capsys.readouterr().out
    assert len(listed) < 50_000
    (about,) = (each for each in listed.splitlines() if "broken 0.1" in each)
    assert about.isprintable()
    assert "cannot be used: " in about
    assert coach("gait") == 0
    assert coach("describe", "CartPole_PPO", "--toml") == 0


def test_entry_points_that_are_no_file_are_left_out(package, capsys):
    for name in ("pipe", "folder", "link"):
        (package.parent / f"{name}-1.dist-info").mkdir()
    os.mkfifo(package.parent / "pipe-1.dist-info" / "entry_points.txt")
    (package.parent / "folder-1.dist-info" / "entry_points.txt").mkdir()
    (package.parent / "link-1.dist-info" / "entry_points.txt").symlink_to("/dev/zero")
    assert coach("-l") == 0
    assert "coach gait" in capsys.readouterr().out


def test_list_preset_of_a_package_that_cannot_be_read_is_a_line(package, capsys):
    walk = package / "presets" / "walk.py"
    for text in ("x = " + "-" * 100_000 + "1", '"""Walk\x1b[2J."""', "\x00"):
        walk.write_text(text)
        assert coach("-l") == 0
        (line,) = (each for each in capsys.readouterr().out.splitlines() if "Jump" in each)
        assert line.isprintable()
        assert "(gaits 1.2)" in line


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("train Lost", 2, "'Lost' of the package gaits 1.2 cannot be used: there is no module"),
        ("train Wlak", 2, "unknown preset 'Wlak'; did you mean 'Walk'"),
        ("lost_command", 2, "'lost_command' of the package gaits 1.2 cannot be used: there is no"),
        ("missing", 2, "the command 'missing' of the package gaits 1.2 cannot be used: Attribute"),
        ("number", 2, "the command 'number' of the package gaits 1.2 cannot be used: NUMBER is"),
        ("exact word", 1, "ValueError: no word"),
        ("leaving", 2, "the command 'leaving' of the package gaits 1.2 cannot be used: SystemExit"),
        ("gati", 2, "unknown command 'gati'"),
    ],
)
def test_entry_point_invalid_error(words, code, message, capsys):
    assert coach(*words.split()) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
