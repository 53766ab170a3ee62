"""Components are found by their public names and made where their type fits."""

from dataclasses import dataclass
from typing import Any

import pytest

import coach_rl
import coach_rl as rl
from coach_rl.configuration.overrides import (
    Component,
    apply_overrides,
    component_type,
    component_types,
    fitting,
    parameter_paths,
    parse_overrides,
    short_name,
)
from coach_rl.configuration.presets import shipped_presets
from coach_rl.core.clock import Schedule
from coach_rl.exploration_policies import ExplorationPolicyParameters


def resolved(preset: str, text: str) -> Any:
    return rl.load_preset(rl.find_preset(preset)).configure(parse_overrides(text)).parameters


def test_parse_overrides_components_are_written_like_calls():
    text = (
        "a.b=EpsilonGreedy(epsilon=LinearSchedule(start=1, end=-0.1), name=word); c=X(); d=(Y(),)"
    )
    schedule = Component("LinearSchedule", {"start": 1, "end": -0.1})
    assert parse_overrides(text) == {
        "a.b": Component("EpsilonGreedy", {"epsilon": schedule, "name": "word"}),
        "c": Component("X", {}),
        "d": (Component("Y", {}),),
    }


def test_component_type_name_may_omit_parameters():
    assert component_type("Adam") is component_type("AdamParameters") is rl.AdamParameters
    assert component_type("QuantileHead") is rl.QuantileHead
    for kind in component_types():
        assert component_type(short_name(kind)) is kind


def test_parameters_of_shipped_presets_are_public_classes():
    for name in shipped_presets():
        parameters = rl.load_preset(rl.find_preset(name)).build().parameters
        for path, value, _ in parameter_paths(parameters):
            kind = type(value)
            if kind.__module__.startswith("coach_rl.") and hasattr(kind, "__dataclass_fields__"):
                assert getattr(coach_rl, kind.__name__, None) is kind, f"{name}: {path}"


@pytest.mark.parametrize(
    ("wanted", "some", "not_these"),
    [
        (rl.AgentParameters, ["PPOAgent", "TD3Agent"], ["Gymnasium", "PPOAlgorithm"]),
        (rl.EnvironmentParameters, ["Gymnasium", "PointMass", "Mujoco"], ["PPOAgent"]),
        (ExplorationPolicyParameters, ["EpsilonGreedy", "GaussianNoise"], ["OutputFilter"]),
        (rl.OptimizerParameters, ["Adam", "AdamW", "RMSprop"], ["TargetSync", "DQNAgent"]),
        (Schedule, ["ConstantSchedule", "PiecewiseSchedule"], ["EpsilonGreedy", "PPOAgent"]),
        (
            rl.InputFilterParameters | None,
            ["InputFilter"],
            ["RewardClippingFilter", "OutputFilter"],
        ),
        (rl.PrioritisedParameters | None, ["Prioritised"], ["Hindsight"]),
        (int, [], ["EnvironmentSteps"]),
    ],
)
def test_fitting_components_of_a_type_are_listed(wanted, some, not_these):
    names = {short_name(kind) for kind in fitting(wanted)}
    assert set(some) <= names
    assert not names & set(not_these)


def test_apply_overrides_own_class_fits_by_its_methods():
    @dataclass(frozen=True)
    class Own:
        def __call__(self, clock: object) -> float:
            return 1.0

    adam = rl.PPOAgentParameters()
    changed = apply_overrides(adam, {"algorithm.learning_rate_schedule": Own()})
    assert changed.algorithm.learning_rate_schedule == Own()


def test_configure_component_replaces_the_value():
    noise = "GaussianNoise(scale=LinearSchedule(start=1, end=0.1, over=5000))"
    text = (
        f"agent.exploration=EpsilonGreedyNoise(epsilon=0.3, noise={noise}); "
        "agent.memory.prioritised=Prioritised(alpha=0.5)"
    )
    agent = resolved("Pendulum_DDPG", text).agent
    scale = rl.LinearSchedule(start=1.0, end=0.1, over=rl.EnvironmentSteps(5000))
    assert agent.exploration == rl.EpsilonGreedyNoise(
        epsilon=rl.ConstantSchedule(value=0.3), noise=rl.GaussianNoise(scale=scale)
    )
    assert agent.memory.prioritised == rl.PrioritisedParameters(alpha=0.5)
    sigma = resolved("Pendulum_DDPG", "agent.exploration=OrnsteinUhlenbeckNoise(sigma=0.3)")
    assert sigma.agent.exploration == rl.OrnsteinUhlenbeckNoise(
        sigma=rl.ConstantSchedule(value=0.3)
    )
    quantiles = resolved("CartPole_DQN", "agent.network.head=QuantileHead(count=51)")
    assert quantiles.agent.network.head == rl.QuantileHead(count=51)


def test_configure_filter_is_added():
    stage = "ObservationNormalizationFilter(clip=5)"
    text = f"agent.input_filter=InputFilter(observation={{observation: ({stage},)}})"
    filters = (rl.ObservationNormalizationFilter(clip=5.0),)
    expected = rl.InputFilter(observation={"observation": filters})
    assert resolved("CartPole_PPO", text).agent.input_filter == expected
