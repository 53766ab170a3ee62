"""Curves in a notebook; what shows a picture there stands in for IPython."""

from dataclasses import replace
from itertools import pairwise

import pytest

from coach_rl.core import LogRecord
from coach_rl.core.clock import Phase
from coach_rl.extensions.looking.notebook import MOST_POINTS, NotebookSink
from tests.notebooks import stand_in_for_ipython

RECORD = LogRecord(
    kind="episode",
    phase=Phase.TRAIN,
    environment_steps=0,
    training_steps=0,
    episodes=0,
    wall_seconds=0.0,
)


@pytest.fixture
def shown(monkeypatch):
    """The pictures that a notebook was given."""
    return stand_in_for_ipython(monkeypatch)


def said(kind, steps, level="", **scalars):
    named = {name.replace("__", "/"): value for name, value in scalars.items()}
    return replace(RECORD, kind=kind, environment_steps=steps, level=level, scalars=named)


def curves(sink):
    """The points of each curve, by the title of its axes and its name."""
    return {
        (axes.get_title(), line.get_label()): line.get_xydata().tolist()
        for axes in sink.figure.axes
        for line in axes.lines
    }


def test_notebook_curves_over_steps(shown):
    sink = NotebookSink(every_seconds=1e9)
    for reward, steps in ((1.0, 10), (3.0, 20)):
        sink.write(said("episode", steps, episode__reward=reward))
    sink.write(said("train", 20, "low", train__q_loss=0.5, train__learning_rate=1.0))
    sink.write(said("level", 20, "low", level__goal_share=0.25))
    evaluated = {"evaluation__reward_mean": 7.0, "evaluation__success_rate": 0.5}
    sink.write(said("evaluation", 30, **evaluated))
    assert len(shown) == 2  # the empty one, and that of the first record
    sink.close()
    assert len(shown) == 3
    assert all(picture.startswith(b"\x89PNG") for picture in shown)
    assert curves(sink) == {
        ("reward", "training episodes"): [[10.0, 1.0], [20.0, 2.0]],
        ("reward", "evaluation"): [[30.0, 7.0]],
        ("success", "low"): [[20.0, 0.25]],
        ("success", "evaluation"): [[30.0, 0.5]],
        ("losses", "low q loss"): [[20.0, 0.5]],
    }


def test_notebook_long_run_points_are_limited(shown):
    sink = NotebookSink(every_seconds=1e9)
    for steps in range(1, 5 * MOST_POINTS):
        sink.write(said("evaluation", steps, evaluation__reward_mean=float(steps)))
    sink.close()
    (points,) = curves(sink).values()
    assert MOST_POINTS / 2 <= len(points) < MOST_POINTS
    steps = [step for step, _ in points]
    assert len({later - sooner for sooner, later in pairwise(steps)}) == 1
    assert steps[-1] > 4.9 * MOST_POINTS


def test_notebook_catch_up_starts_over(shown):
    sink = NotebookSink()
    sink.write(said("episode", 10, episode__reward=1.0))
    sink.catch_up([said("evaluation", 5, evaluation__reward_mean=2.0)])
    assert curves(sink) == {("reward", "evaluation"): [[5.0, 2.0]]}
    assert sink.figure.get_suptitle() == "5 environment steps"
