"""The words after `--on`."""

from types import SimpleNamespace

import pytest

from coach_rl.extensions.studies import places
from coach_rl.extensions.studies.job import Needs
from coach_rl.extensions.studies.places import check_place, max_parallel_runs


@pytest.mark.parametrize("place", ["local", "ray", "ray:10.0.0.1:6379", "slurm", "slurm:long"])
def test_places_are_known(place):
    check_place(place)


@pytest.fixture
def of_machine(monkeypatch, tmp_path):
    """A machine of 8 cores and 16 GB free memory, with control groups in a folder."""
    memory = SimpleNamespace(available=16e9)
    monkeypatch.setattr(places.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(places.psutil, "virtual_memory", lambda: memory)
    monkeypatch.setattr(places, "_CGROUPS", tmp_path)
    monkeypatch.setattr(places, "_MEMBERSHIP", tmp_path / "membership")
    return tmp_path


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)


def test_max_parallel_runs_one_per_core(of_machine, monkeypatch):
    assert max_parallel_runs(Needs()) == 8
    assert max_parallel_runs(Needs(cores=3)) == 2
    monkeypatch.setattr(places.os, "sched_getaffinity", lambda _: {1, 2})
    assert max_parallel_runs(Needs()) == 2


def test_max_parallel_runs_limited_by_memory(of_machine):
    assert max_parallel_runs(Needs(memory_gb=5.0)) == 3
    assert max_parallel_runs(Needs(memory_gb=100.0)) == 1


def test_max_parallel_runs_container_limits_cores_and_memory(of_machine):
    write(of_machine, membership="0::/jobs/one\n")
    (of_machine / "membership").write_text("0::/jobs/one\n")
    write(of_machine / "jobs", cpu_max="400000 100000\n", memory_max="max\n")
    write(of_machine / "jobs" / "one", cpu_max="max 100000\n")
    assert max_parallel_runs(Needs()) == 4
    write(of_machine / "jobs", memory_max="8000000000\n", memory_current="6000000000\n")
    write(of_machine / "jobs", memory_stat="anon 1\ninactive_file 1000000000\n")
    assert max_parallel_runs(Needs(memory_gb=1.5)) == 2


def test_max_parallel_runs_cgroup_v1_limits(of_machine):
    (of_machine / "membership").write_text("4:memory:/docker/x\n2:cpu,cpuacct:/\n")
    (of_machine / "cpu").mkdir()
    (of_machine / "memory").mkdir()
    (of_machine / "cpu" / "cpu.cfs_quota_us").write_text("250000\n")
    (of_machine / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert max_parallel_runs(Needs()) == 2
    (of_machine / "memory" / "memory.limit_in_bytes").write_text("3000000000\n")
    (of_machine / "memory" / "memory.usage_in_bytes").write_text("2000000000\n")
    assert max_parallel_runs(Needs(memory_gb=0.6)) == 1
