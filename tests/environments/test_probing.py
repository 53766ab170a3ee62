"""The probe of whether open episodes can be restored saves in the middle of one."""

import pytest

from coach_rl.environments.gymnasium import GymnasiumEnvironment, GymnasiumParameters
from coach_rl.environments.gymnasium.parameters import PROBE_STEPS


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 12, 25, PROBE_STEPS, 100, 300])
def test_probe_saves_within_an_episode(monkeypatch, length):
    replayed = []
    load = GymnasiumEnvironment.load_state_dict

    def noted(environment, state):
        replayed.append(state["rows"]["0"]["steps"])
        load(environment, state)

    monkeypatch.setattr(GymnasiumEnvironment, "load_state_dict", noted)
    parameters = GymnasiumParameters(
        level="little_environments:Endless", max_episode_steps=length, kwargs={"carries": False}
    )
    assert parameters.obstacle_to_restoring() is None
    (steps,) = replayed
    assert 0 < steps < length or steps == 0 == length - 1


def test_probe_number_of_steps_is_fixed(monkeypatch):
    counts = []
    for _ in range(2):
        steps = []
        monkeypatch.setattr(
            GymnasiumEnvironment,
            "recv",
            lambda self, recv=GymnasiumEnvironment.recv, steps=steps: (steps.append(0), recv(self))[
                1
            ],
        )
        GymnasiumParameters(level="little_environments:Endless").obstacle_to_restoring()
        counts.append(len(steps))
        monkeypatch.undo()
    assert counts == [4 * PROBE_STEPS] * 2


@pytest.mark.parametrize("length", [1, 2, 25, 60, 300])
def test_probe_finds_state_across_episodes(length):
    parameters = GymnasiumParameters(
        level="little_environments:Endless", max_episode_steps=length, kwargs={"carries": True}
    )
    assert "not reproducible" in parameters.obstacle_to_restoring()


def test_probe_of_slow_environment_finds_nothing(monkeypatch):
    monkeypatch.setattr("coach_rl.environments.gymnasium.parameters.PROBE_SECONDS", 0.0)
    parameters = GymnasiumParameters(
        level="little_environments:Endless", max_episode_steps=25, kwargs={"carries": True}
    )
    assert parameters.obstacle_to_restoring() is None
