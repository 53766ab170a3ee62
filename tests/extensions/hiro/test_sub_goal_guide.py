"""Sub-goals that stay adjacent and are led to landmarks: losses, trajectories, saving, errors."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import coach_rl as rl
from coach_rl.extensions.hiro.sub_goal_guide import LANDMARK, trajectories
from coach_rl.extensions.update_modes.recorded_steps import compiler_present
from tests.agents.goal_stacks import ABSOLUTE, RELATIVE, SETTINGS, stack
from tests.agents.resuming import after, amid, assert_resumes
from tests.builders import agents_of, created

ADJACENT = rl.AdjacencyParameters(cell=0.2, every=60, epochs=2, layers=(16,), embedding=4)
HRAC = rl.SubGoalGuideParameters(adjacency=ADJACENT)
HIGL = rl.SubGoalGuideParameters(
    adjacency=ADJACENT,
    landmarks=rl.LandmarkParameters(
        coverage=5,
        candidates=40,
        starts=100,
        shift=0.2,
        longest_edge=2.0,
        near_goal=0.5,
        novelty=rl.NoveltyParameters(count=4, every=30, layers=(8,), features=4, batch=8),
    ),
)


def top_agent(kind=rl.TD3AgentParameters, guide=(HIGL,), **changes):
    learning = replace(SETTINGS["learning"], updates_per_step=0.5)
    return kind(**{**SETTINGS, "learning": learning, "actor_terms": guide, **changes})


@pytest.fixture(scope="module")
def ran():
    """A stack after a run, and what its upper level has logged."""
    manager = created(stack(top_agent()))
    records = [each for each in manager.improve() if each.kind == "train" and each.level == "top"]
    yield manager, records
    manager.close()


def in_numpy(network, places):
    """Embeddings, layer by layer."""
    *hidden, last = [layer for layer in network.module if hasattr(layer, "weight")]
    for layer in hidden:
        places = np.maximum(
            places @ layer.weight.detach().numpy().T + layer.bias.detach().numpy(), 0
        )
    return places @ last.weight.detach().numpy().T + last.bias.detach().numpy()


@pytest.mark.parametrize(
    ("goals", "decisions"), [(RELATIVE, 11), (ABSOLUTE, None)], ids=["relative, few", "absolute"]
)
def test_losses_equal_a_plain_loop(goals, decisions):
    adjacency = replace(ADJACENT, near=0.01, far=0.03, weight=3.0)
    landmarks = replace(HIGL.landmarks, weight=5.0, decisions=decisions)
    params = replace(HIGL, adjacency=adjacency, landmarks=landmarks)
    manager = created(stack(top_agent(guide=(params,)), goals=goals))
    manager.run()
    agent, _ = agents_of(manager)
    guide = agent.actor_terms["guide"]
    batch = guide.prepared(agent.memory.sample(30))
    action = torch.from_numpy(
        np.random.default_rng(0).uniform(-0.5, 0.5, (30, 2)).astype(np.float32)
    )
    loss, metrics = guide.loss(action, batch)
    here = batch.observation["achieved_goal"].numpy()
    proposed = action.numpy() + (here if goals.relative else 0)
    embedded = [
        in_numpy(guide.adjacency.network, places)
        for places in (here, proposed, batch.extras[LANDMARK].numpy())
    ]

    def excess(one, other):
        pairs = zip(one, other[: len(one)], strict=True)
        return np.mean([max(np.linalg.norm(a - b) - 0.02, 0) for a, b in pairs])

    assert len(embedded[2]) == (decisions or 30)
    penalty, pull = excess(embedded[0], embedded[1]), excess(embedded[2], embedded[1])
    assert penalty > 0.01
    assert pull > 0.01
    assert metrics["adjacency_penalty"].item() == pytest.approx(penalty, rel=1e-4)
    assert metrics["landmark_loss"].item() == pytest.approx(pull, rel=1e-4)
    assert loss.item() == pytest.approx(3 * penalty + 5 * pull, rel=1e-4)


def test_nothing_is_asked_before_adjacency_was_learned():
    manager = created(stack(top_agent()))
    agent, _ = agents_of(manager)
    adjacency = agent.actor_terms["guide"].adjacency
    adjacency.network.online.mul_(50)  # or a network with little to say would be no proof
    for _ in manager.improve():
        if len(agent.memory) >= 5:
            break
    assert float(adjacency.trained) == 0.0
    batch = agent.actor_terms["guide"].prepared(agent.memory.sample(8))
    loss, metrics = agent.actor_terms["guide"].loss(batch.action + 5, batch)
    assert loss.item() == 0.0
    assert metrics["adjacency_penalty"] > 0
    adjacency.trained.fill_(1.0)
    assert agent.actor_terms["guide"].loss(batch.action + 5, batch)[0].item() > 0


def test_penalty_brings_sub_goals_nearer(ran):
    agent, _ = agents_of(ran[0])
    batch = agent.actor_terms["guide"].prepared(agent.memory.sample(64))
    adjacency = agent.actor_terms["guide"].adjacency
    adjacency.network.online.mul_(3)  # farther than the margin

    action = torch.full((64, 2), 0.25, requires_grad=True)
    loss, metrics = agent.actor_terms["guide"].loss(action, batch)
    assert metrics["adjacency_penalty"] > 0
    (gradient,) = torch.autograd.grad(loss, action)
    with torch.no_grad():
        nearer, _ = agent.actor_terms["guide"].loss(
            action - 0.01 * gradient / gradient.norm(), batch
        )
    assert nearer < loss
    adjacency.network.online.div_(3)


def test_trajectories_are_the_places_visited_until_the_world_begins_anew(monkeypatch):
    manager = created(stack(top_agent(guide=())))
    _, low = agents_of(manager)
    walks, store = {row: [[]] for row in range(3)}, low.store

    def note(transition):
        for index, row in enumerate(transition.rows.tolist()):
            before = transition.observation["achieved_goal"][index]
            after = transition.next_observation["achieved_goal"][index]
            walk = walks[row][-1]
            if walk and not np.array_equal(walk[-1], before):
                walks[row].append(walk := [])
            if not walk:
                walk.append(before)
            walk.append(after)
        store(transition)

    monkeypatch.setattr(low, "store", note)
    manager.run()
    counts = low.memory.store.counts
    found = list(trajectories(low.memory.history, RELATIVE, np.zeros(3, np.int64), counts))
    expected = [np.array(walk) for row in range(3) for walk in walks[row]]
    assert len(found) == len(expected) > 10
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert max(map(len, found)) == 24  # across sub-goals, to the end of an episode


def test_adjacency_learns_from_every_step_at_its_own_pace(monkeypatch):
    manager = created(stack(top_agent(guide=(HRAC,))))
    agent, low = agents_of(manager)
    rounds, learn = [], agent.actor_terms["guide"].adjacency.learn

    def note(walks):
        rounds.append((int(low.memory.store.counts.sum()), list(walks)))
        learn(rounds[-1][1])

    monkeypatch.setattr(agent.actor_terms["guide"].adjacency, "learn", note)
    manager.run()
    assert len(rounds) >= 3
    before = 0
    for number, (steps, walks) in enumerate(rounds):
        assert steps - before >= 60
        # A round begins 6 steps before the new ones, so that no pair of cells is cut apart.
        overlap = 3 * 6 if number else 0
        assert sum(len(walk) - 1 for walk in walks) == steps - before + overlap
        before = steps


@st.composite
def guided_stacks(draw):
    """Any agents with any guide above TD3, in stacks of any size."""
    kinds = [
        (rl.TD3AgentParameters, HIGL),
        (rl.SACAgentParameters, HIGL),
        (rl.HIROAgentParameters, HRAC),
        (rl.DDPGAgentParameters, HRAC),
    ]
    kind, guide = draw(st.sampled_from(kinds))
    return stack(
        top_agent(kind, guide=(guide,)),
        goals=RELATIVE
        if kind is rl.HIROAgentParameters
        else draw(st.sampled_from([RELATIVE, ABSOLUTE])),
        num_envs=draw(st.integers(1, 4)),
        horizon=draw(st.integers(3, 9)),
        training=240,  # records follow the latest moment to stop at
    )


@settings(max_examples=4, deadline=None, phases=[Phase.generate])
@given(params=guided_stacks(), moment=st.integers(100, 150))
def test_guided_stack_stopped_in_mid_decisions_resumes_bit_for_bit(params, moment):
    with TemporaryDirectory() as folder:
        assert_resumes(partial(created, params), Path(folder), after(moment, amid))


@settings(max_examples=2, deadline=None, phases=[Phase.generate])
@given(params=guided_stacks())
def test_a_guide_of_no_weight_changes_nothing(params):
    top, low = params.levels
    (guide,) = top.agent.actor_terms
    landmarks = guide.landmarks and replace(guide.landmarks, weight=0.0)
    weightless = rl.SubGoalGuideParameters(
        adjacency=replace(guide.adjacency, weight=0.0), landmarks=landmarks
    )
    networks = []
    for each in ((weightless,), ()):
        levels = (replace(top, agent=replace(top.agent, actor_terms=each)), low)
        manager = created(replace(params, levels=levels))
        manager.run()
        learners = [agent.learner for agent in agents_of(manager)]
        networks.append([each.online for one in learners for each in one.networks.values()])
        manager.close()
    for mine, other in zip(*networks, strict=True):
        assert torch.equal(mine, other)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # inductor's own
@pytest.mark.timeout(280)
@pytest.mark.skipif(not compiler_present(), reason="torch.compile needs a C++ compiler")
def test_compiled_equals_eager_to_rounding(ran):
    before, low_before = agents_of(ran[0])

    def trained(mode):
        other = created(stack(top_agent(update_mode=mode)))
        agent, low = agents_of(other)
        low.load_state_dict(low_before.state_dict())
        agent.memory.load_state_dict(before.memory.state_dict())
        agent.actor_terms["guide"].load_state_dict(before.actor_terms["guide"].state_dict())
        assert agent.learner.engine.mode == mode
        adjacency = agent.actor_terms["guide"].adjacency
        adjacency.network.online.mul_(5)  # farther than the margin
        for number in range(6):
            adjacency.trained.fill_(number > 1)  # neither may be compiled in
            if number == 4:
                adjacency.network.online.mul_(1.5)
            agent.learn_from_batch(agent.memory.sample(8))
        other.close()
        return agent.learner.networks["actor"].online, agent.learner.engine.drain_metrics()

    (found, metrics), (expected, others) = trained("compiled"), trained("eager")
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=2e-5)
    assert metrics == pytest.approx(others, rel=1e-3, abs=1e-4)
    assert metrics["landmark_loss"] > 0


def test_the_log_tells_of_both(ran):
    _, records = ran
    found = records[-1].scalars
    assert {
        "train/adjacency_penalty",
        "train/landmark_loss",
        "adjacency/cells",
        "adjacency/loss",
        "adjacency/adjacent_found",
        "adjacency/apart_found",
        "time/adjacency",
        "landmarks/goal_share",
        "landmarks/no_way_share",
        "landmarks/novelty",
        "time/landmarks",
    } <= set(found)
    assert sum(each.scalars["time/landmarks"] for each in records) > 0


def test_an_actor_that_rests_plans_no_landmarks(monkeypatch):
    manager = created(stack(top_agent()))
    agent, _ = agents_of(manager)
    planned, targets = [], agent.actor_terms["guide"].planner.targets
    monkeypatch.setattr(
        agent.actor_terms["guide"].planner,
        "targets",
        lambda seen: planned.append(1) or targets(seen),
    )
    manager.run()
    assert len(planned) == agent.training_steps // 2
