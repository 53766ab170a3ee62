"""Transforms of gradients: in their order, in the three modes, skipped, saved, inserted."""

from dataclasses import replace

import pytest
import torch

from coach_rl.architectures.gradient_step import AdamParameters
from coach_rl.architectures.gradient_transforms import (
    GradientTransform,
    GradientTransformParameters,
    NormReport,
)
from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.configuration.trust import Trust
from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.runtime import DivergenceParameters, Runtime
from coach_rl.core.saved import SavedAttribute
from coach_rl.extensions.optimizers.rmsprop import RMSpropParameters
from coach_rl.extensions.testing import assert_same_state
from tests.architectures import test_update_engine as engines
from tests.extensions.update_modes import test_recorded_steps as recorded

CPU = torch.device("cpu")
MODES = [
    "eager",
    pytest.param("compiled", marks=[*recorded.compiles, pytest.mark.slow]),
    pytest.param("captured", marks=pytest.mark.gpu),
]


@parameter_class
class CentralisedParameters(GradientTransformParameters):
    """Gradients of matrices without their mean over inputs (Yong et al. 2020)."""

    def build(self, network, *, name, seed):
        return Centralised(network)


class Centralised(GradientTransform):
    def __init__(self, network):
        self.network = network

    def __call__(self, gradient):
        parts = [
            part - part.mean(dim=1, keepdim=True) if part.ndim == 2 else part
            for part in self.network.named(gradient).values()
        ]
        return torch.cat([part.reshape(-1) for part in parts]), {}


@parameter_class
class NoiseParameters(GradientTransformParameters):
    """Gradients with noise that decays (Neelakantan et al. 2015), drawn on the CPU."""

    scale: float = 0.1
    """Standard deviation of the noise in the first step."""

    def build(self, network, *, name, seed):
        return Noise(self.scale, seed)


class Noise(GradientTransform):
    SAVED = ("steps", SavedAttribute("_rng", key="noise"))
    traceable = False

    def __init__(self, scale, seed):
        self.scale, self.steps = scale, 0
        self._rng = torch.Generator().manual_seed(seed)

    def __call__(self, gradient):
        scale = self.scale * (1 + self.steps) ** -0.55
        self.steps += 1
        drawn = torch.randn(gradient.shape, generator=self._rng).to(gradient.device)
        return gradient + scale * drawn, {"noise": torch.tensor(scale, device=gradient.device)}


class Untraceable(GradientTransform):
    """Changes nothing, in a way that no compiler knows, and in place."""

    traceable = False
    calls = 0

    def __call__(self, gradient):
        type(self).calls += int(repr(gradient.shape).startswith("torch.Size"))
        return gradient.mul_(1.0), {}


CLIPPED = recorded.CLIPPED
CENTRALISED = replace(CLIPPED, transforms=(CentralisedParameters(),))
NOISY = replace(CLIPPED, transforms=(NoiseParameters(), CentralisedParameters()))


def device_of(mode):
    return torch.device("cuda") if mode == "captured" else CPU


def test_transforms_follow_the_clipping_and_report_metrics():
    _, engine = recorded.learner("eager", optimizer=NOISY)
    ((_, _, transforms, _),) = engine.learners
    kinds = [type(each).__name__ for each in transforms]
    assert kinds == ["NormClipping", "Noise", "Centralised"]
    metrics = recorded.train(engine)
    assert list(metrics) == ["error", "first_x", "gradient_norm", "noise"]
    assert metrics["noise"] == pytest.approx(0.1 * sum(n**-0.55 for n in range(1, 21)) / 20)
    l2 = AdamParameters(l2=0.1).gradient_transforms(engine.learners[0][0].network, name="", seed=0)
    assert [type(each).__name__ for each in l2] == ["L2Penalty", "NormReport"]


def test_centralised_gradients_move_no_mean_of_weights():
    optimizer = RMSpropParameters(learning_rate=0.02, transforms=(CentralisedParameters(),))
    _, engine = engines.made(optimizer)
    engine.step(engines.data(), torch.arange(8))
    gradients = engine.learned()
    assert abs(gradients["gradients/0.weight"].mean(axis=1)).max() < 1e-6
    assert abs(gradients["gradients/0.weight"]).max() > 1e-3
    assert abs(gradients["gradients/0.bias"]).max() > 1e-3


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("params", [CENTRALISED, NOISY], ids=["traceable", "not traceable"])
def test_transforms_recorded_step_equals_eager_to_rounding(mode, params):
    device = device_of(mode)
    (eager, plain), (network, fast) = (
        recorded.learner(each, device=device, optimizer=params) for each in ("eager", mode)
    )
    expected, found = recorded.train(plain, device), recorded.train(fast, device)
    assert fast.mode == mode
    assert found == pytest.approx(expected, rel=1e-4)
    torch.testing.assert_close(network.online, eager.online, rtol=1e-4, atol=1e-5)
    assert_same_state(*(engine.state_dict().get("transforms", {}) for engine in (plain, fast)))


@pytest.mark.parametrize(
    "mode", ["eager", pytest.param("compiled", marks=recorded.compiles), MODES[-1]]
)
def test_transform_that_is_not_traceable_leaves_the_numbers_of_a_step(mode, compiler):
    device = device_of(mode)
    (eager, plain), (network, cut) = (
        recorded.learner(each, device=device) for each in ("eager", mode)
    )
    cut.insert(lambda _: Untraceable())
    Untraceable.calls = 0
    expected, found = recorded.train(plain, device), recorded.train(cut, device)
    assert Untraceable.calls == 20
    assert found == pytest.approx(expected, rel=1e-4)
    torch.testing.assert_close(network.online, eager.online, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES[:2])
