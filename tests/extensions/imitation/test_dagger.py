"""DAgger: the teacher's labels, its share of decisions, its record, and how a student learns."""

import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.clock import Clock, ConstantSchedule, Phase
from coach_rl.core.errors import ConfigurationError, ParameterError, SpaceError
from coach_rl.extensions.data.action_probabilities import policy_of
from coach_rl.extensions.imitation.dagger import TEACHER_ACTION, TEACHER_PARAMETERS
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.runs.folder import TakenCheckpoint
from coach_rl.sessions import load
from tests.agents.decisions import context, outcome, request
from tests.builders import flat

CART_POLE = "trained:CartPole_PPO"
MAZE = "trained:TMaze_PPO"
"""A recurrent teacher."""
SHOWN = {
    CART_POLE: load(CART_POLE).spaces,
    MAZE: load(MAZE).spaces,
}
TRAIN = Clock(phase=Phase.TRAIN)
SMALL = rl.TorsoParameters(middleware=(8,), activation="relu", orthogonal=False)


def student(run=CART_POLE, *, more=None, action=None, shown=None, **changes):
    """A student of a shipped teacher, on a level with the teacher's spaces and more."""
    settings = {
        "teacher": rl.TeacherParameters(run=run),
        "policy": rl.PolicyParameters(torso=SMALL),
        "learning": rl.LearningParameters(batch=16, learning_starts=16),
        "memory": rl.ReplayMemoryParameters(capacity=2_000),
        "update_mode": "eager",
    }
    params = rl.DAggerAgentParameters(**{**settings, **changes})
    own = load(shown).spaces if shown else SHOWN.get(run, SHOWN[CART_POLE])
    seen = {**own.observation.spaces, **(more or {})}
    return params.build(context(seen, action or own.action))


def drawn(rng, run=CART_POLE):
    """Observations of two rows, drawn at random."""
    found = {}
    for key, space in SHOWN[run].observation.spaces.items():
        low, high = np.maximum(space.low, -1), np.minimum(space.high, 1)
        found[key] = rng.uniform(low, high, (2, *space.shape)).astype(space.dtype)
    return found


def acted(agent, rows, seen, clock=TRAIN, *, is_first=True, greedy=False):
    """Actions, and the teacher's, [T, 2] each, in the observations seen[:-1]."""
    actions = []
    labels = []
    for step, (before, after) in enumerate(pairwise(seen)):
        starts = is_first and step == 0
        actions.append(agent.act(rows, request(before, starts=starts, greedy=greedy), clock))
        labels.append(rows.choice[TEACHER_ACTION].copy())
        agent.observe(rows, outcome(after), clock)
    return np.stack(actions), np.stack(labels)


def taught(agent, run=CART_POLE):
    """Make one decision in training, in observations of a shipped agent's level."""
    SHOWN.setdefault(run, load(run).spaces)
    acted(agent, agent.new_rows(2, 0), observations(2, run))


def observations(count, run=CART_POLE, seed=0):
    rng = np.random.default_rng(seed)
    return [drawn(rng, run) for _ in range(count)]


@pytest.mark.parametrize("run", [CART_POLE, MAZE], ids=["plain", "recurrent"])
@pytest.mark.parametrize("phase", [Phase.TRAIN, Phase.HEATUP])
def test_labels_are_actions_that_teacher_takes_in_observations_of_student(run, phase):
    agent = student(run)
    seen = observations(30, run)
    actions, labels = acted(agent, agent.new_rows(2, 0), seen, Clock(phase=phase))
    alone = load(run)
    expected = [alone.act(each) for each in seen[:-1]]
    np.testing.assert_array_equal(labels, expected)
    assert (actions != labels).any()
    kept = agent.memory.trajectories()
    (column,) = (each for path, each in kept.items() if path.endswith(TEACHER_ACTION))
    np.testing.assert_array_equal(column, labels.T)


def test_teacher_sees_what_input_filter_hides_from_student():
    hidden = rl.ObservationReductionBySubPartsNameFilter(
        names=("place", "speed", "angle", "turn"), sub_parts=("place", "angle")
    )
    agent = student(input_filter=rl.InputFilter(observation={"observation": (hidden,)}))
    assert agent.observation_space["observation"].shape == (2,)
    seen = observations(30)
    _, labels = acted(agent, agent.new_rows(2, 0), seen)
    np.testing.assert_array_equal(labels, [load(CART_POLE).act(each) for each in seen[:-1]])


