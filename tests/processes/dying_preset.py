"""PPO whose second process is killed at its fifth step, once there is a checkpoint."""

from dataclasses import replace

from shared_runs import EXPERIMENTS, BreakingParameters

from coach_rl import BasicRLGraphManager
from coach_rl.graph_managers.parameters import CheckpointParameters


def graph_manager():
    return BasicRLGraphManager(
        replace(
            EXPERIMENTS["ppo"],
            environment=BreakingParameters(how="kill"),
            checkpoints=CheckpointParameters(every_seconds=1e-9),
        )
    )
