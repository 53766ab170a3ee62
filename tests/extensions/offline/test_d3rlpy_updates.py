"""Updates of TD3+BC, IQL, discrete CQL and deterministic BC equal those of d3rlpy 2.8.

`write_d3rlpy_updates.py` wrote its networks before and after updates, in double precision. Networks
here are single, and one update moves a parameter by about the learning rate of 3e-4.

One difference is deliberate: IQL's critics learn from the value function that the same update has
moved, as in its authors' code; in d3rlpy from the one before. Their first updates differ by that.
"""

import numpy as np
import pytest
import torch
from decisions import context
from gymnasium import spaces

import coach_rl as rl
from coach_rl.memories import TransitionBatch
from tests.extensions.offline.write_d3rlpy_updates import FILE, GAMMA, HIDDEN, RATE, UPDATES

SEEN = spaces.Dict({"x": spaces.Box(-9, 9, (3,))})
BOX = spaces.Box(-1, 1, (2,))
TORSO = rl.TorsoParameters(middleware=tuple(HIDDEN), activation="relu", orthogonal=False)
ADAM = rl.AdamParameters(learning_rate=RATE)
COMMON = {
    "learning": rl.LearningParameters(batch=16, learning_starts=1),
    "memory": rl.ReplayMemoryParameters(capacity=200),
    "update_mode": "eager",
}
ACTOR_CRITIC = {
    "actor": rl.ActorParameters(torso=TORSO),
    "critic": rl.CriticParameters(torso=TORSO),
    "actor_optimizer": ADAM,
    "critic_optimizer": ADAM,
}
TD3_BC = rl.TD3BCAgentParameters(
    algorithm=rl.TD3BCAlgorithmParameters(discount=GAMMA, policy_delay=1, target_noise=0.0),
    **ACTOR_CRITIC,
    **COMMON,
)
IQL = rl.IQLAgentParameters(
    algorithm=rl.IQLAlgorithmParameters(discount=GAMMA),
    policy=rl.PolicyParameters(torso=TORSO),
    critic=rl.CriticParameters(torso=TORSO),
    value=TORSO,
    policy_optimizer=ADAM,
    critic_optimizer=ADAM,
    value_optimizer=ADAM,
    **COMMON,
)
BC = rl.BCAgentParameters(
    loss="squared", policy=rl.PolicyParameters(torso=TORSO), optimizer=ADAM, **COMMON
)
CQL = rl.DiscreteCQLAgentParameters(
    algorithm=rl.CQLAlgorithmParameters(
        discount=GAMMA, conservatism=0.5, target_sync=rl.TargetSync(every=2)
    ),
    network=rl.QNetworkParameters(torso=TORSO),
    optimizer=ADAM,
    **COMMON,
)
SAMPLES = np.load(FILE)


def theirs(name, moment, module):
    """Layers of a module of d3rlpy's: (weight [out, in], bias [out]) each."""
    start = f"{name}/{moment}/{module}"
    weights = [path for path in SAMPLES.files if path.startswith(start) and "weight" in path]
    return [(SAMPLES[path], SAMPLES[path.replace("weight", "bias")]) for path in weights]


def ours(network, flat):
    """The same of a network here; of critics, a list for each."""
    named = network.named(flat)
    pairs = [
        (named[path], named[path.replace("weight", "bias")]) for path in named if "weight" in path
    ]
    if pairs[0][0].ndim == 2:
        return [pairs]
    return [[(w[k].T, b[k, 0]) for w, b in pairs] for k in range(len(pairs[0][0]))]


MODULES = {
    "td3_bc": {"actor": ["policy"], "critics": ["q_funcs/0", "q_funcs/1"]},
    "iql": {"policy": ["policy"], "value": ["value_func"], "critics": ["q_funcs/0", "q_funcs/1"]},
    "bc": {"policy": ["imitator"]},
    "discrete_cql": {"q": ["q_funcs/0"]},
}
"""The modules of d3rlpy's, by algorithm and network here."""


def layers(agent, name, moment):
    """Our layers beside d3rlpy's, by network."""
    for network, modules in MODULES[name].items():
        wrapper = agent.learner.networks[network]
        for mine, module in zip(ours(wrapper, wrapper.online), modules, strict=True):
            for (weight, bias), (their_weight, their_bias) in zip(
                mine, theirs(name, moment, module), strict=True
            ):
                yield network, weight, their_weight
                yield network, bias, their_bias


def begun(name, params):
    """The agent with the networks that d3rlpy began with."""
    agent = params.build(context(SEEN, spaces.Discrete(4) if name == "discrete_cql" else BOX))
    for _, mine, its in layers(agent, name, "before"):
        mine.copy_(torch.from_numpy(its))
    for wrapper in agent.learner.networks.values():
        if wrapper.has_target:
            wrapper.target.copy_(wrapper.online)
    return agent


def batch(number, *, discrete):
    def column(key, dtype=torch.float32):
        kind = "discrete" if discrete else "continuous"
        return torch.from_numpy(SAMPLES[f"{kind}/{number}/{key}"]).to(dtype)

    return TransitionBatch(
        observation={"x": column("observation")},
        action=column("action", torch.int64 if discrete else torch.float32),
        reward=column("reward"),
        next_observation={"x": column("next_observation")},
        discount=GAMMA * (1 - column("terminated")),
        weight=torch.ones(16),
        position=torch.arange(16),
    )


def differences(agent, name, moment):
    """The largest difference of each network from d3rlpy's."""
    found = {}
    for network, mine, its in layers(agent, name, moment):
        error = (mine.double() - torch.from_numpy(its)).abs().max().item()
        found[network] = max(found.get(network, 0.0), error)
    return found


@pytest.mark.parametrize(
    ("name", "params"), [("td3_bc", TD3_BC), ("bc", BC), ("discrete_cql", CQL)]
)
def test_updates_equal_those_of_d3rlpy(name, params):
    agent = begun(name, params)
    start = differences(agent, name, 1)
    for number in range(1, UPDATES + 1):
        agent.learn_from_batch(batch(number, discrete=name == "discrete_cql"))
        if number == 1:
            assert max(differences(agent, name, 1).values()) < 1e-6
    assert min(start.values()) > 2e-4  # an update is no small thing beside that
    assert max(differences(agent, name, UPDATES).values()) < 2e-6


def test_iql_update_equals_that_of_d3rlpy_but_for_its_order():
    agent = begun("iql", IQL)
    agent.learner.policy.named(agent.learner.policy.online)["log_std"].copy_(
        torch.from_numpy(SAMPLES["iql/before/policy/_logstd"][0])
    )
    agent.learn_from_batch(batch(1, discrete=False))
    found = differences(agent, "iql", 1)
    assert found["value"] < 1e-6
    assert found["policy"] < 1e-6
    assert found["critics"] < 2 * RATE  # the first step of Adam has the learning rate's size