def test_student_may_see_keys_that_teacher_does_not():
    agent = student(more={"noise": spaces.Box(-1, 1, (1,), np.float32)})
    plain = observations(10)
    seen = [{**each, "noise": np.ones((2, 1), np.float32)} for each in plain]
    _, labels = acted(agent, agent.new_rows(2, 0), seen)
    np.testing.assert_array_equal(labels, [load(CART_POLE).act(each) for each in plain[:-1]])


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_share_of_teachers_decisions_is_beta(beta):
    agent = student(beta=ConstantSchedule(value=beta))
    alone = student(beta=ConstantSchedule(value=0.0))
    seen = observations(501)
    actions, labels = acted(agent, agent.new_rows(2, 0), seen)
    own, _ = acted(alone, alone.new_rows(2, 0), seen)
    differs = own != labels
    assert differs.sum() > 200
    share = (actions == labels)[differs].mean()
    assert share == pytest.approx(beta, abs=0 if beta in {0.0, 1.0} else 0.09)  # 3 sd
    np.testing.assert_array_equal(actions[~differs], own[~differs])


def test_greedy_decisions_are_the_students():
    agent = student(beta=ConstantSchedule(value=1.0))
    seen = observations(40)
    actions, labels = acted(agent, agent.new_rows(2, 0), seen, greedy=True)
    greedy = [agent.policy_actions(each) for each in seen[:-1]]
    np.testing.assert_array_equal(actions, greedy)
    assert (actions != labels).any()


def test_probabilities_of_actions_are_not_known_where_a_teacher_decides_too():
    agent = student()
    seen = observations(1)[0]
    assert policy_of(agent, seen, TRAIN) is None
    sampling = Clock(phase=Phase.TEST, samples=True)
    assert policy_of(agent, seen, sampling).has_probabilities


def test_evaluations_need_no_teacher():
    agent = student("nowhere", beta=ConstantSchedule(value=1.0))
    seen = observations(1)[0]
    agent.act(agent.new_rows(2, 0), request(seen, greedy=True), Clock(phase=Phase.TEST))
    with pytest.raises(ConfigurationError, match=r"the teacher nowhere cannot be loaded: .*fork"):
        agent.act(agent.new_rows(2, 0), request(seen), TRAIN)


def test_loss_is_of_teachers_actions():
    agent = student()
    acted(agent, agent.new_rows(2, 0), observations(60))
    batch = agent.memory.sample(16)
    label = batch.extras[TEACHER_ACTION]
    assert (label != batch.action).any()
    loss, _ = agent.learner.loss(agent.learner.network.online, batch, {})
    with torch.no_grad():
        logits = agent.learner.network.module(batch.observation)
    expected = torch.nn.functional.cross_entropy(logits, label)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)


@pytest.mark.parametrize("run", [CART_POLE, MAZE], ids=["plain", "recurrent"])
@pytest.mark.parametrize("phase", [Phase.TRAIN, Phase.HEATUP])
def test_distributions_of_teacher_give_its_greedy_actions(run, phase):
    agent = student(run, target="distribution")
    _, labels = acted(agent, agent.new_rows(2, 0), observations(30, run), Clock(phase=phase))
    kept = agent.memory.trajectories()
    (logits,) = (each for path, each in kept.items() if path.endswith(TEACHER_PARAMETERS))
    np.testing.assert_array_equal(logits.argmax(axis=-1), labels.T)


def test_loss_of_distributions_is_the_divergence_of_the_student_from_the_teacher():
    agent = student(target="distribution")
    acted(agent, agent.new_rows(2, 0), observations(60))
    batch = agent.memory.sample(16)
    loss, _ = agent.learner.loss(agent.learner.network.online, batch, {})
    teacher = batch.extras[TEACHER_PARAMETERS].double().log_softmax(dim=1)
    with torch.no_grad():
        own = agent.learner.network.module(batch.observation).double().log_softmax(dim=1)
    expected = (teacher.exp() * (teacher - own)).sum(dim=1).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert expected > 0.01


def test_distribution_of_normals_is_cloned_whole():
    """A student with the teacher's means and deviations has no divergence, others have."""
    hopper = load("trained:Mujoco_PPO/hopper")
    params = rl.DAggerAgentParameters(
        teacher=rl.TeacherParameters(run="trained:Mujoco_PPO/hopper"),
        target="distribution",
        policy=rl.PolicyParameters(torso=SMALL, squash=False, log_std_bounds=(-9.0, 2.0)),
        scale_actions=False,
        learning=rl.LearningParameters(batch=4, learning_starts=4),
        memory=rl.ReplayMemoryParameters(capacity=100),
        update_mode="eager",
    )
    agent = params.build(context(hopper.spaces.observation.spaces, hopper.spaces.action))
    rng = np.random.default_rng(0)
    seen = [{"observation": rng.normal(size=(2, 11))} for _ in range(4)]
    acted(agent, agent.new_rows(2, 0), seen)
    batch = agent.memory.sample(4)
    parameters = batch.extras[TEACHER_PARAMETERS]
    means = parameters[:, :3].numpy()
    np.testing.assert_allclose(np.clip(means, -1, 1), batch.extras[TEACHER_ACTION], atol=1e-6)
    divergence = agent.learner.distribution.kl(parameters, parameters)
    np.testing.assert_allclose(divergence, 0, atol=1e-6)
    loss, _ = agent.learner.loss(agent.learner.network.online, batch, {})
    assert loss > 0.1


