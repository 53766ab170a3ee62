"""Goals further away with success, against far goals from the beginning; sparse rewards.

    python benchmarks/curriculum.py [--steps 12000] [--seeds 0 1 2]

A low level (TD3, no hindsight) learns to reach places that are drawn at random around it, at most 1
away in each direction, within 0.05. With a curriculum the first are at most 0.1 away. Both sides
have equal networks, steps and seeds, and are evaluated on 100 episodes of the farthest goals. Each
printed figure is the share of goals that the greedy policy reaches.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import coach_rl as rl

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "research"))

from two_levels import PLACES, SMALL, Panel, stack

FAR = replace(PLACES, threshold=(0.05, 0.05), reach=(1.0, 1.0))
FURTHER = rl.SuccessSchedule(values=(0.1, 0.2, 0.4, 0.7, 1.0), advance=0.5, retreat=0.1, over=100)
SIDES = {"far goals": (), "curriculum": (rl.Curriculum(reach=FURTHER),)}


def share_reached(side: str, seed: int, steps: int) -> tuple[float, float]:
    """The share of the farthest goals that are reached after training, and the last factor."""

    def built(changes: tuple[rl.Curriculum, ...]) -> rl.GraphManager:
        low = {
            "agent": rl.TD3AgentParameters(**SMALL),
            "goal_space": FAR,
            "horizon": 20,
            "changes": changes,
        }
        top = {"agent": rl.UniformAgentParameters()}
        manager = stack(Panel(steps=steps, num_envs=4), top=top, low=low)
        manager.create_graph(rl.Runtime(seed=seed, device="cpu"))
        return manager

    trained, judge = built(SIDES[side]), built(())
    factor = FURTHER.values[0] if SIDES[side] else 1.0
    for record in trained.improve():
        if record.level == "low":
            factor = record.scalars.get("level/reach_factor", factor)
    judge.graph.agents["low"].load_policy(trained.graph.agents["low"].policy_state_dict())
    found = judge.evaluate(rl.EnvironmentEpisodes(100)).levels[1].scalars
    return found["evaluation_level/goal_share"], factor


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    given = parser.parse_args()
    for seed in given.seeds:
        for side in SIDES:
            share, factor = share_reached(side, seed, given.steps)
            print(f"seed {seed}, {side}: {share:.1%} reached, factor {factor:g}", flush=True)
