"""Presets of MiniGrid: levels, observations, recurrence."""

import pytest

import coach_rl as rl
from coach_rl.configuration.familiar_names import familiar_presets
from coach_rl.core.errors import ConfigurationError
from coach_rl.presets import MiniGrid_PPO

SMALL = {"num_envs": 2, "rollout": 64, "minibatch": 32, "epochs": 1, "steps": 128, "units": 8}


def build(**panel):
    return MiniGrid_PPO.graph_manager(MiniGrid_PPO.Panel(**panel))


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("level", MiniGrid_PPO.Panel.LEVELS)
def test_every_level_of_the_panel_builds_without_a_choice_of_missions(level):
    experiment = build(**SMALL, level=level)
    with experiment:
        experiment.create_graph(rl.Runtime(seed=0, device="cpu"))


def test_mission_of_key_corridors_is_hidden():
    assert build(level="KeyCorridorS3R3").parameters.environment.mission == "hidden"
    assert build(level="KeyCorridorS3R3", mission="words").parameters.environment.mission == "words"
    with pytest.raises(ConfigurationError, match=r"choose MiniGridParameters\.mission"):
        build(level="GoToDoor-5x5").parameters.environment.build(num_envs=1)


def test_networks_do_not_see_what_is_given_for_counts():
    experiment = build(**SMALL, given=("position", "state"))
    assert experiment.parameters.agent.network.torso.keys == ("direction", "view")


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize(
    "panel",
    [
        {"recurrence": "lstm"},
        {"shows": "picture"},
        {"shows": "grid"},
        {"level": "BabyAI-GoToObj", "mission": "words", "recurrence": "gru"},
    ],
)
def test_switches_train(panel):
    experiment = build(**SMALL, **panel)
    with experiment:
        experiment.create_graph(rl.Runtime(seed=0, device="cpu"))
        for record in experiment.improve():
            if record.kind == "train":
                break
        else:
            pytest.fail("nothing was trained")


@pytest.mark.parametrize("name", ["MiniGrid_A2C", "ppo_minigrid"])
def test_presets_of_other_libraries_have_names_here(name):
    assert [*familiar_presets(name)] == ["MiniGrid_PPO"]
