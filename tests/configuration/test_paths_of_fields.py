"""Errors that name a field of a class also give the paths to type."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.configuration.paths_of_fields import paths_named, paths_of_field
from coach_rl.core.errors import SpaceError
from tests.cli.commands import coach
from tests.small_runs import experiment


class FloatPictures(gymnasium.Env):
    """Observes what may be an image or not."""

    observation_space = spaces.Box(0, 1, (8, 8, 3), np.float32)
    action_space = spaces.Discrete(2)


LEVEL = f"{__name__}:FloatPictures"


def message_of(parameters: object, text: str) -> str:
    with pytest.raises(rl.ConfigurationError) as caught, paths_named(parameters):
        raise SpaceError(text)
    return str(caught.value)


def test_path_of_each_network_is_named():
    text = "set TorsoParameters.images to flat"
    assert message_of(rl.PPOAgentParameters(), text) == f"{text}; by path: network.torso.images"
    assert message_of(rl.SACAgentParameters(), text) == (
        f"{text}; by path: actor.torso.images, critic.torso.images"
    )


@pytest.mark.parametrize(
    "text",
    [
        "set network.torso.images, TorsoParameters.images",  # has its path already
        "set SACAlgorithmParameters.discount",  # not in these parameters
        "call Graph.close, or write 3.5 and path.name",
    ],
)
def test_other_messages_stay_as_they_are(text):
    assert message_of(rl.DQNAgentParameters(), text) == text


def test_field_of_a_class_derived_from_the_one_named_has_its_path():
    assert (
        paths_of_field(rl.PPOAgentParameters(), "FilteredAgentParameters", "name") == []
    )  # a root
    assert paths_of_field(
        {"agent": rl.PPOAgentParameters()}, "FilteredAgentParameters", "name"
    ) == ["agent.name"]


def test_run_that_cannot_read_its_images_names_the_path_to_type(tmp_path):
    with pytest.raises(
        SpaceError, match=r"images to channels_last.*path: agent\.network\.torso\.im"
    ):
        rl.run_experiment(
            experiment(environment=rl.GymnasiumParameters(level=LEVEL)), name="x", root=tmp_path
        )


def test_describe_names_the_path_to_type(capsys):
    assert coach("describe", "SAC", "-lvl", LEVEL) == 2
    assert "by path: agent.actor.torso.images, agent.critic.torso.im" in capsys.readouterr().err
