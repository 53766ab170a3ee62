from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.exc import TorchDynamoException
from torch._inductor.exc import InductorError

from coach_rl.architectures.gradient_step import Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import AdamParameters
from coach_rl.architectures.recorded_steps import COMPILE_REPAID_AFTER, resolved_mode
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core import update_modes
from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.core.update_modes import compiler_present

CPU, GPU = torch.device("cpu"), torch.device("cuda:1")
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


def learner(mode, *, activation=nn.Tanh, factor=Factor, device=CPU):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(3, 5), activation(), nn.Linear(5, 1))
    network = NetworkWrapper(module, device=device)

    def loss(flat, batch, scalars):
        error = ((network.call(flat, batch.inputs["x"]) - batch.y) ** 2).mean()
        scaled = factor.value * scalars["weight"] * error
        return scaled, {"error": error.detach(), "first_x": batch.inputs["x"][0, 0]}

    optimizer = AdamParameters(learning_rate=0.02, betas=(0.8, 0.95), max_gradient_norm=0.5)
    objective = Objective(network=network, loss=loss, optimizer=optimizer)
    engine = UpdateEngine((objective,), mode=mode, planned_updates=0)
    engine.set_scalars(weight=2.0)
    return network, engine


def train(engine, device=CPU):
    """Twenty minibatches; returns the metrics."""
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
        (COMPILE_REPAID_AFTER, CPU, True, "compiled"),
        (COMPILE_REPAID_AFTER - 1, CPU, True, "eager"),
        (COMPILE_REPAID_AFTER, CPU, False, "eager"),
        (0, GPU, True, "captured"),
    ],
)
def test_auto_captures_on_a_gpu_and_compiles_where_it_can_and_is_repaid(
    monkeypatch, planned, device, compiler, expected
):
    monkeypatch.setattr(update_modes, "compiler_present", lambda: compiler)
    mode = resolved_mode("auto", device, planned_updates=planned, repaid_after=COMPILE_REPAID_AFTER)
    assert mode == expected


@pytest.mark.parametrize(
    ("mode", "device", "compiler", "message"),
    [
        ("compiled", CPU, "no-such", r"needs a C\+\+ .*g\+\+ is one\); use 'auto' or 'eager'"),
        ("compiled", GPU, "cc", "the CPU and .* 'cuda:1'; use 'auto', 'captured' or 'eager'"),
        ("captured", CPU, "cc", "records a CUDA graph and this agent is on 'cpu'; use 'auto' or"),
    ],
)
def test_a_mode_that_cannot_run_is_refused(monkeypatch, mode, device, compiler, message):
    monkeypatch.setenv("CXX", compiler)
    with pytest.raises(ParameterError, match=f"update_mode='{mode}' .*{message}"):
        resolved_mode(mode, device, planned_updates=0, repaid_after=0)


@pytest.mark.parametrize(
    ("mode", "number"),
    [pytest.param("compiled", 0, marks=compiles), ("captured", 0), ("captured", 1)],
)
def test_recorded_equals_eager_to_rounding(mode, number):
    device = CPU
    if mode == "captured":
        if torch.cuda.device_count() <= number:
            pytest.skip(f"needs {number + 1} CUDA device(s)")
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
def test_a_compiled_step_belongs_to_its_engine_and_follows_changes(mode):
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
    monkeypatch.setattr("coach_rl.architectures.recorded_steps.cannot_run", lambda *_: None)
    monkeypatch.setattr("coach_rl.architectures.update_engine.cannot_run", lambda *_: None)
    _, engine = learner("compiled")
    if failures == 1:
        engine.step(examples(8))
        assert engine.steps == 1
    else:
        with pytest.raises(ConfigurationError, match="cannot be compiled: CppCompileError"):
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
    monkeypatch.setattr("coach_rl.architectures.recorded_steps.cannot_run", lambda *_: None)
    monkeypatch.setattr("coach_rl.architectures.update_engine.cannot_run", lambda *_: None)
    _, engine = learner("compiled")
    if place == "elsewhere":
        with pytest.raises(ConfigurationError, match="file too short"):
            engine.step(examples(8))
        return
    engine.step(examples(8))
    assert not library.exists()


@pytest.mark.skipif(not compiler_present(), reason="torch.compile needs a C++ compiler")
def test_a_network_that_cannot_be_compiled_is_refused_in_one_line():
    class Branching(nn.Module):
        def forward(self, values):
            return values if values.sum() > 0 else -values

    _, engine = learner("compiled", activation=Branching)
    with pytest.raises(
        ConfigurationError, match=r"cannot be compiled: .* update_mode='eager'"
    ) as e:
        engine.step(examples(8))
    assert "\n" not in str(e.value)
