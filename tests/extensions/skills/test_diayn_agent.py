"""DIAYN: the reward is the discriminator's, whatever the environment pays; skills come apart."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import coach_rl as rl
from coach_rl.environments import WorldEnvironment
from coach_rl.environments.toy import PointMass
from coach_rl.extensions.testing.states import assert_same_state
from tests.agents.small_agents import SMALL, low_agent, stack
from tests.extensions.skills.skill_stacks import diayn


class Paid(PointMass):
    def step(self, state, action, uniform):
        made = super().step(state, action, uniform)
        return made._replace(reward=1_000 + 0 * made.reward)


@dataclass(frozen=True, kw_only=True)
class PaidParameters:
    level: str = "paid"

    def build(self, *, num_envs):
        return WorldEnvironment(Paid(), num_envs=num_envs, max_episode_steps=13)


def test_what_the_environment_pays_is_not_learned_from():
    poor, rich = (
        stack(diayn(), rl.OptionSpace(count=3), **given)
        for given in ({}, {"environment": PaidParameters()})
    )
    for graph_manager in (poor, rich):
        graph_manager.run()
    states = [low_agent(each).policy_state_dict() for each in (poor, rich)]
    assert low_agent(poor).training_steps > 20
    assert_same_state(*states)
    for graph_manager in (poor, rich):
        graph_manager.close()


def test_rewards_are_those_of_the_newest_discriminator():
    """log q(z | s') + log K, of the state that a decision led to."""
    graph_manager = stack(diayn(), rl.OptionSpace(count=3))
    graph_manager.run()
    agent = low_agent(graph_manager)
    learner, batch = agent.learner, agent.memory.sample(16)
    given, step = [], learner.engine.step
    learner.engine.step = lambda noisy: given.append(noisy.transitions) or step(noisy)
    with torch.no_grad():
        logits = learner.discriminator.module(batch.next_observation)
        chances = torch.softmax(logits, dim=1)[
            torch.arange(16), batch.observation["option"].argmax(1)
        ]
    agent.learn_from_batch(batch)
    torch.testing.assert_close(given[0].reward, torch.log(chances) - np.log(1 / 3))
    graph_manager.close()


@pytest.mark.parametrize("elements", [(0, 1), (3,), (2, 0)])
def test_the_discriminator_sees_the_named_elements_alone(elements):
    agent = diayn()
    seen = replace(agent, discriminator=replace(agent.discriminator, elements=elements))
    graph_manager = stack(seen, rl.OptionSpace(count=3))
    network = low_agent(graph_manager).learner.discriminator.module
    for element in range(4):
        here = torch.tensor([[0.1, 0.2, 0.3, 0.4]] * 2)
        here[1, element] += 1
        one, other = network({"observation": here, "option": torch.eye(3)[:2]})
        assert torch.equal(one, other) == (element not in elements)
    graph_manager.close()


def test_the_discriminator_sees_normalised_elements():
    """They are normalised by the statistics of their own places, then clipped."""
    named = rl.DiscriminatorParameters(elements=(3, 1), torso=SMALL)
    agent = replace(diayn(normalise_observations=2.0), discriminator=named)
    graph_manager = stack(agent, rl.OptionSpace(count=3))
    agent = low_agent(graph_manager)
    agent.normaliser.mean["observation"].copy_(torch.tensor([50.0, 0.5, 70.0, -1.0]))
    agent.normaliser.scale["observation"].copy_(torch.tensor([0.1, 4.0, 0.1, 10.0]))
    network = agent.learner.discriminator.module
    seen = {"observation": torch.tensor([[0.1, 0.75, 0.3, 0.0]]), "option": torch.eye(3)[:1]}
    normal = {"observation": torch.tensor([[2.0, 1.0]])}  # 10 is clipped
    torch.testing.assert_close(network(seen), network.head(network.torso(normal)))
    graph_manager.close()


@pytest.mark.slow
def test_skills_come_apart():
    """Within some thousand steps the discriminator tells four from where they lead."""
    wide = rl.TorsoParameters(middleware=(64, 64), activation="relu", orthogonal=False)
    agent = replace(
        diayn(),
        actor=rl.ActorParameters(torso=wide),
        critic=rl.CriticParameters(torso=wide),
        discriminator=rl.DiscriminatorParameters(elements=(0, 1), torso=wide),
        learning=rl.LearningParameters(
            batch=128, updates_per_step=0.25, learning_starts=400, report_every=400
        ),
        memory=rl.ReplayMemoryParameters(capacity=20_000),
    )
    graph_manager = stack(
        agent,
        rl.OptionSpace(count=4),
        horizon=None,
        num_envs=8,
        training=rl.EnvironmentSteps(20_000),
        evaluation_interval=None,
    )
    told = [
        record.scalars["train/discriminator_accuracy"]
        for record in graph_manager.improve()
        if record.kind == "train" and "train/discriminator_accuracy" in record.scalars
    ]
    assert told[0] < 0.45, "chance is a quarter"
    assert told[-1] > 0.6
    graph_manager.close()
