"""The flags of data sets: recording, learning on in the world. Light, like `cli.parser`."""

from collections.abc import Mapping
from pathlib import Path

from coach_rl.cli import values
from coach_rl.cli.flags import A_RUN, again, group
from coach_rl.cli.parser import Flag
from coach_rl.core.steps import EnvironmentSteps


def into_the_world(steps: EnvironmentSteps) -> Mapping[str, object]:
    """The parameters with which a run from data acts from now on."""
    return {"online": True, "schedule.training": steps}


def with_share(share: float) -> Mapping[str, object]:
    """The parameters of batches with this share of the data."""
    return {"data_share": share}


FOR_RUNS = (
    *group(
        "changing the experiment",
        Flag(
            "--online STEPS",
            "a run that learns from data acts in the world from here, and trains to STEPS "
            "environment steps",
            values.steps,
            sets=into_the_world,
            of="resume fork",
        ),
        Flag(
            "--data_share SHARE",
            "share of the data in each batch once it acts, 0 to 1 (default: transitions of the "
            "data and of the world are equally likely)",
            float,
            sets=with_share,
            of="resume fork",
        ),
    ),
    *group(
        "where and how it runs",
        Flag(
            "--record FILE",
            "write the episodes of an evaluation, or of training, as a data set, FILE.npz",
            Path,
            sets="coach_rl:RecordingParameters.file",
        ),
        Flag(
            "--record_infos NAMES",
            "infos of the environment to write with them, separated by commas",
            values.names,
            sets="coach_rl:RecordingParameters.infos",
        ),
        of="train resume fork evaluate",
    ),
)
"""The flags of commands about one run."""
_DATA = Flag("DATA", "a file, a Minari id or folder, or a sample, data:NAME")
SHOW = (_DATA,)
CHECK = (
    _DATA,
    Flag("--for TASK", "compare its spaces with those of a run's folder or a preset", name="task"),
)
WRITE = (
    A_RUN,
    Flag("DATA", "the new file, which ends with .npz", Path),
    again("--last_good"),
    again("--trust"),
)
