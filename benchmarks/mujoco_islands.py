"""Cost of MuJoCo's search for islands of constraints where there can be only one.

    python benchmarks/mujoco_islands.py [--rounds 15] [--write]

Both contenders simulate the same actions from the same state, in turns of 400 steps of the
environment, in processor time; the ratios are medians over rounds. Where a model is a single
kinematic tree, `coach_rl.environments.mujoco.task.Scene` disables the search.
"""

import argparse
import time
from pathlib import Path

import mujoco
import numpy as np
import numpy.typing as npt

from coach_rl.environments.goal_worlds import GoalWorldParameters
from coach_rl.environments.mujoco import MujocoParameters
from coach_rl.environments.mujoco.task import Scene

LEVELS = ("HalfCheetah-v5", "Hopper-v5", "Walker2d-v5", "Ant-v5", "Humanoid-v5", "Swimmer-v5")
GOAL_LEVELS = ("ant_maze_u24", "ant_maze_complex", "ant_reacher", "ant_four_rooms")
STEPS = 400
RESULTS = Path(__file__).parent / "results" / "mujoco_islands.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="turns of each contender")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    rows = []
    for level in (*LEVELS, *GOAL_LEVELS):
        rows.append(compare(level, options.rounds))
        print(rows[-1], flush=True)
    if options.write:
        RESULTS.write_text(report(options.rounds, rows))


def compare(level: str, rounds: int) -> str:
    """A row of the table."""
    kind = MujocoParameters if level in LEVELS else GoalWorldParameters
    task = kind(level=level).task
    searching, other = task.load(), Scene(task.load(), task.frame_skip).model
    assert searching.opt.disableflags != other.opt.disableflags
    low, high = searching.actuator_ctrlrange.T
    actions = np.random.default_rng(0).uniform(low, high, (STEPS, searching.nu))
    rates, states = [], []
    for _ in range(rounds):
        pair = [simulated(model, actions, task.frame_skip) for model in (searching, other)]
        rates.append([rate for rate, _ in pair])
        states.append([state for _, state in pair])
    equal = all(np.array_equal(*pair) for pair in states)
    before, after = np.median(rates, axis=0)
    ratio = np.median(np.divide(*np.transpose(rates)[::-1]))
    return f"| {level} | {before:,.0f} | {after:,.0f} | {ratio:.2f} | {'yes' if equal else 'no'} |"


def simulated(
    model: mujoco.MjModel, actions: npt.NDArray[np.float64], frame_skip: int
) -> tuple[float, npt.NDArray[np.float64]]:
    """Steps per processor second, and the positions and velocities after each step."""
    data, states = mujoco.MjData(model), []
    began = time.process_time()
    for action in actions:
        data.ctrl[:] = action
        mujoco.mj_step(model, data, frame_skip)
        states.append(np.concatenate([data.qpos, data.qvel]))
    return len(actions) / (time.process_time() - began), np.array(states)


def report(rounds: int, rows: list[str]) -> str:
    """The page."""
    return "\n".join(
        (
            "# MuJoCo without the search for islands",
            "",
            f"`python benchmarks/mujoco_islands.py --rounds {rounds} --write`",
            "",
            "Bare `mj_step`, steps of the environment per processor second of one core, with "
            "random actions.",
            f"MuJoCo {mujoco.__version__} searches at each step for constraints that belong "
            "together, and solves each such island on its own.",
            "In a model that is a single kinematic tree there is one at most, so coach_rl "
            "disables the search; other models are left as they are.",
            "",
            "| level | with search | without | ratio | equal to the last bit |",
            "| --- | ---: | ---: | ---: | --- |",
            *rows,
            "",
        )
    )


if __name__ == "__main__":
    main()
