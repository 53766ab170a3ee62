"""Success of runs in OGBench's five tasks of the medium point maze, each with a start and a goal.

    python benchmarks/maze_tasks.py experiments/PointMaze_HIQL/RUN ... [--episodes 20]

Start and goal are moved about in their cells, as everywhere in these mazes. Each run is evaluated
at its last checkpoint; a column for each task, and the mean of all.
"""

import argparse
from pathlib import Path

import numpy as np

import coach_rl as rl
from coach_rl.presets.goals_from_data_tasks import TASKS, task_maze


def main() -> None:
    """Parse the command line, and print a line a run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--episodes", type=int, default=20)
    given = parser.parse_args()
    for run in given.runs:
        rates = []
        for number in range(1, len(TASKS) + 1):
            changes = {"environment.kwargs": {"maze": task_maze("point_maze_medium", number)}}
            evaluation, _ = rl.evaluate_run(run, episodes=given.episodes, overrides=changes)
            rates.append(evaluation.scalars["evaluation/success_rate"])
        each = "  ".join(f"task {number} {rate:4.0%}" for number, rate in enumerate(rates, 1))
        print(f"{run.name}  {each}  all {np.mean(rates):4.0%}", flush=True)


if __name__ == "__main__":
    main()
