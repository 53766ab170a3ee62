import os
import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest
import torch

from coach_rl.telemetry.resources import ResourceSampler


@pytest.fixture
def clock(monkeypatch):
    """The time the sampler sees; add to `clock[0]`."""
    now = [50.0]
    monkeypatch.setattr("coach_rl.telemetry.resources.time.monotonic", lambda: now[0])
    return now


def work(seconds):
    """Keep this process's processor busy; returns how long in processor time."""
    begin = time.process_time()
    while (worked := time.process_time() - begin) < seconds:
        pass
    return worked


def test_resources_cpu_usage_known_values(clock):
    sampler = ResourceSampler(every_seconds=1.0)
    worked = work(0.3)
    clock[0] += 2.0
    # Ticks of the kernel's clock are 10 ms: 0.5 points of 2 s, twice.
    assert sampler.sample_if_due()["resources/cpu_percent"] == pytest.approx(
        100 * worked / 2.0, abs=1.5
    )
    clock[0] += 2.0
    assert sampler.sample_if_due()["resources/cpu_percent"] < 2.0  # idle since


def test_resources_ended_children_count(clock):
    sampler = ResourceSampler(every_seconds=1.0)
    program = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", program], check=True)
    clock[0] += 1.0
    assert 28.9 <= sampler.sample_if_due()["resources/cpu_percent"] < 60.0


def test_resources_memory_includes_children(clock):
    sampler = ResourceSampler(every_seconds=1.0)

    def memory():
        clock[0] += 1.0
        return sampler.sample_if_due()["resources/memory_mib"]

    alone = memory()
    process = psutil.Process()  # other tests may have left children, as a resource tracker
    own = sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))
    assert alone == pytest.approx(own / 2**20, abs=8)
    # The child grows, not this process, whose allocator may hand out pages it already holds.
    program = "print(flush=True); input(); held = b'x' * (64 * 2**20); print(flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdout.readline()
    before = memory()
    child.stdin.write(b"\n")
    child.stdin.flush()
    child.stdout.readline()
    grown = memory()
    child.communicate(b"\n")
    assert before > alone
    assert grown - before == pytest.approx(64, abs=8)


def test_resources_not_due_is_empty(clock):
    sampler = ResourceSampler(every_seconds=10.0)
    due = []
    for _ in range(25):
        clock[0] += 1.0
        due.append(bool(sampler.sample_if_due()))
    assert [second for second, is_due in enumerate(due, 1) if is_due] == [10, 20]


def test_resources_gpu_memory_sums_all_gpus(clock, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda gpu: (1, 2)[gpu] * 2**20)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda gpu: (2, 3)[gpu] * 2**20)
    sampler = ResourceSampler(every_seconds=1.0)
    clock[0] += 1.0
    scalars = sampler.sample_if_due()
    assert scalars["resources/gpu_memory_mib"] == 3.0
    assert scalars["resources/gpu_memory_reserved_mib"] == 5.0


def test_resources_no_gpu_has_no_gpu_metrics(clock, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    sampler = ResourceSampler(every_seconds=1.0)
    clock[0] += 1.0
    scalars = sampler.sample_if_due()
    assert set(scalars) == {
        "resources/busiest_core_percent",
        "resources/cores_percent",
        "resources/cpu_percent",
        "resources/memory_mib",
    }
    assert 0 <= scalars["resources/cores_percent"] <= scalars["resources/busiest_core_percent"]


class Nvml(SimpleNamespace):
    """NVIDIA's library on a machine with three GPUs."""

    class NVMLError(Exception):
        pass

    def nvmlInit(self):  # noqa: N802
        if self.has_no_driver:
            raise self.NVMLError

    def nvmlDeviceGetCount(self):  # noqa: N802
        return len(self.processes)

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return index

    def nvmlDeviceGetComputeRunningProcesses(self, gpu):  # noqa: N802
        return [
            SimpleNamespace(pid=pid, usedGpuMemory=mib and mib * 2**20)
            for pid, mib in self.processes[gpu].items()
        ]

    def nvmlDeviceGetUtilizationRates(self, gpu):  # noqa: N802
        return SimpleNamespace(gpu=(90, 50, 7)[gpu])


@pytest.fixture
def gpu_scalars(clock, monkeypatch):
    """The metrics by NVIDIA's library, given who uses which GPU with how many MiB."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)

    def sampled(*processes, has_no_driver=False):
        nvml = Nvml(processes=processes, has_no_driver=has_no_driver)
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        sampler = ResourceSampler(every_seconds=1.0)
        clock[0] += 1.0
        scalars = sampler.sample_if_due()
        names = ("resources/gpu_percent", "resources/gpu_memory_all_mib")
        return tuple(scalars.get(name) for name in names)

    return sampled


def test_resources_gpus_of_process_and_children(gpu_scalars):
    stranger, own = 1, os.getpid()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        scalars = gpu_scalars({own: 100, stranger: 4_000}, {stranger: 9}, {child.pid: 30})
        child.communicate(b"\n")
    assert scalars == (97.0, 130.0)


@pytest.mark.parametrize("processes", [({1: 9},), ()], ids=["others", "no gpu"])
def test_resources_unused_gpu_is_missing(gpu_scalars, processes):
    assert gpu_scalars(*processes) == (None, None)


def test_resources_no_driver_is_missing(gpu_scalars):
    assert gpu_scalars({os.getpid(): 1}, has_no_driver=True) == (None, None)


def test_resources_unknown_gpu_memory_keeps_load(gpu_scalars):
    assert gpu_scalars({os.getpid(): None}) == (90.0, None)


def test_pynvml_has_used_functions():
    nvml = pytest.importorskip("pynvml")
    assert not [name for name in vars(Nvml) if name.startswith("nvml") and not hasattr(nvml, name)]
    assert issubclass(nvml.NVMLError, Exception)
