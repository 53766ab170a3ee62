from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.exc import TorchDynamoException
from torch._inductor.exc import InductorError

from coach_rl.architectures.gradient_step import AdamParameters, Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.architectures.update_modes import REPAID_AFTER, UnableToRun, resolved_mode
from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.extensions.update_modes.recorded_steps import compiler_present

CPU, GPU = torch.device("cpu"), torch.device("cuda:1")
CLIPPED = AdamParameters(learning_rate=0.02, betas=(0.8, 0.95), max_gradient_norm=0.5)
compiles = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning"),
    pytest.mark.timeout(240),
    pytest.mark.skipif(not compiler_present(), reason="torch.compile needs a C++ compiler"),
]


class Examples(NamedTuple):
    """A batch."""

    inputs: dict[str, Tensor]
    y: Tensor
    weight: Tensor | None = None


class Factor:
    """A number that a loss reads, none of its scalars."""

    value = 1.0


def examples(rows):
    x = torch.randn(rows, 3, generator=torch.Generator().manual_seed(1))
    return Examples({"x": x}, (x**2).sum(dim=1, keepdim=True))


def learner(mode, *, activation=nn.Tanh, factor=Factor, device=CPU, optimizer=CLIPPED):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(3, 5), activation(), nn.Linear(5, 1))
    network = NetworkWrapper(module, device=device)

    def loss(flat, batch, scalars):
        error = ((network.call(flat, batch.inputs["x"]) - batch.y) ** 2).mean()
        scaled = factor.value * scalars["weight"] * error
        return scaled, {"error": error.detach(), "first_x": batch.inputs["x"][0, 0]}

    objective = Objective(network=network, loss=loss, optimizer=optimizer)
    engine = UpdateEngine((objective,), mode=mode, planned_updates=0)
    engine.set_scalars(weight=2.0)
    return network, engine


def train(engine, device=CPU):
    """Twenty minibatches; returns the metrics."""
    engine.set_scalars(learning_rate=0.02, weight=2.0)
    rng = torch.Generator().manual_seed(2)
    data = examples(24)
    data = Examples({"x": data.inputs["x"].to(device)}, data.y.to(device))
    for number in range(20):
        if number == 10:  # numbers that change must not be compiled in
            engine.set_scalars(learning_rate=0.005, weight=3.0)
        engine.step(data, torch.randperm(24, generator=rng)[:8].to(device))
    return engine.drain_metrics()


@pytest.mark.parametrize(
    ("planned", "device", "compiler", "expected"),
    [
        (REPAID_AFTER, CPU, True, "compiled"),
        (REPAID_AFTER - 1, CPU, True, "eager"),
        (REPAID_AFTER, CPU, False, "eager"),
        (0, GPU, True, "captured"),
    ],
)
def test_auto_captures_on_a_gpu_and_compiles_where_it_can_and_is_repaid(
    monkeypatch, planned, device, compiler, expected
):
    monkeypatch.setattr(
        "coach_rl.extensions.update_modes.recorded_steps.compiler_present", lambda: compiler
    )
    mode = resolved_mode("auto", device, planned_updates=planned, repaid_after=REPAID_AFTER)
    assert mode == expected


