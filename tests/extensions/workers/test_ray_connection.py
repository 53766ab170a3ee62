"""Ray on this machine alone asks for a token that only its user can read."""

import os
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from coach_rl.extensions.workers.worker_places import join_ray, start_own_ray


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The arguments of `ray.init`; the home is empty, and no variable of Ray's is set."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_ADDRESS"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return []


def double(begun: list[dict[str, object]]) -> ModuleType:
    """Ray on a machine on which no cluster is."""

    def init(address: str, **settings: object) -> None:
        begun.append({"address": address, "mode": os.environ.get("RAY_AUTH_MODE"), **settings})
        if address == "auto":
            raise ConnectionError("no cluster")

    ray = ModuleType("ray")
    ray.init = init  # type: ignore[attr-defined]  # a double
    ray.exceptions = SimpleNamespace(RayError=OSError)  # type: ignore[attr-defined]  # as above
    return ray


@pytest.mark.parametrize("is_there", [False, True])
def test_start_own_ray_requires_a_token_of_mode_0600_and_has_no_dashboard(
    begun: list[dict[str, object]], tmp_path: Path, is_there: bool
) -> None:
    token = tmp_path / ".ray" / "auth_token"
    if is_there:
        token.parent.mkdir()
        token.write_text("own")
        token.chmod(0o644)
    start_own_ray(double(begun), num_cpus=2)
    ((settings),) = begun
    assert (settings["address"], settings["mode"]) == ("local", "token")
    assert settings["include_dashboard"] is False
    assert token.stat().st_mode & 0o777 == 0o600
    assert (token.read_text() == "own") == is_there
    assert len(token.read_text()) in (3, 64)


def test_start_own_ray_mode_of_the_user_is_kept(
    begun: list[dict[str, object]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    start_own_ray(double(begun))
    assert begun[0]["mode"] == "disabled"
    assert not (tmp_path / ".ray").exists()


def test_join_ray_without_a_cluster_starts_one_with_a_token(
    begun: list[dict[str, object]],
) -> None:
    join_ray(double(begun), None)
    joined, own = begun
    assert (joined["address"], joined["mode"]) == ("auto", None)
    assert (own["address"], own["mode"], own["include_dashboard"]) == ("local", "token", False)
