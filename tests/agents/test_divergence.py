"""An agent whose numbers cease to be finite stops at once and says why."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.dqn_agent import DQNAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.agents.td3_agent import TD3AgentParameters
from coach_rl.architectures.gradient_step import AdamParameters
from coach_rl.core.errors import DivergedError
from coach_rl.core.runtime import STOP, DivergenceParameters, Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy import OneStepParameters, PointMassParameters
from coach_rl.extensions.prioritised.prioritised import PrioritisedParameters
from coach_rl.extensions.update_modes.recorded_steps import compiler_present
from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from tests.builders import flat

HUGE = AdamParameters(learning_rate=1e38)
SMALL = ReplayMemoryParameters(capacity=500)
PRIORITISED = ReplayMemoryParameters(capacity=500, prioritised=PrioritisedParameters())
SOON = LearningParameters(batch=8, learning_starts=8, report_every=20)
ROLLOUT = PPOAlgorithmParameters(rollout=EnvironmentSteps(32), minibatch=8, epochs=4)


def ppo(mode="eager"):
    return PPOAgentParameters(name="me", algorithm=ROLLOUT, optimizer=HUGE, update_mode=mode)


def dqn(mode="eager", memory=SMALL):
    return DQNAgentParameters(
        name="me", learning=SOON, memory=memory, optimizer=HUGE, update_mode=mode
    )


def continuous(kind):
    return kind(
        name="me",
        learning=SOON,
        memory=SMALL,
        actor_optimizer=HUGE,
        critic_optimizer=HUGE,
        update_mode="eager",
    )


def manager(agent, environment, steps=2_000, divergence=STOP, **given):
    every = {"evaluation_interval": EnvironmentSteps(10_000), "evaluation_episodes": 1}
    given = {**every, "num_envs": 4, "divergence": divergence, "training": steps, **given}
    return BasicRLGraphManager(flat(agent, environment, **given))


def diverging(agent, environment, **schedule):
    """Runs until it stops; the error and the environment steps done."""
    with manager(agent, environment, **schedule) as graph_manager:
        graph_manager.create_graph(Runtime(seed=1, device="cpu"))
        with pytest.raises(DivergedError) as caught:
            graph_manager.run()
        return str(caught.value), graph_manager.graph.clock.environment_steps


START = "agent 'me' of level 'main' has diverged: at gradient step "


@pytest.mark.parametrize(
    ("agent", "environment", "steps", "parts"),
    [
        (ppo(), OneStepParameters(), 64, ["Learning rate 1e+38", "not clipped", "target up to"]),
        (dqn(), OneStepParameters(), 16, ["step 1 its parameter_norm was", "reward up to "]),
        (dqn(memory=PRIORITISED), OneStepParameters(), 2_000, []),
        *(
            (continuous(kind), PointMassParameters(), 2_000, ["critic's learning rate 1e+38"])
            for kind in (DDPGAgentParameters, TD3AgentParameters, SACAgentParameters)
        ),
    ],
    ids=["ppo", "dqn", "prioritised dqn", "ddpg", "td3", "sac"],
)
def test_diverging_agent_stops_in_its_update(agent, environment, steps, parts):
    message, taken = diverging(agent, environment)
    assert taken <= steps
    for part in (START, "Lower the learning rate, scale the rewards down", *parts):
        assert part in message


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # inductor's own
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.skipif(not compiler_present(), reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize("make", [ppo, dqn])
def test_compiled_updates_are_checked_as_eager_ones(make):
    eager, compiled = (
        diverging(make(mode), OneStepParameters())[0] for mode in ("eager", "compiled")
    )
    steps = [re.search(r"gradient step ([\d,]+)", message)[1] for message in (eager, compiled)]
    assert steps[0] == steps[1]


@pytest.mark.parametrize(
    ("agent", "environment"),
    [
        (ppo(), OneStepParameters()),
        (dqn(), OneStepParameters()),
        (continuous(SACAgentParameters), PointMassParameters()),
    ],
    ids=["ppo", "dqn", "sac"],
)
def test_nan_parameters_are_neither_evaluated_nor_saved(agent, environment):
    with manager(agent, environment) as graph_manager:
        graph_manager.create_graph(Runtime(seed=1, device="cpu"))
        state = graph_manager.state_dict()
        graph_manager.load_state_dict(poisoned(state))
        with pytest.raises(DivergedError):
            graph_manager.evaluate(EnvironmentEpisodes(1))
        with pytest.raises(DivergedError):
            graph_manager.state_dict()
        graph_manager.load_state_dict(state)  # the agent itself is sound
        assert graph_manager.evaluate(EnvironmentEpisodes(1))


@pytest.mark.parametrize(
    ("agent", "environment"),
    [
        (ppo(), OneStepParameters()),
        (dqn(), OneStepParameters()),
        (dqn(memory=PRIORITISED), OneStepParameters()),
        (continuous(DDPGAgentParameters), PointMassParameters()),
        (continuous(TD3AgentParameters), PointMassParameters()),
        (continuous(SACAgentParameters), PointMassParameters()),
    ],
    ids=["ppo", "dqn", "prioritised dqn", "ddpg", "td3", "sac"],
)
def test_updates_with_a_reward_that_is_not_finite_can_be_skipped_and_are_counted(
    agent, environment, monkeypatch
):
    skip = DivergenceParameters(response="skip", most_skipped=300)
    steps = 400
    with manager(with_usual_rates(agent), environment, steps, divergence=skip) as graph_manager:
        graph_manager.create_graph(Runtime(seed=1, device="cpu"))
        agent, calls = graph_manager.graph.agents["main"], itertools.count(1)
        usual = agent.store

        def store_spoilt(transition):
            reward = transition.reward.copy()
            if next(calls) % 40 == 0:
                reward[0] = np.nan
            usual(replace(transition, reward=reward))

        monkeypatch.setattr(agent, "store", store_spoilt)
        told = [
            record.scalars["train/skipped_updates"]
            for record in graph_manager.improve()
            if "train/skipped_updates" in record.scalars
        ]
        assert told
        assert sum(told) == graph_manager.graph.clock.skipped_updates
        assert sum(told) < graph_manager.graph.clock.training_steps / 2
        assert graph_manager.state_dict()  # everything in it is finite


def with_usual_rates(agent):
    """The agent with learning rates by which it learns."""
    names = [name for name in vars(agent) if name.endswith("optimizer")]
    return replace(agent, **dict.fromkeys(names, AdamParameters()))


def poisoned(state):
    """The state with one NaN in every online parameter of every network."""
    if isinstance(state, dict):
        return {
            key: nan_in(part) if key == "online" else poisoned(part) for key, part in state.items()
        }
    return state


def nan_in(parameters):
    return {
        name: values.index_fill(0, torch.tensor([0]), np.nan) for name, values in parameters.items()
    }
