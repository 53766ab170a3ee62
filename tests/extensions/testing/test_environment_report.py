"""`examine` and `coach check` say what an environment promises and doesn't keep."""

import random
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.cli.main import main
from coach_rl.environments import make
from coach_rl.extensions.testing import Finding, examine
from coach_rl.extensions.testing import environment_contract as report


class Counter(gymnasium.Env[Any, Any]):
    """Shows the number of the step, and ends after 30."""

    observation_space: spaces.Space[Any] = spaces.Box(0.0, 100.0, (1,), np.float32)
    action_space: spaces.Space[Any] = spaces.Discrete(2)
    length = 30

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._step = 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self._step += 1
        return self._seen(), 0.0, self._step == self.length, False, {}

    def _seen(self) -> Any:
        return np.array([self._step], np.float32)


class Unseeded(Counter):
    def _seen(self) -> Any:
        return np.array([random.random()], np.float32)


class Outside(Counter):
    observation_space = spaces.Box(0.0, 9.0, (1,), np.float32)


class Shared(Counter):
    """Copies draw from one stream, which each of them seeds."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            random.seed(seed)
        return super().reset(seed=seed)

    def _seen(self) -> Any:
        return np.array([random.random()], np.float32)


class Endless(Counter):
    observation_space = spaces.Box(0.0, np.inf, (1,), np.float32)
    length = 10**9


class Unbounded(Counter):
    action_space = spaces.Box(-np.inf, np.inf, (2,), np.float32)


class Widest(Counter):
    widest = float(np.finfo(np.float32).max)
    action_space = spaces.Dict(
        {"arm": spaces.Box(-widest, widest, (1,), np.float32), "leg": spaces.Box(0, 100, (1,))}
    )


class Raising(Counter):
    def step(self, action: Any) -> Any:
        raise ValueError("the arm broke")


def found(level: str, **settings: Any) -> dict[str, Finding]:
    def build(num_envs: int) -> Any:
        return make(f"{__name__}:{level}", num_envs=num_envs)

    return {finding.subject: finding for finding in examine(build, **settings)}


def failed(findings: dict[str, Finding]) -> list[str]:
    return [subject for subject, finding in findings.items() if finding.verdict == "failed"]


def test_a_good_environment_passes_everything() -> None:
    findings = found("Counter")
    assert {finding.verdict for finding in findings.values()} == {"passed"}
    assert findings["episodes end"].text == "the first after 30 random steps"
    assert "steps per second" in findings["speed"].text
    assert "state round trip" in findings


def test_unseeded_randomness_is_one_failure_with_its_remedy() -> None:
    findings = found("Unseeded", obstacle_to_restoring="it is not reproducible")
    assert failed(findings) == ["same seed same numbers"]
    assert "from self.np_random" in findings["same seed same numbers"].text
    assert findings["can be saved"].verdict == "warned"
    assert "state round trip" not in findings


@pytest.mark.parametrize(
    ("level", "subject", "text"),
    [
        ("Outside", "answers have the promised form", "lies outside Box"),
        ("Shared", "rows live alone as among others", "environments share something"),
        ("Raising", "plays", "ValueError: the arm broke"),
    ],
)
def test_a_broken_promise_says_what_was_seen(level: str, subject: str, text: str) -> None:
    findings = found(level)
    assert subject in failed(findings)
    assert text in findings[subject].text


def test_episodes_without_end_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "EPISODE_STEPS", 200)
    findings = found("Endless")
    assert failed(findings) == []
    assert findings["episodes end"].verdict == "warned"
    assert "none has in 200 random steps" in findings["episodes end"].text
    assert "end bits agree" not in findings, "nothing is said of ends that are not seen"


@pytest.mark.parametrize(("level", "named"), [("Unbounded", "the action in"), ("Widest", "'arm'")])
def test_actions_without_a_finite_width_are_a_warning(level: str, named: str) -> None:
    findings = found(level)
    assert failed(findings) == []
    assert findings["bounds of actions"].verdict == "warned"
    assert named in findings["bounds of actions"].text
    assert "LinearBoxToBoxMap" in findings["bounds of actions"].text


def test_check_prints_a_line_for_each_promise(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", f"{__name__}:Counter"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"checking {__name__}:Counter"
    assert lines[-1].endswith("passed, 0 warned, 0 failed")
    assert main(["check", f"{__name__}:Outside"]) == 1
    assert "failed   answers have the promised form: " in capsys.readouterr().out


def test_check_says_that_a_vector_environment_cannot_be_saved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changes = 'environment=GymnasiumParameters(level="CartPole-v1", vectorization="vector")'
    assert main(["check", "-p", "CartPole_PPO", "-cp", changes]) == 0
    out = capsys.readouterr().out
    assert "warned   can be saved: 'CartPole-v1' is a ready vector environment" in out
    assert "answers one step later than the others" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check"], "`coach check` needs an environment: coach check ENVIRONMENT"),
        (["check", "Cartpole-v1"], "did you mean 'CartPole-v1'"),
        (["check", "CartPole-v1", "--steps", "5"], "`coach check` ignores --steps"),
        (["check", "-p", "CartPol_PPO"], "unknown preset 'CartPol_PPO'"),
    ],
)
def test_check_refuses_what_it_cannot_try(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err
