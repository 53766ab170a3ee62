"""Speed of adding to and sampling from replay memories, and their size, at the size of HalfCheetah.

    python benchmarks/memory_speed.py [--capacity 1000000] [--rounds 15] [--write]

All variants are filled to the brim first. Then they take turns, some milliseconds each, so that a
machine that slows down slows all of them. An `add` keeps a transition of each of 16 rows, episodes
end after 1,000 steps; a `sample` makes a batch of 256. The times are medians over rounds, of the
mean time of a call within a round.
"""

import argparse
import importlib.util
import itertools
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]  # has no types
import torch
from gymnasium import spaces

from coach_rl.core.goals import GoalSpace
from coach_rl.core.records import Transition
from coach_rl.extensions.hindsight import HindsightParameters
from coach_rl.extensions.prioritised import PrioritisedParameters
from coach_rl.memories import ReplayMemoryParameters

NUM_ENVS, BATCH, EPISODE = 16, 256, 1000
OBSERVATION = spaces.Box(-np.inf, np.inf, (17,), np.float64)
GOAL = spaces.Box(-np.inf, np.inf, (3,), np.float64)
PLAIN = spaces.Dict({"observation": OBSERVATION})
WITH_GOALS = spaces.Dict({"observation": OBSERVATION, "achieved_goal": GOAL, "desired_goal": GOAL})
ACTION = spaces.Box(-1, 1, (6,), np.float32)
HINDSIGHT = HindsightParameters(
    goal=GoalSpace(low=(-9.0,) * 3, high=(9.0,) * 3, threshold=(0.05,) * 3, key="achieved_goal")
)
RESULTS = Path(__file__).parent / "results" / "memory_speed.md"
SHORT_CALLS = 200
"""Calls a turn consists of."""


@dataclass
class Contender:
    """A memory that is full, and what was measured of it."""

    name: str
    add: Callable[[], object]
    sample: Callable[[], object]
    note: Callable[[], object] | None
    """None where errors are not wanted."""
    computed: int | None
    """Bytes it reports to take; None where it reports none."""
    resident: int
    """Bytes the process grew by when it was filled."""
    adds: list[float] = field(default_factory=list)
    samples: list[float] = field(default_factory=list)
    notes: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--capacity", type=int, default=1_000_000, help="transitions")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each variant")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    torch.set_num_threads(1)
    contenders = [
        contender(name, parameters, observed, options.capacity)
        for name, parameters, observed in variants()
    ]
    contenders += stable_baselines3(options.capacity)
    for _ in range(options.rounds):
        for each in contenders:
            take_turn(each)
    print(table(contenders))
    if options.write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(report(options.capacity, options.rounds, contenders))


def variants() -> list[tuple[str, ReplayMemoryParameters, spaces.Dict]]:
    return [
        ("uniform", ReplayMemoryParameters(), PLAIN),
        ("3-step", ReplayMemoryParameters(n_step=3), PLAIN),
        ("prioritised", ReplayMemoryParameters(prioritised=PrioritisedParameters()), PLAIN),
        ("with goals, hindsight", ReplayMemoryParameters(relabelling=HINDSIGHT), WITH_GOALS),
    ]


def contender(
    name: str, parameters: ReplayMemoryParameters, observed: spaces.Dict, capacity: int
) -> Contender:
    """Build a memory and fill it."""
    before = psutil.Process().memory_info().rss
    memory = replace(parameters, capacity=capacity).build(
        observation_space=observed,
        action_space=ACTION,
        num_envs=NUM_ENVS,
        device=torch.device("cpu"),
        seed=0,
        discount=0.99,
    )
    transitions = itertools.cycle(played(observed))
    while len(memory) < capacity // NUM_ENVS * NUM_ENVS:
        memory.add(next(transitions))
    positions, errors = memory.sample(BATCH).position, torch.rand(BATCH)
    return Contender(
        name,
        add=lambda: memory.add(next(transitions)),
        sample=lambda: memory.sample(BATCH),
        note=(lambda: memory.note_errors(positions, errors)) if memory.is_prioritised else None,
        computed=memory.layout.size.host,
        resident=psutil.Process().memory_info().rss - before,
    )


