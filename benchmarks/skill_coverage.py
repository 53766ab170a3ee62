"""Coverage of skills: cells of the hall that their greedy episodes visit.

    coach study run benchmarks/studies/skills.py:discovery
    python benchmarks/skill_coverage.py experiments/skills_discovery/*

48 episodes a run, all from the middle, each with a skill drawn at random. Prints the number of
distinct cells that each run visits, then mean and standard deviation of each variant.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

import coach_rl as rl
from coach_rl.presets.PointMaze_METRA import hall

EPISODES = 48
"""As many as the trajectories that METRA's paper evaluates."""
CELL = 0.5
"""Side of a cell in metres."""


def visits(run: Path, seed: int) -> np.ndarray:
    """Places of the greedy episodes of a run's last checkpoint, [T, N, 2]; `seed` draws skills."""
    world = hall(terminate=False)
    environment, agent = world.build(num_envs=EPISODES), rl.load(run)
    observation = environment.reset(seed=seed).observation
    agent.reset(seed=seed)
    places = [observation["achieved_goal"]]
    for _ in range(world.max_episode_steps):
        environment.send(agent.act(observation))
        observation = environment.recv().observation
        places.append(observation["achieved_goal"])
    environment.close()
    return np.stack(places)


def cells(places: np.ndarray) -> int:
    """Number of distinct cells among places [..., 2]."""
    return len(np.unique(np.floor(places.reshape(-1, 2) / CELL), axis=0))


def main() -> None:
    """Print a row for each run, then one for each variant."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    counts: dict[str, list[int]] = defaultdict(list)
    for run in parser.parse_args().runs:
        manifest = json.loads((run / "manifest.json").read_text())
        name = manifest.get("job", {"labels": {}})["labels"].get("variant", run.parent.name)
        counts[name].append(cells(visits(run, manifest["task"]["seed"])))
        print(f"{run.name}: {counts[name][-1]} cells", flush=True)
    print("| skills | seeds | cells | of each seed |\n| --- | ---: | ---: | --- |")
    for name, found in counts.items():
        each = ", ".join(map(str, found))
        mean, spread = np.mean(found), np.std(found, ddof=min(1, len(found) - 1))
        print(f"| {name} | {len(found)} | {mean:.0f} ± {spread:.0f} | {each} |")


if __name__ == "__main__":
    main()
