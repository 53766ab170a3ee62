"""Writing into a run's folder: never through a link, modes by the umask, replaced whole.

A run's folder may come from a stranger, and a link in it may point to any file of the user. It may
also be a copy by hard links, whose original must not change.
"""

import errno
import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from coach_rl.core.errors import ConfigurationError

_IS_LINK = "it is a symbolic link, and nothing is written through links"


def without_links(path: str, flags: int) -> int:
    """Opener for `open` that leaves other files alone: `open(path, "ab", opener=without_links)`.

    A symbolic link is refused. A file with other hard links is replaced by a copy of its own.

    Raises:
        OSError: The file cannot be opened or copied, or is a symbolic link.
    """
    opened = _opened(path, flags & ~os.O_TRUNC)  # which would empty the other links' file at once
    try:
        if os.fstat(opened).st_nlink > 1:
            _separate(opened, Path(path))
            shared = opened
            opened = _opened(path, flags & ~os.O_TRUNC)
            os.close(shared)
        if flags & os.O_TRUNC:
            os.ftruncate(opened, 0)
    except OSError:
        os.close(opened)
        raise
    return opened


def separated(path: Path) -> Path:
    """`path`; a file there that has other hard links is replaced by a copy of its own.

    For files that other packages open to write.
    """
    if path.exists():
        os.close(without_links(str(path), os.O_WRONLY))
    return path


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
    free = path
    number = 1
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


def _opened(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, _IS_LINK, path) from error
        raise


def _separate(opened: int, path: Path) -> None:
    """Replace an open file by a copy, which its other hard links don't share.

    Of several processes that do so at once, the others find the first one's copy in its place.
    """
    with suppress(OSError, AttributeError):  # a file system, or a system, without locks
        os.lockf(opened, os.F_LOCK, 0)  # until the file is closed
    if os.path.samestat(os.fstat(opened), path.lstat()):
        # Closing the source would release the lock; that comes last.
        with path.open("rb") as source, replacing(path) as copy, copy.open("wb") as target:
            shutil.copyfileobj(source, target)


def sync(path: Path) -> None:
    """Make a file's content, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
