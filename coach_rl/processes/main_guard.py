"""Scripts that start worker processes without `if __name__ == "__main__":`.

A new process imports the script of the process that starts it. A script that starts worker
processes as soon as it is imported would start them there once more, which Python refuses with a
traceback in each of them.
"""

import multiprocessing
import os
import sys
from pathlib import Path


def leave_if_importing_script() -> None:
    """End this process, silently, if it is a worker that is still importing the script.

    For what starts worker processes to call first; the process that waits for this one gives
    `script_advice`.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(1)


def script_advice() -> str:
    """Return the advice for a script that lacks the line, as the end of a message; else empty."""
    file = Path(getattr(sys.modules.get("__main__"), "__file__", None) or "")
    if file.suffix != ".py" or file.name == "__main__.py":  # `python -m package` is not imported
        return ""
    try:
        is_guarded = "__main__" in file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    if is_guarded:
        return ""
    return (
        f"; worker processes import the script {file.name}, so what starts the run must stand "
        'below the line `if __name__ == "__main__":`'
    )
