"""The commands `coach data show`, `check` and `write`."""

from pathlib import Path

from coach_rl.cli.parser import Given
from coach_rl.cli.terminal import short
from coach_rl.cli.train import newest_run
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import SpaceError
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.data.data_facts import facts, problems
from coach_rl.extensions.data.files import open_data, require_spaces, write_file
from coach_rl.extensions.data.memory_data import memory_of
from coach_rl.runs.folder import RunFolder, find_folder, read_manifest
from coach_rl.sessions.opening import known_spaces


def show(given: Given) -> int:
    """Print what is in a data set; the exit code."""
    for line in facts(given.data, open_data(given.data)):
        print(line)
    return 0


def check(given: Given) -> int:
    """Print what is wrong with a data set; the exit code, 1 if anything is."""
    opened = open_data(given.data)
    wanted = None if given.task is None else _spaces_of(given.task)
    found = list(problems(opened, wanted))
    if wanted is not None:
        try:
            require_spaces(given.data, opened, wanted.observation, wanted.action)
        except SpaceError as error:
            found.append(str(error))
    for line in dict.fromkeys(found):
        print(line)
    if not found:
        recorded = opened.recorded
        episodes = len(recorded.begins)
        print(f"nothing is wrong in {len(recorded):,} transitions of {episodes:,} episodes")
    return int(bool(found))


def write(given: Given) -> int:
    """Write the replay memory of a run's checkpoint as a data set; the exit code."""
    recorded, known = memory_of(
        newest_run(given.run), last_good=given.last_good, trust=given.trust or ()
    )
    path = write_file(recorded, given.data, known)
    count = f"{len(recorded):,} transitions of {len(recorded.begins):,} episodes"
    print(f"written to {short(path)} ({count})")
    return 0


def _spaces_of(task: str) -> EnvironmentSpaces:
    """The spaces of a run's environment, by its folder, or of a preset's."""
    if Path(task).expanduser().exists() and not task.endswith(".py"):
        folder: RunFolder = find_folder(newest_run(Path(task)))
        return known_spaces(folder, read_manifest(folder))
    environment = load_preset(find_preset(task)).build({}).parameters.environment.build(num_envs=1)
    try:
        return environment.spaces
    finally:
        environment.close()
