"""Modules of the user's own in the place of torsos, and what they may not do."""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import Tensor, nn

import coach_rl as rl
from coach_rl.architectures.continuous_control import (
    ActorParameters,
    CriticParameters,
    Critics,
    DeterministicActor,
    SquashedGaussianActor,
)
from coach_rl.architectures.gradient_step import AdamParameters, Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_policy import numpy_forward, numpy_policy
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.q_network import QNetwork, QNetworkParameters
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.extensions.update_modes.recorded_steps import compiler_present

SPACE = spaces.Dict({"goal": spaces.Box(-5, 5, (2,)), "pixels": spaces.Box(0, 9, (3,), np.int64)})
BOX = spaces.Box(np.float32([-1, 0]), np.float32([1, 4]))
BATCH = {
    "goal": torch.tensor([[1.0, 2.0], [-3.0, 0.5]]),
    "pixels": torch.tensor([[1, 2, 3], [4, 5, 6]]),
}


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


class Judged(NamedTuple):
    """A batch."""

    observation: dict[str, Tensor]
    action: Tensor


class Net(nn.Module):
    """Goals and, in a critic, actions through two layers."""

    def __init__(self, space, action_space=None, *, width=4, outputs=3):
        super().__init__()
        inputs = space["goal"].shape[0] + (0 if action_space is None else action_space.shape[0])
        self.first, self.second = nn.Linear(inputs, width), nn.Linear(width, outputs)
        self.seen = None

    def forward(self, observation, *action):
        self.seen = sorted(observation)
        return self.second(torch.tanh(self.first(torch.cat([observation["goal"], *action], -1))))


class Broken(Net):
    """A layer behind it that cannot be."""

    def __init__(self, space, layer, **sizes):
        super().__init__(space, **sizes)
        self.layer = layer(self.second.out_features)

    def forward(self, observation):
        return self.layer(super().forward(observation))


class Batchless(nn.Module):
    """Features less their mean over the batch."""

    def __init__(self, size):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(size))

    def forward(self, values):
        return self.scale * (values - values.mean(dim=0))


class Frozen(nn.Linear):
    """Weights that are not to be learned."""

    def __init__(self, size):
        super().__init__(size, size)
        self.weight.requires_grad_(False)


