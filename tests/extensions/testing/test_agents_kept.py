"""Every shipped agent keeps the promises of `coach_rl.extensions.testing.agent_contract`."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

import coach_rl as rl
from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.core import AgentContext, EnvironmentSpaces, LevelPlace
from coach_rl.extensions.testing import AGENT_CHECKS, AgentTrial

SEEN = Dict({"observation": Box(-np.inf, np.inf, (3,), np.float32), "kind": Discrete(3, start=1)})
BOX = EnvironmentSpaces(observation=SEEN, action=Box(-2, 2, (2,), np.float32))
CHOICE = EnvironmentSpaces(observation=SEEN, action=Discrete(3, start=2))
MIXED = EnvironmentSpaces(
    observation=SEEN,
    action=Dict(
        {
            "kind": Discrete(3, start=1),
            "far": Box(0, 8, (1,)),
            "size": Box(-1, 5, (2, 1), np.float64),
            "bits": MultiBinary(2),
        }
    ),
)
MASKED = Dict({**SEEN.spaces, "action_mask": MultiBinary(3)})
MASKED_CHOICE = EnvironmentSpaces(observation=MASKED, action=Discrete(3, start=2))
MASKED_CHOICES = EnvironmentSpaces(
    observation=Dict({**SEEN.spaces, "legal": Box(0, 1, (5,), np.float32)}),
    action=MultiDiscrete([2, 3], start=[0, 4]),
)
NORMALISED = rl.InputFilter(observation={"observation": (rl.ObservationNormalizationFilter(),)})
CHOICES = EnvironmentSpaces(observation=SEEN, action=MultiDiscrete([2, 3], start=[5, 0]))
OFF_POLICY = {
    "learning": rl.LearningParameters(
        batch=8, updates_per_step=0.25, learning_starts=24, report_every=4
    ),
    "memory": rl.ReplayMemoryParameters(capacity=600),
    "update_mode": "eager",
}
ON_POLICY = {
    "algorithm": rl.PPOAlgorithmParameters(rollout=rl.EnvironmentSteps(24), minibatch=8, epochs=2),
    "update_mode": "eager",
}
DISTILLED = {"warmup": 8, "batch": 8, "latents": 4, "predictor_layers": (8,)}
REMEMBERS = rl.TorsoParameters(recurrence=rl.GRU(size=4), middleware=())
PPO = rl.PPOAgentParameters(input_filter=NORMALISED, **ON_POLICY)
SAC = rl.SACAgentParameters(normalise_observations=5.0, **OFF_POLICY)


def alone(parameters, spaces=BOX, **settings):
    return AgentTrial.of(parameters, spaces, **settings)


def on_options(parameters):
    """An agent of a level with two options."""
    level = rl.LevelParameters(
        name="low", agent=parameters, goal_space=rl.OptionSpace(count=2), horizon=5
    )
    seen = Dict({**SEEN.spaces, rl.OPTION_KEY: Box(0, 1, (2,), np.float32)})
    context = AgentContext(
        spaces=replace(BOX, observation=seen), num_envs=3, place=LevelPlace(level=level)
    )
    return AgentTrial(parameters=parameters, context=context)


def above(parameters):
    """An agent that sends goals to a level below."""
    goal = rl.GoalSpace(
        key="observation", low=(-1, -1), high=(1, 1), threshold=(0.1, 0.1), elements=(0, 1)
    )
    below = rl.LevelParameters(name="low", agent=SAC, goal_space=goal, horizon=5)
    seen = Dict({**SEEN.spaces, rl.GOAL_KEY: Box(-1, 1, (2,), np.float32)})
    level = rl.LevelParameters(name="top", agent=parameters, goal_space=goal, horizon=9)
    context = AgentContext(
        spaces=EnvironmentSpaces(observation=seen, action=goal.space),
        num_envs=3,
        place=LevelPlace(level=level, below=below),
    )
    return AgentTrial(parameters=parameters, context=context)


FEW = 60
"""Ticks in which no update is waited for any longer, where none comes."""
TRIALS = {
    "ppo": alone(PPO),
    "ppo, penalty": alone(
        rl.PPOAgentParameters(
            algorithm=replace(
                ON_POLICY["algorithm"], objective="kl", kl_target=1e-9, scale_returns=True
            ),
            update_mode="eager",
        ),
    ),
    "ppo, choices": alone(rl.PPOAgentParameters(**ON_POLICY), CHOICE),
    "ppo, mixed": alone(rl.PPOAgentParameters(arguments={"far": ("kind", 2)}, **ON_POLICY), MIXED),
    "ppo, bits": alone(PPO, EnvironmentSpaces(observation=SEEN, action=MultiBinary((2, 2)))),
    "ppo, numbers": alone(PPO, EnvironmentSpaces(observation=SEEN, action=Box(-2, 2, (2, 1)))),
    "ppo, mask": alone(rl.PPOAgentParameters(**ON_POLICY), MASKED_CHOICE),
    "ppo, masks": alone(rl.PPOAgentParameters(action_mask="legal", **ON_POLICY), MASKED_CHOICES),
    "dqn, mask": alone(
        rl.DQNAgentParameters(
            exploration=rl.EpsilonZGreedy(),
            network=rl.QNetworkParameters(head=rl.QuantileHead(count=4), streams=(5,)),
            **OFF_POLICY,
        ),
        MASKED_CHOICE,
    ),
    "uniform, masks": alone(
        rl.UniformAgentParameters(action_mask="legal"), MASKED_CHOICES, greedy=False, most_ticks=FEW
    ),
    "dqn, noise of its network": alone(
        rl.DQNAgentParameters(exploration=rl.NoisyNet(), **OFF_POLICY), CHOICE
    ),
    "dqn, choices": alone(rl.DQNAgentParameters(**OFF_POLICY), CHOICES),
    "sac, choices": alone(rl.SACAgentParameters(**OFF_POLICY), CHOICES),
    "ppo, bonus": alone(
        rl.PPOAgentParameters(
            bonus=rl.RND(**DISTILLED, stream=rl.RewardStream(name="own")), **ON_POLICY
        )
    ),
    "td3, bonus": alone(
        rl.TD3AgentParameters(
            bonus=rl.NovelD(key="observation", elements=(0,), cell=2.0, fresh=True, **DISTILLED),
            **OFF_POLICY,
        )
    ),
    "dqn": alone(
        rl.DQNAgentParameters(
            network=rl.QNetworkParameters(
                head=rl.CategoricalHead(atoms=5, low=-1.0, high=3.0), dueling=True
            ),
            **OFF_POLICY
            | {
                "memory": rl.ReplayMemoryParameters(
                    capacity=600, n_step=3, prioritised=rl.PrioritisedParameters()
                )
            },
        ),
        CHOICE,
    ),
    "ddpg": alone(
        rl.DDPGAgentParameters(parameter_noise=rl.ParameterNoise(adapt_every=5), **OFF_POLICY)
    ),
    "td3": alone(
        rl.TD3AgentParameters(
            algorithm=rl.TD3AlgorithmParameters(target_sync=rl.TargetSync(every=3)),
            exploration=rl.OrnsteinUhlenbeckNoise(),
            **OFF_POLICY,
        )
    ),
    "td3, recurrent": alone(
        rl.TD3AgentParameters(
            actor=rl.ActorParameters(torso=REMEMBERS),
            critic=rl.CriticParameters(torso=REMEMBERS),
            **OFF_POLICY
            | {
                "memory": rl.ReplayMemoryParameters(
                    capacity=600, draws=rl.SequenceParameters(length=4, burn_in=2)
                )
            },
        )
    ),
    "sac": alone(SAC),
    "scripted": alone(rl.ScriptedAgentParameters(policy="still"), most_ticks=FEW),
    "uniform": alone(rl.UniformAgentParameters(), greedy=False, most_ticks=FEW),
    "group": alone(
        rl.AgentGroupParameters(
            members=(
                rl.GroupMember(agent=replace(PPO, name="one"), actions="0"),
                rl.GroupMember(agent=replace(SAC, name="two"), actions="1"),
            )
        )
    ),
    "skills": on_options(rl.SkillAgentsParameters.of(SAC, count=2)),
    "diayn": on_options(rl.DIAYNAgentParameters(**OFF_POLICY)),
    "option critic": on_options(rl.OptionCriticAgentParameters(**ON_POLICY)),
    "hac": above(rl.HACAgentParameters(learner=rl.DDPGAgentParameters(**OFF_POLICY))),
    "graph": replace(
        above(rl.GraphAgentParameters(places=rl.GridPlaces(spacing=0.5), report_every=20)),
        most_ticks=FEW,
    ),
}


SELDOM = {
    "ppo, choices", "ppo, bits", "ppo, numbers", "ppo, mask", "dqn, mask", "uniform, masks",
    "uniform", "diayn",
}  # fmt: skip
"""Those whose code others run too, which are not tried each time."""
EACH_TIME = [
    pytest.param(name, marks=pytest.mark.slow if name in SELDOM else ()) for name in TRIALS
]


@pytest.mark.drawn(one_of=3, each="check")
@pytest.mark.parametrize("name", EACH_TIME)
@pytest.mark.parametrize("check", AGENT_CHECKS, ids=lambda check: check.__name__)
def test_agent_keeps_promise(name, check):
    check(TRIALS[name])


@pytest.mark.parametrize("name", TRIALS)
def test_agent_parameters_survive_json(name):
    parameters = TRIALS[name].parameters
    assert decode(encode(parameters)) == parameters


@pytest.mark.parametrize(
    "name",
    [each for each in TRIALS if each not in ("scripted", "uniform", "uniform, masks", "graph")],
)
def test_trial_of_learner_learns(name):
    assert TRIALS[name].trained.training_steps
