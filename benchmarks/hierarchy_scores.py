"""Success of hierarchies beside the flat agent, with and without hindsight, over seeds.

    python benchmarks/hierarchy_scores.py run pendulum --seeds 5 --folder scores
    python benchmarks/hierarchy_scores.py table --folder scores --write

Each run is the shipped preset as the command line runs it, then `coach --evaluate 100 -crd RUN`:
100 deterministic episodes on starts and goals that training has not seen, the same for every run.
Runs that are there are kept. The curves are of the evaluations while training (50 episodes each,
deterministic), medians over seeds.
"""

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "hac.md"
MARK = "<!-- hierarchy_scores -->"


@dataclass(frozen=True)
class Variant:
    """One way to run a preset."""

    name: str
    panel: str
    """What `-cp` gets."""


FLAT = (
    Variant("flat, with hindsight", "hierarchy=none"),
    Variant("flat, without hindsight", "hierarchy=none; hindsight=False"),
)


@dataclass(frozen=True)
class Task:
    """A task, and what is compared on it with the same number of steps."""

    preset: str
    level: str
    steps: int
    variants: tuple[Variant, ...]
    panel: str = ""
    """What `-cp` gets besides, whatever the variant."""
    precision: str = "highest"
    """Of matrix products."""

    def given(self, panel: str = "") -> list[str]:
        """The options of the command line that say what is run, `panel` being the variant's."""
        panel = "; ".join(part for part in (self.panel, panel) if part)
        options = ["-p", self.preset, "-lvl", self.level, "--steps", str(self.steps)]
        options += ["-cp", panel] if panel else []
        return [*options, "--matmul_precision", self.precision]


TASKS = {
    "pendulum": Task(
        "Pendulum_HAC",
        "angle_goal_pendulum",
        100_000,
        (Variant("two levels", "levels=2"), Variant("three levels", "levels=3"), *FLAT),
    ),
    "pendulum_longer": Task(
        "Pendulum_HAC",
        "angle_goal_pendulum",
        200_000,
        (Variant("three levels", "levels=3"), *FLAT),
    ),
    "medium": Task(
        "PointMaze_HAC", "point_maze_medium", 120_000, (Variant("two levels", ""), *FLAT)
    ),
    "medium_far": Task(
        "PointMaze_HAC",
        "point_maze_medium",
        80_000,
        (Variant("two levels", ""), *FLAT),
        panel="min_path=6; evaluation_interval=10_000",
    ),
    "four_rooms": Task(
        "PointMaze_HAC", "point_maze_four_rooms", 120_000, (Variant("two levels", ""), *FLAT)
    ),
    "ant_reacher": Task(
        "AntReacher_HAC",
        "ant_reacher",
        400_000,
        (Variant("two levels", ""),),
        precision="medium",
    ),
}


def run(names: list[str], seeds: list[int], folder: Path, jobs: int, only: list[str]) -> None:
    """Run what is missing, `jobs` at a time, all variants of a seed before the next seed."""
    work = [
        (name, variant, seed)
        for seed in seeds
        for name in names
        for variant in TASKS[name].variants
        if not only or variant.name in only
    ]

    def one(job: tuple[str, Variant, int]) -> None:
        name, variant, seed = job
        task, root = TASKS[name], folder / name / variant.name.replace(" ", "_")
        if list(root.glob(f"seed_{seed}/*/evaluations/*.json")):
            return
        coach = [sys.executable, "-m", "coach_rl"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [*coach, *task.given(variant.panel), "--seed", str(seed), "-c", "--plain", "-ntb"]
        command += ["-ep", str(root), "-e", f"seed_{seed}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode == 0:
            (made,) = root.glob(f"seed_{seed}/*/summary.json")
            evaluate = [*coach, "--evaluate", "100", "-crd", str(made.parent), "-c"]
            done = subprocess.run(
                evaluate, capture_output=True, text=True, check=False, env=environment
            )
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        print(f"{name}, {variant.name}, seed {seed}: exit {done.returncode} {last}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, work))


def table(folder: Path) -> str:
    """The finished runs as markdown."""
    parts = []
    for name, task in TASKS.items():
        rows = [line for variant in task.variants if (line := row(folder / name, variant, task))]
        if rows:
            marks = [task.steps * part // 6 for part in range(1, 7)]
            head = " | ".join(f"{mark // 1000}k" for mark in marks)
            given = shlex.join(["coach", *task.given()])
            parts += [
                f"### {task.level} (`{given}`)\n",
                f"| | seeds | success over 100 episodes: median (each) | {head} |",
                f"| --- | ---: | --- | {' | '.join('---:' for _ in marks)} |",
                *rows,
                "",
            ]
    return "\n".join(parts)


def row(folder: Path, variant: Variant, task: Task) -> str | None:
    """A variant's line; None where no run of it is finished."""
    found = sorted((folder / variant.name.replace(" ", "_")).glob("seed_*/*/evaluations/*.json"))
    if not found:
        return None
    final = [json.loads(path.read_text())["scalars"]["evaluation/success_rate"] for path in found]
    curves = [curve(path.parent.parent) for path in found]
    cells = []
    for part in range(1, 7):
        mark = task.steps * part // 6
        nearest = [rates[int(np.abs(np.array(steps) - mark).argmin())] for steps, rates in curves]
        cells.append(f"{np.median(nearest):.0%}")
    each = ", ".join(f"{rate:.0%}" for rate in final)
    return (
        f"| {variant.name} | {len(final)} | **{np.median(final):.0%}** ({each}) "
        f"| {' | '.join(cells)} |"
    )


def curve(run: Path) -> tuple[list[int], list[float]]:
    """Environment steps and success rates of a run's evaluations while training."""
    with (run / "evaluations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return (
        [int(each["environment_steps"]) for each in rows],
        [float(each["evaluation/success_rate"]) for each in rows],
    )


def main() -> None:
    """Parse the command line; run or make the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(TASKS)}; default: all")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds")
    parser.add_argument("--first-seed", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=[], help="variants by name")
    parser.add_argument("--folder", type=Path, default=Path("experiments/hierarchies"))
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--write", action="store_true", help="put the table into its results page")
    arguments = parser.parse_args()
    if arguments.what == "run":
        first = arguments.first_seed
        seeds = list(range(first, first + arguments.seeds))
        names = arguments.tasks or list(TASKS)
        run(names, seeds, arguments.folder, arguments.jobs, arguments.only)
    text = table(arguments.folder)
    print(text)
    if arguments.write:
        before, _, rest = RESULTS.read_text().partition(MARK)
        RESULTS.write_text(f"{before}{MARK}\n{text}\n{MARK}{rest.partition(MARK)[2]}")


if __name__ == "__main__":
    main()
