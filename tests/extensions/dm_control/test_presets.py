"""Presets of the Control Suite: settings, switches, runs that resume bit for bit."""

from dataclasses import replace

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.presets import DMControl_Pixels_SAC, DMControl_PPO, DMControl_SAC, DMControl_TD3
from tests.extensions.dm_control.tasks_for_tests import task, without_evaluations

STATE = [DMControl_PPO, DMControl_SAC, DMControl_TD3]


@pytest.mark.parametrize("preset", [*STATE, DMControl_Pixels_SAC])
def test_presets_take_tasks_with_their_prefix(preset):
    one, other = (
        preset.graph_manager(preset.Panel(level=level)).parameters
        for level in ("walker-run", "dm_control:walker-run")
    )
    assert one == other
    assert one.environment.level == "walker-run"


def pixels(**panel):
    return DMControl_Pixels_SAC.graph_manager(DMControl_Pixels_SAC.Panel(**panel)).parameters


def test_pictures_are_stacked_kept_once_and_shifted():
    parameters = pixels()
    memory = parameters.agent.memory
    assert memory.frame_stack == ("observation",)
    assert memory.parts == (rl.RandomShiftParameters(pad=4, keys=("observation",)),)
    assert memory.capacity * 84 * 84 * 3 < 2.2e9
    (stack,) = parameters.agent.input_filter.observation["observation"]
    assert stack.stack_size == 3
    assert parameters.environment.action_repeat == 8
    assert pixels(level="cheetah-run").environment.action_repeat == 4
    assert pixels(level="cheetah-run", action_repeat=1).environment.action_repeat == 1


def test_switches_of_shifts():
    assert pixels(shift=0).agent.memory.parts == ()
    (shift,) = pixels(shift=2, targets=2, losses=3).agent.memory.parts
    assert (shift.pad, shift.targets, shift.losses) == (2, 2, 3)
    with pytest.raises(rl.ParameterError, match="nothing to average over, got targets=2"):
        pixels(shift=0, targets=2)


def test_actor_borrows_the_convolutions_of_the_critics():
    agent = pixels(features=30).agent
    assert agent.critic.torso.convolutions_of == "own"
    assert agent.actor.torso == replace(agent.critic.torso, convolutions_of="critics")


def small(preset, panel):
    """An experiment that learns early and little."""
    experiment = preset.graph_manager(preset.Panel(**panel))
    parameters = experiment.parameters
    environment = replace(parameters.environment, max_episode_steps=15)
    if preset is DMControl_Pixels_SAC:
        environment = replace(environment, picture_size=30)
        layers = ((4, 3, 2), (4, 3, 2))
        actor, critic = parameters.agent.actor, parameters.agent.critic
        parameters = replace(
            parameters,
            agent=replace(
                parameters.agent,
                actor=replace(actor, torso=replace(actor.torso, convolutions=layers)),
                critic=replace(critic, torso=replace(critic.torso, convolutions=layers)),
            ),
        )
    experiment.parameters = replace(parameters, environment=environment)
    return without_evaluations(experiment)


OFF_POLICY = {"steps": 100, "heatup": 20, "batch": 8, "memory": 300, "layers": (16,)}


def test_acting_reads_the_convolutions_that_the_critics_have_learned():
    task(shows="picture").close()
    with small(DMControl_Pixels_SAC, {**OFF_POLICY, "steps": 40}) as experiment:
        experiment.create_graph(rl.Runtime(seed=0, device="cpu"))
        experiment.run()
        (agent,) = experiment.graph.agents.values()
        shown = {"observation": np.full((2, 30, 30, 3, 3), 90, np.uint8)}
        before = agent.policy_actions(shown)
        agent.learner.critics.online.mul_(1.1)
        assert not np.array_equal(agent.policy_actions(shown), before)
