"""Action masks: no forbidden action anywhere, what is kept of masks, and wrong masks."""

from collections import Counter
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.agents.stages.action_masks import ActionMasks
from coach_rl.architectures.action_masks import AllowedOutputs, masked
from coach_rl.core.agents import AgentContext
from coach_rl.core.discrete_actions import FORBIDDEN
from coach_rl.core.errors import EnvironmentFault, SpaceError
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.exploration_policies.sampling import CategoricalSampler
from tests import builders
from tests.agents import masked_world
from tests.agents.masked_world import ACTIONS, MaskedWorldParameters, walk
from tests.refusals import check_refused

LEARNING = {
    "learning": rl.LearningParameters(
        batch=16, learning_starts=60, updates_per_step=0.02, report_every=4
    ),
    "update_mode": "eager",
}
CONSTANT = rl.ConstantSchedule
FAR = {"far": ("kind", 4)}


def ppo(recurrence=None, **settings):
    torso = rl.TorsoParameters(embedder=(8,), recurrence=recurrence, middleware=())
    return rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(400), minibatch=100, epochs=1, sequence=8
        ),
        network=rl.ActorCriticParameters(torso=torso),
        update_mode="eager",
        **settings,
    )


def dqn(exploration=None, recurrence=None, head=None, **settings):
    torso = rl.TorsoParameters(embedder=(8,), recurrence=recurrence, middleware=())
    network = rl.QNetworkParameters(torso=torso, head=head or rl.MeanHead(), dueling=True)
    draws = rl.SingleTransitions()
    if recurrence is not None:
        draws = rl.SequenceParameters(length=8, burn_in=2)
    return rl.DQNAgentParameters(
        exploration=exploration or rl.EpsilonGreedy(epsilon=CONSTANT(value=0.5)),
        network=network,
        memory=rl.ReplayMemoryParameters(capacity=5_000, draws=draws),
        **LEARNING,
        **settings,
    )


def manager(*levels, kind="one", num_envs=5, steps=3_000, seed=0, hidden=(), **schedule):
    params = builders.graph(
        *levels,
        environment=MaskedWorldParameters(kind=kind, hidden=hidden),
        num_envs=num_envs,
        training=steps,
        heatup=steps // 5,
        evaluation_interval=steps // 3,
        evaluation_episodes=10,
        progress_interval=steps // 20,
        **schedule,
    )
    return builders.created(params, seed)


def flat(agent, **settings):
    return manager(rl.LevelParameters(agent=agent), **settings)


def options(agent, low_agent=None, *, count=3, **settings):
    low = rl.LevelParameters(
        name="low",
        agent=low_agent or rl.ScriptedAgentParameters(policy=walk),
        goal_space=rl.OptionSpace(count=count),
        horizon=3,
    )
    return manager(rl.LevelParameters(name="top", agent=agent), low, **settings)


def only(run):
    """The agent of a run with one level."""
    (agent,) = run.graph.agents.values()
    return agent


RUNS = {
    "ppo": lambda **more: flat(ppo(), **more),
    "ppo, several choices": lambda **more: flat(ppo(), kind="several", **more),
    "ppo, recurrent": lambda **more: flat(ppo(rl.GRU(size=4)), kind="several", **more),
    "ppo, mixed": lambda **more: flat(ppo(arguments=FAR), kind="mixed", **more),
    "ppo, mixed, recurrent": lambda **more: flat(
        ppo(rl.GRU(size=4), arguments=FAR), kind="mixed", **more
    ),
    "dqn": lambda **more: flat(dqn(), **more),
    "dqn, quantiles": lambda **more: flat(dqn(head=rl.QuantileHead(count=5)), **more),
    "dqn, recurrent": lambda **more: flat(dqn(recurrence=rl.LSTM(size=4)), **more),
    "dqn, softmax": lambda **more: flat(dqn(rl.Boltzmann()), **more),
    "dqn, hot softmax": lambda **more: flat(
        dqn(rl.Boltzmann(temperature=CONSTANT(value=1e6))), **more
    ),
    "dqn, repeated": lambda **more: flat(
        dqn(rl.EpsilonZGreedy(epsilon=CONSTANT(value=0.4), mu=1.2)), **more
    ),
    "dqn, logits": lambda **more: flat(dqn(rl.Categorical()), **more),
    "uniform, mixed": lambda **more: flat(rl.UniformAgentParameters(), kind="mixed", **more),
    "uniform": lambda **more: flat(rl.UniformAgentParameters(), kind="several", **more),
    "options by ppo": lambda **more: options(ppo(action_mask="option_mask"), **more),
    "options by dqn": lambda **more: options(dqn(action_mask="option_mask"), **more),
}


@pytest.fixture
def taken(monkeypatch):
    counted = Counter()
    monkeypatch.setattr(masked_world, "TAKEN", counted)
    return counted


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", RUNS)
def test_no_phase_takes_a_forbidden_action(name, taken):
    check_no_forbidden_action(name, RUNS[name], taken)


def check_no_forbidden_action(name, build, taken):
    """About 2,000 decisions each; the world raises where one is forbidden."""
    run = build(steps=2_000, num_envs=20)
    run.run()
    assert sum(taken.values()) >= 2_000
    space = 3 if name.startswith("options by") else 5
    chosen = [action for number, action in taken if number in (0, "option")]
    assert len(set(chosen)) >= min(space, 2)
    run.close()


