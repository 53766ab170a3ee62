import numpy as np
import pytest
import torch
from decisions import request
from gymnasium import spaces

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.runtime import Runtime
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.exploration_policies import Greedy
from coach_rl.extensions.exploration import ParameterNoise
from coach_rl.memories import ReplayMemoryParameters

SPACES = EnvironmentSpaces(
    observation=spaces.Dict({"observation": spaces.Box(-1, 1, (3,), np.float32)}),
    action=spaces.Box(np.array([-1, 0]), np.array([3, 1]), dtype=np.float32),
)
TORSO = TorsoParameters(middleware=(8,), activation="relu", orthogonal=False)


def agent(seed=0):
    return DDPGAgentParameters(
        memory=ReplayMemoryParameters(capacity=1_000),
        exploration=Greedy(),
        parameter_noise=ParameterNoise(initial_scale=0.3, adapt_every=4),
        actor=ActorParameters(torso=TORSO),
        critic=CriticParameters(torso=TORSO),
        update_mode="eager",
    ).build(
        AgentContext(
            spaces=SPACES, num_envs=4, planned_steps=100, runtime=Runtime(device="cpu", seed=seed)
        )
    )


def act(agent, state, rows, observation, *, starts=False, quiet=False, phase=Phase.TRAIN):
    seen = {"observation": observation}
    asked = request(seen, rows=np.array(rows), starts=starts, greedy=quiet)
    return agent.act(state, asked, Clock(phase=phase))


def observation(rows):
    return np.random.default_rng(1).uniform(-1, 1, (rows, 3)).astype(np.float32)


def test_each_row_acts_with_its_own_parameters_which_stay_for_its_episode():
    learner = agent()
    state, seen = learner.new_rows(4, seed=7), np.repeat(observation(1), 4, axis=0)
    first = act(learner, state, [0, 1, 2, 3], seen, starts=True)
    assert len(np.unique(first, axis=0)) == 4  # one observation, four policies
    again = act(learner, state, [0, 1, 2, 3], seen)
    np.testing.assert_allclose(again, first, rtol=1e-6)
    other = act(learner, state, [1], seen[:1], starts=True)
    assert np.abs(other - first[1]).max() > 1e-4


def test_its_actions_are_those_of_the_network_with_the_rows_own_parameters():
    learner = agent()
    state, seen = learner.new_rows(4, seed=7), observation(4)
    found = act(learner, state, [0, 1, 2, 3], seen, starts=True)
    parameters = state.exploration.parameters
    for row in range(4):
        own = learner.learner.actor.online + torch.from_numpy(0.3 * parameters.directions[row])
        expected = learner.learner.actor.call(
            own, {"observation": torch.from_numpy(seen[row : row + 1])}
        )
        np.testing.assert_allclose(found[row], expected[0].numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", [{"quiet": True}, {"phase": Phase.TEST}])
def test_silence_acts_with_the_plain_parameters(how):
    learner = agent()
    state, seen = learner.new_rows(4, seed=7), observation(4)
    found = act(learner, state, [0, 1, 2, 3], seen, starts=True, **how)
    expected = learner.learner.actor.call(
        learner.learner.actor.online, {"observation": torch.from_numpy(seen)}
    ).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert state.exploration.parameters.state_dict()["episodes"].sum() == 0


def test_the_scale_of_parameter_noise_adapts():
    learner = agent()
    state, seen = learner.new_rows(4, seed=7), observation(4)
    for number in range(6):
        act(learner, state, [0, 1, 2, 3], seen, starts=number == 0)
    assert (state.exploration.parameters.scale != 0.3).all()
    assert learner.learner.acting.metrics(Clock())["exploration/parameter_scale"] != 0.3
