"""Progress of both levels of an AntMaze_HIRO run, one line per evaluation.

    python benchmarks/hiro_curve.py experiments/AntMaze_HIRO/ant_maze_seed0_2026-11-22_10-11-32

Sub-goals lie as much as 14 m away and hold for a second: none is ever reached. So the level below
is judged by how far it gets towards them: by its log, over all 15 elements of a goal, and by the
decisions in the upper level's memory, along the requested displacement in x and y. The level above
is judged by the mean distance to the target: while training, where targets are drawn from all of
the maze and beyond, and in evaluations, where it is the far end.
"""

import argparse
import csv
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from coach_rl.core.records import FloatArray

HEAD = (
    "environment steps",
    "sub-goals: distance when given",
    "when over",
    "nearer by",
    "requested displacement, m",
    "gone along it, m",
    "gone in all, m",
    "training: distance to the target, m",
    "success",
    "evaluation: distance to the target, m",
    "success",
)


def column(rows: list[dict[str, str]], name: str) -> FloatArray:
    """A column's numbers."""
    return np.array([float(row[name]) for row in rows])


def read(path: Path) -> list[dict[str, str]]:
    """A CSV's lines."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def ways(run: Path) -> tuple[FloatArray, FloatArray]:
    """Requested and actual displacements of each decision in x and y, [N, T, 2] each.

    All decisions take equally long, so row and number determine the time of one.
    """
    num_envs = json.loads((run / "manifest.json").read_text())["parameters"]["num_envs"]
    name = json.loads((run / "checkpoints" / "last").read_text())["checkpoint"]
    kept = load_file(run / "checkpoints" / name / "tensors.safetensors")

    def stored(path: str) -> FloatArray:
        values = kept[f"state/agents/top/memory/store/columns//{path}"]
        return values.reshape(num_envs, -1, values.shape[-1])[..., :2]

    gone = stored("next_observations/observation") - stored("observations/observation")
    return stored("actions"), gone


def table(run: Path) -> str:
    """The lines as markdown."""
    level = [row for row in read(run / "low.csv") if row["level/distance"]]
    steps = column(level, "environment_steps")
    episodes = read(run / "episodes.csv")
    ended = column(episodes, "environment_steps")
    wanted, gone = ways(run)
    far = np.linalg.norm(wanted, axis=-1)
    along = (wanted * gone).sum(axis=-1) / np.maximum(far, 1e-9)
    decided = (np.arange(far.shape[1]) + 1) * 10 * len(far)  # environment steps [T]
    lines, last = [HEAD, ("---:",) * len(HEAD)], 0.0
    for evaluation in read(run / "evaluations.csv"):
        now = float(evaluation["environment_steps"])
        log, made = (steps > last) & (steps <= now), (decided > last) & (decided <= now)
        if not made.any():
            break  # evaluated after the last checkpoint
        begun, left = (
            np.average(column(level, f"level/{name}")[log])
            for name in ("distance_at_start", "distance")
        )
        along_now = along[:, made]
        error = along_now.std() / np.sqrt(along_now.size)
        reward, length = (
            float(evaluation[f"evaluation/{name}_mean"]) for name in ("reward", "length")
        )
        played = (ended > last) & (ended <= now)
        trained = {
            name: column(episodes, f"episode/{name}")[played].mean()
            for name in ("reward", "length", "success")
        }
        lines.append(
            (
                f"{now:,.0f}",
                f"{begun:.2f}",
                f"{left:.2f}",
                f"{begun - left:+.3f}",
                f"{far[:, made].mean():.1f}",
                f"{along_now.mean():+.3f} ± {error:.3f}",
                f"{np.linalg.norm(gone, axis=-1)[:, made].mean():.3f}",
                f"{-trained['reward'] / trained['length']:.2f}",
                f"{trained['success']:.0%}",
                f"{-reward / length:.2f}",
                f"{float(evaluation['evaluation/success_rate']):.0%}",
            )
        )
        last = now
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Parse the command line; print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="run folder")
    print(table(parser.parse_args().run))


if __name__ == "__main__":
    main()
