"""Restored tasks continue exactly, in new processes too; see `benchmarks/control_restores.py`."""

import pytest

from benchmarks import control_restores
from coach_rl.environments.dm_control import parameters
from coach_rl.environments.dm_control.tasks import BENCHMARK_TASKS
from tests.environments.walks import assert_continues, assert_restored_without_steps
from tests.extensions.dm_control.tasks_for_tests import build


@pytest.mark.parametrize("name", ["finger-turn_hard", "cartpole-swingup"])
def test_restored_tasks_continue_exactly_in_a_new_process(name):
    counts = control_restores.compared([name], restores=4, seed=3)
    assert counts == {name: (4, 4)}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(parameters.RESTORED))
def test_every_task_saved_by_its_state_continues_exactly(name):
    assert control_restores.compared([name], restores=20, seed=0) == {name: (20, 20)}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", ["reacher-easy", "manipulator-bring_ball", "fish-swim"])
def test_restored_environment_continues_exactly(name):
    one, other = (build(2, level=name) for _ in range(2))
    assert_continues(one, other, before=30, after=40, elsewhere=11)


def test_pictures_of_a_restored_environment_continue_exactly():
    one, other = (build(shows="picture", action_repeat=8, level="cartpole-swingup") for _ in "ab")
    assert_continues(one, other, before=6, after=6, elsewhere=1)
    one.close()
    other.close()


def test_restored_environment_takes_no_steps(monkeypatch):
    assert_restored_without_steps(build(), build(), monkeypatch, before=20)


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", ["finger-turn_easy", "swimmer-swimmer6", "point_mass-easy"])
def test_task_without_its_own_state_is_replayed(name, monkeypatch):
    monkeypatch.setattr(parameters, "RESTORED", frozenset())
    one, other = (build(level=name) for _ in range(2))
    assert one.replays_episodes
    assert_continues(one, other, before=25, after=25)


def test_tasks_outside_the_benchmark_are_replayed():
    assert frozenset(BENCHMARK_TASKS) >= parameters.RESTORED
    environment = build(level="stacker-stack_2")
    assert environment.replays_episodes
    assert build(level="cheetah-run").replays_episodes == ("cheetah-run" not in parameters.RESTORED)


def test_model_that_a_task_changes_is_saved():
    environment = build(level="reacher-hard")
    environment.reset(seed=5)
    (row,) = environment._rows._rows
    state = row.env.save_state()["task"]
    assert set(state["model"]) == {"geom_pos", "geom_size"}
    target = row.env._env.physics.named.model.geom_pos["target"]
    assert target.tolist() in state["model"]["geom_pos"].tolist()
