"""The medium point maze from stitch data: GCIQL, HIQL and a graph; online beside from scratch.

coach maze_data stitch ./data/stitch.npz                          # the data, once
python -m benchmarks.studies.goals_from_data --hours 2            # every job in turn
python -m benchmarks.studies.goals_from_data --hours 2 HIQL_seed0 # one of them
python -m benchmarks.studies.goals_from_data --report             # what the results say

Data, networks, batches, discount and learning rate are the same for all, and each level that learns
makes as many updates as GCIQL; *DataGraph* has HIQL's lower level below a graph that is built once,
after the last update. A result, a file below `benchmarks/results/goals_from_data/`, has
the success of the last networks in each of OGBench's five tasks, 20 episodes each; no checkpoint is
chosen. *online* runs of HIQL act for 50,000 steps in the maze after those updates, and learn from
both. *scratch* runs are the same agent there after one update, with no data in its batches. Their
score is the area under the curve of success over environment steps, in shares. A job whose file has
the same parameters is skipped.
"""

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.maze_tasks import task_success
from benchmarks.studies.single_runs import FINAL_SEED, Job, Result, SingleRuns, evaluations
from coach_rl.core.records import FloatArray, IntArray
from coach_rl.extensions.studies.statistics import Estimate, difference, estimate, mean

METHODS = ("GCIQL", "HIQL", "DataGraph")
"""Presets that learn from the data alone, `PointMaze_` left out."""
SEEDS = range(5)
UPDATES = 5_000
"""Updates from the data, of each level."""
STEPS = 50_000
"""Environment steps of the runs that act."""
EPISODES = 20
"""Episodes in each of the tasks."""
PANEL = {"data": "./data/stitch.npz", "layers": (128, 128), "evaluation_interval": UPDATES}
MARGIN = 0.1
"""By how much HIQL is to be above GCIQL."""


COMPILED = {
    "GCIQL": "agent.update_mode='compiled'",
    "HIQL": "stack.0.agent.update_mode='compiled'; stack.1.agent.update_mode='compiled'",
    "DataGraph": "stack.1.agent.update_mode='compiled'",
}
"""Changes by which updates are compiled, which costs a minute once and changes no more than
rounding."""


RATES = "stack.0.agent.learning.updates_per_step=2.0; stack.1.agent.learning.updates_per_step=0.1"
"""Updates per decision of each level of runs that act; the upper level decides every 20 steps or
so, so that both make some 5,000 in 50,000 steps."""


def offline(method: str, seed: int) -> Job:
    """A run that learns from the data alone."""
    panel = {**PANEL, "updates": UPDATES}
    if method == "DataGraph":
        panel["build_every"] = UPDATES
    return Job(preset=f"PointMaze_{method}", seed=seed, panel=panel, paths=COMPILED[method])


def acting(seed: int, *, updates: int, share: float | None) -> Job:
    """A run of HIQL that acts in the maze after updates from the data.

    Args:
        seed: Its seed.
        updates: Updates from the data, of each level.
        share: Share of the data in batches from then on; None: as of all transitions.
    """
    panel = {**PANEL, "updates": updates, "steps": STEPS, "data_share": share, "num_envs": 8}
    panel |= {"evaluation_interval": UPDATES // 10}
    return Job(
        preset="PointMaze_HIQL", seed=seed, panel=panel, paths=f"{COMPILED['HIQL']}; {RATES}"
    )


def read(job: Job, folder: Path) -> Result:
    """Success in each task; of a run that acts, its curve and the area below that, too."""
    found: Result = {"tasks": task_success(folder, EPISODES, seed=FINAL_SEED)}
    if "steps" in job.panel:
        curve = evaluations(folder)
        steps = [each["steps"] for each in curve]
        rates = [each["success_rate"] for each in curve]
        found |= {"curve": curve, "area": area(np.array(steps), np.array(rates))}
    return found


def area(steps: IntArray, rates: FloatArray) -> float:
    """The mean success over the environment steps of a run, by trapezoids.

    Args:
        steps: Environment steps of evaluations, [E]; those before it acts have 0, of which the last
            counts.
        rates: Success in them, [E].
    """
    before = steps == 0
    begin = rates[before][-1] if before.any() else 0.0
    known = np.concatenate([[0], steps[~before], [STEPS]])
    values = np.concatenate([[begin], rates[~before], rates[-1:]])
    return float(((values[1:] + values[:-1]) / 2 * np.diff(known)).sum() / STEPS)


STUDY = SingleRuns(
    name="goals_from_data",
    jobs={f"{method}_seed{seed}": offline(method, seed) for seed in SEEDS for method in METHODS}
    | {f"online_seed{seed}": acting(seed, updates=UPDATES, share=None) for seed in SEEDS}
    | {f"scratch_seed{seed}": acting(seed, updates=1, share=0.0) for seed in SEEDS},
    read=read,
)


def report() -> None:
    """Print success and areas by group, and the differences with their intervals."""
    offline = {method: results(method) for method in METHODS}
    success = {}
    for method, found in offline.items():
        tasks = np.array([each["tasks"] for each in found])  # [seeds, tasks]
        success[method] = tasks.mean(axis=1)
        each = "  ".join(f"{rate:4.0%}" for rate in tasks.mean(axis=0))
        whole = estimate(success[method], mean, bounds=(0.0, 1.0))
        print(f"{method}, {len(tasks)} seeds: tasks {each}  all {shown(whole)}")
    apart = difference(success["HIQL"], success["GCIQL"], mean, bounds=(0.0, 1.0))
    print(f"HIQL - GCIQL: {shown(apart)}, wanted above {MARGIN:.0%}")
    apart = difference(success["DataGraph"], success["HIQL"], mean, bounds=(0.0, 1.0))
    print(f"DataGraph - HIQL: {shown(apart)}")
    areas = {}
    for group in ("online", "scratch"):
        areas[group] = np.array([each["area"] for each in results(group)])
        whole = estimate(areas[group], mean, bounds=(0.0, 1.0))
        print(f"area, {group}, {len(areas[group])} seeds: {shown(whole)}")
    apart = difference(areas["online"], areas["scratch"], mean, bounds=(0.0, 1.0))
    print(f"online - scratch: {shown(apart)}, wanted above 0 %")


def results(group: str) -> list[Result]:
    """The results of a group by seed, those that are there; ValueError where none is."""
    files = [STUDY.file(f"{group}_seed{seed}") for seed in SEEDS]
    found: list[Result] = [json.loads(file.read_text()) for file in files if file.is_file()]
    if not found:
        raise ValueError(f"there are no results of {group} in {STUDY.results / STUDY.name}")
    return found


def shown(found: Estimate) -> str:
    """A share with its interval, where it has one."""
    if found.low is None or found.high is None:
        return f"{found.value:.1%} ({found.reason})"
    return f"{found.value:.1%} [{found.low:.1%}, {found.high:.1%}]"


if __name__ == "__main__":
    if sys.argv[1:] == ["--report"]:
        report()
    else:
        STUDY.main((__doc__ or "").splitlines()[0])
