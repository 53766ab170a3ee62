"""Gait of trained half cheetahs: score, share of time on the back, pitch, and stride frequency.

    python benchmarks/half_cheetah_gait.py experiments/Mujoco_PPO/half_cheetah_seed0_...

Five greedy episodes a run; the first 200 steps, in which it gets going, are left out.
"""

import argparse
from pathlib import Path

import gymnasium
import numpy as np

import coach_rl

EPISODES, STEPS, SKIPPED = 5, 1000, 200


def gait(run: Path) -> str:
    """A table row about the run's last checkpoint."""
    agent, env = coach_rl.load(run), gymnasium.make("HalfCheetah-v5")
    rewards, poses = np.zeros((EPISODES, STEPS)), np.zeros((EPISODES, STEPS, 7))
    for seed in range(EPISODES):
        observation, _ = env.reset(seed=seed)
        for step in range(STEPS):
            action = agent.act({"observation": observation.astype(np.float32)})
            observation, rewards[seed, step], *_ = env.step(action)
            poses[seed, step] = env.unwrapped.data.qpos[2:]  # pitch, then the six joints
    pitch, thigh = poses[:, SKIPPED:, 0], poses[:, SKIPPED:, 1]
    swings = thigh - thigh.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(swings, axis=1)).mean(axis=0)
    stride = np.fft.rfftfreq(swings.shape[1], env.unwrapped.dt)[spectrum.argmax()]
    on_back = (np.cos(pitch) < 0).mean()
    return (
        f"| {run.name} | {rewards.sum(axis=1).mean():,.0f} | {on_back:.0%} | "
        f"{pitch.mean():.2f} ± {pitch.std():.2f} | {stride:.2f} |"
    )


def main() -> None:
    """Print a row for each run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    print("| run | score | on its back | pitch, rad | stride, Hz |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for run in parser.parse_args().runs:
        print(gait(run), flush=True)


if __name__ == "__main__":
    main()
