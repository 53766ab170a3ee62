"""Problems of an experiment before anything is built."""

from dataclasses import replace
from pathlib import Path

import pytest

from coach_rl.core.errors import ProblemsError
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers import BasicRLGraphManager, CheckpointParameters
from coach_rl.sessions.problems import require_startable
from coach_rl.sessions.settings import RunSettings
from presets.CartPole_PPO import Panel, graph_manager


def test_require_startable_several_mistakes_all_reported() -> None:
    experiment = graph_manager(Panel()).parameters
    manager = BasicRLGraphManager(
        replace(experiment, agent=replace(experiment.agent, update_mode="captured"))
    )
    settings = RunSettings(checkpoints=CheckpointParameters(best_of="no_such_metric"))
    with pytest.raises(ProblemsError) as caught:
        require_startable(manager, Runtime(device="cpu"), settings, name="a/b")
    name, mode, metric = caught.value.problems
    assert "the experiment name 'a/b' cannot" in name
    assert "update_mode='captured' records a CUDA graph" in mode
    assert "no_such_metric" in metric
    assert not Path("experiments", "a").exists()
