"""The flags of workers, and changes of parameters beside them."""

from pathlib import Path

import pytest

import coach_rl as rl
from coach_rl.cli.commands import parse_arguments
from coach_rl.cli.settings import configured, overrides_of
from tests.small_runs import preset

ASYNCHRONOUS = "source.mode=asynchronous; source.ticks=4; source.staleness=16"


def source_of(*words: str) -> rl.SourceParameters:
    """The source of the experiment that a command line describes."""
    given = parse_arguments(["train", "CartPole_PPO", "-n", "8", *words])
    return configured(given, preset("CartPole_PPO"))[0].parameters.source


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], rl.SourceParameters()),
        (["--workers", "2"], rl.CollectionParameters(workers=2)),
        (["--workers", "2", "--on", "ray"], rl.CollectionParameters(workers=2, on="ray")),
        (
            ["--workers", "4", "-cp", ASYNCHRONOUS],
            rl.CollectionParameters(workers=4, mode="asynchronous", ticks=4, staleness=16),
        ),
        (
            ["-cp", "source=Collection(workers=3, on=inline)"],
            rl.CollectionParameters(workers=3, on="inline"),
        ),
    ],
)
def test_command_line_describes_workers(words: list[str], expected: rl.SourceParameters) -> None:
    assert source_of(*words) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--on", "ray"],
            "^--on has no effect without --workers or --seeds; give that, ",
        ),
        (["--workers", "9"], r"source\.workers \(9\) must be num_envs \(8\) or less"),
        (["--workers", "2", "-cp", "source.workers=3"], "source.workers .*given twice"),
        (["--workers", "2", "-cp", "source=Collection(workers=3)"], "source is given twice"),
        (["--workers", "2", "-cp", "source.tick=3"], "unknown argument 'tick'"),
    ],
)
def test_command_line_that_describes_no_workers_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(rl.ConfigurationError, match=message):
        source_of(*words)


def test_workers_of_a_preset_keep_their_other_settings(tmp_path: Path) -> None:
    file = tmp_path / "collected.py"
    file.write_text(
        """
import coach_rl as rl

def graph_manager():
    return rl.BasicRLGraphManager(
        rl.BasicGraphParameters(
            agent=rl.PPOAgentParameters(),
            environment=rl.PointMassParameters(),
            source=rl.CollectionParameters(workers=1, ticks=4),
            num_envs=4,
        )
    )
"""
    )
    given = parse_arguments(["train", str(file), "--workers", "2"])
    found = rl.load_preset(rl.find_preset(str(file)))
    manager, _ = configured(given, found)
    assert manager.parameters.source == rl.CollectionParameters(workers=2, ticks=4)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('source.on = "inline"', rl.CollectionParameters(workers=2, on="inline")),
        ("[source]\nticks = 4\nworkers = 3", rl.CollectionParameters(workers=2, ticks=4)),
    ],
)
def test_workers_beside_a_file_keep_its_other_settings(
    text: str, expected: rl.SourceParameters, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    assert source_of("--config", str(file), "--workers", "2") == expected


def test_workers_beside_a_file_that_sets_the_whole_source_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('source = "Collection(workers=3, ticks=4)"')
    with pytest.raises(rl.ConfigurationError, match=r"line 1: a flag changes 'source', too"):
        source_of("--config", str(file), "--workers", "2")


def test_resumed_run_may_have_its_workers_elsewhere() -> None:
    given = parse_arguments(["resume", "run", "--on", "local"])
    assert overrides_of(given) == {"source.on": "local"}


def test_workers_of_a_run_from_data_are_refused() -> None:
    given = parse_arguments(["train", "Mujoco_TD3_BC", "--workers", "2"])
    with pytest.raises(rl.ConfigurationError, match="runs from data have no workers"):
        configured(given, preset("Mujoco_TD3_BC"))
