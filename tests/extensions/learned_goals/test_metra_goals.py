"""METRA: the loss of phi and of lambda, rewards of skills, directions, and all that surrounds."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.core.goals import GoalContext
from coach_rl.core.runtime import Runtime
from coach_rl.extensions.learned_goals.learned_goals import GoalBatch
from coach_rl.extensions.testing import check_goals
from tests.agents.goal_stacks import SETTINGS, stack
from tests.agents.resuming import after, amid, assert_resumes
from tests.builders import agents_of, created
from tests.extensions.testing.test_goal_contract import at
from tests.refusals import check_refused

KEY = "observation"
SEEN = spaces.Dict({KEY: spaces.Box(-3, 3, (4,), np.float32)})
CONSTRAINTS = ("temporal", "euclidean", "none")
METRA = rl.METRAGoalSpace(
    torso=rl.TorsoParameters(middleware=(16,), activation="tanh"),
    optimizer=rl.AdamParameters(learning_rate=1e-2),
    multiplier=3.0,
    slack=0.05,
)
LINEAR = replace(METRA, torso=rl.TorsoParameters(middleware=()))
SAC = rl.SACAgentParameters(**SETTINGS)
HER = rl.ReplayMemoryParameters(relabelling=rl.HindsightParameters())


def goals_of(space, seed=0):
    runtime = Runtime(seed=seed, device="cpu")
    return space.build(GoalContext(level="low", observation=SEEN, runtime=runtime))


def batch_of(goals, size=40, step=0.6):
    """Random transitions and skills; constraints are kept by some, and not by others."""
    rng = np.random.default_rng(0)
    before = rng.normal(size=(size, 4)).astype(np.float32)
    after = (before + step * rng.normal(size=(size, 4))).astype(np.float32)
    skill = goals.target(rng.uniform(-1, 1, (size, goals.size)), {})
    return GoalBatch(
        before={KEY: torch.from_numpy(before)},
        after={KEY: torch.from_numpy(after)},
        goal=torch.from_numpy(skill),
        action=torch.zeros(size, 2),
        later={},
        has_later=torch.zeros(size, dtype=torch.bool),
    )


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_gradients_of_phi_and_lambda_equal_formulas(constraint):
    goals = goals_of(replace(LINEAR, constraint=constraint))
    goals.phi.online.mul_(2.5)  # or hardly a pair breaks its constraint
    batch = batch_of(goals)
    weights = goals.phi.module.head.weight.double().numpy()  # phi(s) = W s + b
    moved = (batch.after[KEY] - batch.before[KEY]).double().numpy()
    skill = batch.goal.double().numpy()
    assert goals.learn(batch)
    learned = goals.phi_engine.learned()

    change = moved @ weights.T
    square = (change**2).sum(axis=1)
    allowed = (moved**2).sum(axis=1) if constraint == "euclidean" else np.ones(len(moved))
    kept = np.minimum(0.05, allowed - square)
    multiplier = 0.0 if constraint == "none" else 3.0
    counts = multiplier * (allowed - square < 0.05)
    by_change = -(skill - 2 * counts[:, None] * change) / len(moved)
    assert 0.1 < (allowed - square < 0.05).mean() < 0.9

    found = learned["gradients/phi/head.weight"]
    np.testing.assert_allclose(found, by_change.T @ moved, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(learned["gradients/phi/head.bias"], 0, atol=1e-6)
    metrics = goals.metrics()
    np.testing.assert_allclose(metrics["length"], np.sqrt(square.mean()), rtol=1e-5)
    if constraint == "none":
        assert not any("multiplier" in name for name in learned)
        return
    (of_multiplier,) = (v for n, v in learned.items() if n.startswith("gradients/multiplier"))
    np.testing.assert_allclose(of_multiplier, kept.mean(), rtol=1e-5)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_loss_of_phi_equals_formula(constraint):
    goals = goals_of(replace(METRA, constraint=constraint))
    batch = batch_of(goals)
    found, _ = goals._phi_loss(goals.phi.online, batch, {})
    before, after = (phi(goals, each[KEY].numpy()) for each in (batch.before, batch.after))
    change = after - before
    wanted = -(change * batch.goal.double().numpy()).sum(axis=1)
    if constraint != "none":
        moved = (batch.after[KEY] - batch.before[KEY]).double().numpy()
        allowed = 1.0 if constraint == "temporal" else (moved**2).sum(axis=1)
        wanted -= 3.0 * np.minimum(0.05, allowed - (change**2).sum(axis=1))
    np.testing.assert_allclose(found.item(), wanted.mean(), rtol=1e-5)


def phi(goals, observation):
    """The network in float64: one layer of tanh, and a linear one."""
    state = {name: each.double().numpy() for name, each in goals.phi.module.state_dict().items()}
    head = {name: value for name, value in state.items() if name.startswith("head")}
    weight, bias = (v for name, v in sorted(state.items(), reverse=True) if name not in head)
    hidden = np.tanh(observation.astype(np.float64) @ weight.T + bias)
    return hidden @ head["head.weight"].T + head["head.bias"]


def of(space=METRA, low=SAC, top=None, **given):
    return stack(top or rl.UniformAgentParameters(), low, goals=space, **given)


@pytest.mark.parametrize("space", [METRA, replace(METRA, constraint="none")], ids=str)
def test_drawn_rewards_are_the_way_that_latents_went_along_the_skill(space):
    manager = created(of(space, training=400))
    manager.run()
    _, agent = agents_of(manager)
    assert agent.goals.version > 20
    store, found = agent.memory.store, agent.memory.sampler(200)
    positions = found["/positions"].numpy()
    skill = found["/observations/desired_goal"].double().numpy()
    np.testing.assert_array_equal(skill, store.read("/goal_space/before/given", positions))
    np.testing.assert_allclose(np.linalg.norm(skill, axis=1), 1, atol=1e-6)
    before, after = (
        phi(agent.goals, store.read(f"/{name}/{KEY}", positions))
        for name in ("observations", "next_observations")
    )
    reward = ((after - before) * skill).sum(axis=1)
    np.testing.assert_allclose(found["/rewards"], reward, rtol=0, atol=1e-6)
    assert (found["/discounts"] > 0).all()  # a skill is never reached


def test_rewards_as_they_are_observed_are_logged_and_stored():
    manager = created(of())
    _, agent = agents_of(manager)
    kept, store = [], agent.store

    def stored(transition):
        before, after = (
            phi(agent.goals, each[KEY])
            for each in (transition.observation, transition.next_observation)
        )
        skill = transition.observation["desired_goal"].astype(np.float64)
        kept.append((transition.reward, ((after - before) * skill).sum(axis=1)))
        store(transition)

    agent.store = stored
    manager.run()
    assert len(kept) > 60
    for reward, wanted in kept:
        np.testing.assert_allclose(reward, wanted, rtol=0, atol=1e-6)


def test_even_actions_are_directions_that_are_evenly_spread():
    goals = goals_of(METRA)
    actions = np.random.default_rng(0).uniform(-1, 1, (40_000, 2)).astype(np.float32)
    skills = goals.target(actions, {})
    np.testing.assert_allclose(np.linalg.norm(skills, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(np.sign(skills), np.sign(actions))
    angles = np.arctan2(skills[:, 1], skills[:, 0])
    counts, _ = np.histogram(angles, bins=16, range=(-np.pi, np.pi))
    assert np.abs(counts / 2_500 - 1).max() < 0.1  # five standard deviations; a cube's: 0.27
    assert goals.space == spaces.Box(-1, 1, (2,), np.float32)
    corners = goals.target(np.array([[1, 1], [-1, 0]], np.float32), {})
    np.testing.assert_allclose(corners, [[0.5**0.5] * 2, [-1, 0]], atol=1e-6)


def test_discrete_skills_are_centred_one_hot():
    three = {"low": (-1.0,) * 3, "high": (1.0,) * 3, "threshold": (0.0,) * 3}
    goals = goals_of(replace(METRA, **three, discrete=True))
    actions = np.array([[0.1, 0.9, -0.3], [-0.5, -0.7, -0.2]], np.float32)
    np.testing.assert_array_equal(goals.target(actions, {}), [[-0.5, 1, -0.5], [-0.5, -0.5, 1]])


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_goals_and_their_agent_keep_their_promises(constraint):
    check_goals(at(goals_of(replace(METRA, constraint=constraint)), SAC))


def test_stack_with_skills_resumes_bit_for_bit(tmp_path):
    build = partial(created, of(replace(METRA, constraint="euclidean"), top=SAC))
    assert_resumes(build, tmp_path, after(100, amid), kinds=("train", "level"))


def test_frozen_skills_of_another_run_stay_as_they_are(tmp_path):
    settings = rl.RunSettings(tensorboard=False, final_episodes=rl.EnvironmentEpisodes(2))
    run = rl.run_experiment(
        rl.HRLGraphManager(of()),
        Runtime(device="cpu"),
        name="skills",
        root=tmp_path,
        settings=settings,
    ).folder.path
    above = created(of(top=SAC, load=str(run), frozen=True))
    rl.load_levels(above)
    _, low = agents_of(above)
    phi_of_run = low.goals.phi.online.clone()
    above.run()
    top, low = agents_of(above)
    assert top.training_steps > 0
    assert low.training_steps == 0
    torch.testing.assert_close(low.goals.phi.online, phi_of_run, rtol=0, atol=0)
    loaded = rl.load(run)
    assert loaded.act(
        {key: space.sample() for key, space in loaded.spaces.observation.items()}
    ).shape == (2,)
    torch.testing.assert_close(
        loaded._graph.agents["low"].goals.phi.online, phi_of_run, rtol=0, atol=0
    )


REFUSED = [  # call, kind of error, message
    (lambda: replace(METRA, low=(-2.0, -1.0)), ParameterError, "each from -1 to 1, got low=(-2.0"),
    (
        lambda: replace(METRA, low=(-1.0,), high=(1.0,), threshold=(0.0,)),
        ParameterError,
        "directions of two elements or more",
    ),
    (lambda: replace(METRA, observed="relative"), ParameterError, "leave out relative, observed"),
    (lambda: replace(METRA, relative=True), ParameterError, "leave out relative, observed"),
    (lambda: replace(METRA, bounds_rate=0.1), ParameterError, "leave out relative, observed"),
    (lambda: replace(METRA, multiplier=0.0), ParameterError, "multiplier"),
    (
        lambda: created(of(low=replace(SAC, memory=HER))).close(),
        ConfigurationError,
        "hindsight takes places that were achieved as goals; leave out memory.relabelling",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_what_does_not_fit_directions_is_refused(call, kind, message):
    check_refused(call, kind, message)
