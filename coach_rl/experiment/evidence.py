"""The causes of a run's failure, and what inspections found, in files of its folder.

`faults/step_4096.txt` has the message and other text, such as the traceback of an environment in a
worker process, `faults/step_4096.npz` the arrays where there are any.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from coach_rl.core.errors import RunError
from coach_rl.core.records import Array


def write_columns(file: Path, columns: Mapping[str, Array]) -> None:
    """Write arrays by name, and the folder around them; OSError where they cannot be written."""
    file.parent.mkdir(exist_ok=True)
    np.savez(file, allow_pickle=False, **columns)


def write_evidence(folder: Path, error: RunError, environment_steps: int) -> str:
    """Write an error's message, and what it carries besides.

    Args:
        folder: The run's.
        error: What stopped the run.
        environment_steps: Where it stood.

    Returns:
        The end of the error message, which says where its data are; empty if it carries none.
    """
    file = folder / "faults" / f"step_{environment_steps}"
    arrays = {name: part for name, part in error.evidence.items() if isinstance(part, np.ndarray)}
    texts = {name: part for name, part in error.evidence.items() if name not in arrays}
    try:
        file.parent.mkdir(exist_ok=True)
        paragraphs = [str(error), *(f"{name}:\n{text}" for name, text in texts.items())]
        file.with_suffix(".txt").write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
        if arrays:
            np.savez(file.with_suffix(".npz"), allow_pickle=False, **arrays)
    except OSError as failure:
        return f"; its data could not be written: {failure}" if error.evidence else ""
    return f"; its data are in {file}.*" if error.evidence else ""
