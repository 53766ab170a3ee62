"""Processor time that a run's log files take, and their size in ten million steps.

The share is within one run: processor time of writing records, by all other processor time of the
run from its first update on. The size counts the bytes of each kind of record, and the final size
of the files.
"""

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.log_records import LogRecord
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.graph_managers.progress import FREQUENT, Thinning
from coach_rl.runs.logs import RunSinks
from coach_rl.sessions.session import RunSettings, run_experiment

LONG = 10_000_000


class Meter:
    """Writes a run's records, and sums up the time from the first update on."""

    def __init__(self) -> None:
        self.logging = self.training = 0.0
        self.records = Counter[str]()
        self._write, self._begun = RunSinks.write, 0.0

    def write(self, sinks: RunSinks, record: LogRecord) -> None:
        """Write a record."""
        before = time.process_time()
        self._write(sinks, record)
        after = time.process_time()
        self.records[record.kind] += 1
        if self._begun:
            self.logging += after - before
            self.training = after - self._begun - self.logging
        elif record.kind == "train":  # the update is compiled now
            self._begun = after


def by_kind(folder: Path) -> Counter[str]:
    """Bytes of log.jsonl and of the tables, by kind of record."""
    found = Counter[str]()
    (log,) = folder.rglob("log.jsonl")
    for line in log.read_text().splitlines():
        found[line.split('"')[3]] += len(line) + 1
    names = {"episodes": "episode", "evaluations": "evaluation"}
    for path in folder.rglob("*.csv"):
        kind = "train" if "." in path.stem else names.get(path.stem, path.stem)
        found[kind] += path.stat().st_size
    return found


def taken(records: int) -> int:
    """Records that files take of so many of a series."""
    thinning = Thinning()
    return sum(thinning.stride("series")[1] for _ in range(records))


def main() -> None:
    """Print the share of time and the size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="Mujoco_PPO")
    parser.add_argument("--steps", type=int, default=200_000)
    arguments = parser.parse_args()
    meter = Meter()
    RunSinks.write = lambda sinks, record: meter.write(sinks, record)  # type: ignore[method-assign]
    preset = load_preset(find_preset(arguments.preset))
    with tempfile.TemporaryDirectory() as folder:
        run_experiment(
            preset.build({"steps": arguments.steps}),
            Runtime(device="cpu"),
            name=arguments.preset,
            settings=RunSettings(final_episodes=EnvironmentEpisodes(0)),
            root=Path(folder),
        )
        sizes = by_kind(Path(folder))
    share = meter.logging / meter.training
    print(f"{arguments.preset}, {arguments.steps:,} steps: logging takes {meter.logging:.2f} s of")
    print(f"processor time, {share:.2%} of the {meter.training:.1f} s of everything else")
    times, total, plain = LONG / arguments.steps, 0.0, 0.0
    for kind, found in sizes.most_common():
        count = meter.records[kind]
        to_come = round(count * times)
        kept = taken(to_come) if kind in FREQUENT else to_come
        each = found / max(count, 1)
        total, plain = total + each * kept, plain + each * to_come
        print(
            f"{kind:<17} {count:>6,} of {each:>5.0f} bytes; in {LONG:,} steps {to_come:>7,}, "
            f"files take {kept:>7,}"
        )
    print(f"in {LONG:,} steps {total / 1e6:.1f} MB; every record would be {plain / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
