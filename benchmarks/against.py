"""User CPU seconds of one command in this checkout and in another, in turns.

    python benchmarks/against.py ../before -- -m coach_rl -p CartPole_PPO --steps 50000 --plain
    python benchmarks/against.py ../before -- benchmarks/level_overhead.py --rounds 3
    python benchmarks/against.py ../before --rounds 15 -- -m coach_rl --help

What follows `--` are the words after `python`; a file of `benchmarks` is each checkout's own. Every
process has one thread and a temporary folder. The first round fills caches and isn't counted; the
median of the paired ratios is what counts: 1.02 means that this checkout is 2 % slower.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def user_seconds(root: Path, words: list[str]) -> float:
    """User CPU seconds of a command with the package of a checkout, child processes included."""
    own = [str(root / word) if word.startswith("benchmarks/") else word for word in words]
    environment = os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"}
    before = os.times().children_user
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, *own],
            cwd=folder,
            env=environment | {"XDG_STATE_HOME": folder},
            stdout=subprocess.DEVNULL,
            check=True,
        )
    return os.times().children_user - before


def main() -> None:
    """Parse the command line, let the checkouts take turns, and print a line a round."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    parser.add_argument("--rounds", type=int, default=7, help="counted rounds")
    parser.add_argument("words", nargs="+", help="after --: the words after `python`")
    options = parser.parse_args()
    roots, pairs = (ROOT, options.other.resolve()), []
    for number in range(options.rounds + 1):
        turn = roots if number % 2 else roots[::-1]
        taken = {root: user_seconds(root, options.words) for root in turn}
        if number:
            here, there = (taken[root] for root in roots)
            pairs.append((here, there))
            print(f"here {here:.2f} s  there {there:.2f} s  ratio {here / there:.3f}", flush=True)
    ratios = sorted(here / there for here, there in pairs)
    here, there = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"median here {here:.2f} s  there {there:.2f} s  paired ratio "
        f"{statistics.median(ratios):.3f} (from {ratios[0]:.3f} to {ratios[-1]:.3f})"
    )


if __name__ == "__main__":
    main()
