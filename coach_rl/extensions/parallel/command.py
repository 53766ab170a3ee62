"""Commands that torchrun starts in each process: `coach train` and `resume`, with --parallel."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from datetime import datetime
from pathlib import Path

from coach_rl.cli import train as alone
from coach_rl.cli.parser import Given
from coach_rl.cli.settings import configured
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.core.seeding import integer_seed
from coach_rl.extensions.parallel.parallel import ParallelParameters
from coach_rl.extensions.parallel.ranks import Ranks, joined
from coach_rl.graph_managers.torch_settings import resolved_device
from coach_rl.runs.checkpoint import list_checkpoints, steps_of
from coach_rl.runs.folder import RunFolder, runs_in
from coach_rl.sessions.session import DEFAULT_ROOT


def train(given: Given) -> int:
    """Train this process's run, in NAME/MOMENT/rank_K, with those of the others; the exit code."""
    with _as_rank(given) as ranks:
        preset = load_preset(find_preset(given.preset))
        experiment, _ = configured(given, preset, without=("parallel",))
        own = ParallelParameters(ranks=ranks.size)
        given.parallel = (*experiment.parameters.callbacks, own)
        moment = ranks.everyone(datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S"))[0]
        name = given.experiment_name or preset.reference.name
        given.experiment_path = (given.experiment_path or DEFAULT_ROOT) / name / moment
        given.experiment_name = f"rank_{ranks.rank}"
        if ranks.rank:
            given.seed = integer_seed(given.seed or 0, "rank", ranks.rank)
        return alone.train(given)


def resume(given: Given) -> int:
    """Resume this process's run from the newest checkpoint that all ranks have; the exit code."""
    with _as_rank(given) as ranks:
        known = sorted(given.run.glob("rank_*"))
        if len(known) != ranks.size:
            raise ConfigurationError(
                f"{given.run} has the runs of {len(known)} ranks, and torchrun has started "
                f"{ranks.size} processes; give the folder with rank_0, rank_1 ... in it, and "
                "--nproc-per-node as many as there are"
            )
        folder = runs_in(given.run / f"rank_{ranks.rank}")[-1]
        checkpoints = list_checkpoints(RunFolder(folder).checkpoints)
        steps = [steps_of(each) for each in checkpoints]
        of_all = ranks.everyone(steps)
        common = set(steps).intersection(*of_all)
        if any(of_all) and not common:
            raise CheckpointError(f"the ranks in {given.run} have no checkpoint of the same step")
        given.run = folder
        if common:
            number = steps.index(max(common))
            given.run = checkpoints[number]
            given.drop_later |= number < len(steps) - 1  # a rank was ended before it had those
        given.parallel = False  # the manifest has its parameters
        return alone.resume(given)


@contextmanager
def _as_rank(given: Given) -> Iterator[Ranks]:
    """The ranks; this one takes the GPU of its number, and rank 0 alone prints and draws curves."""
    if given.background_evaluation:
        raise ConfigurationError(
            "--parallel evaluates in rank 0; leave out --background_evaluation"
        )
    with joined() as ranks, ExitStack() as opened:
        if resolved_device(given.device or "auto") != "cpu":
            given.device = f"cuda:{os.environ['LOCAL_RANK']}"
        if ranks.rank:
            given.tensorboard = False
            opened.enter_context(redirect_stdout(opened.enter_context(Path(os.devnull).open("w"))))
        yield ranks
