"""The flags of inspections, trackers and profiles. Light, like `cli.parser`."""

from collections.abc import Mapping
from dataclasses import replace

from coach_rl.cli import values
from coach_rl.cli.flags import group
from coach_rl.cli.parser import Flag
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.looking.trackers.services import services


def inspections(text: str) -> Mapping[str, object]:
    """The parameters that inspections stand for."""
    # Not at the top, here and below: these import numpy or torch, and --help needs neither.
    from coach_rl.configuration.overrides import InPlaceOf
    from coach_rl.extensions.looking.inspection_text import parse_inspections
    from coach_rl.extensions.looking.inspections import InspectParameters

    return {"callbacks": InPlaceOf({InspectParameters: parse_inspections(text)})}


def tracker(text: str) -> Mapping[str, object]:
    """The parameters that `SERVICE`, `SERVICE:PROJECT` or `off` stands for."""
    from coach_rl.extensions.looking.trackers.tracker import TrackerParameters

    if text == "off":
        return {"sinks": ()}
    service, colon, project = text.partition(":")
    described = TrackerParameters(service=service)
    return {"sinks": (replace(described, project=project) if colon else described,)}


DEFAULT_HISTOGRAM_STEPS = 10_000
"""Environment steps from one set of histograms to the next, where none are given."""
_TRAINED = "train resume fork repeat"
FOR_RUNS = (
    *group(
        "changing the experiment",
        Flag(
            "--inspect POINTS",
            'inspect points of the flow of data: "batch:nan,stats@100; network:range=-5..5:warn" '
            "(points: environment, filter, memory, sampler, batch, network, update; checks: nan, "
            "shape, range, stats, staleness; what is wrong: warn, dump or stop, the default); "
            "off: at none",
            sets=inspections,
            of=f"{_TRAINED} describe",
        ),
    ),
    *group(
        "where and how it runs",
        Flag(
            "--tracker SERVICE",
            f"also log to {', '.join(services())}, or SERVICE:PROJECT (default: coach_rl), instead "
            "of the preset's own sinks; off: to none; a resumed run continues there",
            sets=tracker,
            of=f"{_TRAINED} begun",
        ),
        Flag(
            "--histograms [STEPS]",
            "for TensorBoard: parameters, gradients, actions and observations every STEPS "
            f"environment steps (default: {DEFAULT_HISTOGRAM_STEPS})",
            values.steps,
            value=EnvironmentSteps(DEFAULT_HISTOGRAM_STEPS),
            sets="coach_rl:HistogramParameters.every",
            of=_TRAINED,
        ),
        Flag(
            "--profile",
            "show at the end where time has gone; profile.json and trace.json in the run's folder",
            sets="coach_rl:ProfileParameters",
            of=_TRAINED,
        ),
    ),
)
"""The flags of commands about one run."""
