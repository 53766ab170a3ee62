"""`--profile` shows a profile at the end."""

import re

import pytest

from tests.cli.commands import coach, only_run
from tests.cli.conftest import somewhere_else

__all__ = ["somewhere_else"]


def test_profile_is_shown_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert coach("-p", "CartPole_PPO", "--steps", 512, "-ntb", "-c", "--profile", "--plain") == 0
    out = capsys.readouterr().out
    table = out[out.index("Profile") : out.index("Evaluation")]
    for name in ("tick", "act", "environment", "observe", "train", "evaluation", "logging"):
        assert re.search(rf"│ +{name} +│", table)
    run = only_run(name="CartPole_PPO")
    assert f"profile:    experiments/CartPole_PPO/{run.name}/profile.json" in out
    assert (run / "trace.json").exists()
