"""An agent whose numbers cease to be finite stops at once and says why."""

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import coach_rl as rl
from coach_rl.core.errors import DivergedError
from coach_rl.core.runtime import STOP
from coach_rl.extensions.update_modes.recorded_steps import compiler_present
from tests.builders import flat

HUGE = rl.AdamParameters(learning_rate=1e38)
SMALL = rl.ReplayMemoryParameters(capacity=500)
PRIORITISED = rl.ReplayMemoryParameters(capacity=500, prioritised=rl.PrioritisedParameters())
SOON = rl.LearningParameters(batch=8, learning_starts=8, report_every=20)
SELDOM = replace(SOON, updates_per_step=0.2)
ROLLOUT = rl.PPOAlgorithmParameters(rollout=rl.EnvironmentSteps(32), minibatch=8, epochs=4)


def ppo(mode="eager"):
    return rl.PPOAgentParameters(name="me", algorithm=ROLLOUT, optimizer=HUGE, update_mode=mode)


def dqn(mode="eager", memory=SMALL):
    return rl.DQNAgentParameters(
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
    every = {"evaluation_interval": rl.EnvironmentSteps(10_000), "evaluation_episodes": 1}
    given = {**every, "num_envs": 4, "divergence": divergence, "training": steps, **given}
    return rl.BasicRLGraphManager(flat(agent, environment, **given))


def diverging(agent, environment, **schedule):
    """Runs until it stops; the error and the environment steps done."""
    with manager(agent, environment, **schedule) as graph_manager:
        graph_manager.create_graph(rl.Runtime(seed=1, device="cpu"))
        with pytest.raises(DivergedError) as caught:
            graph_manager.run()
        return str(caught.value), graph_manager.graph.clock.environment_steps


START = "agent 'me' of level 'main' has diverged: at gradient step "


@pytest.mark.parametrize(
    ("agent", "environment", "steps", "parts"),
    [
        (ppo(), rl.OneStepParameters(), 64, ["Learning rate 1e+38", "not clipped", "target up to"]),
        (dqn(), rl.OneStepParameters(), 16, ["step 1 its parameter_norm was", "reward up to "]),
        (dqn(memory=PRIORITISED), rl.OneStepParameters(), 2_000, []),
        *(
            (continuous(kind), rl.PointMassParameters(), 2_000, ["critic's learning rate 1e+38"])
            for kind in (rl.DDPGAgentParameters, rl.TD3AgentParameters, rl.SACAgentParameters)
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
        diverging(make(mode), rl.OneStepParameters())[0] for mode in ("eager", "compiled")
    )
    steps = [re.search(r"gradient step ([\d,]+)", message)[1] for message in (eager, compiled)]
    assert steps[0] == steps[1]


@pytest.mark.parametrize(
    ("agent", "environment"),
    [
        (ppo(), rl.OneStepParameters()),
        (dqn(), rl.OneStepParameters()),
        (continuous(rl.SACAgentParameters), rl.PointMassParameters()),
    ],
    ids=["ppo", "dqn", "sac"],
)
def test_nan_parameters_are_neither_evaluated_nor_saved(agent, environment):
    with manager(agent, environment) as graph_manager:
        graph_manager.create_graph(rl.Runtime(seed=1, device="cpu"))
        state = graph_manager.state_dict()
        graph_manager.load_state_dict(poisoned(state))
        with pytest.raises(DivergedError):
            graph_manager.evaluate(rl.EnvironmentEpisodes(1))
        with pytest.raises(DivergedError):
            graph_manager.state_dict()
        graph_manager.load_state_dict(state)  # the agent itself is sound
        assert graph_manager.evaluate(rl.EnvironmentEpisodes(1))


@pytest.mark.parametrize(
    ("agent", "environment"),
    [
        (ppo(), rl.OneStepParameters()),
        (dqn(), rl.OneStepParameters()),
        (dqn(memory=PRIORITISED), rl.OneStepParameters()),
        (continuous(rl.DDPGAgentParameters), rl.PointMassParameters()),
        (continuous(rl.TD3AgentParameters), rl.PointMassParameters()),
        (continuous(rl.SACAgentParameters), rl.PointMassParameters()),
    ],
    ids=["ppo", "dqn", "prioritised dqn", "ddpg", "td3", "sac"],
)
def test_updates_with_a_reward_that_is_not_finite_can_be_skipped_and_are_counted(
    agent, environment, monkeypatch
):
    skip = rl.DivergenceParameters(response="skip", most_skipped=300)
    steps = 400
    agent = with_usual_rates(agent)
    if hasattr(agent, "learning"):
        agent = replace(agent, learning=SELDOM)
    with manager(agent, environment, steps, divergence=skip) as graph_manager:
        graph_manager.create_graph(rl.Runtime(seed=1, device="cpu"))
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
        assert sum(told) > 0
        assert sum(told) == graph_manager.graph.clock.skipped_updates
        assert sum(told) < graph_manager.graph.clock.training_steps / 2
        assert graph_manager.state_dict()  # everything in it is finite


def with_usual_rates(agent):
    """The agent with learning rates by which it learns."""
    names = [name for name in vars(agent) if name.endswith("optimizer")]
    return replace(agent, **dict.fromkeys(names, rl.AdamParameters()))


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
