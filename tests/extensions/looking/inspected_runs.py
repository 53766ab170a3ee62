"""Small runs with inspections."""

from dataclasses import replace

import torch

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.looking.inspection_text import parse_inspections
from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.memories import ReplayMemoryParameters, SamplerUnit
from tests.graph_managers.small_runs import parameters, ppo

QUIET = {"evaluation_interval": EnvironmentSteps(200), "heatup": EnvironmentSteps(40)}


def ddpg(**memory):
    return DDPGAgentParameters(
        learning=LearningParameters(batch=8, learning_starts=40, updates_per_step=0.25),
        memory=ReplayMemoryParameters(capacity=400, **memory),
        update_mode="eager",
    )


def manager(inspect="off", agent=None, **changes):
    changes = {"agent": agent or ppo(), "callbacks": parse_inspections(inspect), **changes}
    return BasicRLGraphManager(replace(parameters(**QUIET), **changes))


def records_of(graph_manager):
    with graph_manager:
        return list(graph_manager.improve())


class Spoils(SamplerUnit):
    """Makes the rewards of a batch NaN."""

    name, inputs, outputs = "spoils", ("/rewards",), ("/rewards",)

    def __call__(self, batch, size):
        return {"/rewards": torch.full((size,), torch.nan)}


@parameter_class
class SpoilsParameters:
    """Builds it."""

    after: str = "gather"

    def build(self, context):
        return Spoils()
