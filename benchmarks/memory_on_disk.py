"""How long do checkpoints of a replay memory of Atari pictures take, in memory and on the disk?

    python -m benchmarks.memory_on_disk disk --capacity 1000000
    python -m benchmarks.memory_on_disk cpu --capacity 100000

Fills a memory of 8 rows with stacks of four random pictures, whose frames are kept once, and writes
three checkpoints with 25,000 steps between them. Prints seconds for each, for a batch of 32, for
reading the last checkpoint, and the most memory of the process.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.records import Transition
from coach_rl.core.scratch import Scratch
from coach_rl.memories.replay_memory import ReplayMemory
from coach_rl.runs.checkpoint import read_checkpoint, remove_checkpoint, write_checkpoint
from coach_rl.runs.packing import NOTHING_STORED

ROWS = 8
EPISODE = 500
BETWEEN = 25_000
KEY = "observation"
SPACE = spaces.Dict({KEY: spaces.Box(0, 255, (84, 84, 4), np.uint8)})


class Player:
    """Adds transitions with random pictures to a memory."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._pictures = self._rng.integers(0, 256, (256, 84, 84), dtype=np.uint8)
        self._stack = np.zeros((ROWS, 84, 84, 4), np.uint8)
        self._time = 0

    def play(self, memory: ReplayMemory, steps: int) -> None:
        """Add so many transitions of all rows together."""
        for _ in range(steps // ROWS):
            self._time += 1
            before = self._stack
            frame = self._pictures[self._rng.integers(256, size=ROWS)]
            self._stack = np.concatenate([before[..., 1:], frame[..., None]], axis=-1)
            is_last = self._time % EPISODE == 0
            memory.add(
                Transition(
                    rows=np.arange(ROWS),
                    observation={KEY: before},
                    action=np.zeros(ROWS, np.int64),
                    reward=np.zeros(ROWS),
                    next_observation={KEY: self._stack},
                    terminated=np.full(ROWS, is_last),
                    truncated=np.zeros(ROWS, np.bool_),
                    duration=np.ones(ROWS, np.int64),
                )
            )
            if is_last:
                self._stack = np.repeat(frame[..., None], 4, axis=-1)


def built(storage: str, capacity: int, scratch: Scratch) -> ReplayMemory:
    """An empty memory."""
    parameters = rl.ReplayMemoryParameters(
        capacity=capacity,
        storage=rl.DiskStorage() if storage == "disk" else "cpu",
        frame_stack=(KEY,),
    )
    return parameters.build(
        observation_space=SPACE,
        action_space=spaces.Discrete(6),
        num_envs=ROWS,
        device=torch.device("cpu"),
        seed=0,
        discount=0.99,
        scratch=scratch,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("storage", choices=("cpu", "disk"))
    parser.add_argument("--capacity", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where to write; default: a temporary folder")
    given = parser.parse_args()
    scratch = Scratch()
    with tempfile.TemporaryDirectory(dir=given.folder) as name, scratch.within(Path(name)):
        root = Path(name)
        memory = built(given.storage, given.capacity, scratch)
        player = Player()
        begin = time.time()
        player.play(memory, given.capacity + 1_000)
        print(f"filled in {time.time() - begin:.0f} s", flush=True)
        stored = NOTHING_STORED
        for number in range(3):
            begin = time.time()
            stored = write_checkpoint(
                root / f"step_{number}", memory.state_dict(), {}, earlier=stored
            )
            print(f"checkpoint {number}: {time.time() - begin:.2f} s", flush=True)
            if number:
                remove_checkpoint(root / f"step_{number - 1}")
            player.play(memory, BETWEEN)
        begin = time.time()
        for _ in range(200):
            memory.sample(32)
        print(f"a batch of 32: {(time.time() - begin) * 5:.2f} ms", flush=True)
        begin = time.time()
        saved = read_checkpoint(root / "step_2")
        read = time.time() - begin
        built(given.storage, given.capacity, scratch).load_state_dict(saved.state)
        print(f"read and checked in {read:.1f} s, loaded in {time.time() - begin - read:.1f} s")
        print(f"most memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")


if __name__ == "__main__":
    main()
