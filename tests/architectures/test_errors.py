"""Settings and networks that are refused: a call, the kind of error, and parts of its message."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

import coach_rl as rl
from coach_rl.architectures.continuous_control import DeterministicActor, scale_to
from coach_rl.architectures.gradient_step import named_tensors
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.q_network import QNetwork
from coach_rl.architectures.update_modes import resolved_mode
from coach_rl.core.errors import CheckpointError, DivergedError, SpaceError
from coach_rl.exploration_policies.box_noise import SquashedGaussianPolicy
from coach_rl.extensions.update_modes.recorded_steps import compiler_present
from tests.architectures import test_continuous_control as control
from tests.architectures import test_observation_normaliser as normaliser
from tests.architectures import test_update_engine as engines
from tests.extensions.own_modules import test_user_module as modules
from tests.extensions.update_modes import test_recorded_steps as recorded
from tests.refusals import check_refused

CPU, GPU = torch.device("cpu"), torch.device("cuda:1")
X = spaces.Dict({"x": spaces.Box(-1, 1, (3,))})
BOX = spaces.Box(np.float32([-1, 0]), np.float32([1, 4]))
FIXED = spaces.Box(np.float32([-1, 2]), np.float32([1, 2]))
THIN = spaces.Box(np.array([1.0]), np.array([1.0 + 1e-12]), dtype=np.float64)
UNBOUNDED = [spaces.Box(low, high, (1,)) for low, high in ((-np.inf, np.inf), (0, np.inf))]
BUILDS = [
    scale_to,
    SquashedGaussianPolicy,
    rl.GaussianNoise().build,
    rl.OrnsteinUhlenbeckNoise().build,
    rl.EpsilonZGreedy().build,
]
"""Functions of a `Box` whose half-range has to be finite."""
SKIPPING = rl.Runtime(divergence=rl.DivergenceParameters(response="skip", most_skipped=1))


OWN = modules.own(3)
IMAGE = spaces.Box(0, 255, (20, 20, 3), np.uint8)
CHANNELS_FIRST = spaces.Box(0, 255, (3, 84, 84), np.uint8)


class Branching(nn.Module):
    """What is computed depends on a number."""

    def forward(self, values):
        return values if values.sum() > 0 else -values


def params(kind, **fields):
    return lambda: kind(**fields)


def shared_critic_torso():
    rl.ActorCriticParameters(shared_torso=True, critic_torso=rl.TorsoParameters())


def torso(space, **fields):
    return lambda: rl.TorsoParameters(**fields).build(spaces.Dict({"x": space}), torch.Generator())


def own(module, **fields):
    return lambda: rl.ModuleParameters(module=module, **fields).build(modules.SPACE, modules.rng())


def broken(layer):
    return own(modules.Broken, arguments={"layer": layer})


def keys(kind, *names, **fields):
    return lambda: kind(keys=names, **fields).build(modules.SPACE, modules.rng())


def actor_critic(action):
    return lambda: rl.ActorCriticParameters().build(
        observation_space=X, action_space=action, rng=torch.Generator()
    )


def actor(outputs):
    return lambda: DeterministicActor(
        rl.ActorParameters(torso=modules.own(outputs)), modules.SPACE, BOX, modules.rng()
    )


def q_network(action):
    return lambda: QNetwork(rl.QNetworkParameters(), X, action, torch.Generator())


def load(saved, *, target=False, **more):
    def call():
        state = NetworkWrapper(saved, device=CPU).state_dict()
        state["online"].update(more)
        NetworkWrapper(nn.Linear(2, 1), device=CPU, with_target=target).load_state_dict(state)

    return call


def mode(name, device, compiler):
    def call():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CXX", compiler)
            resolved_mode(name, device, planned_updates=0, repaid_after=0)

    return call


def restored_mode(name):
    def call():
        _, engine = engines.made()
        engine.load_state_dict({**engine.state_dict(), "mode": name})
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CXX", "no-such-compiler")
            engine.step(engines.data(), torch.arange(8))

    return call


def compile_branches():
    _, engine = recorded.learner("compiled", activation=Branching)
    engine.step(recorded.examples(8))


def failed_capture(name):
    def call():
        with pytest.MonkeyPatch.context() as patch:
            engine = recorded.unable_to_capture(patch, name)[1]
            recorded.train(engine)

    return call


def lose_spread():
    space = spaces.Dict({"time": spaces.Box(-np.inf, np.inf, (1,), np.float64)})
    normaliser.made(space=space).update({"time": normaliser.SECONDS})


def target_of(y, **adam):
    """A step on a batch with this target in its last row, after three others."""

    def call():
        _, engine = engines.made(rl.AdamParameters(learning_rate=0.02, **adam))
        columns = engines.data()
        for index in engines.minibatches(3):
            engine.step(columns, index)
        columns.y[5] = y
        engine.step(columns, torch.tensor([4, 5]))

    return call


def step_after_restoring():
    state = engines.made()[1].state_dict()
    _, engine = engines.made()
    engine.load_state_dict(state)
    engine.steps = 3
    columns = engines.data()
    columns.inputs["x"][:] = torch.nan
    engine.step(columns, torch.arange(8))


def spoilt(kind, **options):
    def call():
        _, engine, bad = engines.spoilt(kind, mode="eager", **options)
        engine.step(bad)

    return call


def save_infinite_bias():
    network, engine = engines.made()
    network.online[-1] = torch.inf
    engine.state_dict()


def check_infinite_answers():
    engines.made()[1].checked(np.float32([[np.inf]]))


CASES = {
    rl.ParameterError: [
        (params(rl.CriticParameters, action_layers=(0, 3)), "layers from 0 to 2 ... got (0, 3)"),
        (params(rl.CriticParameters, torso=OWN, action_layers=(1,)), "name layers from 0 to 0"),
        (params(rl.CategoricalHead, low=2.0, high=2.0), "low ... below high, got 2.0 and 2.0"),
        (params(rl.CategoricalHead, low=999_999, high=1_000_001), "float32 cannot distinguish"),
        (params(rl.QNetworkParameters, torso=OWN, streams=(32,)), "layers behind our torso"),
        (params(rl.QNetworkParameters, torso=OWN, dueling=True), "dueling needs last_layer"),
        (shared_critic_torso, "critic_torso is not used where shared_torso"),
        (params(rl.TorsoParameters, activation="rely"), "did you mean 'relu'"),
        (params(rl.TorsoParameters, convolutions="medum"), "did you mean 'medium'"),
        *(
            (params(rl.ModuleParameters, module=each), "write a class of torch.nn.Module")
            for each in (dict, nn.Linear(2, 2), print, None, 3)
        ),
        (mode("compiled", CPU, "no-such"), "'compiled' needs a C++ ... use 'auto' or 'eager'"),
        (mode("compiled", GPU, "cc"), "the CPU ... 'cuda:1'; use 'auto', 'captured' or 'eager'"),
        (mode("captured", CPU, "cc"), "'captured' ... on 'cpu'; use 'auto', 'compiled' or"),
        (mode("compild", CPU, "cc"), "'compild' is offered by no ... use 'auto', 'compiled' or"),
    ],
    rl.ConfigurationError: [
        (own("coach_rl.architectures.layers:FlattenVector"), "cannot be built: TypeError"),
        (own("no_such_module:Net"), "'no_such_module:Net' cannot be imported: ... module:Class"),
        (own("Net"), "'Net' cannot be imported"),
        (own("torch.nn:Linnear"), "'Linnear' in module 'torch.nn' ... 'Linear'"),
        (own("os:system"), "'os:system' is not a class ... and is not called"),
        (own("torch.nn:init"), "is not a class derived from torch.nn.Module"),
        (broken(nn.BatchNorm1d), "Broken changes its buffer 'layer.running_mean' ... nn.LayerNorm"),
        (broken(lambda _: nn.Dropout(0.5)), "other outputs for the same inputs, as dropout"),
        (broken(modules.Batchless), "other outputs for a row alone than among others"),
        (broken(modules.Frozen), "'layer.weight' ... Broken is frozen; ... buffers"),
        (broken(modules.Double), "'layer.weight' ... is torch.float64; parameters are float32"),
        (broken(lambda _: nn.Flatten(0)), "[3, features] ... got ... float32 [9, 1]"),
        (broken(lambda _: nn.Linear(7, 2)), "on made-up observations: RuntimeError: mat1"),
        (failed_capture("captured"), "an agent: update_mode='captured', but its"),
        pytest.param(
            compile_branches,
            "cannot be compiled: ... update_mode='eager'",
            marks=pytest.mark.skipif(not compiler_present(), reason="needs a C++ compiler"),
        ),
    ],
    SpaceError: [
        *(
            (actor_critic(action), "no stochastic policy ... flattened as PPO does")
            for action in (
                spaces.Box(-1, 1, (2, 2)),
                spaces.Box(0, 9, (2,), np.int64),
                spaces.MultiBinary(3),
                spaces.MultiDiscrete([[2, 3], [4, 5]]),
                spaces.Dict({"move": spaces.Discrete(2)}),
            )
        ),
        *(
            (lambda space=space: scale_to(space), "flat Box of floats ... use DQN ... OutputFilter")
            for space in (
                spaces.Discrete(3),
                spaces.MultiDiscrete([2, 2]),
                spaces.MultiBinary(3),
                spaces.Dict({"x": spaces.Box(-1, 1, (1,))}),
                spaces.Box(-1, 1, (2, 2)),
                spaces.Box(-1, 1, ()),
                spaces.Box(0, 5, (2,), np.int64),
            )
        ),
        *(
            (lambda build=build, box=box: build(box), f"finite bounds, got ... ; {remedy}(low=")
            for build in BUILDS
            for remedy, boxes in (("BoxMasking", UNBOUNDED), ("LinearBoxToBoxMap", control.WIDE))
            for box in boxes
        ),
        # whose share of the range would be 0 / 0
        (lambda: scale_to(FIXED), "element 1 of the action space can only be 2.0"),
        (lambda: scale_to(THIN), "element 0 of the action space"),
        (actor(3), "the network Net has 3 outputs where 2 are needed"),
        (q_network(BOX), "a Discrete or a flat MultiDiscrete space, got Box"),
        (
            torso(IMAGE, convolutions="medium"),
            "'x' of (20, 20, 3) ... 'medium'; set TorsoParameters.convolutions to auto",
        ),
        (torso(spaces.Text(5)), "cannot embed observation 'x'"),
        (torso(spaces.Box(0, 1, (8, 8, 3))), "of (8, 8, 3) float32 may be an image or not; set"),
        (torso(CHANNELS_FIRST), "channels first; set ... images to channels_first"),
    ],
    rl.UnknownNameError: [
        (keys(rl.TorsoParameters, "gaol"), "unknown observation key 'gaol' ... 'goal'"),
        (keys(rl.ModuleParameters, "gaol", module=modules.Net), "'gaol' ... 'goal'"),
    ],
    CheckpointError: [
        (load(nn.Linear(3, 1)), "'weight' should have the shape (1, 2), found (1, 3)"),
        (load(nn.Linear(2, 1, bias=False)), "'bias' should have the shape (1,), found nothing"),
        (load(nn.Sequential(nn.Linear(2, 1))), "'weight' should ... found nothing"),
        (load(nn.Linear(2, 1), another=torch.ones(2)), "another"),
        (load(nn.Linear(2, 1), target=True), "target"),
    ],
    DivergedError: [
        (step_after_restoring, "at gradient step 4 its error was nan"),
        (
            target_of(torch.inf),
            "diverged: at gradient step 4 its error was inf, ... of 26 parameters ... '0.weight'"
            " ... Learning rate 0.02 ... not clipped ... y up to inf, inputs/x up to ",
        ),
        (target_of(1e30, max_gradient_norm=0.5), "error was inf, ... gradients clipped at 0.5"),
        (spoilt("loss"), "at gradient step 2 its loss was inf"),
        (spoilt("gradient_norm"), "at gradient step 2 its gradient_norm was"),
        (spoilt("parameter_norm"), "at gradient step 2 its parameter_norm was"),
        (spoilt("loss", runtime=SKIPPING), "steps skipped in a row: 1"),
        (save_infinite_bias, "1 of 26 parameters are ... '2.bias'"),
        (check_infinite_answers, "its network answers inf though its parameters are"),
    ],
    AssertionError: [
        (lambda: named_tensors({"a": [1]}), "a batch holds tensors, not list"),
    ],
    rl.CoachWarning: [
        (lose_spread, "element 0 of observation 'time' ... 'time': (ObservationNormalization"),
        (restored_mode("compiled"), "'compiled' needs a C++ ... its updates are eager from now on"),
        (restored_mode("captured"), "CUDA graph ... its updates are eager from now on"),
        (restored_mode("of_another"), "offered by no ... its updates are eager from now on"),
        (failed_capture("auto"), "agent cannot be captured ... net.py:7); its updates"),
    ],
}
"""Calls by kind of error or warning, and parts of the message in their order."""


def case(kind, each):
    marks = getattr(each, "marks", ())
    return pytest.param(kind, *getattr(each, "values", each), marks=marks)


@pytest.mark.parametrize(
    ("kind", "call", "message"), [case(kind, each) for kind in CASES for each in CASES[kind]]
)
def test_architectures_invalid_input_error(kind, call, message):
    check_refused(call, kind, message)
