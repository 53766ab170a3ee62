"""PPO whose second process is killed at its fifth step."""

from dataclasses import replace

from shared_runs import EXPERIMENTS, BreakingParameters

from coach_rl import BasicRLGraphManager


def graph_manager():
    return BasicRLGraphManager(
        replace(EXPERIMENTS["ppo"], environment=BreakingParameters(how="kill"))
    )
