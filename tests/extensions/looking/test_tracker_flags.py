"""Flags of trackers."""

from coach_rl.cli.commands import parse_arguments
from coach_rl.cli.settings import overrides_of


def test_tracker_off_leaves_no_sinks() -> None:
    assert overrides_of(parse_arguments(["train", "x", "--tracker", "off"])) == {"sinks": ()}
