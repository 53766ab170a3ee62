"""Small agents that learn options, for the lower level of a stack on a point mass."""

import numpy as np

import coach_rl as rl
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.core.parameter_classes import parameter_class
from tests.agents.small_agents import SMALL, ppo


def to_the_right(before, after, given):
    return after["observation"][:, 0] - before["observation"][:, 0]


def upwards(before, after, given):
    return after["observation"][:, 1] - before["observation"][:, 1]


def is_far_off(after):
    return np.abs(after["observation"][:, 0]) > 0.4


def diayn(**changes):
    return rl.DIAYNAgentParameters(
        name="skills",
        actor=rl.ActorParameters(torso=SMALL),
        critic=rl.CriticParameters(torso=SMALL),
        discriminator=rl.DiscriminatorParameters(elements=(0, 1), torso=SMALL),
        learning=rl.LearningParameters(
            batch=16, updates_per_step=0.2, learning_starts=32, report_every=8
        ),
        memory=rl.ReplayMemoryParameters(capacity=2_000),
        update_mode="eager",
        **changes,
    )


def option_critic(plain=None, **changes):
    plain = plain or ppo("skills")
    return rl.OptionCriticAgentParameters(
        name="skills",
        algorithm=plain.algorithm,
        network=plain.network,
        input_filter=plain.input_filter,
        update_mode="eager",
        termination=rl.TerminationParameters(torso=SMALL, initial_chance=0.3, **changes),
    )


SPACE = rl.OptionSpace(count=2, rewards=(to_the_right, upwards), ends=(is_far_off, None))


class EndingPPO(PPOAgent):
    def ends(self, row_state, rows, observation, clock):
        return np.ones(len(rows), np.bool_)


@parameter_class
class EndingPPOParameters(rl.PPOAgentParameters):
    def build(self, context):
        return EndingPPO(self, context)