def test_saved_rows_continue_with_the_hidden_state_of_the_teacher():
    agent, again = student(MAZE), student(MAZE)
    rows, seen = agent.new_rows(2, 0), observations(41, MAZE)
    acted(agent, rows, seen[:21])
    other = again.new_rows(2, 5)
    other.load_state_dict(rows.state_dict())
    again.load_state_dict(agent.state_dict())
    assert_same_state(other.state_dict(), rows.state_dict())
    found = [acted(*each, seen[20:], is_first=False) for each in ((agent, rows), (again, other))]
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
    _, forgetful = acted(again, again.new_rows(2, 0), seen[20:])
    assert (forgetful != found[0][1]).any()


def test_shipped_teacher_is_recorded_by_name_and_checksum():
    recorded = rl.TeacherParameters(run=CART_POLE).recorded()
    assert recorded.taken.checkpoint == CART_POLE  # the same on every machine
    assert recorded.taken.sha256 == TakenCheckpoint.of(CART_POLE).sha256
    assert recorded.recorded() == recorded
    changed = TakenCheckpoint(run=CART_POLE, checkpoint=CART_POLE, sha256="0" * 64)
    with pytest.raises(ConfigurationError, match="not the one with which the run began"):
        taught(student(teacher=rl.TeacherParameters(run=CART_POLE, taken=changed)))


def test_teacher_of_a_run_that_was_changed_is_refused(tmp_path):
    run = tmp_path / "run"
    shutil.copytree(load(CART_POLE).run, run)
    recorded = rl.TeacherParameters(run=str(run)).recorded()
    taught(student(teacher=recorded))
    about = Path(recorded.taken.checkpoint) / "checkpoint.json"
    about.write_text(about.read_text() + " ")
    with pytest.raises(ConfigurationError, match="has been changed since"):
        taught(student(teacher=recorded))
    assert rl.TeacherParameters(run=CART_POLE, taken=recorded.taken).recorded().taken.run == (
        CART_POLE
    )


REFUSED = {
    "several levels": ("trained:PointMaze_HIRO/point_maze_u", {}, ConfigurationError, "2 levels"),
    "observations": (
        "trained:Mujoco_PPO/hopper",
        {},
        SpaceError,
        "observes 'observation' in Box.*let the level show it",
    ),
    "actions": (
        CART_POLE,
        {"action": spaces.Discrete(3)},
        SpaceError,
        r"acts in Discrete\(2\), and this level in Discrete\(3\)",
    ),
    "no distribution": (
        "trained:Pendulum_SAC",
        {"target": "distribution", "shown": "trained:Pendulum_SAC", "scale_actions": False},
        SpaceError,
        "has no distribution of PPO's kind; use target='action'",
    ),
    "another unit": (
        "trained:Mujoco_PPO/hopper",
        {
            "target": "distribution",
            "shown": "trained:Mujoco_PPO/hopper",
            "output_filter": rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-2.0, high=2.0),)),
            "scale_actions": False,
        },
        SpaceError,
        "does not count actions as the student does",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_teacher_that_does_not_fit_is_refused(case):
    run, changes, kind, message = REFUSED[case]
    with pytest.raises(kind, match=message):
        taught(student(run, **changes), changes.get("shown", CART_POLE))


def test_loss_beside_a_distribution_is_refused():
    with pytest.raises(ParameterError, match="target is 'distribution', which has a loss"):
        rl.DAggerAgentParameters(
            teacher=rl.TeacherParameters(run=CART_POLE), target="distribution", loss="squared"
        )


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("target", ["action", "distribution"])
def test_student_learns_to_balance_from_its_teacher(target):
    agent = rl.DAggerAgentParameters(
        teacher=rl.TeacherParameters(run=CART_POLE),
        target=target,
        policy=rl.PolicyParameters(torso=SMALL),
        learning=rl.LearningParameters(batch=64, learning_starts=200),
        memory=rl.ReplayMemoryParameters(capacity=4_000),
        optimizer=rl.AdamParameters(learning_rate=3e-3),
        update_mode="eager",
    )
    pole = rl.GymnasiumParameters(level="CartPole-v1")
    params = flat(
        agent,
        pole,
        num_envs=4,
        training=2_000,
        evaluation_interval=2_000,
        evaluation_episodes=5,
    )
    manager = rl.BasicRLGraphManager(params)
    with manager:
        found = [record for record in manager.improve() if record.kind == "evaluation"]
    assert found[-1].scalars["evaluation/reward_mean"] > 400  # of 500
