"""Tasks for tests, and what they answer."""

from dataclasses import replace

import pytest

from coach_rl.core.errors import RunError
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.environments.dm_control.control_task import ControlTask
from coach_rl.environments.dm_control.parameters import DMControlParameters

SETTINGS = {
    "shows": "vector",
    "action_repeat": 1,
    "picture_size": 84,
    "camera": 0,
    "most_steps": None,
}


def task(name="cartpole-swingup", **changes):
    """One task, reset with seed 0; the test is skipped where pictures cannot be drawn."""
    try:
        made = ControlTask(name, **(SETTINGS | changes))
    except RunError as error:
        pytest.skip(str(error))
    made.reset(seed=0)
    return made


def build(num_envs=1, **fields):
    try:
        return DMControlParameters(**fields).build(num_envs=num_envs)
    except RunError as error:
        pytest.skip(str(error))


def without_evaluations(experiment):
    """The experiment without evaluations, and with many train records."""
    parameters = experiment.parameters
    agent = parameters.agent
    if hasattr(agent, "learning"):
        learning = replace(agent.learning, report_every=5, learning_starts=20)
        agent = replace(agent, learning=learning)
    one = EnvironmentEpisodes(1)  # as many environments are built for evaluations as have room
    schedule = replace(parameters.schedule, evaluation_interval=None, evaluation_episodes=one)
    experiment.parameters = replace(parameters, agent=agent, schedule=schedule)
    return experiment
