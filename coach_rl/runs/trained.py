"""Trained agents that come with the package: `trained:Mujoco_PPO/half_cheetah` in place of a run.

Each is an archive, `coach_rl/trained/NAME.zip`, of a run's folder with the policy alone (see
`sessions.policies`). It is unpacked into the user's cache folder when it is first used, because
evaluations and videos are written into a run's folder. Light on purpose: listing them imports
neither numpy nor torch.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import platformdirs

from coach_rl.configuration.file_writing import filled_folder, sha256_of_file
from coach_rl.configuration.strict_json import Json
from coach_rl.core.errors import MOST_LISTED, ConfigurationError, UnknownNameError, near_names

PREFIX = "trained:"
"""Beginning of the name of a trained agent, where it takes the place of a run."""
ARCHIVES = Path(__file__).parent.parent / "trained"
"""The folder of the archives."""


@dataclass(frozen=True, kw_only=True)
class TrainedPolicy:
    """A trained agent in the package, as `coach list --trained` shows it."""

    name: str
    """Its name after `trained:`."""
    score: str
    """Environment steps of its training, and its score with an interval over episodes."""


def trained_policies() -> Iterator[TrainedPolicy]:
    """The trained agents in the package, by name."""
    for name, archive in _archives().items():
        with ZipFile(archive) as files:
            about = json.loads(files.read("manifest.json"))["only_policy"]
        yield TrainedPolicy(
            name=name,
            score=f"{about['environment_steps']:,} steps; {score_text(about['score'])}",
        )


def score_text(score: Json) -> str:
    """A score in words: `reward 512.3 [498.1, 526.5], success 95 %; 100 episodes`."""
    low, high = score["reward_interval"]
    reward = f"reward {score['reward_mean']:,.5g} [{low:,.5g}, {high:,.5g}]"
    rate = score["success_rate"]
    success = "" if rate is None else f", success {100 * rate:.3g} %"
    return f"{reward}{success}; {score['episodes']} episodes"


def unpacked(run: Path) -> Path:
    """The path of a trained agent's folder, also with `@STEP`; other paths stay as they are.

    Raises:
        UnknownNameError: The package has no trained agent of that name.
        ConfigurationError: The user's cache folder cannot be written.
    """
    text = str(run)
    if not text.startswith(PREFIX) or run.exists():
        return run
    name, at, step = text.removeprefix(PREFIX).partition("@")
    known = _archives()
    name = {each.lower(): each for each in known}.get(name.lower(), name)
    if name not in known:
        containing = [each for each in known if name.lower() in each.lower()]
        near = near_names(name, known) or containing[:MOST_LISTED]
        hint = "`coach list --trained` lists them"
        raise UnknownNameError("trained agent", name, known, hint, near)
    return Path(f"{_unpack(name, known[name])}{at}{step}")


def _archives() -> dict[str, Path]:
    """The archives by the name of the agent."""
    files = sorted(ARCHIVES.rglob("*.zip"))
    return {file.relative_to(ARCHIVES).with_suffix("").as_posix(): file for file in files}


def _unpack(name: str, archive: Path) -> Path:
    """The folder of an archive's content in the cache, which is written where it is missing."""
    digest = sha256_of_file(archive)[:12]
    folder = platformdirs.user_cache_path("coach_rl") / digest / "trained" / name
    if folder.is_dir():
        return folder
    try:
        with filled_folder(folder) as unfinished, ZipFile(archive) as files:
            files.extractall(unfinished)
    except OSError as error:
        if folder.is_dir():  # another process was faster
            return folder
        raise ConfigurationError(
            f"the trained agent {name} cannot be unpacked into {folder}: {error.strerror}; set "
            "XDG_CACHE_HOME to a folder that can be written"
        ) from error
    return folder
