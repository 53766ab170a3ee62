"""A hostile run's environment of several agents is not made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coach_rl.configuration.parameters_json import encode
from coach_rl.environments.pettingzoo import PettingZooParameters
from tests.configuration.test_trust import (
    Manifest,
    check_runs_nothing,
    evaluate,
    evil,
    load,
    original,
    parameters,
    resume,
)

__all__ = ["evil", "original"]


def pettingzoo(level: str) -> Callable[[Manifest], None]:
    return parameters(environment=encode(PettingZooParameters(level=level)))


HOSTILE = {
    "module": pettingzoo("evil"),
    "function": pettingzoo("evil:parallel_env"),
    "class": pettingzoo("evil.deep:Env"),
}


@pytest.mark.parametrize("use", [resume, evaluate, load])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pettingzoo_manifest_runs_nothing(
    original: Path,
    evil: Path,
    name: str,
    use: Any,
) -> None:
    check_runs_nothing(original, evil, HOSTILE[name], use)
