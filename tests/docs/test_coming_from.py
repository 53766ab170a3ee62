"""Every row of docs/coming_from.md: what is typed there, and what happens here."""

import ast
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

import coach_rl
from coach_rl.cli.commands import parse_arguments
from coach_rl.cli.settings import overrides_of
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import any_task_presets, find_preset
from coach_rl.core.errors import CoachError

PAGE = Path(__file__).parent.parent.parent / "docs" / "coming_from.md"
PRESETS = {
    "(PPO)": "CartPole_PPO",
    "(SAC)": "Mujoco_SAC",
    "(DQN)": "CartPole_DQN",
    "(HER)": "BitFlip_DQN_HER",
}
"""Presets in which settings are typed, by the mark of a row."""
CODE = re.compile(r"`([^`]+)`")
SETTING = re.compile(r"\w+(=.*)?")


@dataclass(frozen=True)
class Row:
    """What is typed, the preset, what has to be named, and what happens."""

    section: str
    typed: str
    preset: str
    here: tuple[str, ...]
    happens: str

    def __str__(self) -> str:
        return f"{self.section}: {self.typed}"


def tables() -> list[tuple[str, list[str], list[list[str]]]]:
    """Every table: its section, its head and its rows."""
    found = []
    for section in PAGE.read_text().split("\n## ")[1:]:
        lines = [line for line in section.splitlines() if line.startswith("|")]
        head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
        found.append((section.partition("\n")[0], head, rows))
    return found


def all_rows() -> list[Row]:
    rows: list[Row] = []
    for section, head, cells in tables():
        assert head[-1] == "what happens"
        for row in cells:
            marks = [preset for mark, preset in PRESETS.items() if mark in row[0]]
            preset = marks[0] if marks else "CartPole_PPO"
            happens, _, named = row[-1].partition(": ")
            if head[0] == "here":
                typed = [code for cell in row[1:-1] for code in CODE.findall(cell)]
                here = (*CODE.findall(row[0]), *CODE.findall(named))
                rows += (Row(section, each, preset, here, happens) for each in typed)
                continue
            groups, answers = row[0].split(";"), row[1].split(";")
            if len(groups) != len(answers):
                groups, answers = row[0:1], row[1:2]
            for group, answer in zip(groups, answers, strict=True):
                here = (*CODE.findall(answer)[:1],)
                typed = CODE.findall(group)
                rows += (Row(section, each, preset, here, happens) for each in typed)
    return rows


def refusal(row: Row, head: str) -> str:
    """The error where something is typed; empty where it is understood."""
    is_class = SETTING.fullmatch(row.typed) and head == "there" and "=" not in row.typed
    try:
        if is_class:
            assert getattr(coach_rl, row.typed)
            return ""
        check(words_of(row.typed, row.preset))
    except (CoachError, AttributeError) as error:
        return str(error)
    return ""


def words_of(typed: str, preset: str) -> list[str]:
    if typed.startswith("coach "):
        return shlex.split(typed)[1:]
    if typed.startswith(("-p ", "-l", "-crd ", "--evaluate ")) and not typed.startswith("-lvl"):
        return shlex.split(typed)
    if typed.startswith("-"):
        words = shlex.split(typed)
        return ["-p", preset, *words]
    name, equals, value = typed.partition("=")
    return ["-p", preset, "-cp", f"{name}={value if equals else 1}"]


def check(words: list[str]) -> None:
    """Raise the error of a command line; nothing is run."""
    given = parse_arguments(words)
    if given.command.subject == "preset":
        preset = load_preset(find_preset(given.preset))
        preset.configure(overrides_of(given, preset))


HEADS = {section: head[0] for section, head, _ in tables()}


@pytest.mark.parametrize("row", all_rows(), ids=str)
def test_row_happens_as_the_page_says(row: Row) -> None:
    error = refusal(row, HEADS[row.section])
    advice = error.partition("did you mean")[2] or error.partition("it is not here")[2]
    assert "\n" not in error
    if row.happens == "runs":
        assert error == ""
    elif row.happens == "not here":
        assert error
        assert not advice, error
    else:
        assert row.happens == "hint"
        names = {each.rpartition(".")[2] for each in row.here}
        is_the_same = row.typed.lstrip("-").replace("-", "_") in names and not error
        assert is_the_same or any(is_named(each, advice) for each in {*row.here, *names}), error


def is_named(name: str, text: str) -> bool:
    return bool(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text))


def test_page_has_a_table_for_every_library() -> None:
    text = PAGE.read_text()
    for name in (
        "Intel Coach",
        "Stable-Baselines3",
        "CleanRL",
        "Digideep",
        "abcdRL",
        "RLlib",
        "TorchRL",
        "Tianshou",
    ):
        assert re.search(rf"^## .*{name}", text, re.MULTILINE), name
    assert len(all_rows()) > 200


def test_sections_open_with_a_line_that_works_here() -> None:
    """The one-liner beside theirs, but for the settings that several have."""
    for section in PAGE.read_text().split("\n## ")[1:]:
        title, _, rest = section.partition("\n")
        if title == "Settings":
            continue
        opening = " ".join(rest.partition("\n|")[0].split())
        (line, *_) = re.findall(r"is here `([^`]+)`", opening)
        if line.startswith("coach "):
            check(shlex.split(line)[1:])
            continue
        call = ast.parse(line, mode="eval").body
        assert isinstance(call, ast.Call)
        assert ast.unparse(call.func) == "coach_rl.train"
        algorithm, level = (ast.literal_eval(each) for each in call.args)
        panel = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
        load_preset(any_task_presets()[algorithm]).configure({"level": level, **panel})
