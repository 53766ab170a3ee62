"""Scores on the MuJoCo tasks: `coach -p PRESET` over levels and seeds, and the table.

    python benchmarks/mujoco_scores.py run Mujoco_PPO --levels half_cheetah hopper --folder scores
    python benchmarks/mujoco_scores.py table Mujoco_PPO --folder scores --write

Each run is the shipped preset as the command line runs it, with its evaluations (10 episodes,
greedy) and its final evaluation (20 episodes on starts of their own). Runs that are there are kept.

Metric A: the mean over seeds at each evaluation, best evaluation point; its deviation is over the
seeds at that point. The tail is each run's mean over its last 20 evaluations, for tasks whose
evaluations jump from one to the next. The final score is the mean over seeds of each run's final
evaluation, with the interquartile mean and its 95 % bootstrap interval over all seeds' episodes.
"""

import argparse
import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from coach_rl.core.seeding import generator
from coach_rl.telemetry.statistics import bootstrap_interval, interquartile_mean

TO_BEAT: dict[str, dict[str, float]] = {
    "Mujoco_PPO": {
        "half_cheetah": 5784.0,
        "hopper": 2609.0,
        "walker2d": 3589.0,
        "swimmer": 282.0,
        "inverted_pendulum": 1000.0,
        "inverted_double_pendulum": 9231.0,
        "reacher": -4.1,
        "ant": 3258.0,
        "humanoid": 787.0,
    },
    "Mujoco_DDPG": {
        "half_cheetah": 11719.0,
        "hopper": 2197.0,
        "inverted_pendulum": 1000.0,
        "reacher": -3.3,
    },
    "Mujoco_TD3": {
        "half_cheetah": 10201.0,
        "hopper": 3472.0,
        "inverted_pendulum": 1000.0,
        "reacher": -2.7,
    },
    "Mujoco_SAC": {
        "half_cheetah": 12139.0,
        "hopper": 3542.0,
        "inverted_pendulum": 1000.0,
        "reacher": -2.6,
    },
}
"""First-party published scores at 1M steps (Tianshou's; PPO's Swimmer: RL Baselines3 Zoo)."""
MARKS = (*range(50_000, 300_001, 50_000), *range(400_000, 1_000_001, 100_000))
PEER_CURVES: dict[str, dict[str, tuple[tuple[int, int], ...]]] = {
    "Mujoco_DDPG": {
        "half_cheetah": (
            (3126, 480), (5599, 676), (6727, 747), (7506, 939), (8232, 939), (9090, 765),
            (9658, 533), (10517, 633), (10918, 641), (11059, 584), (11361, 547), (11473, 639),
            (11530, 461),
        ),
        "hopper": (
            (351, 185), (719, 406), (819, 333), (1158, 775), (1496, 600), (1700, 746),
            (1618, 985), (1081, 452), (1419, 635), (1331, 903), (1661, 603), (1738, 832),
            (1908, 863),
        ),
    },
    "Mujoco_TD3": {
        "half_cheetah": (
            (2023, 524), (4715, 387), (5722, 352), (6488, 564), (6921, 511), (7461, 752),
            (8200, 750), (8737, 748), (9072, 755), (9500, 787), (9804, 793), (9915, 716),
            (10168, 772),
        ),
        "hopper": (
            (227, 46), (336, 81), (719, 724), (845, 627), (1120, 743), (1505, 878),
            (2541, 829), (2670, 934), (3142, 641), (3259, 378), (3374, 204), (3355, 367),
            (3298, 460),
        ),
    },
    "Mujoco_SAC": {
        "half_cheetah": (
            (4327, 213), (6213, 437), (7199, 665), (7877, 763), (8708, 1032), (9150, 1051),
            (9794, 750), (10465, 784), (10909, 791), (11377, 843), (11382, 870), (11649, 905),
            (12139, 1049),
        ),
        "hopper": (
            (1030, 794), (1766, 1036), (2720, 935), (2383, 1162), (3171, 657), (3165, 671),
            (3363, 316), (3290, 621), (3434, 223), (3496, 98), (3525, 55), (3538, 47),
            (3515, 36),
        ),
    },
}  # fmt: skip
"""What Tianshou's 10 seeds had at MARKS, mean and deviation.

From its repository (examples/mujoco/benchmark). Its steps leave out the random ones
at the start (25,000; SAC 10,000), these count them: 100,000 here is its 75,000 (SAC 90,000)."""
TAIL = 20
"""Evaluations at a run's end that are averaged."""
RESULTS = Path(__file__).parent / "results"
RESULT_FILES = {
    "Mujoco_PPO": "ppo_mujoco.md",
    "Mujoco_DDPG": "off_policy_mujoco.md",
    "Mujoco_TD3": "off_policy_mujoco.md",
    "Mujoco_SAC": "off_policy_mujoco.md",
}


