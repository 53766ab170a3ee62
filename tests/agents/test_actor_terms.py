"""Terms of one's own in the loss of an actor."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.agents.td3_agent import TD3AgentParameters
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.saved import Saved
from tests.agents.goal_stacks import SETTINGS, stack
from tests.agents.resuming import after, amid, assert_resumes
from tests.builders import agents_of, created


class Towards(Saved):
    """Draws actions towards a mark that moves as the agent learns."""

    SAVED = ("mark",)

    def __init__(self, params):
        self.name, self.weight, self.mark = params.name, params.weight, np.zeros(2)

    def prepared(self, batch):
        mark = torch.from_numpy(self.mark.astype(np.float32))
        return batch._replace(extras={**batch.extras, self.name: mark.expand(batch.action.shape)})

    def loss(self, action, batch):
        away = batch.mean(((action - batch.extras[self.name]) ** 2).sum(dim=1))
        return self.weight * away, {f"{self.name}_away": away}

    def learn(self):
        self.mark = self.mark + 0.001

    def metrics(self):
        return {f"{self.name}/mark": float(self.mark[0])}


@parameter_class
class TowardsParameters:
    """Parameters of a term."""

    name: str = "towards"
    weight: float = 1.0

    def build(self, agent, context):
        return Towards(self)


def top(kind=TD3AgentParameters, *terms):
    learning = replace(SETTINGS["learning"], updates_per_step=0.5)
    return kind(**{**SETTINGS, "learning": learning, "actor_terms": terms})


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("kind", [TD3AgentParameters, SACAgentParameters, DDPGAgentParameters])
def test_terms_of_an_actors_loss_are_added_and_logged(kind):
    def trained(*terms):
        manager = created(stack(top(kind, *terms), training=180))
        records = [each for each in manager.improve() if each.kind == "train"]
        agent, _ = agents_of(manager)
        manager.close()
        return agent, [each.scalars for each in records if each.level == "top"]

    heavy = TowardsParameters(name="other", weight=100.0)
    (agent, logged), (plain, _) = trained(TowardsParameters(weight=0.0), heavy), trained()
    assert logged[-1]["train/towards_away"] > 0
    assert 0 < logged[-1]["other/mark"] <= agent.actor_terms["other"].mark[0]
    same, _ = trained(TowardsParameters(weight=0.0))
    actors = [each.learner.networks["actor"].online for each in (agent, plain, same)]
    assert torch.equal(actors[1], actors[2])
    assert not torch.equal(actors[0], actors[1])


def test_terms_of_an_actors_loss_resume_bit_for_bit(tmp_path):
    params = stack(top(TD3AgentParameters, TowardsParameters()))
    assert_resumes(partial(created, params), tmp_path, after(120, amid))


def test_two_terms_of_one_name_are_refused():
    with pytest.raises(ConfigurationError, match=r"have one name.*'towards', 'towards'"):
        created(stack(top(TD3AgentParameters, TowardsParameters(), TowardsParameters(weight=2.0))))