def test_several_objectives_with_a_cut_equal_those_without(mode):
    plain, cut = (engines.follower_engine(each) for each in ("eager", mode))
    cut[-1].insert(lambda _: Untraceable())
    for *_, engine in (plain, cut):
        for _ in range(5):
            outputs = engine.step(recorded.Examples({}, torch.tensor([1.0, 2.0])))
            assert list(outputs) == ["error"]
    for ours, theirs in zip(plain[:-1], cut[:-1], strict=True):
        torch.testing.assert_close(ours.online, theirs.online, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(ours.target, theirs.target, rtol=1e-4, atol=1e-5)
    assert cut[-1].drain_metrics() == pytest.approx(plain[-1].drain_metrics(), rel=1e-4)


@pytest.mark.parametrize("mode", MODES[:2])
def test_skipped_update_with_a_cut_restores_everything_that_tensors_names(mode):
    runtime = Runtime(divergence=DivergenceParameters(response="skip"))
    network, engine, bad = engines.spoilt("gradient_norm", mode=mode, runtime=runtime)

    class Counting(GradientTransform):
        traceable = False

        def __init__(self):
            self.count = torch.zeros(())

        def __call__(self, gradient):
            self.count += 1
            return gradient, {}

        def tensors(self):
            return (self.count,)

    counting = Counting()
    engine.insert(lambda _: counting)
    before = network.online.clone(), network.target.clone()
    engine.step(bad)
    assert engine.drain_metrics()["skipped_updates"] == 1.0
    assert torch.equal(network.online, before[0])
    assert torch.equal(network.target, before[1])
    assert counting.count == 0


def test_transforms_with_state_continue_bit_for_bit():
    runs = [engines.made(NOISY) for _ in range(2)]
    for count, (_, engine) in zip((8, 4), runs, strict=True):
        for index in engines.minibatches(8)[:count]:
            engine.step(engines.data(), index)
    network, engine = engines.made(NOISY)
    network.load_state_dict(runs[1][0].state_dict())
    engine.load_state_dict(runs[1][1].state_dict())
    for index in engines.minibatches(8)[4:]:
        engine.step(engines.data(), index)
    assert torch.equal(network.online, runs[0][0].online)
    assert_same_state(engine.state_dict()["transforms"], runs[0][1].state_dict()["transforms"])


def test_state_of_an_engine_without_transforms_loads_where_there_are_some():
    _, plain = engines.made(CLIPPED)
    assert "transforms" not in plain.state_dict()
    _, noisy = engines.made(NOISY)
    noisy.load_state_dict(plain.state_dict())
    plain.load_state_dict(noisy.state_dict())


def test_inserted_transform_sees_the_gradient_before_the_clipping():
    class Larger(GradientTransform):
        def __call__(self, gradient):
            return gradient * 1_000, {}

    _, plain = engines.made(CLIPPED)
    _, engine = engines.made(CLIPPED)
    for each in (plain, engine):
        each.step(engines.data(), torch.arange(8))
    expected = plain.drain_metrics()["gradient_norm"]
    assert engine.drain_metrics()["gradient_norm"] == expected
    given = []
    engine.insert(lambda objective: given.append(objective) or Larger())
    for each in (plain, engine):
        each.step(engines.data(), torch.arange(8))
    assert [each.optimizer for each in given] == [CLIPPED]
    expected = plain.drain_metrics()["gradient_norm"]
    assert engine.drain_metrics()["gradient_norm"] == pytest.approx(1_000 * expected, rel=1e-4)


@pytest.mark.parametrize("mode", [pytest.param("compiled", marks=recorded.compiles)])
def test_transform_that_claims_to_be_traceable_and_is_not_is_refused(mode):
    class Claiming(Untraceable):
        traceable = True

        def __call__(self, gradient):
            torch._dynamo.graph_break()
            return gradient, {}

    _, engine = recorded.learner(mode)
    engine.insert(lambda _: Claiming())
    with pytest.raises(ConfigurationError, match="cannot be compiled"):
        recorded.train(engine)


@pytest.mark.gpu
def test_later_half_that_cannot_be_captured_changes_nothing():
    device = torch.device("cuda")
    _, plain = recorded.learner("eager", device=device, activation=recorded.Waiting)
    _, engine = recorded.learner("auto", device=device, activation=recorded.Waiting)
    engine.insert(lambda _: Untraceable())
    with pytest.warns(CoachWarning, match="cannot be captured"):
        found = recorded.train(engine, device)
    assert engine.mode == "eager"
    assert found == pytest.approx(recorded.train(plain, device), rel=1e-6)


def test_norm_report_changes_nothing():
    gradient, metrics = NormReport()(torch.tensor([3.0, 4.0]))
    assert gradient.tolist() == [3.0, 4.0]
    assert metrics["gradient_norm"].item() == 5.0


def test_parameters_with_transforms_survive_json():
    trust = Trust(modules=frozenset({__name__}))
    assert decode(encode(NOISY), trust=trust) == NOISY


def test_parameters_recorded_before_there_were_transforms_have_none():
    recorded_before = {key: of for key, of in encode(CLIPPED).items() if key != "transforms"}
    assert decode(recorded_before) == CLIPPED
