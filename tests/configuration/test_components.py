"""Components are found by their public names and made where their type fits."""

from dataclasses import dataclass
from typing import Any

import pytest

import coach_rl
from coach_rl import (
    AdamParameters,
    ConstantSchedule,
    EnvironmentSteps,
    EpsilonGreedyNoise,
    GaussianNoise,
    InputFilter,
    LinearSchedule,
    ObservationNormalizationFilter,
    OrnsteinUhlenbeckNoise,
    PPOAgentParameters,
    PrioritisedParameters,
    QuantileHead,
)
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
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset, shipped_presets
from coach_rl.core import (
    AgentParameters,
    EnvironmentParameters,
    InputFilterParameters,
)
from coach_rl.core.clock import Schedule
from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.exploration_policies import ExplorationPolicyParameters


def resolved(preset: str, text: str) -> Any:
    return load_preset(find_preset(preset)).configure(parse_overrides(text)).parameters


def test_components_are_written_like_calls() -> None:
    text = (
        "a.b=EpsilonGreedy(epsilon=LinearSchedule(start=1, end=-0.1), name=word); c=X(); d=(Y(),)"
    )
    schedule = Component("LinearSchedule", {"start": 1, "end": -0.1})
    assert parse_overrides(text) == {
        "a.b": Component("EpsilonGreedy", {"epsilon": schedule, "name": "word"}),
        "c": Component("X", {}),
        "d": (Component("Y", {}),),
    }