class Double(nn.Module):
    """Features in float64."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size, dtype=torch.float64))

    def forward(self, values):
        return (values * self.weight).float()


class Fixed(Net):
    """A random projection that is not learned."""

    def __init__(self, space, **sizes):
        super().__init__(space, **sizes)
        self.register_buffer("projection", torch.randn(3, 3))

    def forward(self, observation):
        return super().forward(observation) @ self.projection


def test_features_are_the_module_s_and_its_weights_the_seed_s():
    before = torch.random.get_rng_state()
    params = rl.ModuleParameters(module=Net, arguments={"width": 7})
    one, same, other = (params.build(SPACE, rng(seed)) for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert one.output_size == 3
    assert one.module.first.out_features == 7
    expected = one.module.second(torch.tanh(one.module.first(BATCH["goal"])))
    torch.testing.assert_close(one(BATCH), expected)
    torch.testing.assert_close(same(BATCH), expected)
    assert not torch.allclose(other(BATCH), expected)


def test_layer_norm_and_lazy_layers_are_fine():
    for layer in (nn.LayerNorm, lambda size: nn.LazyLinear(size + 1)):
        torso = rl.ModuleParameters(module=Broken, arguments={"layer": layer}).build(SPACE, rng())
        assert torso(BATCH).shape == (2, torso.output_size)


@pytest.mark.parametrize("kind", [rl.ModuleParameters, rl.TorsoParameters])
def test_a_network_sees_only_its_keys(kind):
    own = {"module": Net} if kind is rl.ModuleParameters else {}
    torso = kind(keys=("goal",), **own).build(SPACE, rng())
    torso({"goal": BATCH["goal"]})  # it asks for no other


def test_observations_are_normalised_for_the_module_too():
    normaliser = ObservationNormaliser(SPACE, clip=5.0, device=torch.device("cpu"))
    normaliser.update({"goal": np.float32([[0, 0], [2, 4]])})
    torso = rl.ModuleParameters(module=Net).build(SPACE, rng(), normaliser)
    seen = {"goal": (BATCH["goal"] - torch.tensor([1.0, 2.0])) / torch.tensor([1.0, 2.0])}
    torch.testing.assert_close(torso(BATCH), torso.module(seen))


def test_actor_and_critic_of_an_actor_critic_may_see_different_keys():
    params = rl.ActorCriticParameters(
        torso=rl.TorsoParameters(keys=("pixels",)), critic_torso=rl.ModuleParameters(module=Net)
    )
    model = params.build(observation_space=SPACE, action_space=BOX, rng=rng())
    policy, value = model(BATCH)
    assert (policy.shape, value.shape) == ((2, 4), (2,))
    torch.testing.assert_close(model.policy({"pixels": BATCH["pixels"]}), policy)
    torch.testing.assert_close(model.value(BATCH), value)
    assert model.critic_torso.module.seen == ["goal", "pixels"]
    assert numpy_policy(model) is not None


def own(outputs, *, last_layer=False):
    return rl.ModuleParameters(module=Net, arguments={"outputs": outputs}, last_layer=last_layer)


def test_without_a_last_layer_the_module_s_outputs_are_the_network_s():
    actor = DeterministicActor(ActorParameters(torso=own(2)), SPACE, BOX, rng())
    expected = actor.head[2](torch.tanh(actor.torso.module(BATCH)))
    torch.testing.assert_close(actor(BATCH), expected)
    assert numpy_forward(actor.torso, actor.head) is None
    squashed = SquashedGaussianActor(ActorParameters(torso=own(4)), SPACE, BOX, rng())
    torch.testing.assert_close(squashed(BATCH)[0], squashed.torso.module(BATCH)[:, :2])
    q = QNetwork(QNetworkParameters(torso=own(5)), SPACE, spaces.Discrete(5), rng())
    torch.testing.assert_close(q(BATCH)[:, :, 0], q.torso.module(BATCH))
    params = rl.ActorCriticParameters(torso=own(2), critic_torso=own(1))
    model = params.build(observation_space=SPACE, action_space=BOX, rng=rng())
    torch.testing.assert_close(model(BATCH)[0][:, :2], model.actor_torso.module(BATCH))
    torch.testing.assert_close(model(BATCH)[1], model.critic_torso.module(BATCH)[:, 0])


@pytest.mark.parametrize("last_layer", [True, False])
def test_critics_of_one_s_own_judge_actions_and_share_nothing(last_layer):
    torso = own(3 if last_layer else 1, last_layer=last_layer)
    params = CriticParameters(torso=torso, final_bound=0.5 if last_layer else None)
    critics = Critics(params, SPACE, BOX, rng(), members=2)
    action = torch.tensor([[1.0, 4.0], [-1.0, 3.0]])
    shown = torch.tensor([[1.0, 1.0], [-1.0, 0.5]])  # parts of the half-range
    values = critics(BATCH, action)
    for number, (torso, head) in enumerate(
        zip(critics.values.torsos, critics.values.heads, strict=True)
    ):
        torch.testing.assert_close(values[number], head(torso.module(BATCH, shown))[:, 0])
    assert (values[0] - values[1]).abs().min() > 1e-4
    torch.testing.assert_close(critics(BATCH, action, members=1), values[:1])
    bounded = Critics(CriticParameters(torso=torso.params, bounds=(-9, 0)), SPACE, BOX, rng())
    assert -9 < bounded(BATCH, action).min() <= bounded(BATCH, action).max() < 0


def test_parameters_are_flat_and_buffers_are_saved():
    networks = [
        NetworkWrapper(
            rl.ModuleParameters(module=Fixed).build(SPACE, rng(seed)),
            device=torch.device("cpu"),
            with_target=True,
        )
        for seed in (0, 1)
    ]
    one, other = networks
    assert one.size == 2 * 4 + 4 + 4 * 3 + 3
    before = one.call(one.online, BATCH)
    assert not torch.allclose(other.call(other.online, BATCH), before)
    other.load_state_dict(one.state_dict())
    assert torch.equal(other.call(other.online, BATCH), before)
    assert torch.equal(other.call(other.target, BATCH), before)
    assert list(one.state_dict()["buffers"]) == ["module.projection"]


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # inductor's own
@pytest.mark.timeout(240)
@pytest.mark.skipif(not compiler_present(), reason="torch.compile needs a C++ compiler")
def test_compiled_training_of_a_module_equals_eager_training(compiler):
    trained = []
    for mode in ("eager", "compiled"):
        torso = own(1, last_layer=False)
        network = NetworkWrapper(
            Critics(CriticParameters(torso=torso), SPACE, BOX, rng(), members=2),
            device=torch.device("cpu"),
            with_target=True,
        )

        def loss(flat, batch, scalars, network=network):
            error = network.call(flat, *batch) - network.call(network.target, *batch) - 1.0
            return (error**2).mean(), {}

        engine = UpdateEngine(
            (Objective(network=network, loss=loss, optimizer=AdamParameters()),),
            targets=((network, rl.TargetSync(rate=0.1)),),
            mode=mode,
            planned_updates=0,
        )
        start = network.online.clone()
        for _ in range(5):
            engine.step(Judged(BATCH, torch.tensor([[1.0, 4.0], [-1.0, 3.0]])))
        assert not torch.allclose(network.online, start)
        trained.append(torch.stack([network.online, network.target]))
    torch.testing.assert_close(trained[1], trained[0], rtol=1e-4, atol=1e-5)
