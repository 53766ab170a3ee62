"""Trackers show the same names by the same steps as TensorBoard, and continue their runs.

Packages are replaced by doubles; each service is also tried with its own package where that is
installed.
"""

import sys
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock, call

import numpy as np
import pytest
from PIL import Image

from coach_rl.core import LogRecord, SinkRun
from coach_rl.core.clock import Phase
from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.extensions.looking.trackers import TrackerParameters, TrackerRun, TrackerSink

MANIFEST = {"name": "walk", "level": "hopper", "preset": {"name": "Mujoco_PPO"}}
SETTINGS = {"seed": 7, "panel.learning_rate": 0.01, "layers": [64, 32]}


def record(steps, scalars, kind="train", **fields):
    counters = {"training_steps": steps, "episodes": 1, "wall_seconds": 0.5}
    return LogRecord(
        kind=kind, phase=Phase.TRAIN, environment_steps=steps, scalars=scalars, **counters, **fields
    )


CHECKPOINT = record(10, {"checkpoint/best": 1.0}, kind="checkpoint")
FIRST = [
    record(5, {"train/policy_loss": 0.25}, level="main", agent="agent"),
    record(10, {"train/policy_loss": 0.125}, level="main", agent="agent"),
    record(8, {"evaluation/reward_mean": 4.5}, kind="evaluation"),  # in the background
    CHECKPOINT,
]
LATER = [record(15, {"train/policy_loss": 0.0625}, level="main", agent="agent")]


class Notes(TrackerRun):
    """A tracker that keeps everything in lists."""

    def __init__(self, run):
        self.run, self.points, self.calls = run, [], []

    def log(self, scalars, step):
        self.points += [(name, step, value) for name, value in scalars.items()]

    def log_image(self, name, image, step):
        self.calls.append((name, image.shape, step))

    def log_video(self, file, step):
        self.calls.append((file.name, step))

    def flush(self):
        self.calls.append("flush")

    def finish(self):
        self.calls.append("finish")


def run_in(folder):
    (folder / "videos").mkdir(parents=True, exist_ok=True)
    return SinkRun(folder=folder, manifest=MANIFEST, settings=SETTINGS)


def notes_in(folder):
    """A sink, and the tracker behind it."""
    opened = []
    sink = TrackerSink(run_in(folder), lambda run: opened.append(Notes(run)) or opened[0])
    return sink, opened[0]


def sink_of(service, folder):
    parameters = TrackerParameters(service=service, project="walking", tags=("tall",))
    parameters.check()
    return parameters.build(run_in(folder))


def write(service, folder, records=()):
    sink = sink_of(service, folder)
    for each in records:
        sink.write(each)
    sink.close()
    sink.close()


def test_tracker_scalars_have_the_tags_of_tensorboard_and_their_own_steps(tmp_path):
    sink, notes = notes_in(tmp_path)
    for each in FIRST:
        sink.write(each)
    assert notes.points == [
        ("main/agent/train/policy_loss", 5, 0.25),
        ("main/agent/train/policy_loss", 10, 0.125),
        ("evaluation/reward_mean", 8, 4.5),
        ("checkpoint/best", 10, 1.0),
    ]


def test_tracker_gets_new_videos_at_checkpoints_and_at_the_end(tmp_path):
    run_in(tmp_path)
    (tmp_path / "videos" / "step_0.gif").touch()  # of an earlier part of the run
    sink, notes = notes_in(tmp_path)
    (tmp_path / "videos" / "step_5.gif").touch()
    sink.write(record(6, {}, images={"note/map": np.zeros((4, 5), np.uint8)}))
    sink.write(CHECKPOINT)
    sink.write(CHECKPOINT)
    (tmp_path / "videos" / "step_12.mp4").touch()
    sink.close()
    sink.close()
    expected = ["flush", "flush", ("step_12.mp4", 10), "finish"]
    assert notes.calls == [("note/map", (4, 5), 6), ("step_5.gif", 10), *expected]


def test_tracked_run_of_a_resumed_run_has_the_same_id(tmp_path):
    first, resumed, other = (
        notes_in(tmp_path / name)[1].run for name in ("walk_seed7", "walk_seed7", "walk_seed8")
    )
    assert first == resumed
    assert first.id != other.id
    assert (first.name, first.group) == ("walk walk_seed7", "walk")
    assert first.tags == ("walk", "hopper", "Mujoco_PPO")
    assert first.config == SETTINGS


@pytest.fixture
def package(monkeypatch):
    """A function that puts a double of a package in its place."""

    def put(name, *modules):
        double = MagicMock(__spec__=ModuleSpec(name, None))
        monkeypatch.setitem(sys.modules, name, double)
        for each in modules:
            monkeypatch.setitem(sys.modules, f"{name}.{each}", getattr(double, each))
        return double

    return put


