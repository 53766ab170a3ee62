"""What action masks are worth: `Cables_PPO` with and without them.

    python benchmarks/masks.py [--seeds 5] [--steps 300000]

Both sides are the preset with its own settings but for `masked`: the same network, steps and
optimiser, one core. A score is 0 for allowed cables that are drawn at random and 1 for the least
total of every problem, which is that of the shortest allowed cable at each step (Kruskal 1956;
compared with all trees in tests/environments/test_cables.py). It is taken on 1,000 problems that
training has not seen: greedy, as evaluations are, and sampled, as in training.
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import coach_rl as rl

PROBLEMS, SEED = 1_000, 10_000
Choice = Callable[[dict[str, np.ndarray]], np.ndarray]


def total(environment: rl.CablesParameters, choose: Choice) -> float:
    """The mean cost of the first episodes of all rows."""
    rows = environment.build(num_envs=PROBLEMS)
    seen = rows.reset(seed=SEED).observation
    cost, is_open = np.zeros(PROBLEMS), np.ones(PROBLEMS, np.bool_)
    while is_open.any():
        rows.send(choose(seen))
        answer = rows.recv()
        cost -= np.where(is_open, answer.reward, 0)
        is_open &= answer.end == 0
        seen = answer.first_observation
    return float(cost.mean())


def shortest(seen: dict[str, np.ndarray]) -> np.ndarray:
    """The shortest allowed cables, [N]."""
    mask = seen["action_mask"] > 0
    return np.where(mask, seen["observation"][:, : mask.shape[1]], np.inf).argmin(axis=1)


def normalised(environment: rl.CablesParameters, choose: Choice) -> float:
    """The score of a policy: 0 for allowed cables at random, 1 for the least totals."""
    with_masks = rl.CablesParameters()
    rng = np.random.default_rng(SEED)

    def random(seen: dict[str, np.ndarray]) -> np.ndarray:
        return (rng.random(seen["action_mask"].shape) * seen["action_mask"]).argmax(axis=1)

    worst, least = total(with_masks, random), total(with_masks, shortest)
    return (worst - total(environment, choose)) / (worst - least)


def scores(masked: bool, seed: int, steps: int) -> tuple[float, float]:
    """The greedy and the sampled score of a run."""
    preset = rl.load_preset(rl.find_preset("Cables_PPO"))
    changes = {"masked": masked, "steps": steps, "schedule.evaluation_interval": None}
    settings = rl.RunSettings(tensorboard=False, final_episodes=rl.EnvironmentEpisodes(1))
    with tempfile.TemporaryDirectory() as folder:
        result = rl.run_experiment(
            preset.configure(changes),
            rl.Runtime(seed=seed, device="cpu"),
            name="masks",
            root=Path(folder),
            settings=settings,
        )
        agent = rl.load(result.folder.path)
    agent.reset(seed=SEED)
    environment = rl.CablesParameters(masked=masked)
    return (
        normalised(environment, agent.act),
        normalised(environment, lambda seen: agent.act(seen, greedy=False)),
    )


def main() -> None:
    """Run both sides and print their scores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300_000)
    options = parser.parse_args()
    print("| | score of each seed, greedy | mean | sampled | mean |")
    print("| --- | --- | ---: | --- | ---: |")
    for masked, name in ((True, "with masks"), (False, "without")):
        pairs = [scores(masked, seed, options.steps) for seed in range(options.seeds)]
        cells = []
        for found in zip(*pairs, strict=True):
            cells += [", ".join(f"{each:.3f}" for each in found), f"{statistics.mean(found):.3f}"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
