"""The encoder of pictures: its layers, and convolutions that the critics alone train."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

import coach_rl as rl
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.architectures.continuous_control import Critics, SquashedGaussianActor, lend
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.core.errors import ConfigurationError, ParameterError, SpaceError
from coach_rl.extensions.drq.encoder import Convolutions, PictureTorsoParameters, Pixels
from coach_rl.extensions.drq.random_shift import RandomShiftParameters
from tests.agents.decisions import context, transition

CPU = torch.device("cpu")
ACTED = spaces.Box(-1, 1, (2,), np.float32)
SIDE = 12
SEEN = spaces.Dict(
    {
        "camera": spaces.Box(0, 255, (SIDE, SIDE, 3, 2), np.uint8),
        "speed": spaces.Box(-1, 1, (3,), np.float32),
    }
)
SMALL = PictureTorsoParameters(convolutions=((4, 3, 2), (4, 3, 1)), features=5, middleware=(8,))
BORROWED = replace(SMALL, convolutions_of="critics")


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


def shown(rows, seed=0):
    generator = rng(seed)
    pictures = torch.randint(0, 256, (rows, SIDE, SIDE, 3, 2), generator=generator)
    return {
        "camera": pictures.to(torch.uint8),
        "speed": torch.rand((rows, 3), generator=generator),
    }


def test_encoder_has_the_layers_of_drq():
    space = spaces.Dict({"camera": spaces.Box(0, 255, (84, 84, 3, 3), np.uint8)})
    torso = PictureTorsoParameters().build(space, rng())
    convolutions = [each for each in torso.modules() if isinstance(each, nn.Conv2d)]
    shapes = [(each.in_channels, each.out_channels, *each.stride) for each in convolutions]
    assert shapes == [(9, 32, 2, 2)] + [(32, 32, 1, 1)] * 3
    assert {each.kernel_size for each in convolutions} == {(3, 3)}
    features, *dense = (each for each in torso.modules() if isinstance(each, nn.Linear))
    assert (features.in_features, features.out_features) == (32 * 35 * 35, 50)
    assert [each.out_features for each in dense] == [1024, 1024]
    assert sum(isinstance(each, nn.LayerNorm) for each in torso.modules()) == 1


def test_encoder_equals_plain_layers():
    torso = SMALL.build(SEEN, rng())
    seen = shown(6)
    found = torso.embedder(seen)
    first, second = (each for each in torso.modules() if isinstance(each, nn.Conv2d))
    linear = next(each for each in torso.modules() if isinstance(each, nn.Linear))
    stacked = torch.cat([seen["camera"][..., number] for number in range(2)], dim=3)
    values = stacked.to(torch.float32).permute(0, 3, 1, 2).contiguous() / 255
    values = torch.relu(second(torch.relu(first(values)))).flatten(1)
    features = torch.tanh(nn.functional.layer_norm(linear(values), (5,)))
    torch.testing.assert_close(found, torch.cat([seen["speed"], features], dim=1))


def test_pixels_of_one_picture_have_their_channels_in_order():
    picture = torch.randint(0, 256, (2, 4, 5, 3), dtype=torch.uint8)
    torch.testing.assert_close(Pixels()(picture), picture.permute(0, 3, 1, 2) / 255)


def pair():
    """An actor that borrows its convolutions, and the critics."""
    actor = SquashedGaussianActor(rl.ActorParameters(torso=BORROWED), SEEN, ACTED, rng())
    critics = Critics(rl.CriticParameters(torso=SMALL), SEEN, ACTED, rng(1), members=2)
    lend(actor, critics)
    return NetworkWrapper(actor, device=CPU), NetworkWrapper(critics, device=CPU, with_target=True)


def test_borrowed_convolutions_are_those_of_the_critics_as_they_are_now():
    actor, critics = pair()
    assert not any("embedders.1.1" in name for name in actor.named(actor.online))
    before = actor.module(shown(4))[0]
    named = critics.named(critics.online)
    kernels = next(value for name, value in named.items() if value.ndim == 4)
    kernels.mul_(1.5)
    after = actor.module(shown(4))[0]
    assert not torch.equal(before, after)
    torch.testing.assert_close(actor.call(actor.online, shown(4))[0], after)
    critics.target.zero_()  # which the actor does not read
    torch.testing.assert_close(actor.module(shown(4))[0], after)


def test_actor_of_borrowed_convolutions_equals_one_with_copies_of_them():
    actor, critics = pair()
    own = SquashedGaussianActor(rl.ActorParameters(torso=SMALL), SEEN, ACTED, rng(5))
    (copy,), (source,) = (
        [each for each in module.modules() if isinstance(each, Convolutions)]
        for module in (own, critics.module)
    )
    copy.load_state_dict(source.state_dict())
    rest = {name: value for name, value in own.state_dict().items() if ".1.1." not in name}
    own.load_state_dict(rest | actor.named(actor.online), strict=False)
    torch.testing.assert_close(own(shown(4)), actor.module(shown(4)))


def test_no_gradient_of_the_actor_reaches_the_convolutions():
    actor, critics = pair()
    flat = critics.online.clone().requires_grad_()
    for name, value in critics.named(flat).items():
        module, _, attribute = name.rpartition(".")
        del critics.module.get_submodule(module)._parameters[attribute]
        setattr(critics.module.get_submodule(module), attribute, value)
    own = actor.online.clone().requires_grad_()
    mean, log_std = actor.call(own, shown(4))
    (mean.sum() + log_std.sum()).backward()
    assert flat.grad is None
    assert own.grad is not None
    assert (own.grad != 0).any()


def agent(params, mode="eager"):
    """A SAC agent with transitions of random pictures in its memory."""
    params = replace(
        params,
        learning=rl.LearningParameters(batch=8, learning_starts=10),
        memory=rl.ReplayMemoryParameters(capacity=100, parts=(RandomShiftParameters(pad=2),)),
        update_mode=mode,
    )
    built = params.build(context(SEEN, ACTED, num_envs=1))
    stream = np.random.default_rng(0)
    for number in range(40):
        before, after = (
            {
                "camera": stream.integers(0, 256, (1, SIDE, SIDE, 3, 2), dtype=np.uint8),
                "speed": stream.random((1, 3), dtype=np.float32),
            }
            for _ in range(2)
        )
        action = stream.random((1, 2), dtype=np.float32)
        reward = stream.random(1)
        ends = number % 7 == 6
        built.memory.add(transition(before, action, after, reward=reward, terminated=ends))
    return built


TORSOS = {
    "actor": rl.ActorParameters(torso=BORROWED),
    "critic": rl.CriticParameters(torso=SMALL),
}
AGENTS = {
    "SAC": rl.SACAgentParameters(**TORSOS),
    "TD3": rl.TD3AgentParameters(**TORSOS),
    "DDPG": rl.DDPGAgentParameters(**TORSOS),
}


@pytest.mark.parametrize("name", AGENTS)
def test_agents_learn_with_borrowed_convolutions(name):
    built = agent(AGENTS[name])
    networks = built.learner.networks
    before = {name: network.online.clone() for name, network in networks.items()}
    for _ in range(4):
        built.learn_from_batch(built.memory.sample(8))
    assert all(not torch.equal(networks[name].online, flat) for name, flat in before.items())
    assert isinstance(built, OffPolicyAgent)


@pytest.mark.slow
def test_compiled_steps_read_borrowed_convolutions_as_they_are():
    agents = [agent(AGENTS["SAC"], mode) for mode in ("eager", "compiled")]
    for _ in range(5):
        for each in agents:
            each.learn_from_batch(each.memory.sample(8))
    one, other = (each.learner.networks for each in agents)
    for name, network in one.items():
        torch.testing.assert_close(network.online, other[name].online, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("torso", [BORROWED, rl.TorsoParameters(middleware=(8,))])
def test_critics_without_convolutions_of_their_own_are_refused(torso):
    seen = spaces.Dict({"camera": spaces.Box(0, 255, (36, 36, 3), np.uint8)})
    actor = SquashedGaussianActor(rl.ActorParameters(torso=BORROWED), seen, ACTED, rng())
    critics = Critics(rl.CriticParameters(torso=torso), seen, ACTED, rng(1), members=2)
    with pytest.raises(ConfigurationError, match="convolutions of their own for 'camera'"):
        lend(actor, critics)


def test_borrowed_convolutions_without_critics_are_refused():
    torso = BORROWED.build(SEEN, rng())
    with pytest.raises(ConfigurationError, match="is for actors beside critics"):
        torso(shown(2))


def test_torso_for_pictures_refuses_what_it_cannot_embed():
    with pytest.raises(SpaceError, match="needs a picture among the observations"):
        SMALL.build(spaces.Dict({"speed": SEEN["speed"]}), rng())
    with pytest.raises(SpaceError, match="too small for the convolutions"):
        PictureTorsoParameters().build(
            spaces.Dict({"camera": spaces.Box(0, 255, (9, 9, 3), np.uint8)}), rng()
        )
    with pytest.raises(SpaceError, match="seems to have its channels first"):
        PictureTorsoParameters().build(
            spaces.Dict({"camera": spaces.Box(0, 255, (3, 64, 64), np.uint8)}), rng()
        )
    with pytest.raises(ParameterError, match=r"PictureTorsoParameters\.recurrence must be None"):
        PictureTorsoParameters(recurrence=rl.GRU(size=4))