def test_wandb_offline_part_continues_row_numbers(tmp_path, package):
    wandb = package("wandb")
    rows = []

    def init(id, **_):
        part = tmp_path / "wandb" / f"offline-run-2026_{len(rows)}-{id}"
        part.mkdir(parents=True)
        rows.append([])
        return MagicMock(
            log=lambda values, step: rows[-1].append((values["environment_steps"], step))
        )

    wandb.init = init
    write("wandb", tmp_path, FIRST)
    for _ in (2, 3):
        with pytest.warns(CoachWarning):
            write("wandb", tmp_path, LATER)
    assert rows == [
        [(5, None), (10, None), (8, None), (10, None)],
        [(15, 10**9)],
        [(15, 2 * 10**9)],
    ]


def test_wandb_run_is_described(tmp_path, package):
    wandb = package("wandb")
    write("wandb", tmp_path)
    given = wandb.init.call_args.kwargs
    assert given["resume"] == "allow"
    assert (given["project"], given["group"]) == ("walking", "walk")
    assert given["tags"] == ["walk", "hopper", "Mujoco_PPO", "tall"]
    wandb.init().config.update.assert_called_once_with(SETTINGS, allow_val_change=True)


def test_wandb_missing_key_error(package, monkeypatch):
    monkeypatch.delenv("WANDB_MODE", raising=False)
    package("wandb").login.return_value = False
    with pytest.raises(ConfigurationError):
        TrackerParameters(service="wandb").check()
    monkeypatch.setenv("WANDB_MODE", "offline")
    TrackerParameters(service="wandb").check()


def test_trackio_run_is_continued_by_name(tmp_path, package):
    trackio = package("trackio")
    write("trackio", tmp_path / "walk_seed7", FIRST[:1])
    given = trackio.init.call_args.kwargs
    assert (given["name"], given["resume"]) == ("walk walk_seed7", "allow")
    assert given["config"] == {**SETTINGS, "tags": ["walk", "hopper", "Mujoco_PPO", "tall"]}
    assert trackio.init().log.call_args == call({"main/agent/train/policy_loss": 0.25}, step=5)


def test_mlflow_metrics_are_sent_at_a_checkpoint_and_a_thousand(tmp_path, package):
    client = package("mlflow", "entities").MlflowClient()
    sys.modules["mlflow.entities"].Metric = lambda name, value, time, step: (name, value, step)
    client.search_runs.return_value = [MagicMock()]
    many = record(6, {f"room/number:{number},": 0.5 for number in range(999)})
    write("mlflow", tmp_path, [FIRST[0], CHECKPOINT, many, FIRST[0], FIRST[1]])
    assert [len(sent.kwargs["metrics"]) for sent in client.log_batch.call_args_list] == [2, 1000, 1]
    first, second = (sent.kwargs["metrics"] for sent in client.log_batch.call_args_list[:2])
    assert first == [("main/agent/train/policy_loss", 0.25, 5), ("checkpoint/best", 1.0, 10)]
    assert second[0] == ("room/number:0_", 0.5, 6)
    assert client.update_run.call_args.kwargs == {"status": "RUNNING"}
    client.create_run.assert_not_called()


def in_wandb(folder):
    """The runs that the package has, and all that it shows of them as text."""
    sys.modules["wandb"].teardown()  # its own process writes the files
    files = sorted(folder.glob("wandb/offline-run-*/*.wandb"))
    assert len(files) == 2
    return {file.stem for file in files}, "".join(file.read_text("latin-1") for file in files)


def in_trackio(_):
    from trackio.sqlite_storage import SQLiteStorage

    (name,) = SQLiteStorage.get_runs("walking")
    logs = SQLiteStorage.get_logs("walking", name)
    return {name}, f"{logs} {SQLiteStorage.get_run_config('walking', name)}"


def in_mlflow(_):
    client = sys.modules["mlflow"].MlflowClient()
    experiment = client.get_experiment_by_name("walking")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.info.status == "FINISHED"
    artifacts = (client.list_artifacts(run.info.run_id, each) for each in ("images", "videos"))
    return {run.info.run_id}, f"{run.data} {[*map(list, artifacts)]}"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:this run has 2 offline parts")
@pytest.mark.parametrize("shown", [in_wandb, in_trackio, in_mlflow])
def test_installed_tracker_has_both_parts_of_a_run(shown, tmp_path, monkeypatch):
    service = shown.__name__.removeprefix("in_")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))  # read at import, which is here
    pytest.importorskip(service, reason=f"it comes with the extra {service}")
    for name in ("WANDB_SILENT", "MLFLOW_ALLOW_FILE_STORE"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    folder = run_in(tmp_path / "walk_seed7").folder
    image = np.zeros((8, 8, 3), np.uint8)
    write(service, folder, [*FIRST, record(6, {}, images={"note/map": image})])
    sink = sink_of(service, folder)
    frames = [Image.fromarray(image + shade) for shade in (0, 250)]
    frames[0].save(folder / "videos" / "step_12.gif", save_all=True, append_images=frames[1:])
    sink.write(LATER[0])
    sink.close()
    runs, text = shown(folder)
    assert len(runs) == 1
    for part in ("policy_loss", "reward_mean", "map", "step_12", "learning_rate"):
        assert part in text
