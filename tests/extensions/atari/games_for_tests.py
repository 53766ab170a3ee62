"""Games for tests, and what they answer."""

from dataclasses import replace

from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.environments.atari.game import AtariGame
from coach_rl.environments.atari.parameters import AtariParameters

SETTINGS = {
    "protocol": "A",
    "shows": "picture",
    "all_actions": False,
    "frames_per_step": 4,
    "most_frames": 108_000,
    "most_steps": None,
}


def game(name="pong", **changes):
    """One game, reset with seed 0."""
    made = AtariGame(name, **(SETTINGS | changes))
    made.reset(seed=0)
    return made


def build(num_envs=1, **fields):
    return AtariParameters(**fields).build(num_envs=num_envs)


def without_evaluations(experiment):
    """The experiment without the whole games of its evaluations, and with many train records."""
    parameters = experiment.parameters
    agent = parameters.agent
    if hasattr(agent, "learning"):
        agent = replace(agent, learning=replace(agent.learning, report_every=5))
    one = EnvironmentEpisodes(1)  # as many environments are built for evaluations as have room
    schedule = replace(parameters.schedule, evaluation_interval=None, evaluation_episodes=one)
    experiment.parameters = replace(parameters, agent=agent, schedule=schedule)
    return experiment
