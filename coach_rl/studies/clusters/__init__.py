"""Executors of jobs on other machines: a Ray cluster, or Slurm through submitit.

`copying` brings runs and presets from one machine to another where no disk is shared.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.studies.clusters.ray_cluster import RayCluster
    from coach_rl.studies.clusters.slurm import Slurm
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["RayCluster", "Slurm"]
