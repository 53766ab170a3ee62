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


def task_success(run: Path, episodes: int, *, seed: int | None = None) -> list[float]:
    """Share of episodes that reach the goal in each of the five tasks, greedily.

    Args:
        run: The run's folder, whose last checkpoint is evaluated.
        episodes: Episodes of each task.
        seed: Seed of the evaluations; None: the run's own.
    """
    rates = []
    for number in range(1, len(TASKS) + 1):
        changes = {"environment.kwargs": {"maze": task_maze("point_maze_medium", number)}}
        evaluation, _ = rl.evaluate_run(run, episodes=episodes, overrides=changes, seed=seed)
        rates.append(float(evaluation.scalars["evaluation/success_rate"]))
    return rates


def main() -> None:
    """Parse the command line, and print a line a run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--episodes", type=int, default=20)
    given = parser.parse_args()
    for run in given.runs:
        rates = task_success(run, given.episodes)
        each = "  ".join(f"task {number} {rate:4.0%}" for number, rate in enumerate(rates, 1))
        print(f"{run.name}  {each}  all {np.mean(rates):4.0%}", flush=True)


if __name__ == "__main__":
    main()
