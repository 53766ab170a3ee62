"""Runs of little use say so, once, with what to change."""

import warnings
from dataclasses import replace

import pytest

from coach_rl.core.errors import CoachWarning
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import BasicRLGraphManager, run_warnings
from tests.builders import created
from tests.graph_managers.small_runs import parameters


def begun(params):
    with created(params) as manager:
        next(manager.improve())


def test_long_run_without_evaluations_warns_at_the_start():
    schedule = {"training": EnvironmentSteps(20_000), "heatup": EnvironmentSteps(5_000)}
    with pytest.warns(CoachWarning):
        begun(parameters(**schedule, evaluation_interval=EnvironmentSteps(15_001)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        begun(parameters(**schedule, evaluation_interval=EnvironmentSteps(15_000)))
        begun(parameters(evaluation_interval=EnvironmentSteps(500)))  # a trial


def test_episodes_without_end_warn_once(monkeypatch):
    monkeypatch.setattr(run_warnings, "ENDLESS", 30)
    endless = replace(
        parameters(evaluation_interval=None), environment=PointMassParameters(max_episode_steps=99)
    )
    manager = BasicRLGraphManager(endless)
    with pytest.warns(CoachWarning) as said:
        manager.run()
    assert len(said) == 1
    manager.close()
    ending = replace(endless, environment=PointMassParameters(max_episode_steps=29))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BasicRLGraphManager(ending).run()
