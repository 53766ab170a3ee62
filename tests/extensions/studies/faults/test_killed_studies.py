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

SMALL = {"seeds": [3, 4], "share": 0.1, "variants": ["maze, two levels"]}
"""A part of the study that is killed for real."""


@pytest.fixture
def quiet(tmp_path):
    """The results of a study that is left alone, in processes of this machine."""
    with closing(LocalPool(2)) as pool:
        return conduct(jobs(tmp_path / "local", **SMALL), pool)


def on_ray(root):
    """The results of a study on a Ray cluster, one of whose workers is killed."""
    killed = []

    def kill(statuses):
        for worker in workers()[:1]:
            if not killed and any(status.folder for status in statuses):
                killed.append(worker.pid)
                worker.kill()

    with cluster() as machines, closing(RayCluster(machines.address)) as place:
        assert place.slots == 2
        given = jobs(root, **SMALL)
        too_large = replace(given[0], needs=Needs(cores=3, gpus=1), name="too_large")
        *found, refused = conduct([*given, too_large], place, on_change=kill)
    assert killed
    assert refused.state == "failed"
    assert refused.error.startswith("a job needs 3 CPU, 1 GPU, and no machine of the Ray cluster")
    assert not list(root.glob(".driver-*"))
    return found


def on_slurm(root):
    """The results of a study that submitit runs on this machine."""
    with closing(Slurm(cluster="local")) as place:
        return conduct(jobs(root, **SMALL), place)


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("conducted", [on_ray, on_slurm])
def test_study_on_a_cluster_equals_one_in_local_processes(conducted, quiet, tmp_path):
    assert not any(differences(conducted(tmp_path / "cluster"), quiet))


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
