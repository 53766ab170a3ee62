"""Presets of Atari games: networks for pictures, switches, both protocols."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.configuration.familiar_names import familiar_presets
from coach_rl.core.errors import ParameterError, SpaceError, UnknownNameError
from coach_rl.extensions.atari.impala import ImpalaTorso
from coach_rl.presets import Atari_DQN, Atari_PPO, Atari_Rainbow
from tests.extensions.atari.games_for_tests import without_evaluations

PICTURES = spaces.Dict({"observation": spaces.Box(0, 255, (84, 84, 4), np.uint8)})


def test_impala_torso_has_the_layers_of_the_paper():
    torso = ImpalaTorso(PICTURES)
    convolutions = [each for each in torso.modules() if isinstance(each, torch.nn.Conv2d)]
    assert len(convolutions) == 15
    # 3 sections of a convolution and 4 in blocks; 32 channels of 11 x 11 pixels into 256 or more
    expected = [(4, 16)] + [(16, 16)] * 4 + [(16, 32)] + [(32, 32)] * 4 + [(32, 32)] * 5
    assert [(each.in_channels, each.out_channels) for each in convolutions] == expected
    assert torso.dense.in_features == 32 * 11 * 11
    shown = torch.zeros((3, 84, 84, 4), dtype=torch.uint8)
    assert torso({"observation": shown}).shape == (3, 512)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({"observation": spaces.Box(0, 1, (128,), np.float32)}),
        spaces.Dict({"a": PICTURES["observation"], "b": PICTURES["observation"]}),
    ],
)
def test_impala_torso_refuses_what_is_no_picture(space):
    with pytest.raises(SpaceError, match="ImpalaTorso takes one observation"):
        ImpalaTorso(space)


@pytest.mark.parametrize("preset", [Atari_PPO, Atari_DQN])
def test_lost_lives_are_terminal_under_protocol_b_alone(preset):
    for protocol, parts in (("A", ()), ("B", (rl.TerminalInfo(info="life_lost"),))):
        experiment = preset.graph_manager(preset.Panel(protocol=protocol))
        assert experiment.parameters.parts == parts
        assert experiment.parameters.levels[0].parts == parts
        assert experiment.parameters.environment.protocol == protocol


def test_evaluations_of_dqn_have_random_actions():
    experiment = Atari_DQN.graph_manager(Atari_DQN.Panel(level="breakout", protocol="B"))
    evaluated = experiment.parameters.evaluation_environment
    assert evaluated.random_actions == 0.01
    assert (evaluated.level, evaluated.protocol) == ("breakout", "B")
    without = Atari_DQN.graph_manager(Atari_DQN.Panel(evaluation_epsilon=0.0))
    assert without.parameters.evaluation_environment is None


def test_memory_of_dqn_keeps_each_picture_once():
    experiment = Atari_DQN.graph_manager(Atari_DQN.Panel())
    memory = experiment.parameters.agent.memory
    assert memory.frame_stack == ("observation",)
    assert memory.capacity * 84 * 84 < 0.71e9


def test_memory_of_dqn_on_the_disk_is_a_switch():
    experiment = Atari_DQN.graph_manager(Atari_DQN.Panel(storage="disk", memory=1_000_000))
    assert experiment.parameters.agent.memory.storage == rl.DiskStorage()


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize("recurrence", ["none", "lstm"])
@pytest.mark.parametrize("preset", [Atari_PPO, Atari_DQN])
def test_console_memory_in_place_of_pictures(preset, recurrence):
    experiment = preset.graph_manager(preset.Panel(shows="memory", recurrence=recurrence))
    experiment.create_graph(rl.Runtime(seed=0, device="cpu"))
    try:
        (agent,) = experiment.graph.agents.values()
        assert agent.observation_space["observation"].shape == (128,)
    finally:
        experiment.close()


@pytest.mark.parametrize("change", [{"torso": "impala"}, {"frames": 4}])
def test_settings_of_pictures_are_refused_for_the_console_memory(change):
    with pytest.raises(ParameterError, match="are for pictures"):
        Atari_PPO.graph_manager(Atari_PPO.Panel(shows="memory", **change))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Pong", "pong"),
        ("ALE/SpaceInvaders-v5", "space_invaders"),
        ("SpaceInvadersNoFrameskip-v4", "space_invaders"),
        ("Breakout-ramDeterministic-v0", "breakout"),
        ("ms-pacman", "ms_pacman"),
        ("pong.bin", "pong"),
    ],
)
def test_names_of_games_elsewhere_are_answered_with_the_short_one(name, meant):
    with pytest.raises(UnknownNameError, match=f"did you mean '?{meant}'?"):
        rl.AtariParameters(level=name)


def test_impala_and_recurrence_are_refused():
    with pytest.raises(ParameterError, match="torso='impala' has no recurrent layer"):
        Atari_PPO.graph_manager(Atari_PPO.Panel(torso="impala", recurrence="lstm"))


def test_rainbow_takes_the_console_memory_and_no_layer_without_noise():
    experiment = Atari_Rainbow.graph_manager(Atari_Rainbow.Panel(shows="memory"))
    agent = experiment.parameters.agent
    assert agent.memory.frame_stack == ()
    assert (agent.network.torso.middleware, agent.network.streams) == ((), (512,))
    with pytest.raises(ParameterError, match="torso='impala' has one of its own without noise"):
        Atari_Rainbow.graph_manager(Atari_Rainbow.Panel(torso="impala"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "panel"),
    [
        (Atari_PPO, {"torso": "impala"}),
        (Atari_PPO, {"recurrence": "lstm", "sequence": 16}),
        (Atari_DQN, {"head": "c51", "dueling": True, "double": True, "n_step": 3}),
        (Atari_DQN, {"head": "quantiles", "prioritised": True}),
        (Atari_DQN, {"recurrence": "gru"}),
    ],
)
def test_switches_train(preset, panel):
    small = {"steps": 200, "num_envs": 2, "protocol": "B"}
    if preset is Atari_PPO:
        small |= {"rollout": 64, "minibatch": 32, "epochs": 1}
    else:
        small |= {"memory": 500, "learning_starts": 50}
    experiment = without_evaluations(preset.graph_manager(preset.Panel(**(small | panel))))
    with experiment:
        experiment.create_graph(rl.Runtime(seed=0, device="cpu"))
        kinds = {record.kind for record in experiment.improve()}
    assert "train" in kinds


@pytest.mark.parametrize(
    ("name", "here"),
    [("Atari_NAF", "Atari_DQN"), ("atari_a3c_lstm", "Atari_PPO"), ("ppo_atari", "Atari_PPO")],
)
def test_presets_of_other_libraries_have_names_here(name, here):
    assert [*familiar_presets(name)] == [here]
