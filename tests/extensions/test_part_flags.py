"""Flags of extensions request their parts of a run."""

import coach_rl
from coach_rl.cli.commands import COMMANDS, parse_arguments
from coach_rl.cli.settings import run_parts
from coach_rl.configuration.extensions import own_extensions
from coach_rl.extensions.studies.sweeps.sweep import Sweep
from tests.cli.test_cli import check_flags


def test_flags_of_train_request_parts_of_extensions() -> None:
    words = "-p x -dg -dm --video_frames 60 --video_skip 2 --profile --background_evaluation"
    video = coach_rl.VideoParameters(formats=("gif", "mp4"), max_frames=60, frame_skip=2)
    parts = (video, coach_rl.ProfileParameters(), coach_rl.BackgroundEvaluation())
    assert run_parts(parse_arguments(words.split())) == parts


def test_flags_of_commands_of_extensions_set_fields_and_paths_that_exist() -> None:
    names = {name for each in own_extensions() for name in each.commands}
    check_flags((each for name, each in COMMANDS.items() if name in names), Sweep)