@pytest.mark.parametrize(
    "text",
    [
        "x=open('file')",
        "x=A(1)",
        "x=A(**{'a': 1})",
        "x=A(a=1, a=2)",
        "x=a.B()",
        "x=A()()",
        "x=A(b=lambda: 0)",
        "x=A(b=[c for c in d])",
        "x=A(b=1 + c)",
        "x=A(b=f'{c}')",
    ],
)
def test_nothing_else_is_read_as_a_component(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_overrides(text)
    assert "\n" not in str(caught.value)


def test_names_are_public_classes_with_or_without_parameters_at_the_end() -> None:
    assert component_type("Adam") is component_type("AdamParameters") is AdamParameters
    assert component_type("QuantileHead") is QuantileHead
    for kind in component_types():
        assert component_type(short_name(kind)) is kind
    for wrong in ("Adm", "GraphManager", "run_experiment", "AgentParameters", "__version__"):
        with pytest.raises(UnknownNameError, match=f"unknown component '{wrong}'"):
            component_type(wrong)


def test_whatever_shipped_presets_consist_of_can_be_written() -> None:
    for name in shipped_presets():
        parameters = load_preset(find_preset(name)).build().parameters
        for path, value, _ in parameter_paths(parameters):
            kind = type(value)
            if kind.__module__.startswith("coach_rl.") and hasattr(kind, "__dataclass_fields__"):
                assert getattr(coach_rl, kind.__name__, None) is kind, f"{name}: {path}"


@pytest.mark.parametrize(
    ("wanted", "some", "not_these"),
    [
        (AgentParameters, ["PPOAgent", "HACAgent", "AgentGroup"], ["Gymnasium", "PPOAlgorithm"]),
        (EnvironmentParameters, ["Gymnasium", "PointMass", "Mujoco"], ["PPOAgent"]),
        (ExplorationPolicyParameters, ["EpsilonGreedy", "GaussianNoise"], ["OutputFilter"]),
        (Schedule, ["ConstantSchedule", "PiecewiseSchedule"], ["EpsilonGreedy", "PPOAgent"]),
        (InputFilterParameters | None, ["InputFilter"], ["RewardClippingFilter", "OutputFilter"]),
        (PrioritisedParameters | None, ["Prioritised"], ["Hindsight"]),
        (int, [], ["EnvironmentSteps"]),
    ],
)
def test_what_fits_where(wanted: Any, some: list[str], not_these: list[str]) -> None:
    names = {short_name(kind) for kind in fitting(wanted)}
    assert set(some) <= names
    assert not names & set(not_these)


def test_a_class_of_ones_own_fits_by_what_it_has() -> None:
    @dataclass(frozen=True)
    class Own:
        def __call__(self, clock: object) -> float:
            return 1.0

    adam = PPOAgentParameters()
    changed = apply_overrides(adam, {"algorithm.learning_rate_schedule": Own()})
    assert changed.algorithm.learning_rate_schedule == Own()


def test_components_replace_what_is_there() -> None:
    noise = "GaussianNoise(scale=LinearSchedule(start=1, end=0.1, over=5000))"
    text = (
        f"agent.exploration=EpsilonGreedyNoise(epsilon=0.3, noise={noise}); "
        "agent.memory.prioritised=Prioritised(alpha=0.5)"
    )
    agent = resolved("Pendulum_DDPG", text).agent
    scale = LinearSchedule(start=1.0, end=0.1, over=EnvironmentSteps(5000))
    assert agent.exploration == EpsilonGreedyNoise(
        epsilon=ConstantSchedule(value=0.3), noise=GaussianNoise(scale=scale)
    )
    assert agent.memory.prioritised == PrioritisedParameters(alpha=0.5)
    sigma = resolved("Pendulum_DDPG", "agent.exploration=OrnsteinUhlenbeckNoise(sigma=0.3)")
    assert sigma.agent.exploration == OrnsteinUhlenbeckNoise(sigma=ConstantSchedule(value=0.3))
    quantiles = resolved("CartPole_DQN", "agent.network.head=QuantileHead(count=51)")
    assert quantiles.agent.network.head == QuantileHead(count=51)


def test_a_filter_is_added_where_there_was_none() -> None:
    stage = "ObservationNormalizationFilter(clip=5)"
    text = f"agent.input_filter=InputFilter(observation={{observation: ({stage},)}})"
    filters = (ObservationNormalizationFilter(clip=5.0),)
    expected = InputFilter(observation={"observation": filters})
    assert resolved("CartPole_PPO", text).agent.input_filter == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "agent.network.head=Prioritised()",
            "head must be ReturnHead, got Prioritised(); fitting:",
        ),
        ("agent.network.head=QuantileHeads()", "unknown component 'QuantileHeads' in 'agent.net"),
        ("agent.exploration=Softmax()", "'agent.exploration' (fitting: Boltzmann, Categorical,"),
        (
            "agent.network.head=QuantileHead(cuont=3)",
            "unknown argument 'cuont' of QuantileHead in 'agent.network.head'; did you mean",
        ),
        (
            "agent.network.head=QuantileHead(count=many)",
            "agent.network.head: QuantileHead.count must be int > 0, got 'many'",
        ),
        (
            "agent.exploration=EpsilonGreedy(epsilon=LinearSchedule(start=1))",
            "LinearSchedule in 'agent.exploration: EpsilonGreedy.epsilon' needs end",
        ),
        ("agent.exploration=GoalSpace()", "GoalSpace in 'agent.exploration' needs low, high"),
        ("schedule.training=EnvironmentStep(5)", "did you mean 'EnvironmentSteps'"),
        ("num_envs=Adam()", "num_envs must be int, got Adam()"),
        ("agent.input_filter=RewardClippingFilter(low=0)", "fitting: InputFilter"),
        ("agent.exploration=gaussian", "e.g. agent.exploration.epsilon; fitting: Boltzmann, "),
        ("agent.memory.prioritised=True", "None, got True; fitting: Prioritised"),
        (
            "agent.input_filter.reward.0.low=5",
            "set 'agent.input_filter' itself, e.g. by -cp \"agent.input_filter=InputFilter(obs",
        ),
        ("agent.memory.hindsight.ratio=5", '-cp "agent.memory.hindsight=Hindsight(goal=...'),
        ("agent.network.head=QuantileHead(count=0)", "count must be int > 0, got 0"),
    ],
)
def test_wrong_components_are_reported_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolved("CartPole_DQN", text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("clip=0.1", "'clip'; did you mean 'agent.algorithm.clip'"),
        ("algorithm.clip=0.1", "'algorithm.clip'; did you mean 'agent.algorithm.clip'"),
        ("agent.clip=0.1", "'clip' of 'agent'; did you mean 'agent.algorithm.clip'"),
        ("gae_lamda=0.9", "'gae_lamda'; did you mean 'agent.algorithm.gae_lambda'"),
        ("discont=0.9", "'discont'; did you mean 'discount'"),
        ("lr=1e-3", "did you mean 'learning_rate'"),
        ("discount=0.9, clip=0.1", "separate changes with ';'"),
        ("agent.optimizer.betas=(0.9, 0.99), discount=0.9", "separate changes with ';'"),
    ],
)
def test_names_and_separators_that_were_probably_meant(text: str, meant: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolved("CartPole_PPO", text)
    assert meant in str(caught.value)
