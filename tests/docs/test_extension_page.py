"""The extension of docs/how_to_extension.md, installed as a package of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import blocks
from tests.small_runs import manifest_of

PAGE = Path(__file__).parents[2] / "docs/how_to_extension.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    package = tmp_path_factory.mktemp("package")
    (package / "calm").mkdir()
    (package / "calm/__init__.py").write_text("")
    text = PAGE.read_text()
    for block in [*blocks(text, "toml"), *blocks(text, "python")]:
        if block.file:
            (package / block.file).write_text(block.text)
    site = tmp_path_factory.mktemp("site")
    options = ["--no-build-isolation", "--no-deps", "--no-index", "-q", "--target", site]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, package], check=True)
    return site


COMMANDS = """
import json, site, sys
site.addsitedir(sys.argv[1])
from coach_rl.cli.main import main
for words in json.loads(sys.argv[2]):
    print(sys.argv[3])
    try:
        status = main(words)
    except SystemExit as end:  # of --help
        status = end.code
    if status:
        sys.exit(status)
"""
BETWEEN = "the next command"


def coach(site: Path, folder: Path, *commands: list[str]) -> list[str]:
    """What each command prints, in a process that has the package installed."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, str(site), json.dumps(commands), BETWEEN],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(BETWEEN + "\n")[1:]


def test_extension_of_the_page_works_installed(site: Path, tmp_path: Path) -> None:
    changes = "sinks=(ScoreFile(),); schedule.evaluation_interval=2_500"
    few = ["--steps", "5_000", "-ntb", "--plain", "-cp", changes, "--calm", "0.01"]
    listed, described, _ = coach(
        site, tmp_path, ["-l"], ["train", "--help"], ["train", "CartPole_PPO", *few]
    )
    assert "PPO with small outputs (calm 1.0)" in " ".join(listed.split())
    assert "--calm X" in described
    (run,) = (tmp_path / "experiments/CartPole_PPO").iterdir()
    agent = manifest_of(run)["parameters"]["agent"]
    assert agent["$type"] == "calm.agent:CalmPPOAgentParameters"
    assert agent["penalty"] == 0.01
    (scores,) = coach(site, tmp_path, ["scores", str(run)])
    assert len(scores.splitlines()) == 2
    assert "train/square" in (run / "log.jsonl").read_text()


VARIANT = """
import site, sys
site.addsitedir(sys.argv[1])
import numpy as np
from gymnasium import spaces
import coach_rl as rl
from coach_rl.core.agents import AgentContext
from coach_rl.core.spaces import EnvironmentSpaces
from calm.dial import Dial
seen = spaces.Dict({"x": spaces.Box(-1, 1, (2,), np.float32)})
for space in (Dial(5), spaces.Discrete(5)):
    context = AgentContext(spaces=EnvironmentSpaces(observation=seen, action=space), num_envs=1)
    print(type(rl.DQNAgentParameters().build(context).learner).__name__)
"""


def test_variant_of_the_page_learns_in_its_kind_of_space_alone(site: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", VARIANT, str(site)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["DialLearner", "DQNLearner"]


def test_extension_of_the_page_is_short() -> None:
    text = PAGE.read_text()
    files = [each for each in [*blocks(text, "toml"), *blocks(text, "python")] if each.file]
    code = [line for each in files for line in each.text.splitlines() if line.strip()]
    assert len(code) <= 95
