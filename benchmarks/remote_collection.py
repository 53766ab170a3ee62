"""Throughput of workers on a simulator that costs 5 ms a step.

python benchmarks/remote_collection.py [--steps 1536] [--place local] [--repeats 3]

PPO on 8 environments whose step computes (`busy`) or waits (`waiting`, as for a program elsewhere)
for 5 ms. Steps per second of training, start of the workers left out; the number of workers goes
round within each repeat, so that a busy machine slows all of them.
"""

import argparse
import statistics
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.extensions.workers.collection import CollectionParameters
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    ScheduleParameters,
    SourceParameters,
)

STEP_SECONDS = 0.005


class SlowWalk(gymnasium.Env[np.ndarray, np.ndarray]):
    """A random walk whose step takes 5 ms of computing, or of waiting."""

    observation_space = spaces.Box(-99, 99, (16,), np.float32)
    action_space = spaces.Box(-1, 1, (4,), np.float32)

    def __init__(self, waits: bool = False) -> None:
        self.waits = waits

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start somewhere."""
        super().reset(seed=seed)
        self.time, self.place = 0, self.np_random.normal(size=16)
        return self.place.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Walk on, slowly."""
        if self.waits:
            time.sleep(STEP_SECONDS)
        else:
            began = time.thread_time()
            while time.thread_time() - began < STEP_SECONDS:
                pass
        self.time += 1
        self.place[:4] += action
        return self.place.astype(np.float32), 1.0, False, self.time >= 100, {}


def speed(workers: int, *, waits: bool, place: str, steps: int) -> float:
    """Environment steps per second of a run."""
    parameters = BasicGraphParameters(
        agent=PPOAgentParameters(
            algorithm=PPOAlgorithmParameters(
                rollout=EnvironmentSteps(512), epochs=4, minibatch=128
            ),
            update_mode="eager",
        ),
        environment=GymnasiumParameters(
            level=f"{__name__ if __name__ != '__main__' else 'remote_collection'}:SlowWalk",
            kwargs={"waits": waits},
        ),
        num_envs=8,
        schedule=ScheduleParameters(evaluation_interval=None),
        source=CollectionParameters(workers=workers, on=place) if workers else SourceParameters(),
    )
    with BasicRLGraphManager(parameters) as manager:
        manager.create_graph(Runtime(seed=0, device="cpu"))
        list(manager.train_and_act(EnvironmentSteps(64)))  # everybody has begun
        before, began = manager.graph.clock.environment_steps, time.perf_counter()
        list(manager.train_and_act(EnvironmentSteps(steps)))
        return (manager.graph.clock.environment_steps - before) / (time.perf_counter() - began)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1536)
    parser.add_argument("--place", default="local", help="local, ray or ray:ADDRESS")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4])
    given = parser.parse_args()
    counts = given.workers
    print(f"| simulator | {' | '.join(f'{count} workers' for count in counts)} | 2 : 1 |")
    for waits in (False, True):
        speeds: dict[int, list[float]] = {count: [] for count in counts}
        for _ in range(given.repeats):
            for count in counts:
                found = speed(count, waits=waits, place=given.place, steps=given.steps)
                speeds[count].append(found)
                print(
                    f"{'waiting' if waits else 'busy'}, {count} workers: {found:,.0f}", flush=True
                )
        middle = {count: statistics.median(of) for count, of in speeds.items()}
        ratio = statistics.median(b / a for a, b in zip(speeds[1], speeds[2], strict=True))
        cells = " | ".join(f"{middle[count]:,.0f}" for count in counts)
        print(f"| {'waiting' if waits else 'busy'} | {cells} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
