"""Loaded and exported policies repeat the decisions of their run's own final evaluation."""

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.runtime import Runtime
from coach_rl.sessions.session import run_experiment
from tests.extensions.exporting.composed_world import RECORDED, leaves
from tests.extensions.exporting.random_compositions import KINDS, composition
from tests.extensions.exporting.test_export import exported

pytest.importorskip("onnx", reason="needs the extra `export`")
pytest.importorskip("onnxruntime", reason="needs the extra `export`")
pytestmark = pytest.mark.filterwarnings("ignore:.*would learn nothing")

NUMBERS = range(30)
"""Of compositions of each kind, of which one is drawn."""


def evaluated(made, folder):
    """A run's folder, and the episodes of its final evaluation."""
    RECORDED.clear()
    run = run_experiment(
        made.graph_manager(),
        Runtime(seed=1, device="cpu"),
        name="run",
        root=folder,
        settings=rl.RunSettings(tensorboard=False, final_episodes=rl.EnvironmentEpisodes(3)),
    )
    episodes = RECORDED.copy()
    assert len(episodes) >= 3
    return run.folder.path, episodes


def assert_near(found, wanted):
    """Actions have one form, and floats differ by at most 1e-5, or by their last digit."""
    assert type(found) is type(wanted) or not isinstance(wanted, dict | tuple)
    pairs = zip(leaves(found), leaves(wanted), strict=True)
    for one, other in pairs:
        digits = np.finfo(other.dtype).eps if other.dtype.kind == "f" else 0.0
        np.testing.assert_allclose(one, other, rtol=0, atol=digits and max(1e-5, digits))


def repeat_alone(policy, space, episodes, members):
    """One row plays each episode."""
    for episode in episodes:
        policy.reset()
        for observation, ends, action in episode:
            found = policy.act(observation, over={name: ends[name] for name in members})
            assert space.contains(found), found
            assert_near(found, action)


def repeat_together(policy, episodes, members):
    """All rows play their own episodes, out of phase, and again."""
    policy.reset()
    step = np.zeros(len(episodes), np.int64)
    for _ in range(20):
        here = [episode[at] for episode, at in zip(episodes, step, strict=True)]
        seen = {key: np.stack([each[0][key] for each in here]) for key in here[0][0]}
        over = {name: np.array([each[1][name] for each in here]) for name in members}
        found = policy.act(seen, over=over)
        for row, (*_, action) in enumerate(here):
            assert_near(row_of(found, row), action)
        step += 1
        ended = step == [len(episode) for episode in episodes]
        step[ended] = 0
        policy.reset(ended)


def row_of(actions, row):
    if isinstance(actions, dict):
        return {key: row_of(part, row) for key, part in actions.items()}
    if isinstance(actions, tuple):
        return tuple(row_of(part, row) for part in actions)
    return actions[row]


@pytest.mark.drawn(one_of=30, each="kind")
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("kind", KINDS)
def test_loaded_and_exported_policies_repeat_the_final_evaluation(kind, number, tmp_path):
    made = composition(len(KINDS) * number + KINDS.index(kind))
    run, episodes = evaluated(made, tmp_path)
    space = rl.load(run).spaces.action
    for policy in (rl.load(run), exported(run, tmp_path / "policy.zip")):
        repeat_alone(policy, space, episodes, made.members)
        repeat_together(policy, episodes, made.members)
        policy.reset()
        sampled = policy.act(episodes[0][0][0], greedy=False)
        assert space.contains(sampled), sampled


def test_some_compositions_have_functions_of_users():
    assert any(composition(seed).is_function for seed in range(len(KINDS) * len(NUMBERS)))
