"""The flag `--tracker`. Light: the help of the command line is made of it."""

from collections.abc import Mapping
from dataclasses import replace

from coach_rl.telemetry.trackers.services import services


def flag_help() -> str:
    """The flag's line in the help."""
    return (
        f"also log to {', '.join(services())}, or SERVICE:PROJECT (default: coach_rl), instead of "
        "the preset's own sinks; off: to none; a resumed run continues there"
    )


def flag_parameters(text: str) -> Mapping[str, object]:
    """The parameters that `SERVICE`, `SERVICE:PROJECT` or `off` stands for."""
    from coach_rl.telemetry.trackers.tracker import TrackerParameters

    if text == "off":
        return {"sinks": ()}
    service, colon, project = text.partition(":")
    tracker = TrackerParameters(service=service)
    return {"sinks": (replace(tracker, project=project) if colon else tracker,)}
