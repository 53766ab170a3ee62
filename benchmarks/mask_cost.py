"""The cost of action masks: a mask that allows everything, and the same task without one, in turns.

    python benchmarks/mask_cost.py [--steps 100000]

Both sides are `Cables_PPO` with `masked=False`, one of them with the additional key. They take the
same actions and learn the same numbers. They train in one process and take turns after every
rollout of 1,024 decisions and its update; CPU seconds of each.
"""

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import replace

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.log_records import LogRecord
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


def records(masked: bool, steps: int) -> Iterator[LogRecord]:
    """The log records of a side, which trains as they are taken."""
    preset = rl.load_preset(rl.find_preset("Cables_PPO"))
    changes = {"masked": False, "steps": steps, "schedule.evaluation_interval": None}
    manager = preset.configure(changes)
    if masked:
        opened = replace(manager.parameters, environment=OpenCablesParameters())
        manager = type(manager)(opened)
    manager.create_graph(rl.Runtime(seed=0, device="cpu"))
    return manager.improve()


def advance(side: Iterator[LogRecord]) -> tuple[float, dict[str, float] | None]:
    """CPU seconds until the next update, and what it reports; None at the end."""
    began = time.process_time()
    scalars = next((record.scalars for record in side if record.kind == "train"), None)
    return time.process_time() - began, scalars


def main() -> None:
    """Let both sides take turns, and print the paired ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    options = parser.parse_args()
    sides = {masked: records(masked, options.steps) for masked in (False, True)}
    pairs = []
    while True:
        order = sorted(sides, reverse=bool(len(pairs) % 2))
        found = {masked: advance(sides[masked]) for masked in order}
        reports = [scalars for _, scalars in found.values()]
        if None in reports:
            break
        losses = {scalars["train/policy_loss"] for scalars in reports}
        assert len(losses) == 1, "both sides learn the same numbers"
        pairs.append((found[False][0], found[True][0]))
    ratios = sorted(masked / plain for plain, masked in pairs[2:])
    plain, masked = (sum(column) for column in zip(*pairs[2:], strict=True))
    low, middle, high = (ratios[len(ratios) * share // 4] for share in (1, 2, 3))
    print(
        f"{len(ratios)} rollouts: plain {plain:.1f} s, masked {masked:.1f} s; paired ratio "
        f"{middle:.3f} (quartiles {low:.3f} and {high:.3f})"
    )


if __name__ == "__main__":
    main()
