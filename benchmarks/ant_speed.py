"""Hierarchies that walk an ant: environment steps a second on one core, and where the time goes.

    python benchmarks/ant_speed.py
    python benchmarks/ant_speed.py --only "AntMaze_HRAC, hrac" --steps 16000

Each row trains a shipped preset with compiled gradient steps and one torch thread, the simulator on
the same core. The first steps, in which most levels begin to learn and steps are compiled, are not
counted. Processor seconds, so that what else the machine does counts less. The shares are of the
training loop: *simulator*, *updates* (sampling, advantages and target networks included), *acting*
(networks and filters), *planning* of a graph, or of landmarks and adjacency, *correction* of
sub-goals by HIRO, and *rest*: the bookkeeping of levels, memories, metrics.
"""

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.looking.profile import RunProfile
from coach_rl.extensions.looking.profiler import Node
from coach_rl.graph_managers import GraphManager

PARTS = {
    "environment": "simulator",
    "update": "updates",
    "optimiser": "updates",
    "sync": "updates",
    "sample": "updates",
    "advantages": "updates",
    "priorities": "updates",
    "choose": "acting",
    "filter": "acting",
    "act": "acting",
    "plan": "planning",
    "adjacency": "planning",
    "landmarks": "planning",
    "correction": "correction",
}
"""The column of each name in a profile."""
COLUMNS = ("simulator", "updates", "acting", "planning", "correction", "rest")


@dataclass(frozen=True)
class Case:
    """A preset, and what is changed of it."""

    name: str
    preset: str
    level: str
    changes: dict[str, object] = field(default_factory=dict)
    warm: int = 6_000
    """Environment steps before those that are counted."""


CASES = (
    Case(
        "AntMaze_Graph",
        "AntMaze_Graph",
        "ant_maze_u12",
        {"levels.1.agent.update_mode": "compiled"},
        warm=8_192 * 2,
    ),
    Case(
        "AntMaze_Graph_TD3",
        "AntMaze_Graph_TD3",
        "ant_maze_u12",
        {"levels.1.agent.learner.update_mode": "compiled"},
    ),
    Case(
        "AntMaze_HAC",
        "AntMaze_HAC",
        "ant_maze_u12",
        {f"stack.{level}.agent.learner.update_mode": "compiled" for level in (0, 1)},
    ),
    Case(
        "AntReacher_HAC",
        "AntReacher_HAC",
        "ant_reacher",
        {f"stack.{level}.agent.learner.update_mode": "compiled" for level in (0, 1)},
    ),
    Case(
        "AntMaze_HIRO",
        "AntMaze_HIRO",
        "ant_maze",
        {f"levels.{level}.agent.update_mode": "compiled" for level in (0, 1)},
    ),
    *(
        Case(
            f"AntMaze_HRAC, {hierarchy}",
            "AntMaze_HRAC",
            "ant_maze_u12",
            {"hierarchy": hierarchy}
            | {f"levels.{level}.agent.update_mode": "compiled" for level in (0, 1)},
        )
        for hierarchy in ("hiro", "hrac", "higl")
    ),
)


def measure(case: Case, steps: int) -> tuple[float, dict[str, float]]:
    """Train for so many environment steps after the first ones.

    Returns:
        Environment steps per second, and the share of each column.
    """
    changes = {**case.changes, "level": case.level, "steps": 1_000_000}
    manager = load_preset(find_preset(case.preset)).configure(changes)
    with manager:
        manager.create_graph(Runtime(seed=1, threads=1))
        train(manager, case.warm)
        profile = RunProfile(manager)
        began, before = time.process_time(), manager.graph.clock.environment_steps
        train(manager, steps)
        seconds = time.process_time() - began
        done = manager.graph.clock.environment_steps - before
        profile.close()
        return done / seconds, shares(profile.profile().root.children["tick"])


def train(manager: GraphManager, steps: int) -> None:
    """Train for that many environment steps."""
    for _ in manager.train_and_act(EnvironmentSteps(steps)):
        pass


def shares(tick: Node) -> dict[str, float]:
    """The share of each column in the training loop, whose node this is."""
    seconds = dict.fromkeys(COLUMNS, 0.0)
    for column, own in columns(tick, "rest"):
        seconds[column] += own
    return {column: each / tick.inclusive for column, each in seconds.items()}


def columns(node: Node, outer: str) -> Iterator[tuple[str, float]]:
    """The column and own seconds of a node and all below it."""
    column = PARTS.get(node.name, outer)
    yield column, node.exclusive
    for child in node.children.values():
        yield from columns(child, column)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=16_384, help="environment steps of a row")
    parser.add_argument("--only", choices=[case.name for case in CASES], nargs="+")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    print(f"| preset | steps/s | {' | '.join(COLUMNS)} |")
    print(f"| --- | ---: | {' | '.join(['---:'] * len(COLUMNS))} |")
    for case in CASES:
        if arguments.only and case.name not in arguments.only:
            continue
        rate, parts = measure(case, arguments.steps)
        cells = " | ".join(f"{parts[column]:.0%}" for column in COLUMNS)
        print(f"| {case.name} | {rate:,.0f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
