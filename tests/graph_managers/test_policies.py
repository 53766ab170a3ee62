"""Policies carry everything that acting needs, or their agent is refused where they are used."""

from dataclasses import replace

import numpy as np

from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.saved import SavedAttribute
from tests.graph_managers.small_runs import parameters, ppo
from tests.graph_managers.test_evaluator import SlowEvaluator, evaluations, manager_of


class ShiftedAgent(PPOAgent):
    """PPO whose actions are shifted by a number that grows with every update; saved as advised."""

    SAVED = (SavedAttribute("shift", policy=True),)

    def __init__(self, params, context):
        super().__init__(params, context)
        self.shift = np.zeros(1)

    def train(self, clock):
        report = super().train(clock)
        self.shift = self.shift + (0.1 if report else 0.0)
        return report

    def choose(self, row_state, request, clock):
        chosen = super().choose(row_state, request, clock)
        return replace(chosen, action=chosen.action + np.float32(self.shift))


class ForgottenAgent(PPOAgent):
    """The same state, in `state_dict` alone."""

    def state_dict(self):
        return {**super().state_dict(), "shift": np.zeros(1)}


class DeclaredAgent(PPOAgent):
    """The same, declared."""

    SAVED = ("shift",)
    shift = 0.5


@parameter_class
class ShiftedParameters(PPOAgentParameters):
    def build(self, context):
        return ShiftedAgent(self, context)


@parameter_class
class ForgottenParameters(PPOAgentParameters):
    def build(self, context):
        return ForgottenAgent(self, context)


@parameter_class
class DeclaredParameters(PPOAgentParameters):
    def build(self, context):
        return DeclaredAgent(self, context)


def experiment(kind):
    plain = ppo()
    return replace(
        parameters(),
        agent=kind(algorithm=plain.algorithm, update_mode="eager"),
        evaluation_environment=None,
    )


def test_state_in_the_policy_reaches_evaluators():
    shifted = experiment(ShiftedParameters)
    here = evaluations(manager_of(shifted).improve())
    assert here != evaluations(manager_of(experiment(PPOAgentParameters)).improve())
    manager = manager_of(shifted)
    aside = evaluations(manager.improve(evaluator=SlowEvaluator(shifted, looks=7)))
    assert sorted(aside) == sorted(here)
