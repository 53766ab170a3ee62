"""The source that a run was made from: the commits of its checkouts, and what differs from them.

The differences are kept as `source_HASH.diff` in the run's folder, so that two runs of a checkout
with changes that are not committed can be distinguished, and repeated.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from coach_rl.configuration.file_writing import replacing, sha256_of
from coach_rl.configuration.strict_json import Json
from coach_rl.core.errors import warn
from coach_rl.runs.folder import MANIFEST, RunFolder

_GIT_SECONDS = 10
_NEW = "*.py", "*.toml"
"""Names of new files, in no commit, that are among the differences; copies in runs are not."""
_MOST_FILES = 50
_MOST_BYTES = 4_000_000
"""New files among the differences, and size of differences that are kept, at most."""


def git_states() -> Json:
    """The states of the checkouts of the working directory and of coach_rl; see `git_state`."""
    return {name: git_state(folder) for name, folder in _checkouts()}


def git_state(folder: Path) -> Json:
    """Commit of the checkout `folder` lies in, and its differences; None outside of one.

    Returns:
        `commit`; `dirty`, whether files differ; `diff`, the hash of the differences, None of none.
    """
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return None
    changes = _git(folder, "status", "--porcelain")
    text = _differences(folder) if changes else ""
    return {
        "commit": commit,
        "dirty": None if changes is None else bool(changes),
        "diff": sha256_of(text) if text else None,
    }


def keep_differences(run: RunFolder) -> None:
    """Write what differs from the commits of the checkouts into a run's folder, if anything does.

    Differences of more than 4 MB are left out; the manifest has their hash.

    Warns:
        CoachWarning: They cannot be written.
    """
    for _, folder in _checkouts():
        text = _differences(folder)
        if not text or len(text) > _MOST_BYTES:
            continue
        try:
            with replacing(run.path / difference_file(sha256_of(text))) as file:
                file.write_text(text, encoding="utf-8")
        except OSError as error:
            warn(f"changes of the checkout at {folder} are not kept with the run: {error}")


def difference_file(digest: str) -> str:
    """The name of the file of differences with this hash."""
    return f"source_{digest[:12]}.diff"


def _checkouts() -> Iterator[tuple[str, Path]]:
    yield "working_directory", Path.cwd()
    yield "coach_rl", Path(__file__).parent


def _differences(folder: Path) -> str:
    """The patch from the last commit to the files now, with new files of code; empty if none."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None:
        return ""
    root = Path(top)
    plain = ("diff", "--no-color", "--no-ext-diff")
    listed = _git(root, "ls-files", "--others", "--exclude-standard", "--", *_NEW) or ""
    parts = [_git(root, *plain, "HEAD")]
    new = [name for name in listed.splitlines() if not (root / name).with_name(MANIFEST).exists()]
    parts += [_git(root, *plain, "--no-index", "--", os.devnull, n) for n in new[:_MOST_FILES]]
    return "".join(f"{part}\n" for part in parts if part)


def _git(folder: Path, *arguments: str) -> str | None:
    """Return git's output; None if git is missing or too slow, or `folder` is no checkout.

    Without optional locks: a run killed meanwhile would leave one behind, and git refuse to commit.
    """
    try:
        answer = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    is_compared = "--no-index" in arguments and answer.returncode == 1  # the files differ
    return answer.stdout.strip("\n") if answer.returncode == 0 or is_compared else None
