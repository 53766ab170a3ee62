"""Do saved tasks of the DeepMind Control Suite continue exactly in a new process?

python -m benchmarks.control_restores --restores 20 [TASK ...]      # the 28 benchmark tasks

Each task is played at random and saved at random moments, with what followed: all that an
integration step reads, the observation and the reward of each of 100 steps, beyond the end of an
episode where one came. A new process restores every state of a task, one after the other, and
compares what follows there.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from coach_rl.core.records import FloatArray
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.core.state import State
from coach_rl.environments.dm_control.control_task import SavedControlTask
from coach_rl.environments.dm_control.tasks import BENCHMARK_TASKS
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint

STEPS = 100
"""Steps that are compared."""
AT_ONCE = 7
"""Tasks of one new process."""
EPISODE = 1_000
"""Steps of an episode."""


def made(task: str) -> SavedControlTask:
    return SavedControlTask(
        task, shows="parts", action_repeat=1, picture_size=84, camera=0, most_steps=None
    )


def record(task: str, *, restores: int, seed: int) -> State:
    """States of a task, each with the actions that followed and a digest of what they led to.

    Every fourth state is near the end of an episode, so that the next one is compared too.
    """
    rng = np.random.default_rng(seed)
    playing = made(task)
    size = playing.action_space.shape
    found: State = {}
    for number in range(restores):
        playing.reset(seed=seed if number == 0 else None)
        last = number % 4 == 3
        begin = rng.integers(EPISODE - STEPS + 1, EPISODE) if last else rng.integers(0, 150)
        for action in rng.uniform(-1, 1, (int(begin), *size)):
            playing.step(action.astype(np.float32))
        actions = rng.uniform(-1, 1, (STEPS, *size)).astype(np.float32)
        state = {
            "generator": generator_state(playing.np_random),
            "task": playing.save_state(),
            "actions": actions,
        }
        found[str(number)] = {**state, "digest": followed(playing, actions)}
    return found


def followed(playing: SavedControlTask, actions: FloatArray) -> str:
    """A digest of the physics, the observation and the reward after each action."""
    digest = sha256()
    for action in actions:
        observation, reward, terminated, truncated, _ = playing.step(action)
        if terminated or truncated:
            observation, _ = playing.reset()
        for part in observation.values():
            digest.update(part.tobytes())
        digest.update(playing.physics_state.physics().tobytes())
        digest.update(repr((reward, terminated, truncated)).encode())
    return digest.hexdigest()


def check(folder: Path) -> dict[str, tuple[int, int]]:
    """How many states of each task continue exactly in this process, and of how many."""
    counts = {}
    for task, states in read_checkpoint(folder).state.items():
        playing = made(task)
        same = 0
        for state in states.values():
            playing.restore_state(state["task"])
            load_generator_state(playing.np_random, state["generator"])
            same += followed(playing, state["actions"]) == state["digest"]
        counts[task] = (same, len(states))
    return counts


def compared(tasks: Sequence[str], *, restores: int, seed: int) -> dict[str, tuple[int, int]]:
    """How many states of each task continue exactly in a new process, and of how many."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "states"
        states = {task: record(task, restores=restores, seed=seed) for task in tasks}
        write_checkpoint(path, states, {})
        code = (
            "import json, sys; from pathlib import Path; from benchmarks.control_restores import "
            "check; print(json.dumps(check(Path(sys.argv[1]))))"
        )
        command = [sys.executable, "-c", code, str(path)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {task: (same, tried) for task, (same, tried) in json.loads(answer).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=list(BENCHMARK_TASKS))
    parser.add_argument("--restores", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    wrong = 0
    for begin in range(0, len(given.tasks), AT_ONCE):
        tasks = given.tasks[begin : begin + AT_ONCE]
        counts = compared(tasks, restores=given.restores, seed=given.seed)
        for name, (same, tried) in counts.items():
            print(f"{name}: {same} of {tried} restored episodes continue exactly", flush=True)
            wrong += tried - same
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
