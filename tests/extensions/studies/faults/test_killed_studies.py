"""A study has the same numbers wherever it runs, and whatever is killed meanwhile."""

from contextlib import closing
from dataclasses import replace

import pytest
from killed_studies import campaign, cluster, differences, jobs, workers

from coach_rl.extensions.studies.clusters.ray_cluster import RayCluster
from coach_rl.extensions.studies.clusters.slurm import Slurm
from coach_rl.extensions.studies.conduct import conduct
from coach_rl.extensions.studies.job import Needs
from coach_rl.extensions.studies.places import LocalPool

SMALL = {"seeds": [3], "share": 0.15, "variants": ["CartPole", "maze, two levels"]}
"""A part of the study that is killed for real."""


def test_a_study_has_the_same_numbers_on_ray_and_on_slurm_also_when_a_worker_is_killed(tmp_path):
    with closing(LocalPool(2)) as pool:
        quiet = conduct(jobs(tmp_path / "local", **SMALL), pool)
    killed = []

    def kill(statuses):
        for worker in workers()[:1]:
            if not killed and any(status.folder for status in statuses):
                killed.append(worker.pid)
                worker.kill()

    with cluster() as machines, closing(RayCluster(machines.address)) as place:
        assert place.slots == 2
        given = jobs(tmp_path / "ray", **SMALL)
        too_large = replace(given[0], needs=Needs(cores=3, gpus=1), name="too_large")
        *on_ray, refused = conduct([*given, too_large], place, on_change=kill)
    assert killed
    assert refused.state == "failed"
    assert refused.error.startswith("a job needs 3 CPU, 1 GPU, and no machine of the Ray cluster")
    with closing(Slurm(cluster="local")) as place:
        on_slurm = conduct(jobs(tmp_path / "slurm", **SMALL), place)
    assert not any(differences(on_ray, quiet))
    assert not any(differences(on_slurm, quiet))
    assert not list(tmp_path.glob("ray/.driver-*"))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_study_survives_the_death_of_workers_machines_and_driver(tmp_path):
    killed, different = campaign(tmp_path, kills=30, seed=1, seeds=5)
    assert killed.total() == 30
    assert len(different) == 20
    assert not any(different)


def test_a_difference_between_studies_is_noticed(tmp_path):
    with closing(LocalPool(1)) as pool:
        one, other = conduct(jobs(tmp_path, seeds=[1, 2], share=0.05, variants=["CartPole"]), pool)
    assert differences([one], [other]) != [""]
