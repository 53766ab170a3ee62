import copy

import numpy as np
import pytest
import torch
from torch import nn

from coach_rl.architectures.gradient_step import AdamParameters, Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import TargetSync
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.errors import CoachWarning, DivergedError
from coach_rl.core.runtime import STOP, DivergenceParameters, Runtime
from coach_rl.extensions.testing import assert_same_state
from coach_rl.extensions.update_modes.recorded_steps import compiler_present
from tests.extensions.update_modes.test_recorded_steps import Examples

CPU = torch.device("cpu")
CLIPPED = AdamParameters(learning_rate=0.02, betas=(0.8, 0.95), epsilon=1e-5, max_gradient_norm=0.5)


def module(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))


def data(rows=24, seed=1):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 3, generator=rng)
    return Examples({"x": x}, (x**2).sum(dim=1, keepdim=True))


def minibatches(steps, rows=24, size=8):
    rng = torch.Generator().manual_seed(2)
    return [torch.randperm(rows, generator=rng)[:size] for _ in range(steps)]


def engine_for(network, optimizer=CLIPPED, mode="eager", planned=0, **options):
    def loss(flat, batch, scalars):
        error = ((network.call(flat, batch.inputs["x"]) - batch.y) ** 2).mean()
        scaled = error * scalars["weight"]
        return scaled, {"error": error.detach(), "first_x": batch.inputs["x"][0, 0]}

    engine = UpdateEngine(
        (Objective(network=network, loss=loss, optimizer=optimizer),),
        mode=mode,
        planned_updates=planned,
        **options,
    )
    engine.set_scalars(weight=2.0)
    return engine


def made(optimizer=CLIPPED, mode="eager"):
    network = NetworkWrapper(module(), device=CPU)
    return network, engine_for(network, optimizer, mode)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("compiled", ["compiling the gradient step of agent 'ppo'", "step", "", "step"]),
        ("eager", []),
    ],
)
def test_the_first_step_says_that_it_is_compiled(monkeypatch, mode, expected):
    happened = []

    def compiled(step):
        def run(*arguments):
            happened.append("step")
            return step(*arguments)

        return run

    monkeypatch.setattr("coach_rl.extensions.update_modes.recorded_steps.compiled", compiled)
    monkeypatch.setattr("coach_rl.architectures.update_modes.cannot_run", lambda *_: None)
    network = NetworkWrapper(module(), device=CPU)
    engine = engine_for(
        network, mode=mode, owner="agent 'ppo'", runtime=Runtime(on_activity=happened.append)
    )
    for index in minibatches(2):
        engine.step(data(), index)
    assert happened == expected


def test_scalars_keep_until_they_are_set_again():
    network, engine = made(AdamParameters(learning_rate=0.5))
    before = network.online.clone()
    engine.set_scalars(learning_rate=0.0)
    engine.step(data(), torch.arange(8))
    assert torch.equal(network.online, before)
    engine.set_scalars(learning_rate=0.01)
    engine.step(data(), torch.arange(8))
    moved = (network.online - before).abs()
    # Adam's step is at most about the step size: 0.01, not the 0.5 of the parameters
    assert 0.005 < moved.max() < 0.02


def test_clipped_gradient_not_finite_keeps_the_parameters():
    network, engine = made()
    columns = data()
    columns.y[5] = 1e30  # its squared error is more than float32 holds
    with pytest.raises(DivergedError):
        engine.step(columns, torch.tensor([4, 5]))
    assert torch.isfinite(network.online).all()


def spoilt(kind, **options):
    """An engine whose next step breaks in one place alone; the network, the engine, a batch."""
    network = NetworkWrapper(module(), device=CPU, with_target=True)

    def loss(flat, batch, scalars):
        y = batch.y.mean()
        value = (flat**2).sum()
        if kind == "loss":
            value = value + y.exp()  # whose gradient is finite
        if kind == "gradient_norm":
            distance = flat[0] - flat[0].detach()
            value = value + (distance**2 + 100 - y).sqrt()  # has no slope at 0
        return value, {"y": y}

    engine = UpdateEngine(
        (Objective(network=network, loss=loss, optimizer=AdamParameters()),),
        targets=((network, TargetSync(rate=0.1)),),
        planned_updates=0,
        **options,
    )
    sound, bad = (Examples({}, torch.tensor([y])) for y in (0.0, 100.0))
    engine.step(sound)
    if kind == "parameter_norm":
        engine.set_scalars(learning_rate=3e38)
    return network, engine, bad


KINDS = ["loss", "gradient_norm", "parameter_norm"]


