"""Tables and axes of studies count frames, and show human-normalised scores of games."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import coach_rl as rl
from coach_rl.extensions.atari.human_scores import human_normalised
from coach_rl.extensions.studies.plots import Plots
from coach_rl.extensions.studies.reference_scores import normalised_score
from coach_rl.extensions.studies.runs import find_runs
from coach_rl.extensions.studies.scores import read_scores
from coach_rl.extensions.studies.tables import seed_tables
from coach_rl.presets.Atari_PPO import Panel, graph_manager


def test_score_of_a_person_is_one_and_other_tasks_have_none():
    assert human_normalised("pong", 14.6) == 1
    assert human_normalised("pong", -20.7) == 0
    assert human_normalised("hopper", 14.6) is None


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a short run of Pong, with games of ten steps."""
    panel = Panel(steps=64, num_envs=2, rollout=32, minibatch=16, epochs=1, evaluation_interval=32)
    experiment = graph_manager(panel)
    experiment.parameters = replace(
        experiment.parameters, environment=rl.AtariParameters(level="pong", max_episode_steps=10)
    )
    result = rl.run_experiment(
        experiment,
        rl.Runtime(seed=0, device="cpu"),
        name="pong",
        root=tmp_path_factory.mktemp("runs"),
        settings=rl.RunSettings(final_episodes=rl.EnvironmentEpisodes(1), tensorboard=False),
    )
    return result.folder.path


def test_tables_show_frames_and_normalised_scores(run):
    scores = read_scores(run)
    assert scores.frames == 4 * 64
    assert normalised_score(scores) == pytest.approx(20.7 / 35.3)  # no point in ten steps
    first = seed_tables([scores])[0]
    shown = dict(zip([column.title for column in first.columns], first.cells()[0], strict=True))
    assert shown["frames"] == "256"
    assert shown["normalised"] == f"{20.7 / 35.3:.3f}"


def test_axis_of_frames_is_above_that_of_steps(run):
    frame, *_ = find_runs([run])
    figure = Plots(frame=frame, metric="reward_mean").curves("reward_mean")
    assert figure is not None
    (above,) = figure.axes[0].child_axes
    assert above.get_xlabel() == "frames"
    FigureCanvasAgg(figure).draw()
    np.testing.assert_allclose(above.get_xlim(), 4 * np.array(figure.axes[0].get_xlim()))
    plt.close(figure)
