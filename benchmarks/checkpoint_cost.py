"""Cost of checkpoints of a run with a full replay memory: SAC on HalfCheetah, a million rows.

    python benchmarks/checkpoint_cost.py [--rows 1000000] [--folder FOLDER] [--write]

Random actions fill the memory as a run's heat-up does; then a checkpoint is written, and one more
after every few thousand further steps, as `CheckpointKeeper` does it. The memory keeps no more than
the requested rows, so later ones overwrite the oldest. Last, another process resumes. Training
stands still for the seconds shown. "Peak" is the most resident memory of the process above what it
took before; kernel counters are reset for each line, so Linux only.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # has no types
import torch

from coach_rl.configuration.overrides import apply_overrides, parse_overrides
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers import GraphManager
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint
from coach_rl.runs.packing import NOTHING_STORED

RESULTS = Path(__file__).parent / "results" / "checkpoint_cost.md"
FURTHER = (10_000, 10_000, 100_000, 1_000, 1_000)
"""Steps between the checkpoints."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="transitions")
    parser.add_argument("--folder", type=Path, help="where to write; default: a temporary one")
    parser.add_argument("--resume", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    if options.resume is not None:
        print(resumed(options.rows, options.resume))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        lines = [*checkpoints(options.rows, Path(folder))]
    text = report(options.rows, lines)
    print(text)
    if options.write:
        RESULTS.write_text(text)


def checkpoints(rows: int, folder: Path) -> list[str]:
    """A line of the table for every checkpoint, and one for resuming."""
    lines, stored = [], NOTHING_STORED
    with manager_of(rows) as manager:
        for added in (rows, *FURTHER):
            for _ in manager.heatup(EnvironmentSteps(added)):
                pass
            path, before = (
                folder / f"step_{manager.graph.clock.environment_steps}",
                resident_from_now(),
            )
            begin = time.perf_counter()
            stored = write_checkpoint(path, manager.state_dict(), {}, earlier=stored)
            seconds = time.perf_counter() - begin
            new = [file.stat().st_size for file in path.iterdir() if file.stat().st_nlink == 1]
            lines.append(
                line(f"checkpoint after {added:,} rows", seconds, sum(new), peak() - before)
            )
    again = [sys.executable, __file__, "--rows", str(rows), "--resume", str(path)]
    done = subprocess.run(again, check=True, capture_output=True, text=True)
    return [*lines, done.stdout.strip()]


def resumed(rows: int, path: Path) -> str:
    """The line of a run that is resumed: reading the checkpoint and loading everything."""
    with manager_of(rows) as manager:
        before, begin = resident_from_now(), time.perf_counter()
        manager.load_state_dict(read_checkpoint(path).state)
        seconds = time.perf_counter() - begin
        return line("resuming from the last one", seconds, None, peak() - before)


def manager_of(rows: int) -> GraphManager:
    """SAC on HalfCheetah with a memory of that many rows, its graph built."""
    preset = load_preset(find_preset("Mujoco_SAC")).build({"level": "half_cheetah", "num_envs": 16})
    changes = parse_overrides(f"agent.memory.capacity={rows}; agent.update_mode=eager")
    manager = type(preset)(apply_overrides(preset.parameters, changes))
    manager.create_graph(Runtime(device="cpu"))
    return manager


def resident_from_now() -> int:
    """Resident bytes of this process; resets its peak to them."""
    Path("/proc/self/clear_refs").write_text("5")
    return int(psutil.Process().memory_info().rss)


def peak() -> int:
    """Most resident bytes since `resident_from_now`."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def line(name: str, seconds: float, written: int | None, more: int) -> str:
    shown = "-" if written is None else f"{written / 1e6:.1f}"
    return f"| {name} | {seconds:.2f} | {shown} | {max(0, more) / 1e6:.0f} |"


def report(rows: int, lines: list[str]) -> str:
    load = os.getloadavg()[0]
    return "\n".join(
        [
            "# Cost of a checkpoint: SAC on HalfCheetah",
            "",
            f"`python benchmarks/checkpoint_cost.py --rows {rows} --write`",
            "",
            f"{platform.machine()}, {os.cpu_count()} processors, load {load:.1f} at the end; "
            f"Python {platform.python_version()}, torch {torch.__version__}, one thread.",
            "",
            "| | seconds blocked | MB written | MB of memory above what it took before |",
            "| --- | ---: | ---: | ---: |",
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    main()
