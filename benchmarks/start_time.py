"""Seconds from starting a preset to its first update; compiler cache empty, then full."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def seconds_to_first_update(preset: str, folder: Path, cache: Path) -> float:
    """Start a run, wait for its first record of training, and stop it."""
    words = [sys.executable, "-m", "coach_rl", "-p", preset, "-c", "--plain", "-ep", str(folder)]
    environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": str(cache)}
    started = time.perf_counter()
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL) as run:
        while not any('"kind": "train"' in log.read_text() for log in folder.rglob("log.jsonl")):
            if run.poll() is not None:
                raise SystemExit(f"the run ended with {run.returncode} before its first update")
            time.sleep(0.05)
        seconds = time.perf_counter() - started
        run.send_signal(signal.SIGTERM)
    return seconds


def main() -> None:
    """Print a line for each start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="Mujoco_PPO")
    parser.add_argument("--warm_starts", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        for number in range(arguments.warm_starts + 1):
            folder = Path(place) / str(number)
            seconds = seconds_to_first_update(arguments.preset, folder, Path(place) / "cache")
            print(f"{'warm' if number else 'cold'} cache: {seconds:.1f} s")


if __name__ == "__main__":
    main()
