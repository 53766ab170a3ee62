"""Cost of a level whose members act in turn, beside that of a level with one agent.

    python benchmarks/arbiter_cost.py

A tick of one level on a simulator that does nothing, in bytecodes, which are the same on every
machine, and in microseconds of processor time (the least of several rounds, in turns). *In step*
the same member acts in all rows, so that a tick calls one agent; *out of step* a third of the rows
is each member's, and a tick calls all three. *Alone*: what three agents and a level cost without a
group, for a third of the rows each.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
from level_overhead import GOALS, HORIZON, NullSimulator

import coach_rl as rl
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.records import Array, Observation
from coach_rl.core.spaces import Space
from coach_rl.graph_managers.arrangement import LevelChain
from coach_rl.graph_managers.stack import Stack

NAMES = ("a", "b", "c")
WARM_UP, COUNTED = 40, 30


def bytecodes(call: Callable[[], object]) -> int:
    """The number of bytecodes that a call runs, those of torch and numpy in Python included."""
    count, before = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def tick_bytecodes(stack: Stack) -> float:
    """Bytecodes of a tick, on average."""
    return bytecodes(lambda: [stack.tick() for _ in range(COUNTED)]) / COUNTED


def turned(observation: Observation, space: Space) -> Array:  # noqa: ARG001 - of every script
    """The number of a member by what a row shows, which never changes here: out of step."""
    return (np.abs(observation["observation"][:, 0]) * 300).astype(np.int64) % 3


def agent(kind: str, name: str, rollout: int = 10**6) -> Any:
    """A scripted agent, or PPO with its default networks and rollouts of so many decisions."""
    if kind == "scripted":
        return rl.ScriptedAgentParameters(name=name, policy="still")
    algorithm = rl.PPOAlgorithmParameters(rollout=rl.EnvironmentSteps(rollout), minibatch=32)
    return rl.PPOAgentParameters(name=name, algorithm=algorithm, update_mode="eager")


def group(kind: str, arbiter: Any, shares: str | None = None, rollout: int = 10**6) -> Any:
    """Three members that act in turn."""
    agents = [agent(kind, name, rollout) for name in NAMES]
    members = tuple(rl.GroupMember(agent=each, shares=shares) for each in agents)
    return rl.AgentGroupParameters(members=members, arbiter=arbiter)


def stack(*agents: Any, num_envs: int, phase: Phase, in_step: bool = False) -> Stack:
    """Levels of these agents, the top's first, whose rows have begun and are in or out of step."""
    below = {"goal_space": GOALS, "horizon": HORIZON}
    levels = tuple(
        rl.LevelParameters(name=f"level {number}", agent=params, **(below if number else {}))
        for number, params in enumerate(agents)
    )
    built = LevelChain().build_stack(
        levels,
        NullSimulator(num_envs, in_phase=in_step),
        agent=lambda number, spaces: agents[number].build(
            AgentContext(
                spaces=spaces,
                num_envs=num_envs,
                runtime=rl.Runtime(seed=0, device="cpu"),
                planned_steps=10**6,
            )
        ),
        clock=Clock(phase=phase),
        seed=0,
        purpose="training",
    )
    built.reset(0)
    for _ in range(WARM_UP):
        built.tick()
    return built


def microseconds(ticks: Sequence[Callable[[], object]], rounds: int, count: int) -> list[float]:
    """The least processor time of each of these calls, which take turns."""
    least = [np.inf] * len(ticks)
    for _ in range(rounds):
        for number, tick in enumerate(ticks):
            began = time.process_time()
            for _ in range(count):
                tick()
            least[number] = min(least[number], (time.process_time() - began) / count * 1e6)
    return least


def alone(costs: Sequence[float]) -> float:
    """A level and three agents without a group, by the costs of one, a third, and no agent."""
    _, third, nothing = costs
    return nothing + 3 * (third - nothing)


def table(kind: str, phase: Phase, rows: Sequence[int], rounds: int) -> None:
    """Print the costs of one kind of member."""
    title = "scripted members" if kind == "scripted" else f"PPO in {phase.name}, without updates"
    print(f"\n{title[0].upper()}{title[1:]}\n")
    columns = ("one", "in step", "out of step", "sharing", "selected", "alone")
    print(f"| rows | {' | '.join(columns)} |\n| ---: |{' ---: |' * len(columns)}")
    selected = rl.SelectedTurns(
        agent=rl.ScriptedAgentParameters(name="chooser", policy=turned), every=1
    )
    for n in rows:
        third = max(1, n // 3)
        single, turns = agent(kind, "a"), rl.Turns()
        stacks = [
            stack(single, num_envs=n, phase=phase),
            stack(group(kind, turns), num_envs=n, phase=phase, in_step=True),
            stack(group(kind, turns), num_envs=n, phase=phase),
            stack(group(kind, turns, "all"), num_envs=n, phase=phase),
            stack(group(kind, selected), num_envs=n, phase=phase),
            stack(single, num_envs=third, phase=phase),
            stack(Nothing(), num_envs=n, phase=phase),
        ]
        counts = [tick_bytecodes(each) for each in stacks]
        times = microseconds([each.tick for each in stacks], rounds, 100)
        cells = []
        for number in range(len(columns)):
            count, spent = (
                (alone((each[0], *each[5:])) if number == 5 else each[number])
                for each in (counts, times)
            )
            ratios = f"{count / counts[0]:.2f}, {spent / times[0]:.2f}"
            cells.append(f"{count:,.0f}; {spent:.0f} us" + f" ({ratios})" * (number > 0))
        print(f"| {n} | {' | '.join(cells)} |", flush=True)


def learning(rows: Sequence[int], rounds: int) -> None:
    """Print the time of PPO's ticks with its updates, as many for one agent as for three."""
    print("\nPPO with its updates\n\n| rows | one | out of step | sharing |")
    print("| ---: | ---: | ---: | ---: |")
    for n in rows:
        rollout = 96 * n
        built = [
            stack(params, num_envs=n, phase=Phase.TRAIN)
            for params in (
                agent("ppo", "a", rollout),
                group("ppo", rl.Turns(), rollout=rollout // 3),
                group("ppo", rl.Turns(), "all", rollout=rollout),
            )
        ]

        def ticked(each: Stack) -> Callable[[], object]:
            return lambda: (each.tick(), each.levels[0].agent.train(each.clock))

        times = microseconds([ticked(each) for each in built], rounds, 3 * 96)
        cells = [f"{spent:.0f} us ({spent / times[0]:.2f})" for spent in times]
        print(f"| {n} | {' | '.join(cells)} |", flush=True)


class Nothing:
    """An agent that returns one array, and its own parameters."""

    name = "nothing"

    def build(self, context: AgentContext) -> "Nothing":
        """Itself."""
        self._actions = np.zeros((context.num_envs, 2), np.float32)
        return self

    def new_rows(self, num_envs: int, seed: int) -> None:
        """None are kept."""

    def act(self, _: object, request: Any, __: object) -> Array:
        """Always the same."""
        return self._actions[: len(request.rows)]

    def observe(self, row_state: object, outcome: object, clock: Clock) -> None:
        """Nothing."""


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 64, 256])
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    table("scripted", Phase.TEST, options.rows, options.rounds)
    table("ppo", Phase.TEST, options.rows, options.rounds)
    table("ppo", Phase.TRAIN, options.rows, options.rounds)
    learning([n for n in options.rows if n <= 8], options.rounds)


if __name__ == "__main__":
    main()
