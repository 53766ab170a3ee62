"""Do saved levels of MiniGrid continue exactly in a new process?

python -m benchmarks.minigrid_restores --restores 20 [LEVEL ...]   # ten levels without names

Each level is played at random in two rows and saved as checkpoints at random moments, with what
followed for 100 steps. A new process, with another seed for the hashes of strings, reads every
checkpoint and compares what follows there.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from coach_rl.core.interfaces import Environment
from coach_rl.core.records import EnvResponse, IntArray
from coach_rl.environments.minigrid.parameters import MiniGridParameters
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint

LEVELS = (
    *("DoorKey-8x8", "MultiRoom-N4-S5", "KeyCorridorS3R3", "Dynamic-Obstacles-8x8", "MemoryS13"),
    *("ObstructedMaze-2Dlhb", "LavaCrossingS9N2", "PutNear-6x6-N2", "BabyAI-GoTo"),
    "BabyAI-BossLevel",
)
STEPS = 100
"""Steps that are compared."""
APART = 60
"""Largest number of steps between two saved moments."""
ROWS = 2


def made(level: str) -> Environment:
    given = MiniGridParameters(level=level, mission="words", given=("position", "state"))
    return given.build(num_envs=ROWS)


def chosen(environment: Environment, steps: int, seed: int) -> IntArray:
    """Random actions [T, N]."""
    actions = environment.spaces.action
    return np.random.default_rng(seed).integers(actions.n, size=(steps, ROWS))  # type: ignore[attr-defined]


def record(level: str, folder: Path, *, restores: int, seed: int) -> None:
    """Checkpoints of a level, and what follows each of them."""
    environment = made(level)
    environment.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for number in range(restores):
        for actions in chosen(environment, int(rng.integers(1, APART)), seed + number):
            environment.send(actions)
            environment.recv()
        saved = environment.state_dict()
        digest = followed(environment, number)
        notes = {"level": level, "number": number, "digest": digest}
        write_checkpoint(folder / f"step_{number}_{level}", saved, notes)
    environment.close()


def followed(environment: Environment, seed: int) -> str:
    """A digest of everything that random actions lead to."""
    digest = sha256()
    for actions in chosen(environment, STEPS, seed):
        environment.send(actions)
        for part in parts(environment.recv()):
            digest.update(part)
    return digest.hexdigest()


def parts(answer: EnvResponse) -> list[bytes]:
    """All that an answer shows."""
    shown = [*answer.observation.values(), *answer.first_observation.values()]
    more = [answer.reward, answer.end, *answer.info.values()]
    return [np.ascontiguousarray(each).tobytes() for each in (*shown, *more)]


def check(folder: str) -> dict[str, tuple[int, int]]:
    """How many checkpoints of each level continue exactly in this process, and of how many."""
    counts: dict[str, tuple[int, int]] = {}
    for path in sorted(Path(folder).iterdir()):
        saved = read_checkpoint(path)
        environment = made(saved.notes["level"])
        environment.load_state_dict(saved.state)
        is_same = followed(environment, saved.notes["number"]) == saved.notes["digest"]
        environment.close()
        same, tried = counts.get(saved.notes["level"], (0, 0))
        counts[saved.notes["level"]] = (same + is_same, tried + 1)
    return counts


def continued(levels: Sequence[str], *, restores: int, seed: int) -> dict[str, tuple[int, int]]:
    """The counts of `check` in a new process, after a recording in this one."""
    with tempfile.TemporaryDirectory() as folder:
        for level in levels:
            record(level, Path(folder), restores=restores, seed=seed)
        code = (
            "import json, sys; from benchmarks.minigrid_restores import check; "
            "print(json.dumps(check(sys.argv[1])))"
        )
        answer = subprocess.run(
            [sys.executable, "-c", code, folder],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": str(seed + 1)},
        ).stdout
    return {level: (same, tried) for level, (same, tried) in json.loads(answer).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("levels", nargs="*", default=list(LEVELS))
    parser.add_argument("--restores", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts = continued(given.levels, restores=given.restores, seed=given.seed)
    for name, (same, tried) in counts.items():
        print(f"{name}: {same} of {tried} restored levels continue exactly", flush=True)
    sys.exit(any(tried - same for same, tried in counts.values()))


if __name__ == "__main__":
    main()
