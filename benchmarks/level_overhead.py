"""Overhead of a level: microseconds a tick for each added level, and the rate of scripted stacks.

    python benchmarks/level_overhead.py

*Null*: agents that answer with one array and keep nothing, a simulator that does nothing. The
difference between stacks of L + 1 and of L levels is what a level costs the tick of all rows.
*Scripted*: agents that compute an action from what they see, on a simulator that takes a time given
(it waits) or on the point mass. Stacks take turns within a round, so that what else the machine
does meets all of them; medians over rounds, in processor time where nothing waits.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from gymnasium import spaces

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import ActionRequest, Array, End, EnvResponse
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments import parameters
from coach_rl.extensions.scripts.scripted_agent import ScriptedAgentParameters
from coach_rl.graph_managers import LevelParameters
from coach_rl.levels import LevelManager

GOALS = GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.02, 0.02), elements=(0, 1))
HORIZON = 10
ROUNDS, TICKS = 9, 300


class NullSimulator:
    """N rows that stay where they are; a tick takes `seconds` of waiting.

    Out of phase: in the first `HORIZON` ticks every row is cut off once, a tenth of them a tick, so
    that from then on the rows' sub-episodes end at different ticks, as they do in earnest.
    """

    def __init__(self, num_envs: int, seconds: float = 0.0, *, in_phase: bool = False) -> None:
        self.num_envs, self._seconds = num_envs, seconds
        seen = spaces.Box(-1, 1, (4,), np.float32)
        self.spaces = EnvironmentSpaces(
            observation=spaces.Dict({"observation": seen}),
            action=spaces.Box(-1, 1, (2,), np.float32),
        )
        rng = np.random.default_rng(0)
        shown = {"observation": rng.uniform(-1, 1, (num_envs, 4)).astype(np.float32)}
        none, false = np.zeros(num_envs, np.int64), np.zeros(num_envs, np.bool_)
        self._answer = EnvResponse(
            rows=np.arange(num_envs),
            observation=shown,
            first_observation=shown,
            reward=np.zeros(num_envs),
            terminated=false,
            truncated=false,
            end=none.astype(np.uint8),
            duration=none + 1,
        )
        self._cuts = [] if in_phase else list(range(HORIZON))

    def reset(self, seed: object = None) -> EnvResponse:  # noqa: ARG002 - there is no chance here
        """Positions of the rows."""
        return self._answer

    def send(self, directive: object, rows: object = None) -> None:
        """Nothing."""

    def recv(self) -> EnvResponse:
        """All rows."""
        if self._seconds:
            end = time.perf_counter() + self._seconds
            while time.perf_counter() < end:
                pass
        if self._cuts:
            cut = np.arange(self.num_envs) % HORIZON == self._cuts.pop()
            end = np.where(cut, np.uint8(End.TRUNCATED), np.uint8(0))
            return replace(self._answer, truncated=cut, end=end)
        return self._answer

    def close(self) -> None:
        """Nothing."""


class NullAgent:
    """Answers with rows of one array; keeps nothing."""

    def __init__(self, num_envs: int, scripted: bool) -> None:
        self._actions, self._scripted = np.zeros((num_envs, 2), np.float32), scripted

    def new_rows(self, num_envs: int, seed: int) -> None:
        """None are kept."""

    def act(self, _: object, request: ActionRequest, __: object) -> Array:
        """Towards the goal where scripted, else always the same."""
        observation = request.observation
        if not self._scripted:
            return self._actions[: len(request.rows)]
        here = observation["observation"][:, :2]
        if GOAL_KEY not in observation:
            return np.sin(5 * here)
        return np.clip(4 * (observation[GOAL_KEY] - here), -1, 1)

    def observe(self, row_state: object, outcome: object, clock: Clock) -> None:
        """Nothing."""


@dataclass
class Case:
    """A stack, and the durations of its ticks by round."""

    name: str
    levels: int
    top: LevelManager
    microseconds: list[float]


def stack(levels: int, simulator: Environment, *, scripted: bool) -> LevelManager:
    """That many levels on a simulator."""
    described = [
        LevelParameters(
            name=f"level {index}",
            agent=ScriptedAgentParameters(policy="still"),  # who decides is given below
            goal_space=GOALS if index else None,
            horizon=HORIZON if index else None,
        )
        for index in range(levels)
    ]
    below: Environment = simulator
    for index in reversed(range(levels)):
        below = LevelManager(
            described[index],
            agent=NullAgent(simulator.num_envs, scripted),  # type: ignore[arg-type]
            environment=below,
            clock=Clock(phase=Phase.TRAIN),
            seed=0,
            above=described[:index],
        )
    below.reset(0)
    assert isinstance(below, LevelManager)
    return below


def measured(cases: list[Case], clock: Callable[[], float], rounds: int, ticks: int) -> None:
    """Time the cases in turns."""
    for case in cases:
        for _ in range(5 * HORIZON):
            case.top.recv()
    for _ in range(rounds):
        for case in cases:
            began = clock()
            for _ in range(ticks):
                case.top.recv()
            case.microseconds.append((clock() - began) / ticks * 1e6)


def cases_of(make: Callable[[], Environment], most: int, *, scripted: bool) -> list[Case]:
    """Stacks of 1 to `most` levels, each on a simulator of its own."""
    return [
        Case(f"{levels} levels", levels, stack(levels, make(), scripted=scripted), [])
        for levels in range(1, most + 1)
    ]


def report(title: str, cases: list[Case]) -> None:
    """Medians, the overhead of each level, and the rate relative to one level's."""
    print(f"\n{title}\n\n| levels | us a tick | added | share of one level's rate |")
    print("| ---: | ---: | ---: | ---: |")
    first, before = median(cases[0].microseconds), 0.0
    for case in cases:
        now = median(case.microseconds)
        added = f"{now - before:.1f}" if before else ""
        share = median(
            one / own for one, own in zip(cases[0].microseconds, case.microseconds, strict=True)
        )
        print(f"| {case.levels} | {now:.1f} | {added} | {share:.0%} |")
        before = now
    print(f"\nadded per level on average: {(before - first) / (len(cases) - 1):.1f} us")


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--num-envs", type=int, default=64)
    parser.add_argument("--levels", type=int, default=4, help="the highest stack")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--ticks", type=int, default=TICKS)
    options = parser.parse_args()
    n, most, plan = options.num_envs, options.levels, (options.rounds, options.ticks)
    for in_phase in (True, False):
        null = cases_of(lambda p=in_phase: NullSimulator(n, in_phase=p), most, scripted=False)  # type: ignore[misc]
        measured(null, time.process_time, *plan)
        phase = "all rows in phase" if in_phase else "rows out of phase"
        report(f"Null agents, null simulator, {n} environments, {phase} (processor time)", null)
    waiting = cases_of(lambda: NullSimulator(n, 0.5e-3), most, scripted=True)
    measured(waiting, time.perf_counter, *plan)
    report("Scripted agents, a simulator of 0.5 ms a tick (wall time)", waiting)
    point = cases_of(lambda: parameters("point_mass").build(num_envs=n), most, scripted=True)
    measured(point, time.process_time, *plan)
    report("Scripted agents on the point mass (processor time)", point)


if __name__ == "__main__":
    main()