def run(
    preset: str, levels: list[str], seeds: list[int], folder: Path, jobs: int, steps: int
) -> None:
    """Run what is missing, `jobs` at a time."""
    work = [(level, seed) for level in levels for seed in seeds]

    def one(job: tuple[str, int]) -> None:
        level, seed = job
        root = folder / level
        if list(root.glob(f"seed_{seed}/*/summary.json")):
            return
        command = [sys.executable, "-m", "coach_rl", "-p", preset, "-lvl", level]
        command += ["--seed", str(seed), "--steps", str(steps), "-c", "--plain", "-ntb"]
        command += ["-ep", str(root), "-e", f"seed_{seed}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        print(f"{level} seed {seed}: exit {done.returncode} {last}", flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, work))


def table(preset: str, folder: Path) -> str:
    """The finished runs as a markdown table."""
    lines = [
        "| task | steps | seeds | metric A | at step | tail | final mean | final IQM (95 %) "
        "| steps/s | at 1M to beat |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for level, mark in TO_BEAT[preset].items():
        runs = sorted(path.parent for path in (folder / level).glob("seed_*/*/summary.json"))
        if runs:
            lines.append(row(level, mark, runs))
    return "\n".join(lines)


def row(level: str, mark: float, runs: list[Path]) -> str:
    """One task's line."""
    curves = [curve(run) for run in runs]
    steps = curves[0][0]
    rewards = np.array([reward for _, reward in curves])  # [seeds, evaluations]
    best = int(rewards.mean(axis=0).argmax())
    finals = [json.loads((run / "summary.json").read_text()) for run in runs]
    episodes = np.concatenate([final_episodes(run) for run in runs])
    means = np.array([final["evaluation"]["reward_mean"] for final in finals])
    low, high = bootstrap_interval(episodes, interquartile_mean, rng=generator(0, level))
    speed = np.median([final["steps_per_second"] for final in finals])
    return (
        f"| {level} | {finals[0]['env_steps']:,} | {len(runs)} "
        f"| {mean_and_deviation(rewards[:, best], '.1f')} "
        f"| {steps[best]:,} | {mean_and_deviation(rewards[:, -TAIL:].mean(axis=1), '.1f')} "
        f"| {mean_and_deviation(means, '.1f')} "
        f"| {interquartile_mean(episodes):.1f} ({low:.1f} to {high:.1f}) "
        f"| {speed:,.0f} | {mark:g} |"
    )


def curves(preset: str, folder: Path) -> str:
    """Mean rewards over seeds at MARKS beside the peer's at the same steps, as markdown."""
    found = {
        level: [
            dict(zip(*curve(path.parent), strict=True))
            for path in (folder / level).glob("seed_*/*/summary.json")
        ]
        for level in PEER_CURVES.get(preset, {})
    }
    reached = {mark for runs in found.values() for rewards in runs for mark in rewards}
    marks = [mark for mark in MARKS if mark in reached]
    lines = [
        f"| task | | seeds | {' | '.join(f'{mark:,}' for mark in marks)} |",
        f"| --- | --- | ---: |{' ---: |' * len(marks)}",
    ]
    for level, runs in found.items():
        if runs:
            ours = [[rewards[mark] for rewards in runs if mark in rewards] for mark in marks]
            cells = [mean_and_deviation(here) for here in ours]
            lines.append(f"| {level} | ours | {len(runs)} | {' | '.join(cells)} |")
            theirs = dict(zip(MARKS, PEER_CURVES[preset][level], strict=False))
            peer = [theirs.get(mark) for mark in marks]
            cells = ["" if each is None else f"{each[0]:,} ± {each[1]:,}" for each in peer]
            lines.append(f"| {level} | Tianshou | 10 | {' | '.join(cells)} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def singly(preset: str, folder: Path) -> str:
    """Each finished run, as markdown."""
    lines = [
        "| task | steps | seed | precision | best evaluation (at) | last | tail "
        "| final evaluation |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for level in TO_BEAT[preset]:
        for path in sorted((folder / level).glob("seed_*/*/summary.json")):
            steps, rewards = curve(path.parent)
            best = int(np.argmax(rewards))
            task = json.loads((path.parent / "manifest.json").read_text())["task"]
            lines.append(
                f"| {level} | {steps[-1]:,} | {task['seed']} "
                f"| {task.get('matmul_precision', 'highest')} "
                f"| {rewards[best]:,.1f} ({steps[best]:,}) | {rewards[-1]:,.1f} "
                f"| {np.mean(rewards[-TAIL:]):,.1f} | {final_episodes(path.parent).mean():,.1f} |"
            )
    return "\n".join(lines)


def mean_and_deviation(values: Sequence[float] | np.ndarray, shape: str = ",.0f") -> str:
    """Of what the seeds have; blank where none has."""
    if not len(values):
        return ""
    deviation = f" ± {np.std(values, ddof=1):{shape}}" if len(values) > 1 else ""
    return f"{np.mean(values):{shape}}{deviation}"


def curve(run: Path) -> tuple[list[int], list[float]]:
    """Environment steps and mean rewards of a run's evaluations while training."""
    with (run / "evaluations.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return (
        [int(row["environment_steps"]) for row in rows],
        [float(row["evaluation/reward_mean"]) for row in rows],
    )


def final_episodes(run: Path) -> np.ndarray:
    """Rewards of the final evaluation's episodes, [20]."""
    summary = json.loads((run / "summary.json").read_text())
    return np.array(summary["evaluated_episodes"]["episode/reward"])


def main() -> None:
    """Parse the command line; run or make the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("preset", choices=list(TO_BEAT))
    parser.add_argument("--levels", nargs="+", help="default: all with a published score")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds")
    parser.add_argument("--first-seed", type=int, default=10, help="not one tuned on")
    parser.add_argument("--folder", type=Path, default=Path("experiments/scores"))
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--write", action="store_true", help="put the table into its results page")
    parser.add_argument("--mark", help="between which of the page's marks; default: the preset")
    arguments = parser.parse_args()
    preset, folder = arguments.preset, arguments.folder / arguments.preset
    if arguments.what == "run":
        first = arguments.first_seed
        seeds = list(range(first, first + arguments.seeds))
        levels = arguments.levels or list(TO_BEAT[preset])
        run(preset, levels, seeds, folder, arguments.jobs, arguments.steps)
    parts = [part(preset, folder) for part in (table, curves, singly)]
    text = "\n\n".join(part for part in parts if part)
    print(text)
    if arguments.write:
        page = RESULTS / RESULT_FILES[preset]
        mark = f"<!-- {arguments.mark or preset} -->"
        before, found, rest = page.read_text().partition(mark)
        _, closed, after = rest.partition(mark)
        if not (found and closed):
            parser.error(f"{page} has no two lines {mark} to put the tables between")
        page.write_text(f"{before}{mark}\n{text}\n{mark}{after}")


if __name__ == "__main__":
    main()
