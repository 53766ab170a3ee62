"""What DDPG, TD3 and SAC share: when they learn, what they learn from, acting, saving."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from decisions import outcome, request, transition
from gymnasium import spaces
from plain_learners import (
    BOX,
    HALF,
    HEATUP,
    KINDS,
    TEST,
    TRAIN,
    batches,
    build,
    manager,
    parameters,
    run,
)

import coach_rl as rl
from coach_rl.architectures.gradient_step import mapped
from coach_rl.core.clock import Clock
from coach_rl.core.parts import description_of
from coach_rl.extensions.update_modes.recorded_steps import compiler_present

NOISES = ("ddpg", "td3")  # SAC draws from its own distribution


def targets_of(agent):
    """Every network that has a target."""
    return {name: each for name, each in agent.learner.networks.items() if each.has_target}


# When it learns.


def after_ticks(made, ticks, phase="train"):
    """Let all rows take so many steps."""
    steps = rl.EnvironmentSteps(ticks * made.parameters.num_envs)
    for _ in made.heatup(steps) if phase == "heatup" else made.train_and_act(steps):
        pass


@pytest.mark.drawn(one_of=3, each="ratio")
@pytest.mark.parametrize("num_envs", [1, 3, 8])
@pytest.mark.parametrize("ratio", [1, 0.25, 0.29, 2.5, "1/num_envs"])
def test_as_many_gradient_steps_as_decisions_have_earned(ratio, num_envs):
    """At every tick, floor(ratio * decisions made in TRAIN after learning had started)."""
    given = 1 / num_envs if ratio == "1/num_envs" else ratio
    exact = Fraction(1, num_envs) if ratio == "1/num_envs" else Fraction(str(ratio))
    starts, heatup = 17, 3
    params = parameters(
        "ddpg", learning={"updates_per_step": given, "learning_starts": starts, "batch": 2}
    )
    made = manager(params, rl.SteadyPayParameters(), num_envs=num_envs)
    (agent,) = made.graph.agents.values()
    taken = []
    learn = agent.learn_from_batch
    agent.learn_from_batch = lambda batch: (taken.append(len(agent.memory)), learn(batch))[1]
    after_ticks(made, heatup, "heatup")
    assert taken == []
    earned, kept = 0, heatup * num_envs
    for _ in range(40 if num_envs == 1 else 14):
        earned += num_envs if kept >= starts else 0
        kept += num_envs
        after_ticks(made, 1)
        expected = int(exact * earned)
        assert len(taken) == expected
        assert made.graph.clock.training_steps == agent.training_steps == expected
        assert agent.learner.engine.state_dict()["taken"] == expected
    assert earned > 2 / exact
    assert min(taken) > starts  # the first updates follow the first decision that earns some
    made.close()


def test_a_decision_made_in_heat_up_earns_nothing_when_it_ends_in_training():
    agent = build("ddpg", learning={"learning_starts": 1, "batch": 2})
    state, seen = agent.new_rows(2, seed=0), {"x": np.ones((2, 3), np.float32)}
    for clock, earned in ((HEATUP, 0), (HEATUP, 0), (TRAIN, 2)):
        act(agent, clock=clock, state=state, count=2)
        agent.observe(state, outcome(seen), TRAIN)
        report = agent.train(TRAIN)
        assert (report and report.training_steps) == (earned or None)


@pytest.mark.parametrize(
    ("given", "exact"),
    [(0.29, Fraction(29, 100)), (1 / 3, Fraction(1, 3)), (1e-7, Fraction(1, 10**7)), (3, 3)],
)
def test_a_ratio_is_what_was_meant(given, exact):
    assert rl.LearningParameters(updates_per_step=given).ratio == exact


def test_a_long_run_loses_no_update_to_rounding():
    """Added up as floating-point numbers, 0.29 a step would be one short before long."""
    agent = build("ddpg", planned=10**6, learning={"updates_per_step": 0.29})
    agent.learner.learn_from_batch = lambda batch: {}
    agent.memory.sample = lambda size: {}
    for _ in range(1000):
        agent.earned += 100
        agent.train(TRAIN)
        assert agent.training_steps == agent.earned * 29 // 100


@pytest.mark.parametrize("kind", KINDS)
def test_memory_smaller_than_learning_starts_is_refused(kind):
    """1000 among 3 rows is 3 * 333: one short of where learning starts."""
    with pytest.raises(rl.ConfigurationError):
        build(kind, num_envs=3, memory={"capacity": 1000}, learning={"learning_starts": 1000})
    build(kind, num_envs=3, memory={"capacity": 1000}, learning={"learning_starts": 999})


def test_a_schedule_multiplies_every_step_size():
    schedule = rl.LinearSchedule(start=1.0, end=0.0, over=rl.EnvironmentSteps(100))
    agent = build("sac", learning_rate_schedule=schedule, learning={"report_every": 1})
    store(agent, batches(1)[0])
    agent.earned = 1
    report = agent.train(Clock(environment_steps=75))
    rates = {name: report.metrics[f"train/{name}"] for name in agent.learner.learning_rates}
    assert rates == pytest.approx(dict.fromkeys(agent.learner.learning_rates, 0.0025))
    before = [each.online.clone() for each in agent.learner.networks.values()]
    agent.earned = 2
    assert agent.train(Clock(environment_steps=100)).training_steps == 1
    for each, kept in zip(agent.learner.networks.values(), before, strict=True):
        assert torch.equal(each.online, kept)


@pytest.mark.parametrize("kind", KINDS)
def test_metrics_come_every_report_every_gradient_steps(kind):
    _, records = run(
        parameters(kind, learning={"report_every": 7, "learning_starts": 8}),
        rl.PointMassParameters(),
        steps=48,
        num_envs=8,
    )
    # 8 steps a tick: reports after 8, 16, ... of the 40
    trains = [record for record in records if record.kind == "train"]
    assert [record.scalars["train/training_steps"] for record in trains] == [8.0] * 5
    assert [record.training_steps for record in trains] == [8, 16, 24, 32, 40]
    names = {"critic_loss", "q_value", "critic_gradient_norm", "actor_loss", "actor_gradient_norm"}
    names |= {"actor_learning_rate", "critic_learning_rate", "q_lowest", "q_highest"}
    if kind == "sac":
        names |= {"entropy", "temperature", "temperature_gradient_norm"}
        names |= {"temperature_learning_rate"}
    expected = {f"train/{name}" for name in names | {"training_steps"}} | {"memory/transitions"}
    for record in trains:
        assert set(record.scalars) - {"exploration/scale"} == expected
        assert ("exploration/scale" in record.scalars) == (kind in NOISES)
        assert all(np.isfinite(value) for value in record.scalars.values())


# What it learns.


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_to_turn_two_dials(kind):
    params = parameters(
        kind,
        torso=rl.TorsoParameters(middleware=(32, 32), activation="relu", orthogonal=False),
        learning={"updates_per_step": 0.5, "batch": 64},
        rate=3e-3,
        algorithm={"initial_temperature": 0.1} if kind == "sac" else {},
    )
    _, records = run(
        params,
        rl.OneStepParameters(size=2, continuous=True),
        steps=1600,
        heatup=rl.EnvironmentSteps(400),
        evaluation_interval=rl.EnvironmentSteps(1600),
    )
    (evaluation,) = (record for record in records if record.kind == "evaluation")
    # random actions get 1/3, always the middle 2/3
    assert evaluation.scalars["evaluation/reward_mean"] > 0.93


# Transitions and batches.


def store(agent, batch):
    """Put a batch's transitions into the agent's memory."""
    for number in range(len(batch.action)):
        one = mapped(lambda values, n=number: values[n : n + 1].numpy(), batch)
        agent.store(
            transition(
                one.observation,
                one.action,
                one.next_observation,
                reward=float(one.reward[0]),
                terminated=float(one.discount[0]) == 0,
            )
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_prioritised_memory_receives_errors(kind):
    agent = build(kind, memory={"prioritised": rl.PrioritisedParameters()})
    noted = []
    store(agent, batches(1)[0])
    sampled = []
    sample = agent.memory.sample
    agent.memory.sample = lambda size: sampled.append(sample(size)) or sampled[-1]
    agent.memory.note_errors = lambda positions, errors: noted.append((positions, errors.clone()))
    agent.earned = 3
    agent.train(TRAIN)
    assert len(noted) == 3
    for (positions, errors), batch in zip(noted, sampled, strict=True):
        assert torch.equal(positions, batch.position)
        assert errors.shape == (16,)
        assert errors.abs().min() > 0


# Acting.


def act(agent, clock=TRAIN, count=50, state=None, greedy=False):
    observation = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
    state = state or agent.new_rows(count, seed=0)
    return agent.act(state, request({"x": observation}, greedy=greedy), clock)


@pytest.mark.parametrize("kind", KINDS)
def test_actions_reach_both_ends_of_every_element(kind):
    agent = build(kind)
    named = agent.learner.actor.named(agent.learner.actor.online)
    for signs in ((50, -50), (-50, 50)):
        for values in named.values():
            values.zero_()
        named["head.0.bias"][:2] = torch.tensor(signs, dtype=torch.float32)
        expected = np.where(np.array(signs) > 0, BOX.high, BOX.low)
        np.testing.assert_array_equal(act(agent, TEST), np.tile(expected, (50, 1)))


@pytest.mark.parametrize("kind", NOISES)
def test_noise_is_in_half_ranges_and_is_clipped(kind):
    quiet = build(kind, exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=1e-3)))
    difference = (act(quiet, TRAIN) - act(quiet, TEST)) / HALF.numpy()
    np.testing.assert_allclose(difference.std(axis=0), 1e-3, rtol=0.35)
    loud = build(kind, exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=5.0)))
    actions = act(loud, TRAIN)
    for element in range(2):
        assert {BOX.low[element], BOX.high[element]} < set(actions[:, element])
    assert (actions >= BOX.low).all()
    assert (actions <= BOX.high).all()


@pytest.mark.parametrize("kind", KINDS)
def test_only_rows_that_are_not_tested_explore(kind):
    agent = build(kind, num_envs=6)
    tested = np.array([True, False] * 3)
    greedy, mixed = act(agent, TEST, 6), act(agent, TRAIN, 6, greedy=tested)
    changed = (greedy != mixed).any(axis=1)
    assert changed.tolist() == [False, True] * 3
    # and they draw what they would have drawn among others that explore, too
    np.testing.assert_array_equal(mixed[~tested], act(agent, TRAIN, 6)[~tested])


# Observations normalised inside the networks.


@pytest.mark.parametrize("kind", KINDS)
def test_observations_are_normalised_alike_in_acting_learning_and_targets(kind):
    """It learns and acts as an agent without a normaliser does on numbers normalised by hand."""
    agent, plain = (build(kind, **changes) for changes in ({"normalise_observations": 1.5}, {}))
    rng = np.random.default_rng(0)
    known = (rng.normal(size=(30, 3)) * [5, 1, 0.1] + [20, 0, -1]).astype(np.float32)
    for seen in known:
        before, after = {"x": seen[None]}, {"x": seen[None] + 1000}
        agent.store(transition(before, np.float32([[0, 0]]), after))

    def by_hand(seen):
        exact = known.astype(np.float64)
        normal = (np.asarray(seen, np.float64) - exact.mean(axis=0)) / exact.std(axis=0)
        return normal.clip(-1.5, 1.5).astype(np.float32)

    probe = known[:8] + np.float32([1, 0.5, 0.05])
    np.testing.assert_allclose(
        agent.learner.acting.outputs({"x": probe}),
        plain.learner.acting.outputs({"x": by_hand(probe)}),
        rtol=1e-3,
        atol=1e-4,
    )
    for batch in batches(4, size=8):
        seen, following = (
            torch.from_numpy(known[:8]) + 0.1 * each["x"]
            for each in (batch.observation, batch.next_observation)
        )
        raw = batch._replace(observation={"x": seen}, next_observation={"x": following})
        normal = batch._replace(
            observation={"x": torch.from_numpy(by_hand(seen))},
            next_observation={"x": torch.from_numpy(by_hand(following))},
        )
        agent.learn_from_batch(raw)
        plain.learn_from_batch(normal)
    for name, each in agent.learner.networks.items():
        other = plain.learner.networks[name]
        torch.testing.assert_close(each.online, other.online, rtol=5e-3, atol=5e-4)
        if each.has_target:
            torch.testing.assert_close(each.target, other.target, rtol=5e-3, atol=5e-4)


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("kind", KINDS)
def test_statistics_are_of_what_was_acted_on_and_memory_keeps_raw_numbers(kind):
    agent, _ = run(
        parameters(kind, normalise_observations=5.0, learning={"learning_starts": 50}),
        rl.PointMassParameters(max_episode_steps=9),
        steps=200,
        num_envs=4,
        heatup=rl.EnvironmentSteps(40),
        evaluation_interval=rl.EnvironmentSteps(100),
    )
    kept = agent.memory.trajectories()["/observations/observation"].reshape(-1, 4)
    assert len(kept) == 200
    assert np.abs(kept[:, 2:]).max() > 1.5  # speeds, as they are
    torch.testing.assert_close(
        agent.normaliser.mean["observation"],
        torch.from_numpy(kept.mean(axis=0, dtype=np.float64)).float(),
    )
    torch.testing.assert_close(
        agent.normaliser.scale["observation"],
        torch.from_numpy(1 / kept.astype(np.float64).std(axis=0)).float(),
        rtol=1e-4,
        atol=1e-5,
    )
    batch = agent.memory.sample(200).observation["observation"].numpy()
    raw = {tuple(row) for row in kept}
    assert all(tuple(row) in raw for row in batch)


def test_actor_and_critics_do_not_begin_alike():
    """They draw from one stream, one after the other."""
    critics = build("td3").learner.critics.module
    for layer in critics.values.layers:
        assert not torch.allclose(layer.weight[0], layer.weight[1])


# Compiled.


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # inductor's own
@pytest.mark.timeout(280)
@pytest.mark.skipif(not compiler_present(), reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind == "sac" else pytest.mark.slow) for kind in KINDS],
)
def test_compiled_equals_eager_to_rounding(kind, compiler):
    def trained(mode):
        agent = build(
            kind,
            mode=mode,
            normalise_observations=5.0,
            adam={"epsilon": 1e-4, "max_gradient_norm": 1.0},
            algorithm={"huber": 1.0, "target_sync": rl.TargetSync(rate=0.1)},
        )
        assert agent.learner.engine.mode == mode
        store(agent, batches(1)[0])
        made = batches(10)
        for number, batch in enumerate(made):
            if number == 5:  # neither may be compiled in
                agent.learner.engine.set_scalars(critic_learning_rate=0.001)
                store(agent, made[0])
            errors = agent.learn_from_batch(batch)["td_error"].clone()
        numbers = [each.online for each in agent.learner.networks.values()]
        numbers += [each.target for each in targets_of(agent).values()]
        return [*numbers, errors], agent.learner.engine.drain_metrics()

    (found, metrics), (expected, others) = trained("compiled"), trained("eager")
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=2e-5)
    assert metrics == pytest.approx(others, rel=1e-3, abs=1e-4)


# What it serves.


@pytest.mark.parametrize("kind", KINDS)
def test_a_box_of_doubles_will_do(kind):
    """Bounds that single precision cannot hold are not left."""
    box = spaces.Box(np.array([-0.1, -2.0]), np.array([0.3, 1 / 3]), dtype=np.float64)
    agent = build(kind, box=box)
    named = agent.learner.actor.named(agent.learner.actor.online)
    named["head.0.bias"][:2] = 50.0
    for clock in (HEATUP, TRAIN, TEST):
        action = act(agent, clock)
        assert action.dtype == np.float64
        assert (action <= box.high).all()
        assert (action >= box.low).all()
    for batch in batches(2, box=box):
        agent.learn_from_batch(batch._replace(action=batch.action.float()))


@pytest.mark.parametrize("kind", KINDS)
def test_images_lamps_and_lone_numbers_are_observed(kind):
    seen = spaces.Dict(
        {
            "image": spaces.Box(0, 255, (6, 6, 1), np.uint8),
            "lamp": spaces.Discrete(3),
            "speed": spaces.Box(-1, 1, (2,)),
            "height": spaces.Box(-1, 1, ()),
        }
    )
    torso = rl.TorsoParameters(convolutions="shallow", middleware=(8,), orthogonal=False)
    agent = build(kind, seen=seen, torso=torso, normalise_observations=5.0, num_envs=4)
    rng = np.random.default_rng(0)
    shown = {
        "image": rng.integers(0, 256, (4, 6, 6, 1)).astype(np.uint8),
        "lamp": rng.integers(0, 3, 4),
        "speed": rng.normal(size=(4, 2)).astype(np.float32),
        "height": rng.normal(size=4).astype(np.float32),
    }
    state = agent.new_rows(4, seed=0)
    for _ in range(3):
        agent.act(
            state,
            request(shown),
            TRAIN,
        )
        agent.observe(state, outcome(shown), TRAIN)
        agent.train(TRAIN)
    # one row's transition was enough to begin: 4 + 4 decisions later
    assert agent.training_steps == 8


@pytest.mark.parametrize("kind", KINDS)
def test_the_description_says_what_it_consists_of(kind):
    agent = build(kind)
    text = description_of(agent)
    for name, each in agent.learner.networks.items():
        assert f"{name}: " in text
        assert f"{each.size:,} parameters" in text
    assert "updates: eager" in text
