"""`--inspect`, `--tracker` and `coach play`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from coach_rl.cli.commands import parse_arguments
from coach_rl.cli.main import main
from coach_rl.cli.settings import overrides_of
from coach_rl.configuration.overrides import InPlaceOf, apply_overrides
from coach_rl.extensions.looking.inspection_text import MEANINGS, USUAL_POINTS
from coach_rl.extensions.looking.inspections import InspectParameters
from coach_rl.extensions.looking.trackers.tracker import TrackerParameters
from tests.cli.commands import coach, only_run
from tests.graph_managers.small_runs import parameters
from tests.small_runs import FAKE, lines_of

HELP = Path(__file__).parents[1] / "help.txt"


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def only_notes(record, run):
    """A callback that is no inspection."""


def test_flags_make_overrides() -> None:
    words = "train x --inspect batch:nan --tracker wandb:walking"
    assert overrides_of(parse_arguments(words.split())) == {
        "callbacks": InPlaceOf({InspectParameters: (InspectParameters(checks=("nan",)),)}),
        "sinks": (TrackerParameters(service="wandb", project="walking"),),
    }


def test_inspections_of_the_command_line_replace_those_of_the_preset_alone() -> None:
    before = replace(parameters(), callbacks=(InspectParameters(), only_notes))
    for text, expected in {
        "off": (only_notes,),
        "network:shape": (
            only_notes,
            InspectParameters(point="network", checks=("shape",)),
        ),
    }.items():
        overrides = overrides_of(parse_arguments(["train", "x", "--inspect", text]))
        assert apply_overrides(before, overrides).callbacks == expected


def test_inspections_are_written_as_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert coach("describe", "CartPole_PPO", "--toml", "--inspect", "batch:nan") == 0
    written = capsys.readouterr().out
    assert "\ncallbacks = \"(Inspect(point='batch'" in written
    Path("settings.toml").write_text(written)
    assert coach("describe", "CartPole_PPO", "--toml", "--config", "settings.toml") == 0
    assert "\ncallbacks = \"(Inspect(point='batch'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-p CartPole_PPO --inspect sampler:nan", "there is no sampler to inspect"),
        ("-p Pendulum_DDPG --inspect batch:nans", "unknown check 'nans' in 'batch:nans'"),
        ("-l --inspect batch:nan", "--inspect"),
        ("play run --slow 0 --to a.gif", "must be a factor from 0.01 to 100, got '0'"),
        ("play nowhere --to a.gif", "nowhere"),
        ("-p FAKE --tracker wandb:", "TrackerParameters.project"),
        ("-p FAKE --tracker mlflow -cp sinks=()", "given twice"),
        ("-p FAKE --tracker comet", "unknown tracker 'comet'; allowed: mlflow, trackio, wandb"),
        ("-p FAKE --tracker tensorboard", "(TensorBoard's files are written without it)"),
    ],
)
def test_mistake_in_flags_is_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.replace("FAKE", str(FAKE)).split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not list(Path().iterdir())


def test_the_help_names_every_point_and_check_of_inspections() -> None:
    text = " ".join(HELP.read_text().split())
    assert f"points: {', '.join(USUAL_POINTS)}; checks: {', '.join(MEANINGS)};" in text


@pytest.mark.filterwarnings("ignore:the inspection of")
def test_inspect_writes_statistics_and_what_is_wrong_into_the_run_folder() -> None:
    words = ("--inspect", "filter/action:stats@10; environment/reward:range=0..0.5:dump")
    rest = ("--steps", 256, "-ntb", "-c", "--plain")
    assert coach("-p", "CartPole_PPO", *words, *rest) == 0
    run = only_run(name="CartPole_PPO")
    header, *rows = (run / "main.agent.inspections.csv").read_text().splitlines()
    assert "inspect/filter/action/mean" in header.split(",")
    assert len(rows) == 4
    header, *rows = (run / "inspections.csv").read_text().splitlines()
    assert "inspect/environment/reward/outside" in header.split(",")
    dumped = sorted(run.glob("inspections/environment_*.npz"))
    assert (len(dumped), len(rows)) == (10, 32)
    with np.load(dumped[0]) as columns:
        assert columns["reward"].tolist() == [1] * 8
    text = next(
        line["text"] for line in lines_of(run) if line["kind"] == "inspection" and "text" in line
    )
    assert text == "'environment': 'reward' is outside [0, 0.5] in 8 of 8 rows"


def test_an_inspection_stops_a_run_with_one_line_and_its_data(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--inspect", "environment/reward:range=0..0.5", "--steps", 256)
    assert coach("-p", "CartPole_PPO", *words, "-ntb", "-c", "--plain") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "the inspection of 'environment': 'reward' is outside [0, 0.5] in 8 of 8 rows" in line
    with np.load(only_run(name="CartPole_PPO") / "faults" / "step_0.npz") as columns:
        assert columns["reward"].tolist() == [1] * 8