def stable_baselines3(capacity: int) -> list[Contender]:
    """Its buffer, filled with the same transitions; nothing where it is not installed."""
    if importlib.util.find_spec("stable_baselines3") is None:
        return []
    buffer_class = importlib.import_module("stable_baselines3.common.buffers").ReplayBuffer
    before = psutil.Process().memory_info().rss
    narrow = spaces.Box(-np.inf, np.inf, (17,), np.float32)
    buffer = buffer_class(capacity, narrow, ACTION, device="cpu", n_envs=NUM_ENVS)
    transitions = itertools.cycle(played(PLAIN))

    def add() -> None:
        one = next(transitions)
        buffer.add(
            one.observation["observation"],
            one.next_observation["observation"],
            one.action,
            one.reward,
            one.terminated | one.truncated,
            [{"TimeLimit.truncated": bool(cut)} for cut in one.truncated],
        )

    while not buffer.full:
        add()
    resident = psutil.Process().memory_info().rss - before
    name = "Stable-Baselines3 ReplayBuffer"
    return [Contender(name, add, lambda: buffer.sample(BATCH), None, None, resident)]


def played(observed: spaces.Dict) -> list[Transition]:
    """An episode of all rows, of random numbers."""
    rng = np.random.default_rng(0)

    def seen() -> dict[str, np.ndarray]:
        return {
            key: rng.normal(size=(NUM_ENVS, *(part.shape or ()))).astype(np.float32)
            for key, part in observed.spaces.items()
        }

    return [
        Transition(
            rows=np.arange(NUM_ENVS),
            observation=seen(),
            action=rng.uniform(-1, 1, (NUM_ENVS, 6)).astype(np.float32),
            reward=rng.normal(size=NUM_ENVS),
            next_observation=seen(),
            terminated=np.zeros(NUM_ENVS, np.bool_),
            truncated=np.full(NUM_ENVS, step == EPISODE - 1),
            duration=np.ones(NUM_ENVS, np.int64),
        )
        for step in range(EPISODE)
    ]


def take_turn(each: Contender) -> None:
    """Time some calls of each kind."""
    each.adds.append(seconds(each.add))
    each.samples.append(seconds(each.sample))
    if each.note is not None:
        each.notes.append(seconds(each.note))


def seconds(call: Callable[[], object]) -> float:
    """Mean time of a call."""
    start = time.perf_counter()
    for _ in range(SHORT_CALLS):
        call()
    return (time.perf_counter() - start) / SHORT_CALLS


def table(contenders: list[Contender]) -> str:
    lines = [
        "| memory | add 16 rows (µs) | sample 256 (µs) | note 256 errors (µs) | computed (MB) "
        "| resident (MB) |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for each in contenders:
        times = " | ".join(spread(measured) for measured in (each.adds, each.samples, each.notes))
        computed = "-" if each.computed is None else f"{each.computed / 1e6:.0f}"
        sizes = f"{computed} | {each.resident / 1e6:.0f}"
        lines.append(f"| {each.name} | {times} | {sizes} |")
    return "\n".join(lines)


def spread(measured: list[float]) -> str:
    """Median and quartiles in microseconds."""
    if not measured:
        return "-"
    low, median, high = np.quantile(np.array(measured) * 1e6, (0.25, 0.5, 0.75))
    return f"{median:.0f} ({low:.0f} to {high:.0f})"


def report(capacity: int, rounds: int, contenders: list[Contender]) -> str:
    return f"""# Speed and size of replay memories: HalfCheetah

`python benchmarks/memory_speed.py --capacity {capacity} --rounds {rounds} --write`

{platform.machine()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the end, this
benchmark included; Python {platform.python_version()}, numpy {np.__version__}, torch \
{torch.__version__}, one thread.

{capacity:,} transitions of {NUM_ENVS} rows, all memories full. Medians (and quartiles) over
{rounds} rounds in which the memories take turns of {SHORT_CALLS} calls. "computed" is what is
checked against the machine's free memory before anything is allocated, "resident" what the process
really grew by. Stable-Baselines3's buffer, where installed, keeps and samples the same transitions
with its own `add` and `sample`.

{table(contenders)}
"""


if __name__ == "__main__":
    main()
