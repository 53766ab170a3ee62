"""Recorded figures hold under the arithmetic of other processors; `make arithmetic` tries more."""

import os
import subprocess
import sys

import arithmetic
import pytest
from golden_runs import RUNS, is_installed

ROOT = arithmetic.HERE.parent.parent
PARTS = 4
"""Processes that share the golden runs."""
FEW = ("CartPole_PPO", "Pendulum_SAC", "Workshop_PPO_Selector")
"""Runs of each kind of agent; the figures of the last depend most on rounding."""


def require_effect(kind):
    """Skip where all of a kind's variables are without effect; return what they changed."""
    if given := [name for name in arithmetic.VARIABLES if name in os.environ]:
        pytest.skip(f"these tests run under {', '.join(given)} already")
    wanted, missing = arithmetic.kinds()[kind].changes, arithmetic.without_effect(kind)
    if len(missing) == len(wanted):
        pytest.skip(f"{arithmetic.probed(kind)[0]}: the same bits as without variables")
    return [part for part in wanted if part not in missing]


@pytest.mark.parametrize(
    "kind",
    [
        name if name == "oldest" else pytest.param(name, marks=pytest.mark.slow)
        for name in arithmetic.kinds()
        if name != "native"
    ],
)
def test_arithmetic_variables_change_bits(kind):
    changed = require_effect(kind)
    print(f"{kind}: {arithmetic.probed(kind)[0]}; other bits in {', '.join(changed)}")
    assert changed
    plain, found = (arithmetic.probed(name)[1] for name in ("native", kind))
    assert any(found[part] != plain[part] for part in plain)


@pytest.mark.timeout(0)  # each run has its own limit
def test_few_golden_runs_under_the_oldest_arithmetic_give_recorded_figures():
    require_recorded([name for name in FEW if name in RUNS])


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("part", range(PARTS))
def test_golden_runs_under_the_oldest_arithmetic_give_recorded_figures(part):
    require_recorded([name for name in RUNS if is_installed(RUNS[name])][part::PARTS])


def require_recorded(names):
    """Repeat golden runs in a process with other arithmetic."""
    require_effect("oldest")
    test = "tests/golden/test_golden_runs.py::test_figures_are_those_recorded"
    made = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0"]
        + [f"{test}[{name}]" for name in names],
        env=arithmetic.environment("oldest"),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout[-4_000:] + made.stderr[-1_000:]
    assert f"{len(names)} passed" in made.stdout
