"""Processor time of a tick in training without an update, here and in another checkout, in turns.

    python benchmarks/tick_speed.py ../before                  # 30 pairs of 2,000 ticks a case
    python benchmarks/tick_speed.py ../before --pairs 10 --cases SAC HAC

Each checkout has a process of its own with one thread, which takes its turn when it is asked. The
pair's ratio is that of the two processor times: 0.9 means that this checkout needs 10 % less. The
interval is a bootstrap's of the median ratio, 95 %.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FAR = 10**6
"""Steps that no measurement reaches."""
LATE = 100_000
"""Transitions before off-policy agents learn; a measurement has fewer."""
VERY_LATE = 1_000_000
"""The same of levels on several rows, as many as their memories hold."""
CASES: dict[str, tuple[str, dict[str, object]]] = {
    "PPO, 1 row": ("CartPole_PPO", {"num_envs": 1, "steps": FAR, "agent.algorithm.rollout": FAR}),
    "PPO, 8 rows": ("CartPole_PPO", {"num_envs": 8, "steps": FAR, "agent.algorithm.rollout": FAR}),
    "SAC": ("Pendulum_SAC", {"steps": FAR, "agent.learning.learning_starts": LATE}),
    "DQN": (
        "CartPole_DQN",
        {
            "steps": FAR,
            "agent.learning.learning_starts": LATE,
        },
    ),
    "HAC": (
        "PointMaze_HAC",
        {
            "steps": FAR,
            "stack.0.agent.learner.learning.learning_starts": VERY_LATE,
            "stack.1.agent.learner.learning.learning_starts": VERY_LATE,
        },
    ),
}
"""Preset and changes of each case, by its name."""


def serve(case: str, ticks: int) -> None:
    """Run so many ticks for each line of the standard input, and print their processor time."""
    import coach_rl
    from coach_rl.core.clock import Phase

    preset, changes = CASES[case]
    manager = coach_rl.load_preset(coach_rl.find_preset(preset)).configure(changes)
    manager.create_graph(coach_rl.Runtime(seed=1, device="cpu"))
    graph = manager.graph
    graph.training.reset(0)
    graph.clock.phase = Phase.TRAIN
    for _ in sys.stdin:
        begin = time.process_time()
        for _ in range(ticks):
            graph.tick()
        print(time.process_time() - begin, flush=True)
    assert graph.clock.training_steps == 0, "a tick learned"
    manager.close()


class Served:
    """A checkout's process.

    Args:
        root: The checkout.
        case: Of `CASES`.
        ticks: Ticks of a turn.
    """

    def __init__(self, root: Path, case: str, ticks: int) -> None:
        words = [sys.executable, str(Path(__file__)), "--serve", case, "--ticks", str(ticks)]
        variables = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            words, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def turn(self) -> float:
        """Processor time of one turn, in seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        assert self._process.returncode == 0


def interval(ratios: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by a bootstrap of 10,000 samples."""
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(ratios, (10_000, len(ratios))), axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    return float(low), float(high)


def compare(case: str, other: Path, *, pairs: int, ticks: int) -> None:
    """Let the checkouts take turns in a case, and print the median ratio."""
    here, there = Served(ROOT, case, ticks), Served(other, case, ticks)
    ratios, times = [], []
    for number in range(pairs + 1):
        order = (here, there) if number % 2 else (there, here)
        taken = {each: each.turn() for each in order}
        if number:  # the first fills caches
            ratios.append(taken[here] / taken[there])
            times.append(taken[here] / ticks * 1e6)
    here.close()
    there.close()
    low, high = interval(ratios)
    print(
        f"{case}: {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}); "
        f"{statistics.median(times):.0f} microseconds a tick here",
        flush=True,
    )


def main() -> None:
    """Parse the command line, and compare case by case."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", type=Path, nargs="?", help="the checkout to compare with")
    parser.add_argument("--pairs", type=int, default=30, help="counted pairs")
    parser.add_argument("--ticks", type=int, default=2_000, help="ticks of a turn")
    parser.add_argument("--cases", nargs="+", default=list(CASES), help="starts of their names")
    parser.add_argument("--serve", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.ticks)
        return
    if options.other is None:
        parser.error("name the checkout to compare with")
    for case in CASES:
        if any(case.startswith(start) for start in options.cases):
            compare(case, options.other.resolve(), pairs=options.pairs, ticks=options.ticks)


if __name__ == "__main__":
    main()
