from pathlib import Path

import numpy as np
import pytest
from picture_environments import END

from coach_rl.core.errors import CoachWarning
from coach_rl.environments.gymnasium import shared_observations
from coach_rl.environments.gymnasium.parameters import GymnasiumParameters


def built(vectorization, num_envs=5, size=96, **options):
    return GymnasiumParameters(
        level="picture_environments:Pictures",
        kwargs={"size": size},
        vectorization=vectorization,
        **options,
    ).build(num_envs=num_envs)


def assert_same(left, right):
    np.testing.assert_array_equal(left.rows, right.rows)
    for shown, other in (
        (left.observation, right.observation),
        (left.first_observation, right.first_observation),
    ):
        assert shown.keys() == other.keys()
        for key, values in shown.items():
            assert values.dtype == other[key].dtype
            np.testing.assert_array_equal(values, other[key])
    np.testing.assert_array_equal(left.terminated, right.terminated)


@pytest.fixture
def shared(monkeypatch):
    """Files that were made for shared observations."""
    made = []

    def noted(layout, count):
        made.append(shared_observations.new_shared_file(layout, count))
        return made[-1]

    monkeypatch.setattr("coach_rl.environments.gymnasium.workers.new_shared_file", noted)
    return made


@pytest.mark.parametrize("start_method", ["forkserver", "fork"])
def test_shared_pictures_equal_those_of_one_process(start_method, shared):
    plain = built("sync")
    spread = built("subprocess", processes=2, start_method=start_method)
    assert len(shared) == 2
    assert not any(map(Path.exists, shared))  # nothing is left behind
    rng = np.random.default_rng(0)
    try:
        assert_same(plain.reset(seed=3), spread.reset(seed=3))
        kept = []
        for _ in range(30):
            rows = np.flatnonzero(rng.random(5) < 0.7)
            if rng.random() < 0.3:
                rows = rng.permutation(5)
            actions = rng.integers(2, size=len(rows))
            answers = []
            for environment in (plain, spread):
                environment.send(actions, rows)
                answers.append(environment.recv())
            assert_same(*answers)
            kept.append(answers)
        for answers in kept:  # later steps have not written into earlier answers
            assert_same(*answers)
    finally:
        plain.close()
        spread.close()


def test_small_observations_pass_through_the_pipe(shared):
    environment = built("subprocess", num_envs=2, size=8, processes=2)
    environment.reset(seed=0)
    environment.close()
    assert not shared


def test_shared_file_without_room_in_memory_is_in_the_temporary_folder(monkeypatch, tmp_path):
    environment = built("sync", num_envs=1)
    layout = environment._rows.layout
    environment.close()
    monkeypatch.setattr(shared_observations, "_FAST", tmp_path / "missing")
    monkeypatch.setattr(shared_observations.tempfile, "tempdir", str(tmp_path))
    path = shared_observations.new_shared_file(layout, 2)
    assert path.parent == tmp_path
    assert path.stat().st_size == shared_observations.bytes_of(layout, 2) >= 2 * (96 * 96 + 24)


def test_worker_that_dies_shares_again_when_restarted(shared):
    environment = built("subprocess", processes=2)
    try:
        environment.reset(seed=0)
        actions = np.zeros(5, np.int64)
        actions[0] = END
        environment.send(actions)
        with pytest.warns(CoachWarning, match="its worker process died"):
            answer = environment.recv()
        assert answer.lost.tolist() == [True, False, False, False, False]
        assert len(shared) >= 3
        before = answer.first_observation["picture"].copy()
        environment.send(np.zeros(5, np.int64))
        again = environment.recv()
        assert not any(map(Path.exists, shared))
        for row in range(5):
            assert (again.observation["picture"][row] != before[row]).mean() > 0.9
    finally:
        environment.close()
