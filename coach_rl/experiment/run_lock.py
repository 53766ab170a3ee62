"""One process per run: two that wrote into the same folder would ruin it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coach_rl.core.errors import ConfigurationError, require_unix

require_unix()
import fcntl  # noqa: E402 - Windows, which has no such module, gets a sentence instead

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run's folder; the hold ends with the process, however that ends.

    Raises:
        ConfigurationError: Another process holds it.
    """
    with (folder / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise ConfigurationError(
                f"the run {folder} is in use by process {file.read().strip() or '?'}; "
                "wait for it or stop it"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