MODES = [
    "eager",
    pytest.param(
        "compiled",
        marks=[
            pytest.mark.slow,
            pytest.mark.timeout(240),
            pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning"),
            pytest.mark.skipif(not compiler_present(), reason="needs a C++ compiler"),
        ],
    ),
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_skipped_step_changes_nothing_and_is_counted(kind, mode):
    skip = DivergenceParameters(response="skip", most_skipped=3)
    network, engine, bad = spoilt(kind, mode=mode, runtime=Runtime(divergence=skip))
    before = copy.deepcopy((network.state_dict(), engine.state_dict()["optimizers"]))
    engine.step(bad)
    engine.step(bad)
    assert_same_state((network.state_dict(), engine.state_dict()["optimizers"]), before)
    metrics = engine.drain_metrics()
    assert (metrics["skipped_updates"], metrics["y"]) == (2.0, 0.0)  # y of the sound step alone
    with pytest.raises(DivergedError):
        engine.step(bad)


def test_sound_steps_are_the_same_where_others_would_be_skipped():
    skip = DivergenceParameters(response="skip", most_skipped=1)
    engines = [
        engine_for(NetworkWrapper(module(), device=CPU), runtime=Runtime(divergence=d))
        for d in (STOP, skip)
    ]
    for index in minibatches(5):
        for engine in engines:
            engine.step(data(), index)
    first, second = (engine.state_dict() for engine in engines)
    assert_same_state(first["optimizers"], second["optimizers"])
    assert engines[0].drain_metrics() == engines[1].drain_metrics()


def test_checked_answers_not_finite_are_refused():
    _, engine = made()
    answers = np.array([[1.0, -2.0]], np.float32)
    assert engine.checked(answers) is answers
    answers[0, 1] = 1e30  # whose square is more than float32 holds
    assert engine.checked(answers) is answers
    answers[0, 1] = np.inf
    with pytest.raises(DivergedError):
        engine.checked(answers)


def test_sums_of_metrics_do_not_depend_on_when_they_are_looked_at():
    _, engine = made()
    _, looked_at = made()
    for index in minibatches(10):
        engine.step(data(), index)
        looked_at.step(data(), index)
        looked_at.state_dict()
    assert engine.drain_metrics() == looked_at.drain_metrics()


def test_a_saved_mode_wins_over_the_one_asked_for(monkeypatch):
    monkeypatch.setattr(
        "coach_rl.extensions.update_modes.recorded_steps.compiler_present", lambda: True
    )
    eager = engine_for(NetworkWrapper(module(), device=CPU))
    other = NetworkWrapper(module(), device=CPU)
    engine = engine_for(other, mode="compiled")  # compiles at its first step only
    engine.load_state_dict(eager.state_dict())
    assert engine.mode == "eager"
    engine.step(data(), torch.arange(8))
    eager.step(data(), torch.arange(8))
    assert engine.drain_metrics() == eager.drain_metrics()


class Number(nn.Module):
    """One parameter."""

    def __init__(self, value):
        super().__init__()
        self.value = nn.Parameter(torch.tensor([value]))

    def forward(self):
        return self.value


QUARTER = TargetSync(rate=0.25)


def follower_engine(mode="eager", sync=QUARTER):
    """`first` goes to the batch's mean; `second` follows `first` as it then stands."""
    first, second = (
        NetworkWrapper(Number(value), device=CPU, with_target=True) for value in (4.0, 0.0)
    )

    def to_batch(flat, batch, scalars):
        error = flat - batch.y
        return (error**2).mean(), {"distance": error.abs().mean(), "error": error}

    def to_first(flat, batch, scalars):
        seen = scalars["error"].mean()  # what the first objective said of each sample
        return (flat - first.online).pow(2).sum(), {"seen": seen, "first_now": first.online[0]}

    engine = UpdateEngine(
        (
            Objective(
                name="a", network=first, loss=to_batch, optimizer=AdamParameters(learning_rate=1.0)
            ),
            Objective(
                name="b",
                network=second,
                loss=to_first,
                optimizer=AdamParameters(learning_rate=0.5, l2=3.0),
            ),
        ),
        targets=((first, sync), (second, sync)),
        mode=mode,
        planned_updates=0,
    )
    return first, second, engine


COMPILED = pytest.param(
    "compiled",
    marks=[
        pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning"),
        pytest.mark.timeout(240),
        pytest.mark.skipif(not compiler_present(), reason="torch.compile needs a C++ compiler"),
    ],
)


@pytest.mark.parametrize("mode", ["eager", COMPILED])
def test_objectives_are_stepped_in_order_and_targets_follow(mode, compiler):
    first, second, engine = follower_engine(mode)
    outputs = engine.step(Examples({}, torch.tensor([1.0, 2.0])))
    # Adam's first step is its learning rate against the sign of the gradient.
    assert first.online.item() == pytest.approx(3.0, abs=1e-5)
    assert second.online.item() == pytest.approx(0.5, abs=1e-5)
    torch.testing.assert_close(outputs["error"], torch.tensor([3.0, 2.0]))
    metrics = engine.drain_metrics()
    assert metrics["distance"] == metrics["seen"] == 2.5
    assert metrics["first_now"] == pytest.approx(3.0, abs=1e-5)  # after its step
    assert metrics["a_gradient_norm"] == pytest.approx(5.0)  # 2 * mean(4 - x)
    assert metrics["b_gradient_norm"] == pytest.approx(6.0, abs=1e-4)  # 2 * (0 - 3), l2 * 0
    assert first.target.item() == pytest.approx(4 + 0.25 * (3 - 4), abs=1e-5)
    assert second.target.item() == pytest.approx(0 + 0.25 * (0.5 - 0), abs=1e-5)
    # The second gradient of `b`: 2 * (0.5 - 2) + l2 3 * 0.5, with `a` at 2.
    engine.step(Examples({}, torch.tensor([1.0, 2.0])))
    a = engine.drain_metrics()
    assert a["b_gradient_norm"] == pytest.approx(abs(2 * (0.5 - a["first_now"]) + 1.5), abs=1e-4)


@pytest.mark.parametrize("mode", ["compiled", "captured"])
def test_a_restored_mode_that_cannot_run_here_warns_once_and_is_eager(monkeypatch, mode):
    monkeypatch.setenv("CXX", "no-such-compiler")
    network, engine = made()
    engine.load_state_dict({**engine.state_dict(), "mode": mode})
    before = network.online.clone()
    with pytest.warns(CoachWarning):
        engine.step(data(), torch.arange(8))
    assert not torch.equal(network.online, before)
    assert engine.mode == engine.state_dict()["mode"] == "eager"
    engine.step(data(), torch.arange(8))  # warnings are errors
