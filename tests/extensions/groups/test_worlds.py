"""Games and workshops keep the contract of environments."""

import pytest

from coach_rl.environments.toy.connect_four import ConnectFourParameters
from coach_rl.environments.toy.workshop import WorkshopParameters
from coach_rl.extensions.testing import ENVIRONMENT_CHECKS, Trial

WORLDS = {
    "connect_four": ConnectFourParameters(),
    "connect_four_rules": ConnectFourParameters(opponent="rules"),
    "workshop": WorkshopParameters(max_episode_steps=12),
    "workshop_push": WorkshopParameters(task="push", max_episode_steps=12),
}


@pytest.mark.drawn(one_of=2, each="check")
@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=lambda check: check.__name__)
def test_contract(name, check):
    check(Trial(build=lambda num_envs: WORLDS[name].build(num_envs=num_envs), steps=30))
