"""The extension of docs/how_to_extension.md, installed as a package of its own."""

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


def coach(site: Path, folder: Path, *words: object) -> str:
    """What a command prints, in a process that has the package installed."""
    code = f"import site; site.addsitedir({str(site)!r}); from coach_rl.cli.main import main; "
    done = subprocess.run(
        [sys.executable, "-c", f"{code}import sys; sys.exit(main())", *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_extension_of_the_page_works_installed(site: Path, tmp_path: Path) -> None:
    listed = coach(site, tmp_path, "-l")
    assert "PPO with small outputs (calm 1.0)" in " ".join(listed.split())
    assert "--calm X" in coach(site, tmp_path, "train", "--help")
    changes = "sinks=(ScoreFile(),); schedule.evaluation_interval=2_500"
    few = ["--steps", 5_000, "-ntb", "--plain"]
    coach(site, tmp_path, "train", "CartPole_PPO", *few, "-cp", changes, "--calm", 0.01)
    (run,) = (tmp_path / "experiments/CartPole_PPO").iterdir()
    agent = manifest_of(run)["parameters"]["agent"]
    assert agent["$type"] == "calm.agent:CalmPPOAgentParameters"
    assert agent["penalty"] == 0.01
    lines = coach(site, tmp_path, "scores", run).splitlines()
    assert len(lines) == 2
    assert "train/square" in (run / "log.jsonl").read_text()


def test_extension_of_the_page_is_short() -> None:
    text = PAGE.read_text()
    files = [each for each in [*blocks(text, "toml"), *blocks(text, "python")] if each.file]
    code = [line for each in files for line in each.text.splitlines() if line.strip()]
    assert len(code) <= 80