def test_masks_are_no_inputs_of_the_networks():
    with_masks, without = (flat(ppo(), hidden=hidden) for hidden in ((), ("action_mask",)))
    sizes = [only(each).network.size for each in (with_masks, without)]
    assert sizes[0] == sizes[1]
    agent = only(with_masks)
    assert set(agent.observation_space.spaces) == {"observation", "option_mask"}
    seen = only(flat(ppo(action_mask=None))).observation_space.spaces
    assert set(seen) == {"observation", "option_mask", "action_mask"}


def test_memory_keeps_the_masks_of_both_observations():
    run = flat(dqn(), steps=600)
    run.run()
    agent = only(run)
    batch = agent.memory.sample(64)
    for observation in (batch.observation, batch.next_observation):
        assert observation["allowed_actions"].shape == (64, 5)
        assert observation["allowed_actions"].dtype == torch.bool
    chosen = (batch.action - 2)[:, None]
    assert batch.observation["allowed_actions"].gather(1, chosen).all()
    final = batch.discount == 0
    assert not batch.next_observation["allowed_actions"][final].any()
    assert batch.next_observation["allowed_actions"][~final].any(dim=1).all()
    run.close()


def test_option_filter_maps_masks_to_its_own_actions():
    """An agent that chooses among three of the environment's actions."""
    chosen = rl.OutputFilter(action=(rl.PartialDiscreteActionSpaceMap(target_actions=(6, 2, 3)),))
    agent = ppo(output_filter=chosen)
    built = agent.build(context(MASKED, ACTIONS["one"]))
    shown = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 1]], np.int8)  # of actions 2 to 6
    seen = built.stages.enter(
        {},
        np.arange(2),
        {"observation": np.zeros((2, 2), np.float32), "action_mask": shown},
        starts=np.ones(2, bool),
        learn=False,
    )
    assert seen["allowed_actions"].tolist() == [[False, True, False], [True, False, False]]


def context(observed, action):
    return AgentContext(
        spaces=EnvironmentSpaces(observation=spaces.Dict(observed), action=action), num_envs=2
    )


SEEN = {"observation": spaces.Box(-1, 1, (2,), np.float32)}
MASKED = {**SEEN, "action_mask": spaces.MultiBinary(5)}


REFUSED = [
    (
        partial(
            ppo().build, context({**SEEN, "action_mask": spaces.MultiBinary(4)}, ACTIONS["one"])
        ),
        SpaceError,
        "which has 5 entries for Discrete(5, start=2)",
    ),
    (
        partial(ppo().build, context({**SEEN, "action_mask": spaces.Discrete(5)}, ACTIONS["one"])),
        SpaceError,
        "action_mask=None",
    ),
    (
        partial(ppo().build, context({"allowed_actions": SEEN["observation"]}, ACTIONS["one"])),
        SpaceError,
        "give the observation key another name",
    ),
    (
        lambda: options(ppo(), dqn(name="low"), count=5),
        SpaceError,
        "level 'top': the observation 'action_mask'",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_masks_that_do_not_fit_are_refused(call, kind, message):
    check_refused(call, kind, message)


def test_box_actions_have_no_mask_and_observe_the_key():
    built = ppo().build(context(MASKED, spaces.Box(-1, 1, (2,), np.float32)))
    assert built.stages.of(ActionMasks) is None
    assert "action_mask" in built.observation_space.spaces


@pytest.mark.parametrize("kind", ["one", "several"])
def test_mask_that_allows_nothing_stops_the_run(kind, monkeypatch):
    run = flat(ppo(), kind=kind)
    world = run.graph.training.simulators.world
    masks, calls = type(world).masks, []

    def closed(self, uniform, sizes):
        found = masks(self, uniform, sizes)
        calls.append(found)
        if len(calls) > 9:
            found[0, -sizes[-1] - self.sizes[-1] : -sizes[-1]] = 0
        return found

    monkeypatch.setattr(type(world), "masks", closed)
    with pytest.raises(EnvironmentFault) as caught:
        run.run()
    text = str(caught.value)
    assert "allows agent 'agent' no action" in text
    assert "at environment step" in text
    assert ("(choice 1)" in text) == (kind == "several")


def test_allowed_outputs_in_acting_leaves_what_is_behind_the_logits():
    values = np.arange(12, dtype=np.float32).reshape(2, 6)
    forward = AllowedOutputs().acting(lambda seen: seen["x"].copy())
    mask = np.array([[1, 0, 1], [0, 0, 1]], bool)
    found = forward({"x": values, "allowed_actions": mask})
    assert (found[:, :3][mask == 0] == np.float32(FORBIDDEN)).all()
    np.testing.assert_array_equal(found[:, 3:], values[:, 3:])
    in_torch = masked(torch.from_numpy(values), torch.from_numpy(mask))
    np.testing.assert_array_equal(found, in_torch.numpy())


def test_sampler_never_draws_a_forbidden_action_at_the_edges_of_the_noise():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(20_000, 7)).astype(np.float32)
    mask = rng.random(logits.shape) < 0.3
    mask[np.arange(len(mask)), rng.integers(7, size=len(mask))] = True
    logits[~mask] = FORBIDDEN
    edges = np.float32([0.0, np.nextafter(np.float32(1), np.float32(0)), 1.0])
    sampler = CategoricalSampler(sizes=(7,), single=True)
    for edge in edges:
        action, log_prob = sampler.draw(logits, np.full((len(mask), 1), edge))
        assert mask[np.arange(len(mask)), action].all()
        assert np.isfinite(log_prob).all()
    greedy, _ = sampler.greedy(logits)
    assert mask[np.arange(len(mask)), greedy].all()
