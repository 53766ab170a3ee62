"""Runs, results and trained agents show themselves: in one line, and as a table in notebooks."""

from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest

import coach_rl
from coach_rl.runs.folder import RunFolder
from coach_rl.runs.shown_facts import ShowsFacts
from coach_rl.sessions.session import run_experiment
from coach_rl.sessions.settings import RunResult, RunSettings
from tests.small_runs import experiment


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    settings = RunSettings(tensorboard=False, final_episodes=2)
    return run_experiment(
        experiment(), name="shown", root=tmp_path_factory.mktemp("runs"), settings=settings
    )


class _Cells(HTMLParser):
    """Cells of a table, the name and the value of each row."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in ("th", "td"):
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += data


def rows(shown: ShowsFacts) -> dict[str, str]:
    cells = _Cells()
    cells.feed(shown._repr_html_())
    return dict(zip(cells.texts[::2], cells.texts[1::2], strict=True))


def test_trained_agent_shows_its_task_its_training_and_its_spaces(result: RunResult) -> None:
    agent = coach_rl.load(result.folder.path)
    shown = rows(agent)
    assert shown["agent"] == "main: PPOAgent"
    assert shown["task"] == "point_mass"
    assert shown["environment steps"] == f"{result.environment_steps:,}"
    assert shown["acts in"] == str(agent.spaces.action)
    assert shown["run"] == str(result.folder.path)
    line = repr(agent)
    assert line.startswith("<TrainedAgent, agent: main: PPOAgent; task: point_mass; ")
    assert "\n" not in line


def test_result_shows_its_end_and_its_scores(result: RunResult) -> None:
    shown = rows(result)
    assert shown["environment steps"] == f"{result.environment_steps:,}"
    assert result.summary is not None
    reward = result.summary.evaluation.scalars["evaluation/reward_mean"]
    assert shown["final mean reward"] == f"{reward:,.2f}"
    assert "stopped by signal" not in shown  # nothing stopped it
    assert "incidents" not in shown
    assert str(result.folder.path) in repr(result)
    assert len(repr(result)) < 600


def test_folder_of_a_run_that_cannot_be_read_shows_why(tmp_path: Path) -> None:
    assert set(rows(RunFolder(tmp_path))) == {"run", "problem"}


def test_facts_are_escaped_and_take_a_line_each() -> None:
    class Shown(ShowsFacts):
        def facts(self) -> Mapping[str, object]:
            return {"task": "a<script>\nb\x1b[2J", "none": None}

    assert "<script>" not in Shown()._repr_html_()
    assert rows(Shown()) == {"task": "a<script> b\\x1b[2J"}
    assert repr(Shown()) == "<Shown, task: a<script> b\\x1b[2J>"
