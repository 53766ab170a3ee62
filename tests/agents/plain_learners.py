"""DDPG, TD3 and SAC in a small asymmetric world, and what plain torch says of their networks."""

import copy

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

import coach_rl as rl
from coach_rl.architectures.gradient_step import mapped
from coach_rl.core.clock import Clock, Phase
from coach_rl.memories import TransitionBatch
from tests.agents.decisions import context
from tests.builders import created, flat

SEEN = spaces.Dict({"x": spaces.Box(-9, 9, (3,))})
BOX = spaces.Box(np.float32([-1, -2]), np.float32([3, 0.5]))
MIDDLE, HALF = torch.tensor([1.0, -0.75]), torch.tensor([2.0, 1.25])
HEATUP, TRAIN, TEST = (Clock(phase=phase) for phase in (Phase.HEATUP, Phase.TRAIN, Phase.TEST))
SMALL = rl.TorsoParameters(middleware=(8, 6), activation="relu", orthogonal=False)
AGENTS = {
    "ddpg": (rl.DDPGAgentParameters, rl.DDPGAlgorithmParameters),
    "td3": (rl.TD3AgentParameters, rl.TD3AlgorithmParameters),
    "sac": (rl.SACAgentParameters, rl.SACAlgorithmParameters),
}
KINDS = tuple(AGENTS)


def parameters(
    kind,
    *,
    torso=SMALL,
    rate=0.01,
    adam=None,
    actor=None,
    critic=None,
    learning=None,
    memory=None,
    mode="eager",
    algorithm=None,
    **changes,
):
    """Parameters of a small, quick agent; dicts change single settings."""
    agent, settings = AGENTS[kind]
    optimizer = rl.AdamParameters(**{"learning_rate": rate, **(adam or {})})
    names = ["actor_optimizer", "critic_optimizer"]
    names += ["temperature_optimizer"] if kind == "sac" else []
    return agent(
        algorithm=settings(**(algorithm or {})),
        learning=rl.LearningParameters(
            **{"batch": 16, "learning_starts": 1, "report_every": 10, **(learning or {})}
        ),
        memory=rl.ReplayMemoryParameters(**{"capacity": 2000, **(memory or {})}),
        actor=rl.ActorParameters(**{"torso": torso, **(actor or {})}),
        critic=rl.CriticParameters(**{"torso": torso, **(critic or {})}),
        update_mode=mode,
        **{**dict.fromkeys(names, optimizer), **changes},
    )


def build(kind, *, seen=SEEN, box=BOX, num_envs=2, seed=0, planned=1000, **changes):
    return parameters(kind, **changes).build(
        context(seen, box, num_envs=num_envs, seed=seed, planned=planned)
    )


def batches(count, *, size=16, box=BOX, seed=0):
    """Batches as a memory gives them: some terminated, some over several steps, all weighted."""
    rng = torch.Generator().manual_seed(seed)
    low, high = torch.from_numpy(box.low), torch.from_numpy(box.high)
    made = []
    for _ in range(count):
        shares = torch.rand(size, len(low), generator=rng)
        kind = torch.randint(3, (size,), generator=rng)
        made.append(
            TransitionBatch(
                observation={"x": torch.randn(size, 3, generator=rng)},
                action=low + shares * (high - low),
                reward=2 * torch.randn(size, generator=rng),
                next_observation={"x": torch.randn(size, 3, generator=rng)},
                discount=torch.tensor([0.9, 0.0, 0.9**3])[kind],
                weight=0.2 + torch.rand(size, generator=rng),
                position=torch.arange(size),
            )
        )
    return made


# Plain torch.


def sequential(layers):
    """(weight [out, in], bias [out]) of each layer as a relu network of doubles."""
    modules = []
    for weight, bias in layers:
        layer = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
        modules += [layer, nn.ReLU()]
    return nn.Sequential(*modules[:-1])


def plain_actor(network, flat=None):
    """What comes before squashing, as plain torch modules."""
    named = network.named(network.online if flat is None else flat)
    names = [name.removesuffix(".weight") for name in named if name.endswith("weight")]
    return sequential([(named[f"{name}.weight"], named[f"{name}.bias"]) for name in names])


def plain_critics(network, flat=None):
    """Each member as plain torch modules, on the observation and the share of the box."""
    named = network.named(network.online if flat is None else flat)
    names = [name.removesuffix(".weight") for name in named if name.endswith("weight")]
    members = len(named[f"{names[0]}.weight"])
    return nn.ModuleList(
        sequential([(named[f"{n}.weight"][k].T, named[f"{n}.bias"][k, 0]) for n in names])
        for k in range(members)
    )


def plain_adam(network, params):
    return torch.optim.Adam(
        network.parameters(),
        params.learning_rate,
        params.betas,
        params.epsilon,
        weight_decay=params.l2,
    )


def plain_step(optimizer, loss, network, params):
    """A gradient step; returns the norm of the gradient with its L2 part, before clipping."""
    assert not (params.l2 and params.max_gradient_norm), "torch would clip without the L2 part"
    optimizer.zero_grad()
    loss.backward()
    whole = [each.grad + params.l2 * each.detach() for each in network.parameters()]
    nn.utils.clip_grad_norm_(network.parameters(), params.max_gradient_norm or float("inf"))
    optimizer.step()
    return sum((each**2).sum().item() for each in whole) ** 0.5


def follow(target, online, rate):
    """target = (1 - rate) * target + rate * online."""
    for mine, theirs in zip(target.parameters(), online.parameters(), strict=True):
        mine.data = (1 - rate) * mine.data + rate * theirs.data


def doubles(batch):
    """A batch in float64, and its actions as shares of the box."""
    plain = mapped(Tensor.double, batch)
    return plain, (plain.action - MIDDLE) / HALF


def values_of(critics, observation, share):
    """[K, B]."""
    inputs = torch.cat([observation, share], dim=1)
    return torch.stack([critic(inputs)[:, 0] for critic in critics])


def plain_error_loss(values, target, weight, huber):
    """Half the squared error, or Huber's: weighted mean over the batch, sum over the critics."""
    if huber is None:
        each = 0.5 * nn.functional.mse_loss(values, target.expand_as(values), reduction="none")
    else:
        each = nn.functional.huber_loss(
            values, target.expand_as(values), reduction="none", delta=huber
        )
    return sum((weight * critic).mean() for critic in each)


def assert_same_network(found, expected):
    """Plain networks with equal parameters, to the rounding of single precision."""
    for (name, mine), theirs in zip(found.named_parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(
            mine, theirs, rtol=1e-3, atol=2e-5, msg=lambda text, name=name: f"{name}: {text}"
        )


def moved(now, before):
    """The largest change of a parameter."""
    return max(
        (mine - theirs).abs().max().item()
        for mine, theirs in zip(now.parameters(), before.parameters(), strict=True)
    )


frozen = copy.deepcopy


# Experiments.


def manager(params, environment, *, num_envs=8, seed=0, **schedule):
    given = {"training": 1000, "evaluation_episodes": 20, **schedule}
    return created(flat(params, environment, num_envs=num_envs, **given), seed)


def run(params, environment, *, steps, **changes):
    """The agent and its records after so many steps."""
    made = manager(params, environment, training=rl.EnvironmentSteps(steps), **changes)
    records = list(made.improve())
    (agent,) = made.graph.agents.values()
    made.close()
    return agent, records