@pytest.mark.parametrize(
    ("mode", "number"),
    [
        pytest.param("compiled", 0, marks=compiles),
        pytest.param("captured", 0, marks=pytest.mark.gpu),
        pytest.param("captured", 1, marks=pytest.mark.gpu),
    ],
)
def test_recorded_equals_eager_to_rounding(mode, number):
    device = CPU
    if mode == "captured":
        if torch.cuda.device_count() <= number:
            pytest.skip(f"needs {number + 1} CUDA devices")
        device = torch.device("cuda", number)
    (eager, plain), (recorded, fast) = (learner(each, device=device) for each in ("eager", mode))
    assert fast.mode == mode
    expected, found = train(plain, device), train(fast, device)
    assert found == pytest.approx(expected, rel=1e-4)
    torch.testing.assert_close(recorded.online, eager.online, rtol=1e-4, atol=1e-5)
    adam, plain_adam = (each.state_dict()["optimizers"][""] for each in (fast, plain))
    assert adam["powers"][1].item() == pytest.approx(0.95**20)
    torch.testing.assert_close(
        adam["second_moment"], plain_adam["second_moment"], rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize("mode", [pytest.param("compiled", marks=compiles)])
def test_a_compiled_step_belongs_to_its_engine_and_follows_changes(mode, compiler):
    factor = Factor()
    kinds = (nn.Tanh, nn.ReLU)  # engines that differ only in what the compiler may not check
    eager, compiled = (
        {kind: learner(each, activation=kind, factor=factor) for kind in kinds}
        for each in ("eager", mode)
    )
    for learners in (eager, compiled):
        factor.value = 1.0
        for _, engine in learners.values():
            engine.step(examples(8))
        factor.value = 3.0  # a plain Python number
        learners[nn.Tanh][1].step(examples(8))
        learners[nn.Tanh][1].step(examples(5))  # another batch size
    for kind in kinds:
        (network, engine), (fast_network, fast) = eager[kind], compiled[kind]
        torch.testing.assert_close(fast_network.online, network.online, rtol=1e-4, atol=1e-5)
        assert fast.drain_metrics() == pytest.approx(engine.drain_metrics(), rel=1e-4)
    tanh, relu = (compiled[kind][0].online for kind in kinds)
    assert (tanh - relu).abs().max() > 0.01


@pytest.mark.parametrize("failures", [1, 2])
def test_a_cpp_compiler_ended_by_ctrl_c_is_started_again_once(monkeypatch, failures):
    calls = []

    def compile_step(function, **_options):
        def step(*arguments):
            calls.append("compile")
            if len(calls) <= failures:
                raise TorchDynamoException("CppCompileError: C++ compile error")
            return function(*arguments)

        return step

    monkeypatch.setattr("torch.compile", compile_step)
    monkeypatch.setattr("coach_rl.architectures.update_modes.cannot_run", lambda *_: None)
    _, engine = learner("compiled")
    if failures == 1:
        engine.step(examples(8))
        assert engine.steps == 1
    else:
        with pytest.raises(ConfigurationError):
            engine.step(examples(8))
    assert len(calls) == 2


@pytest.mark.parametrize("place", ["in the cache", "elsewhere"])
def test_a_compiled_file_that_was_cut_off_is_made_again(monkeypatch, tmp_path, place):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "cache" if place == "in the cache" else tmp_path
    folder.mkdir(exist_ok=True)
    library = folder / "step.so"
    library.touch()

    def compile_step(function, **_options):
        def step(*arguments):
            if library.exists():
                cause = ImportError(f"{library}: file too short", path=str(library))
                raise InductorError(cause, None)
            return function(*arguments)

        return step

    monkeypatch.setattr("torch.compile", compile_step)
    monkeypatch.setattr("coach_rl.architectures.update_modes.cannot_run", lambda *_: None)
    _, engine = learner("compiled")
    if place == "elsewhere":
        with pytest.raises(ConfigurationError):
            engine.step(examples(8))
        return
    engine.step(examples(8))
    assert not library.exists()


class Reading(nn.Module):
    """Reads a number of the GPU, which a CUDA graph has no place for."""

    def forward(self, values):
        return values if values.sum() > -1e9 else -values


class Waiting(nn.Module):
    """Waits for the GPU in a way that torch does not notice, so that the capture itself fails."""

    def forward(self, values):
        torch.cuda.synchronize()
        return values


class NoisyReading(Reading):
    """Draws from the GPU's own generator, too."""

    def forward(self, values):
        return super().forward(values + torch.randn_like(values))


class NoisyWaiting(Waiting):
    """Draws from the GPU's own generator, too."""

    def forward(self, values):
        return super().forward(values + torch.randn_like(values))


def assert_equal_to_eager(network, engine, **given):
    """Train both from equal random numbers; not a bit may differ."""
    device = network.online.device
    eager, plain = learner("eager", device=device, **given)
    results = []
    for each in (plain, engine):
        torch.cuda.manual_seed(5)
        results.append(train(each, device))
    assert results[0] == results[1]
    assert torch.equal(network.online, eager.online)
    moments, plain_moments = (each.state_dict()["optimizers"][""] for each in (engine, plain))
    for name, values in plain_moments.items():
        assert torch.equal(moments[name], values), name


@pytest.mark.gpu
def test_captured_updates_equal_eager_ones_bit_for_bit():
    network, engine = learner("auto", device=torch.device("cuda"))
    assert_equal_to_eager(network, engine)
    assert engine.updates == "captured"


@pytest.mark.gpu
@pytest.mark.parametrize("module", [Reading, Waiting, NoisyReading, NoisyWaiting])
def test_auto_is_eager_from_the_start_where_a_step_cannot_be_captured(module):
    device = torch.device("cuda")
    network, engine = learner("auto", activation=module, device=device)
    with pytest.warns(CoachWarning):
        assert_equal_to_eager(network, engine, activation=module)
    assert engine.mode == "eager"
    assert engine.updates.startswith("eager (cannot be captured: ")
    _, restored = learner("auto", activation=module, device=device)
    restored.load_state_dict(engine.state_dict())
    assert restored.updates == engine.updates
    network, engine = learner("auto", device=device)  # the GPU is as usable as before
    assert_equal_to_eager(network, engine)
    assert engine.updates == "captured"


@pytest.mark.gpu
@pytest.mark.parametrize("module", [Reading, Waiting])
def test_captured_is_refused_in_one_line_where_a_step_cannot_be(module):
    network, engine = learner("captured", activation=module, device=torch.device("cuda"))
    before = network.online.clone()
    with pytest.raises(ConfigurationError):
        train(engine, torch.device("cuda"))
    assert torch.equal(network.online, before)


@pytest.mark.gpu
def test_a_captured_step_takes_batches_of_other_sizes_as_an_eager_one_does():
    device = torch.device("cuda")
    data = Examples({"x": examples(24).inputs["x"].to(device)}, examples(24).y.to(device))
    networks = []
    for mode in ("captured", "eager"):
        network, engine = learner(mode, device=device)
        for size in (8, 1, 8, 24, 3):
            engine.step(data, torch.arange(size, device=device))
        networks.append(network.online)
    assert torch.equal(*networks)


@pytest.mark.gpu
def test_a_captured_engine_saved_and_restored_continues_bit_for_bit():
    device = torch.device("cuda")
    network, engine = learner("auto", device=device)
    train(engine, device)
    other, restored = learner("auto", device=device)
    other.load_state_dict(network.state_dict())
    restored.load_state_dict(engine.state_dict())
    restored.steps = engine.steps
    assert train(restored, device) == train(engine, device)
    assert torch.equal(other.online, network.online)


def test_a_recorded_mode_is_kept_by_auto():
    """What the last release recorded as eager stays eager where `auto` now captures."""
    _, engine = learner("auto")
    state = engine.state_dict()
    assert "reason" not in state
    engine._mode.name = "captured"
    engine.load_state_dict(state)
    assert engine.updates == "eager (as in its checkpoint)"


def unable_to_capture(monkeypatch, mode):
    """A learner on the CPU whose capture is a function that fails, having changed nothing."""

    def captured(step, device):
        def run(*arguments):
            raise UnableToRun("cannot be captured: it reads a number (in forward, net.py:7)")

        return run

    monkeypatch.setattr("coach_rl.extensions.update_modes.recorded_steps.captured", captured)
    monkeypatch.setattr("coach_rl.architectures.update_modes.cannot_run", lambda *_: None)
    network, engine = learner(mode)
    engine._mode.name = "captured"
    return network, engine


def test_auto_mode_failed_capture_continues_eagerly(monkeypatch):
    (eager, plain), (network, engine) = learner("eager"), unable_to_capture(monkeypatch, "auto")
    with pytest.warns(CoachWarning):
        found = train(engine)
    assert found == train(plain)
    assert torch.equal(network.online, eager.online)
    assert engine.updates == "eager (cannot be captured: it reads a number (in forward, net.py:7))"
