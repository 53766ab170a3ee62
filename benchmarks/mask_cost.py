"""The cost of action masks: a mask that allows everything, and the same task without one, in turns.

    python benchmarks/mask_cost.py [--rounds 9] [--steps 100000]

Both sides are `Cables_PPO` with `masked=False`, one of them with the additional key. They take the
same actions and learn the same numbers. User CPU seconds of the whole training, without imports
and building; the first round fills caches and isn't counted.
"""

import argparse
import os
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import ACTION_MASK, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.toy import Cables
from coach_rl.environments.world import WorldEnvironment, WorldState

PLAIN = rl.CablesParameters(masked=False)


class OpenCables(Cables):
    """The cables, with a mask that allows everything."""

    def __init__(self) -> None:
        super().__init__(PLAIN)
        plain = self.spaces
        mask = spaces.MultiBinary(int(plain.action.n))  # type: ignore[attr-defined] # a Discrete
        shown = spaces.Dict({**plain.observation.spaces, ACTION_MASK: mask})
        self.spaces = EnvironmentSpaces(observation=shown, action=plain.action)

    def observe(self, state: WorldState) -> Observation:
        return {**super().observe(state), ACTION_MASK: np.ones(state["laid"].shape, np.int8)}


@parameter_class
class OpenCablesParameters:
    """The cables, with a mask that allows everything."""

    level: str = "open_cables"

    def build(self, *, num_envs: int) -> WorldEnvironment:
        plain = PLAIN.build(num_envs=1)
        limit = int(plain._max_episode_steps)
        return WorldEnvironment(OpenCables(), num_envs=num_envs, max_episode_steps=limit)


def seconds(masked: bool, steps: int) -> tuple[float, float]:
    """User CPU seconds of training, and the last mean reward of an episode."""
    preset = rl.load_preset(rl.find_preset("Cables_PPO"))
    changes = {"masked": False, "steps": steps, "schedule.evaluation_interval": None}
    manager = preset.configure(changes)
    if masked:
        opened = replace(manager.parameters, environment=OpenCablesParameters())
        manager = type(manager)(opened)
    manager.create_graph(rl.Runtime(seed=0, device="cpu"))
    began = os.times().user
    rewards = [
        record.scalars["episode/reward"] for record in manager.improve() if record.kind == "episode"
    ]
    return os.times().user - began, statistics.mean(rewards[-100:])


def main() -> None:
    """Let both sides take turns, each in a process of its own, and print the paired ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--side", choices=("plain", "masked"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(*seconds(options.side == "masked", options.steps))
        return
    pairs = []
    for number in range(options.rounds + 1):
        found = {}
        for side in ("plain", "masked") if number % 2 else ("masked", "plain"):
            words = [sys.executable, str(Path(__file__).resolve()), "--side", side]
            words += ["--steps", str(options.steps)]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            found[side] = [float(word) for word in done.stdout.split()[-2:]]
        assert found["plain"][1] == found["masked"][1], "both sides learn the same numbers"
        if number:
            pairs.append((found["plain"][0], found["masked"][0]))
            print(f"plain {pairs[-1][0]:.2f} s  masked {pairs[-1][1]:.2f} s", flush=True)
    ratios = sorted(masked / plain for plain, masked in pairs)
    print(
        f"paired ratio {statistics.median(ratios):.3f} (from {ratios[0]:.3f} to {ratios[-1]:.3f})"
    )


if __name__ == "__main__":
    main()
