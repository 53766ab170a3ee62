"""What TensorBoard shows of a run besides scalars."""

import io

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar.layout_pb2 import Layout
from tensorboard.plugins.hparams.metadata import (
    EXPERIMENT_TAG,
    SESSION_END_INFO_TAG,
    SESSION_START_INFO_TAG,
    parse_experiment_plugin_data,
    parse_session_start_info_plugin_data,
)

from coach_rl.graph_managers.statistics import histogram
from coach_rl.telemetry import TensorBoardSink
from coach_rl.telemetry.log_files import CsvSink, logged_names
from coach_rl.telemetry.tensorboard import Introduction, layout
from tests.telemetry.test_log_files import record

LAYOUT_TAG = "custom_scalars__config__"
INTERVAL = [f"evaluation/reward_iqm{end}" for end in ("", "_low", "_high")]


def read(folder):
    events = EventAccumulator(str(folder), size_guidance={"tensors": 0, "images": 0})
    return events.Reload()


def titles(charts):
    return {
        category.title: [chart.title for chart in category.chart] for category in charts.category
    }


def newest_layout(folder):
    return Layout.FromString(read(folder).Tensors(LAYOUT_TAG)[-1].tensor_proto.string_val[0])


def test_layout_first_page_shows_learning():
    charts = layout([*INTERVAL, "episode/reward", "evaluation/success_rate"])
    assert titles(charts) == {
        "Is it learning?": [
            "Return in evaluations, 95 % interval",
            "Return of training episodes, and mean of evaluations",
            "Success",
        ]
    }
    (series,) = charts.category[0].chart[0].margin.series
    assert [series.value, series.lower, series.upper] == INTERVAL


def test_layout_has_no_empty_chart():
    assert layout(["checkpoint/best"]) is None


@pytest.mark.parametrize(
    ("metric", "title"),
    [
        ("train/approx_kl", "KL divergence of an update"),
        ("train/clip_fraction", "Share of actions clipped"),
        ("train/critic_loss", "Error of the critic: TD error, squared or Huber"),
        ("train/q_value", "Q values: mean, lowest, highest"),
    ],
)
def test_layout_agent_charts_follow_algorithm(metric, title):
    assert titles(layout([f"low/ppo/{metric}"])) == {"Agent low/ppo": [title]}


def test_layout_level_has_sub_goal_page():
    tags = [f"{level}/level/goal_share" for level in ("top", "low.1")]
    charts = layout([*tags, "top/evaluation_level/goal_share"])
    assert titles(charts) == {
        "Is it learning?": ["Sub-goals reached in evaluations, by level"],
        "Level top": ["Sub-goals reached"],
        "Level low.1": ["Sub-goals reached"],
    }
    assert charts.category[2].chart[0].multiline.tag[0] == r"low\.1/level/goal_share$"


def test_layout_graph_size_in_evaluations_has_chart():
    tags = ["top/level/steps", "top/evaluation_level/graph_places"]
    assert "Size of the graph" in titles(layout(tags))["Level top"]


def test_layout_chart_is_independent_of_other_metrics():
    """TensorBoard merges equal charts of several runs, and doubles those that differ."""
    one = layout(["main/a/train/policy_loss"]).category[0].chart[0]
    both = layout(["main/a/train/actor_loss", "main/a/train/policy_loss"]).category[0].chart[0]
    assert one == both


def test_tensorboard_layout_grows_with_metrics(tmp_path):
    sink = TensorBoardSink(tmp_path)
    sink.write(record("episode", 1, scalars={"episode/reward": 1.0}))
    for step in (2, 3):
        sink.write(record("evaluation", step, scalars=dict.fromkeys(INTERVAL, 1.0)))
    sink.close()
    assert len(read(tmp_path).Tensors(LAYOUT_TAG)) == 2
    assert len(newest_layout(tmp_path).category[0].chart) == 2


