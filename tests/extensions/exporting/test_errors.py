"""Policies without their run that are refused."""

from pathlib import Path

import pytest

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.configuration.trust import remember_own_code
from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.exporting.policy_folder import write_policy
from coach_rl.sessions.session import fork_experiment
from tests.refusals import check_refused
from tests.sessions.test_errors import QUIET, TWO, contents, resume, walk
from tests.small_runs import FAKE


def policy(root: Path) -> Path:
    """The policy of a walk, without the rest of its run."""
    write_policy(walk(root), root / "walks" / "policy", episodes=TWO)
    return root / "walks" / "policy"


def test_policy_without_its_run_is_not_resumed(tmp_path: Path) -> None:
    run = policy(tmp_path)
    before = contents(tmp_path)
    check_refused(
        lambda: resume(run),
        ConfigurationError,
        "has policies alone, so it cannot be resumed; ... `coach fork ",
    )
    assert contents(tmp_path) == before


def test_policy_is_not_written_over_a_run(tmp_path: Path) -> None:
    run = walk(tmp_path)
    before = contents(tmp_path)
    check_refused(
        lambda: write_policy(run, run),
        ConfigurationError,
        "exists already; delete it, or name another",
    )
    assert contents(tmp_path) == before


def test_fork_of_a_policy_without_its_run_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = load_preset(find_preset(str(FAKE))).module_name
    remember_own_code([f"{module}:WalkAgent"], None)  # a policy has no copy of its preset
    run = policy(tmp_path)
    check_refused(
        lambda: fork_experiment(
            run,
            name="fork",
            root=tmp_path / "root",
            steps=EnvironmentSteps(200),
            settings=QUIET,
        ),
        CoachWarning,
        "policies alone, so optimisers, replay memories and training episodes begin new",
    )
