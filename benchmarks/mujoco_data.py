"""Data sets of MuJoCo tasks to learn from: random, medium-replay, medium, expert.

    python -m benchmarks.mujoco_data hopper --to ./data                  # all four
    python -m benchmarks.mujoco_data hopper medium expert --to ./data    # some of them

Each becomes a file LEVEL-KIND.npz in the form of `coach evaluate --record`, made by commands that
anybody can run:

- *random*: uniform actions, the heat-up of a run of SAC.
- *medium-replay*: everything that a run of SAC has acted until `LEARNED` steps, its memory.
- *medium*: that run's policy at the end, with the exploration of training.
- *expert*: the agent that comes with coach_rl, `trained:Mujoco_PPO/LEVEL`, with its exploration.

The seed is 0 unless another is given. Runs of SAC are kept below the folder, and made once.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

LEARNED = {"half_cheetah": 100_000, "hopper": 100_000}
"""Steps after which a policy is medium, by level."""
LENGTHS = {"half_cheetah": 1_000, "hopper": 350}
"""Steps of an episode of medium policies, about, by level."""
ROWS = 16
"""Environments that are recorded at once."""


def coach(*words: object) -> None:
    """Run a command of coach; raises `CalledProcessError` if it fails."""
    subprocess.run([sys.executable, "-m", "coach_rl", *map(str, words)], check=True)


class Collection:
    """The data sets of a task.

    Args:
        level: The task.
        folder: Where data sets and runs are written.
        transitions: Transitions of random, medium and expert data, about.
        learned: Steps after which SAC's policy is medium.
        seed: Seed of all runs and evaluations.
    """

    def __init__(
        self, level: str, folder: Path, *, transitions: int, learned: int, seed: int
    ) -> None:
        self._level = level
        self._folder = folder
        self._transitions = transitions
        self._learned = learned
        self._seed = seed

    def random(self) -> None:
        """Uniform actions."""
        steps = self._transitions
        coach("data", "write", self._sac("random", steps, heatup=steps), self.file("random"))

    def medium_replay(self) -> None:
        """The memory of a run of SAC."""
        coach("data", "write", self._medium_run(), self.file("medium-replay"))

    def medium(self) -> None:
        """The policy of that run."""
        self._record(self._medium_run(), "medium", LENGTHS[self._level])

    def expert(self) -> None:
        """The agent that comes with coach_rl."""
        self._record(f"trained:Mujoco_PPO/{self._level}", "expert", 1_000)

    def file(self, kind: str) -> Path:
        """Where a data set is written."""
        return self._folder / f"{self._level}-{kind}.npz"

    def _medium_run(self) -> Path:
        heatup = min(10_000, self._learned // 2)
        return self._sac("medium", self._learned, heatup=heatup)

    def _sac(self, name: str, steps: int, *, heatup: int) -> Path:
        """A folder with one run of SAC, which is made unless it is there."""
        root = self._folder / "runs" / f"{self._level}-{name}"
        if not root.exists():
            changes = f"steps={steps}; schedule.heatup={heatup}; agent.memory.capacity={steps}"
            words = ("-lvl", self._level, "--seed", self._seed, "-cp", changes, "-ep", root)
            coach("train", "Mujoco_SAC", *words)
        return root / "Mujoco_SAC"

    def _record(self, run: object, kind: str, length: int) -> None:
        episodes = max(self._transitions // length, ROWS)
        words = ("--episodes", episodes, "-n", ROWS, "--seed", self._seed + 1, "--sampling")
        coach("evaluate", run, *words, "--record", self.file(kind))


KINDS: dict[str, Callable[[Collection], None]] = {
    "random": Collection.random,
    "medium-replay": Collection.medium_replay,
    "medium": Collection.medium,
    "expert": Collection.expert,
}
"""Kinds of data by name."""


def main() -> None:
    """Make the data sets that the command line names, and print how long each took."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("level", choices=sorted(LEARNED), help="the task")
    parser.add_argument(
        "kinds", nargs="*", metavar="kind", help=f"{', '.join(KINDS)}; all unless given"
    )
    parser.add_argument("--to", type=Path, required=True, help="the folder of the files")
    parser.add_argument("--transitions", type=int, default=500_000, help="about so many each")
    parser.add_argument("--learned", type=int, help="steps after which SAC's policy is medium")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if unknown := [kind for kind in given.kinds if kind not in KINDS]:
        parser.error(f"unknown kind {unknown[0]!r}; there are {', '.join(KINDS)}")
    given.to.mkdir(parents=True, exist_ok=True)
    collection = Collection(
        given.level,
        given.to,
        transitions=given.transitions,
        learned=given.learned or LEARNED[given.level],
        seed=given.seed,
    )
    for kind in given.kinds or KINDS:
        if collection.file(kind).exists():
            print(f"{collection.file(kind)} is there already")
            continue
        before = time.monotonic()
        KINDS[kind](collection)
        print(f"{collection.file(kind)}: {time.monotonic() - before:.0f} s")


if __name__ == "__main__":
    main()
