"""Trackers show the same names by the same steps as TensorBoard, and continue their runs.

Each is tried with its own package, offline; one that isn't installed is skipped.
"""

import json
import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from coach_rl.core.clock import Phase
from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.telemetry import LogRecord, SinkRun, TensorBoardSink
from coach_rl.telemetry.tracker import TrackerParameters

SERVICES = ("wandb", "trackio", "mlflow")
MANIFEST = {
    "name": "walk",
    "level": "hopper",
    "task": {"$type": "coach_rl.core.runtime:Runtime", "seed": 7},
    "panel": {"learning_rate": 0.01},
    "preset": {"name": "Mujoco_PPO"},
    "parameters": {
        "$type": "m:Graph",
        "num_envs": 4,
        "schedule": {"training": {"$type": "coach_rl.core.steps:EnvironmentSteps", "count": 100}},
        "layers": [64, 32],
    },
}
CONFIG = {
    "seed": 7,
    "level": "hopper",
    "preset": "Mujoco_PPO",
    "panel.learning_rate": 0.01,
    "num_envs": 4,
    "schedule.training": "EnvironmentSteps",
    "schedule.training.count": 100,
    "layers.0": 64,
    "layers.1": 32,
}


def record(steps, scalars, kind="train", **fields):
    counters = {"training_steps": steps, "episodes": 1, "wall_seconds": 0.5}
    return LogRecord(
        kind=kind, phase=Phase.TRAIN, environment_steps=steps, scalars=scalars, **counters, **fields
    )


FIRST = [
    record(5, {"train/policy_loss": 0.25}, level="main", agent="agent"),
    record(5, {"evaluation/reward_mean": 3.5}, kind="evaluation"),
    record(10, {"train/policy_loss": 0.125}, level="main", agent="agent"),
    record(
        8, {"evaluation/reward_mean": 4.5}, kind="evaluation"
    ),  # in the background, of earlier steps
    record(10, {"checkpoint/best": 1.0}, kind="checkpoint"),
]
LATER = [record(15, {"train/policy_loss": 0.0625}, level="main", agent="agent")]


@pytest.fixture(params=SERVICES)
def service(request, tmp_path, monkeypatch):
    pytest.importorskip(request.param, reason=f"it comes with the extra {request.param}")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    if request.param == "trackio":  # whose folder is fixed at import
        from trackio import sqlite_storage, utils

        for module in (sqlite_storage, utils):
            monkeypatch.setattr(module, "TRACKIO_DIR", tmp_path / "trackio", raising=False)
        monkeypatch.setattr(utils, "MEDIA_DIR", tmp_path / "trackio" / "media", raising=False)
    return request.param


def sink_of(service, folder):
    tracker = TrackerParameters(service=service, project="walking", tags=("tall",))
    tracker.check()
    return tracker.build(SinkRun(folder=folder, manifest=MANIFEST))


def write(service, folder, records):
    sink = sink_of(service, folder)
    for each in records:
        sink.write(each)
    sink.close()
    sink.close()


def shown(service, folder):
    """What the service has, read with its own package: points, config, number of runs, videos."""
    return {"wandb": wandb_runs, "trackio": trackio_runs, "mlflow": mlflow_runs}[service](folder)


def wandb_runs(folder):
    import wandb
    from wandb.proto.wandb_internal_pb2 import Record

    wandb.teardown()  # its own process writes the file
    points, config, ids, videos = [], {}, set(), []
    for file in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        for data in wandb_entries(file.read_bytes()):
            entry = Record.FromString(data)
            ids |= {entry.run.run_id} - {""}
            for item in (*entry.run.config.update, *entry.config.update):
                config[item.key] = json.loads(item.value_json)
            row = {item.nested_key[0]: json.loads(item.value_json) for item in entry.history.item}
            videos += [name for name in row if name.startswith("videos/")]  # of several parts
            points += [
                (name, row["environment_steps"], value)
                for name, value in row.items()
                if "/" in name and not name.startswith("videos/")
            ]
    assert len(ids) == 1
    return points, config, videos


def wandb_entries(data):
    """The entries of an offline file: blocks of 32 kB, entries in parts of kind full to last."""
    begun, at = b"", 7
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        begun += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield begun
            begun = b""


def trackio_runs(folder):
    from trackio.sqlite_storage import SQLiteStorage

    (name,) = SQLiteStorage.get_runs("walking")
    rows = SQLiteStorage.get_logs("walking", name)
    videos = [key for row in rows for key in row if key.startswith("videos/")]
    points = [
        (key, row["step"], value)
        for row in rows
        for key, value in row.items()
        if "/" in key and not key.startswith("videos/")
    ]
    return points, SQLiteStorage.get_run_config("walking", name), videos


def mlflow_runs(folder):
    from mlflow import MlflowClient

    client = MlflowClient()
    experiment = client.get_experiment_by_name("walking")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    points = [
        (name, each.step, each.value)
        for name in run.data.metrics
        for each in client.get_metric_history(run.info.run_id, name)
    ]
    files = client.list_artifacts(run.info.run_id, "videos")
    return points, run.data.params, [file.path for file in files]


def tensorboard_points(folder, records):
    sink = TensorBoardSink(folder)
    for each in records:
        sink.write(each)
    sink.close()
    (file,) = folder.glob("events.out*")
    return [
        (value.tag, event.step, value.tensor.float_val[0])
        for event in EventFileLoader(str(file)).Load()
        for value in event.summary.value
        if value.tensor.float_val  # no charts, texts or settings
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:this run has 2 offline parts")
def test_trackers_names_steps_and_parameters_equal(service, tmp_path):
    run = tmp_path / "hopper_seed7"
    (run / "videos").mkdir(parents=True)
    sink = sink_of(service, run)
    frames = [Image.fromarray(np.full((8, 8, 3), shade, np.uint8)) for shade in (0, 250)]
    frames[0].save(run / "videos" / "step_5.gif", save_all=True, append_images=frames[1:])
    for each in FIRST:
        sink.write(each)
    sink.close()
    write(service, run, LATER)
    points, config, videos = shown(service, run)
    assert sorted(points) == sorted(tensorboard_points(tmp_path / "tb", [*FIRST, *LATER]))
    assert {name: str(config[name]) for name in CONFIG} == {k: str(v) for k, v in CONFIG.items()}
    assert len(videos) == 1
    assert "step_5" in videos[0]


def test_wandb_offline_part_continues_row_numbers(tmp_path, monkeypatch):
    rows = []

    def init(id, dir, **_):
        number = len(list(tmp_path.glob("wandb/*")))
        (tmp_path / "wandb" / f"offline-run-2026_{number}-{id}").mkdir(parents=True)
        begun = []
        rows.append(begun)

        def log(_values, step=None):
            begun.append(len(begun) if step is None else step)

        nothing = SimpleNamespace(update=lambda *_, **__: None)
        return SimpleNamespace(
            log=log, config=nothing, define_metric=lambda *_, **__: None, finish=lambda: None
        )

    double = SimpleNamespace(init=init, Settings=lambda **_: None, login=lambda **_: True)
    double.__spec__ = ModuleSpec("wandb", None)
    monkeypatch.setitem(sys.modules, "wandb", double)
    write("wandb", tmp_path, FIRST)
    for _ in (2, 3):
        with pytest.warns(CoachWarning):
            write("wandb", tmp_path, LATER)
    assert rows == [[0, 1, 2, 3, 4], [10**9], [2 * 10**9]]


def test_wandb_missing_key_error(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="it comes with the extra wandb")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError):
        TrackerParameters(service="wandb").check()
