"""How fast are steps of MiniGrid, beside its bare loop?

python -m benchmarks.minigrid_speed [LEVEL ...] [--steps 4000]

Processor time on one core, the same random actions, median over five turns that alternate; the
ratio is the median of those of the turns. PPO's steps are those of `MiniGrid_PPO`, updates
included.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import numpy as np
from gymnasium import registry
from gymnasium.envs.registration import load_env_creator

import coach_rl as rl
from coach_rl.environments.minigrid.levels import level_id
from coach_rl.environments.minigrid.parameters import MiniGridParameters
from coach_rl.environments.minigrid.world import package
from coach_rl.presets import MiniGrid_PPO

LEVELS = ("DoorKey-8x8", "MultiRoom-N4-S5", "KeyCorridorS3R3")
TURNS = 5


def bare(level: str, steps: int) -> Callable[[], None]:
    """MiniGrid's own environment in a loop."""
    package()
    spec = registry[level_id(level)]
    env = load_env_creator(spec.entry_point)(**spec.kwargs)  # type: ignore[arg-type]
    chosen = np.random.default_rng(0).integers(7, size=steps).tolist()

    def loop() -> None:
        env.reset(seed=0)
        for action in chosen:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    return loop


def rows(level: str, steps: int, *, num_envs: int, **fields: object) -> Callable[[], None]:
    """So many rows of an environment of the engine."""
    described = MiniGridParameters(level=level, mission="hidden", **fields)  # type: ignore[arg-type]
    environment = described.build(num_envs=num_envs)
    chosen = np.random.default_rng(0).integers(7, size=(steps // num_envs, num_envs))

    def loop() -> None:
        environment.reset(seed=0)
        for actions in chosen:
            environment.send(actions)
            environment.recv()

    return loop


def ppo(level: str, steps: int) -> Callable[[], None]:
    """A run of the preset without evaluations, after its start."""
    experiment = MiniGrid_PPO.graph_manager(MiniGrid_PPO.Panel(level=level, steps=2048 * 1000))
    parameters = experiment.parameters
    schedule = replace(parameters.schedule, evaluation_interval=None)
    experiment.parameters = replace(parameters, schedule=schedule)
    experiment.create_graph(rl.Runtime(seed=0, device="cpu"))

    def loop() -> None:
        for _ in experiment.train_and_act(rl.EnvironmentSteps(steps)):
            pass

    return loop


def seconds(loop: Callable[[], None]) -> float:
    """The processor time of one turn."""
    begin = time.process_time()
    loop()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("levels", nargs="*", default=list(LEVELS))
    parser.add_argument("--steps", type=int, default=4_000)
    given = parser.parse_args()
    for level in given.levels:
        kinds = {
            "bare loop of MiniGrid": bare(level, given.steps),
            "8 rows": rows(level, given.steps, num_envs=8),
            "16 rows": rows(level, given.steps, num_envs=16),
            "16 rows, position": rows(level, given.steps, num_envs=16, given=("position",)),
            "16 rows, state": rows(level, given.steps, num_envs=16, given=("state",)),
            "16 rows, pictures": rows(level, given.steps, num_envs=16, shows="picture"),
            "16 rows, whole grid": rows(level, given.steps, num_envs=16, shows="grid"),
            "PPO, 16 rows": ppo(level, given.steps),
        }
        turns = [{name: seconds(loop) for name, loop in kinds.items()} for _ in range(TURNS)]
        for name in kinds:
            speed = given.steps / median(turn[name] for turn in turns)
            ratio = median(turn["bare loop of MiniGrid"] / turn[name] for turn in turns)
            print(f"| {level} | {name} | {speed:,.0f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
