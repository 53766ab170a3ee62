"""Cost of profiling: a run's processor time with it and without.

    python benchmarks/profiler_cost.py

One run trains in pieces of equally many steps, in turns with the profiler and without it (off, on,
on, off), so that what else the machine does meets both. Per preset: the median over rounds of the
relative difference, with the quartiles, and the calls that were timed per tick.
"""

import argparse
import time
from contextlib import closing

import numpy as np

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.looking.profile import RunProfile
from coach_rl.graph_managers import GraphManager

STEPS = {"Mujoco_PPO": 2_048, "Pendulum_HAC": 1_600, "CartPole_PPO": 2_048, "Mujoco_SAC": 400}
"""Environment steps of a piece: whole rollouts, or about a second."""
WARM_UP = {"Pendulum_HAC": 6_400, "Mujoco_SAC": 10_400}
"""Environment steps before the first piece, so that all of them learn."""


def seconds(manager: GraphManager, steps: int) -> float:
    """Processor time of a piece of training."""
    began = time.process_time()
    for _ in manager.train_and_act(EnvironmentSteps(steps)):
        pass
    return time.process_time() - began


def cost(name: str, rounds: int) -> None:
    """Print the line of a preset."""
    steps, changes = STEPS[name], {"schedule.evaluation_interval": None}
    manager = load_preset(find_preset(name)).configure(changes)
    with manager:
        manager.create_graph(Runtime(seed=0, device="cpu"))
        seconds(manager, WARM_UP.get(name, steps))
        extra, calls = [], 0.0

        def profiled() -> float:
            nonlocal calls
            with closing(RunProfile(manager)) as timed:
                taken = seconds(manager, steps)
                root = timed.profile().root
            count = sum(node.calls for depth, node in root.walk() if depth)
            calls = count / root.children["tick"].calls
            return taken

        for _ in range(rounds):
            off = seconds(manager, steps)
            on = profiled() + profiled()
            off += seconds(manager, steps)
            extra.append(on / off - 1)
        low, middle, high = np.quantile(extra, [0.25, 0.5, 0.75])
    print(f"| {name} | {calls:.1f} | {middle:+.1%} | {low:+.1%} to {high:+.1%} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("presets", nargs="*", default=list(STEPS))
    given = parser.parse_args()
    print("| preset | timed calls a tick | extra time | quartiles |\n| --- | ---: | ---: | ---: |")
    for preset in given.presets:
        cost(preset, given.rounds)
