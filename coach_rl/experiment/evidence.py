"""The data that show why a run has stopped, in files of its folder.

`faults/step_4096.npz` holds the arrays, `faults/step_4096.txt` the message and other text, such as
the traceback of an environment in a worker process.
"""

from pathlib import Path

import numpy as np

from coach_rl.core.errors import RunError


def write_evidence(folder: Path, error: RunError, environment_steps: int) -> str:
    """Write what an error carries besides its message.

    Args:
        folder: The run's.
        error: What stopped the run.
        environment_steps: Where it stood.

    Returns:
        The end of the error message, which says where the files are; empty if there are none.
    """
    if not error.evidence:
        return ""
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
        return f"; its data could not be written: {failure}"
    return f"; its data are in {file}.*"
