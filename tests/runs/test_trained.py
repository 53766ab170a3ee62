"""The trained agents of the package: each loads and acts, and scores as its manifest says."""

import json
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import coach_rl
from coach_rl.configuration import trust
from coach_rl.configuration.file_writing import sha256_of
from coach_rl.configuration.presets import find_preset, shipped_presets
from coach_rl.configuration.trust import shipped_preset
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.runs.folder import find_run
from coach_rl.runs.trained import ARCHIVES, trained_policies
from coach_rl.sessions.evaluation import evaluate_run

NAMES = [each.name for each in trained_policies()]
MOST_BYTES = 5_000_000


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """A cache folder of these tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def in_archive(name: str, file: str) -> str:
    with ZipFile(ARCHIVES / f"{name}.zip") as files:
        return files.read(file).decode()


def test_archives_take_five_megabytes_at_most():
    assert NAMES
    assert sum(file.stat().st_size for file in ARCHIVES.rglob("*")) <= MOST_BYTES


@pytest.mark.parametrize("name", NAMES)
def test_trained_agent_loads_and_acts(name):
    agent = coach_rl.load(f"trained:{name}")
    observations = agent.spaces.observation
    observations.seed(0)
    actions = agent.act(observations.sample())
    assert np.isfinite(np.asarray(actions)).all()


@pytest.mark.parametrize("name", NAMES)
def test_trained_agent_needs_no_trust_and_names_no_machine(name):
    text = in_archive(name, "manifest.json")
    manifest = json.loads(text)
    assert shipped_preset(in_archive(name, "preset.py")) is not None
    assert manifest["git"]["coach_rl"]["dirty"] is False
    assert not any(folder in text for folder in ("/home", "/root", "/tmp", "/work"))


def test_presets_of_trained_agents_are_listed_by_their_checksums():
    sources = {name: in_archive(name, "preset.py") for name in NAMES}
    listed = json.loads((ARCHIVES / "presets.json").read_text())
    there = {checksum for checksum, file in listed.items() if Path(file).stem in shipped_presets()}
    assert there == {sha256_of(source) for source in sources.values()}


def test_preset_of_a_trained_agent_is_own_code_after_the_preset_has_changed(monkeypatch):
    current, then = find_preset("CartPole_PPO").path, "# the text that it had\n"
    assert shipped_preset(then) is None
    table = {sha256_of(then): current.name, sha256_of("# gone\n"): "Gone_PPO.py"}
    monkeypatch.setattr(trust, "_presets_of_trained_agents", lambda: table)
    assert shipped_preset(then) == current
    assert shipped_preset("# gone\n") is None


def test_trained_agent_is_found_in_any_case_and_by_its_step():
    folder, checkpoint = find_run(Path("trained:CartPole_PPO"))
    assert folder.path.name == "CartPole_PPO"
    assert checkpoint is not None
    step = checkpoint.name.removeprefix("step_")
    assert (folder, checkpoint) == find_run(Path(f"trained:cartpole_ppo@{step}"))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_trained_agent_scores_within_its_interval(name):
    score = json.loads(in_archive(name, "manifest.json"))["only_policy"]["score"]
    episodes = EnvironmentEpisodes(score["episodes"])
    evaluation, _ = evaluate_run(Path(f"trained:{name}"), episodes=episodes, seed=score["seed"])
    low, high = score["reward_interval"]
    assert low <= evaluation.scalars["evaluation/reward_mean"] <= high
