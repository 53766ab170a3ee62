import math

import torch
from gymnasium import spaces

from coach_rl.architectures.actor_critic import ActorCriticParameters

SEEN = spaces.Dict({"x": spaces.Box(-1, 1, (3,)), "y": spaces.Discrete(2)})
BATCH = {
    "x": torch.tensor([[0.1, -0.5, 0.9]] * 2 + [[1.0, 0.0, 0.0]]),
    "y": torch.tensor([0, 1, 1]),
}


def build(action_space, *, seed=0, **changes):
    rng = torch.Generator().manual_seed(seed)
    return ActorCriticParameters(**changes).build(
        observation_space=SEEN, action_space=action_space, rng=rng
    )


ACTIONS = {
    "box": (spaces.Box(-1, 1, (2,)), 4),
    "discrete": (spaces.Discrete(5, start=3), 5),
    "multidiscrete": (spaces.MultiDiscrete([2, 3]), 5),
}


def gradients(model, output):
    names, parameters = zip(*model.named_parameters(), strict=True)
    found = torch.autograd.grad(output.sum(), parameters, allow_unused=True)
    return {name.split(".")[0] for name, g in zip(names, found, strict=True) if g is not None}


def test_torsos_of_their_own_share_nothing():
    model = build(ACTIONS["box"][0])
    assert gradients(model, model(BATCH)[0]) == {"actor_torso", "policy_head", "log_std"}
    assert gradients(model, model(BATCH)[1]) == {"critic_torso", "value_head"}


def test_a_shared_torso_is_reached_from_policy_and_value():
    model = build(ACTIONS["box"][0], shared_torso=True)
    assert gradients(model, model(BATCH)[0]) == {"actor_torso", "policy_head", "log_std"}
    assert gradients(model, model(BATCH)[1]) == {"actor_torso", "value_head"}
    apart = build(ACTIONS["box"][0])
    torso = sum(p.numel() for p in model.actor_torso.parameters())
    sizes = [sum(p.numel() for p in each.parameters()) for each in (apart, model)]
    assert sizes[0] - sizes[1] == torso


def test_the_initial_std_is_the_same_in_every_state():
    model = build(ACTIONS["box"][0], initial_log_std=-0.5)
    parameters, _ = model(BATCH)
    assert parameters[:, 2:].tolist() == [[-0.5, -0.5]] * 3


def test_the_first_policy_hardly_depends_on_the_state():
    parameters = build(ACTIONS["discrete"][0]).policy(BATCH)
    assert parameters.abs().max() < 0.01 * math.sqrt(64)
    large = build(ACTIONS["discrete"][0], policy_gain=1.0).policy(BATCH)
    torch.testing.assert_close(large, 100 * parameters, rtol=1e-4, atol=1e-6)
