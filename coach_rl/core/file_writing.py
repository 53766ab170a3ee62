"""Writing into a run's folder: never through a symbolic link, modes by the umask, replaced whole.

A run's folder may come from a stranger, and a link in it may point to any file of the user.
"""

import errno
import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coach_rl.core.errors import ConfigurationError

_IS_LINK = "it is a symbolic link, and nothing is written through links"


def without_links(path: str, flags: int) -> int:
    """Opener for `open` that refuses a symbolic link: `open(path, "ab", opener=without_links)`.

    Raises:
        OSError: The file cannot be opened, or is a link.
    """
    try:
        return os.open(path, flags | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, _IS_LINK, path) from error
        raise


def make_folder(path: Path) -> None:
    """Make a folder inside a run's folder unless it exists.

    Raises:
        OSError: It cannot be made, or a symbolic link stands in its place.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, _IS_LINK, str(path))
    path.mkdir(exist_ok=True)


def require_no_links(folder: Path) -> None:
    """Raise `ConfigurationError` if an entry of a run's folder is a symbolic link."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            raise ConfigurationError(
                f"{path} is a symbolic link to {os.readlink(path)}, and nothing is written through "
                "links in a run's folder; replace it by what it points to, or delete it"
            )


@contextmanager
def replacing(path: Path, unfinished: Path | None = None) -> Iterator[Path]:
    """An empty file to fill that then replaces `path` in one step, also across a power cut.

    Args:
        path: The file to replace; a link there is replaced, not followed.
        unfinished: The file to fill, in the same folder; a file there is deleted. None: a new
            name, so that several processes may write at once.
    """
    if unfinished is None:
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    else:
        unfinished.unlink(missing_ok=True)
    try:
        os.close(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        yield unfinished
        sync(unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    sync(path.parent)


@contextmanager
def filled_folder(path: Path) -> Iterator[Path]:
    """An empty folder to fill that then becomes `path`, which is missing or empty.

    Raises:
        OSError: It cannot be written, or `path` exists by then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".new-") as unfinished:
        filled = Path(unfinished, "new")
        filled.mkdir()
        yield filled
        os.rename(filled, path)


def unused(path: Path) -> Path:
    """`path`, or, where that exists, the first free of `name_2.suffix`, `name_3.suffix`, ..."""
    free, number = path, 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}_{number}{path.suffix}")
    return free


def sha256_of(content: str | bytes) -> str:
    """The SHA-256 checksum of a text or bytes, in hexadecimal digits."""
    data = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def sha256_of_file(path: Path) -> str:
    """The SHA-256 checksum of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Make a file's content, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
