"""Executors of jobs on other machines that share a folder: a Ray cluster, or Slurm by submitit."""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.studies.clusters.ray_cluster import RayCluster
    from coach_rl.extensions.studies.clusters.slurm import Slurm
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["RayCluster", "Slurm"]