def test_tensorboard_resumed_run_has_all_charts(tmp_path):
    introduction = Introduction(texts={"command": "coach"}, settings={"clip": 0.2, "level": "ant"})
    scalars = dict.fromkeys([*INTERVAL, "episode/reward"], 1.0)
    table = CsvSink(tmp_path)
    table.write(record("evaluation", 1, scalars=scalars))
    table.write(record("train", 1, level="low", agent="ppo", scalars={"train/entropy": 1.0}))
    table.close()
    for resumed_at in (None, 10):
        sink = TensorBoardSink(
            tmp_path,
            resumed_at=resumed_at,
            introduction=introduction,
            known=logged_names(tmp_path, ["low"]),
        )
        sink.write(record("episode", 10, scalars={"episode/reward": 1.0}))
        sink.close()
    events = read(tmp_path)
    (text,) = events.Tensors("run/command")
    assert (text.step, text.tensor_proto.string_val) == (0, [b"coach"])
    assert "Agent low/ppo" in titles(newest_layout(tmp_path))
    assert len(newest_layout(tmp_path).category[0].chart) == 2


def test_tensorboard_hyper_parameters_and_scores_in_run(tmp_path):
    settings = {"clip": 0.2, "level": "ant", "shared": True}
    sink = TensorBoardSink(tmp_path, introduction=Introduction(settings=settings))
    sink.write(record("progress", 1, scalars={"time/steps_per_second": 5.0}))
    assert SESSION_END_INFO_TAG not in read(tmp_path).summary_metadata
    sink.write(record("final_evaluation", 2, scalars={"final_evaluation/reward_mean": 5.0}))
    sink.close()
    found = read(tmp_path).summary_metadata
    assert SESSION_END_INFO_TAG in found
    start = parse_session_start_info_plugin_data(found[SESSION_START_INFO_TAG].plugin_data.content)
    assert start.hparams["clip"].number_value == 0.2
    assert start.hparams["level"].string_value == "ant"
    assert start.hparams["shared"].bool_value
    experiment = parse_experiment_plugin_data(found[EXPERIMENT_TAG].plugin_data.content)
    assert {each.name for each in experiment.hparam_infos} == set(settings)
    assert "final_evaluation/reward_mean" in {m.name.tag for m in experiment.metric_infos}
    assert [path.is_file() for path in tmp_path.iterdir()] == [True]  # no sub-runs


def test_tensorboard_histogram_counts_finite_values(tmp_path):
    bins = histogram(np.array([[0.0, 1.0], [np.nan, 3.0]]), bins=3)
    assert bins.tolist() == [[0.0, 1.0, 1.0], [1.0, 2.0, 1.0], [2.0, 3.0, 1.0]]
    assert histogram(np.array([np.inf])).shape == (0, 3)
    sink = TensorBoardSink(tmp_path)
    arrays = {"actions": bins}
    sink.write(record("histogram", 7, level="low", agent="ppo", arrays=arrays))
    sink.close()
    (found,) = read(tmp_path).Tensors("low/ppo/actions")
    assert found.step == 7
    assert np.frombuffer(found.tensor_proto.tensor_content).reshape(3, 3).tolist() == bins.tolist()


@pytest.mark.parametrize(
    ("file", "tag"),
    [("step_20.gif", "videos/evaluation"), ("step_20_final.gif", "videos/final")],
)
def test_tensorboard_gif_is_image(tmp_path, file, tag):
    image = io.BytesIO()
    Image.new("RGB", (4, 3)).save(image, "GIF")
    (tmp_path / file).write_bytes(image.getvalue())
    sink = TensorBoardSink(tmp_path)
    sink.write(record("file", 20, text=file))
    sink.write(record("file", 20, text="step_20.mp4"))
    sink.close()
    (found,) = read(tmp_path).Tensors(tag)
    assert list(found.tensor_proto.string_val) == [b"4", b"3", image.getvalue()]


def test_tensorboard_note_shows_its_histograms_and_pictures(tmp_path):
    picture = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    sink = TensorBoardSink(tmp_path)
    sink.write(
        record(
            "note",
            40,
            level="top",
            scalars={"goals/count": 2.0},
            arrays={"goals/x": histogram(np.array([0.0, 1.0, 1.0]), bins=2)},
            images={"goals/map": picture, "goals/plain": picture[..., 0]},
        )
    )
    sink.close()
    events = read(tmp_path)
    assert events.Scalars("top/goals/count")[0].value == 2
    bins = events.Tensors("top/goals/x")[0].tensor_proto
    assert np.frombuffer(bins.tensor_content).reshape(-1, 3)[:, 2].tolist() == [1, 2]
    for tag, wanted in (("top/goals/map", picture), ("top/goals/plain", picture[..., 0])):
        width, height, png = events.Tensors(tag)[0].tensor_proto.string_val
        assert (int(width), int(height)) == (7, 5)
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png))), wanted)
