"""Small agents that learn options, for the lower level of a stack on a point mass."""

import numpy as np

from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.core.options import OptionSpace
from coach_rl.extensions.skills.diayn_agent import DIAYNAgentParameters, DiscriminatorParameters
from coach_rl.extensions.skills.option_critic_agent import (
    OptionCriticAgentParameters,
    TerminationParameters,
)
from coach_rl.extensions.skills.skill_agents import SkillAgentsParameters
from coach_rl.memories import ReplayMemoryParameters
from tests.agents.small_agents import SMALL, ppo


def to_the_right(before, after, given):
    return after["observation"][:, 0] - before["observation"][:, 0]


def upwards(before, after, given):
    return after["observation"][:, 1] - before["observation"][:, 1]


def is_far_off(after):
    return np.abs(after["observation"][:, 0]) > 0.4


def diayn(**changes):
    return DIAYNAgentParameters(
        name="skills",
        actor=ActorParameters(torso=SMALL),
        critic=CriticParameters(torso=SMALL),
        discriminator=DiscriminatorParameters(elements=(0, 1), torso=SMALL),
        learning=LearningParameters(
            batch=16, updates_per_step=0.2, learning_starts=32, report_every=8
        ),
        memory=ReplayMemoryParameters(capacity=2_000),
        update_mode="eager",
        **changes,
    )


def option_critic(plain=None, **changes):
    plain = plain or ppo("skills")
    return OptionCriticAgentParameters(
        name="skills",
        algorithm=plain.algorithm,
        network=plain.network,
        input_filter=plain.input_filter,
        update_mode="eager",
        termination=TerminationParameters(torso=SMALL, initial_chance=0.3, **changes),
    )


SPACE = OptionSpace(count=2, rewards=(to_the_right, upwards), ends=(is_far_off, None))
KINDS = {
    "own networks": (SkillAgentsParameters.of(ppo("skill"), count=2), SPACE),
    "one network": (ppo("skills"), SPACE),
    "diayn": (diayn(), OptionSpace(count=3)),
    "option critic": (option_critic(), OptionSpace(count=3)),
}
"""Agents that learn options, and the options."""
