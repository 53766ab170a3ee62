"""A policy without the rest of its run plays, is evaluated and is loaded as the run is."""

import json
from pathlib import Path

import numpy as np
import pytest

import coach_rl
from coach_rl.configuration.extensions import import_offers
from coach_rl.core.errors import CoachWarning
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.extensions.exporting import policy_folder
from coach_rl.extensions.exporting.policy_folder import write_policy
from coach_rl.extensions.testing import assert_same_state
from coach_rl.runs.trained import score_text
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import fork_experiment
from tests.sessions.test_loaded_levels import graph, run
from tests.small_runs import QUIET, manifest_of, state_of

TEN = EnvironmentEpisodes(10)


@pytest.fixture(scope="module")
def two_levels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run of two levels, and its policy."""
    root = tmp_path_factory.mktemp("run")
    trained = run(graph(), root).path
    write_policy(trained, root / "policy", episodes=TEN)
    return trained, root / "policy"


def test_policy_scores_as_its_run(two_levels: tuple[Path, Path]) -> None:
    given = {"episodes": TEN, "seed": 1_000, "num_envs": 10}
    whole, policy = (evaluate_run(each, **given)[0] for each in two_levels)
    assert whole.scalars == policy.scalars
    score = manifest_of(two_levels[1])["only_policy"]["score"]
    rewards = np.asarray(whole.arrays["episode/reward"])
    assert score["reward_mean"] == pytest.approx(rewards.mean())
    low, high = score["reward_interval"]
    half = 1.96 * rewards.std(ddof=1) / 10**0.5
    assert (low, high) == pytest.approx((rewards.mean() - half, rewards.mean() + half))


def test_policy_acts_as_its_run(two_levels: tuple[Path, Path]) -> None:
    whole, policy = map(coach_rl.load, two_levels)
    space = whole.spaces.observation
    space.seed(0)
    for _ in range(5):
        observation = space.sample()
        np.testing.assert_equal(whole.act(observation), policy.act(observation))


def test_policy_has_no_optimiser_and_no_name_of_the_machine(
    two_levels: tuple[Path, Path],
) -> None:
    whole, policy = map(state_of, two_levels)
    assert policy["agents"].keys() == whole["agents"].keys()
    assert "tracker" not in policy
    for name, agent in policy["agents"].items():
        assert agent.keys() < whole["agents"][name].keys()
    manifest = manifest_of(two_levels[1])
    assert "host" not in manifest["hardware"]
    assert str(two_levels[0].parent.parent) not in json.dumps(manifest)


def test_card_begins_with_metadata_and_names_score_and_command(
    two_levels: tuple[Path, Path],
) -> None:
    text, manifest = (two_levels[1] / "README.md").read_text(), manifest_of(two_levels[1])
    score = manifest["only_policy"]["score"]
    _, metadata, body = text.split("---\n", 2)
    assert "library_name: coach_rl\n" in metadata
    assert f"value: {score['reward_mean']:.2f} +/- {score['reward_std']:.2f}\n" in metadata
    assert f"| score | {score_text(score)}, greedy, seed 1000;" in body
    assert "film.gif" not in body
    assert "{" not in body


def test_fork_of_policy_continues_counters_and_networks(
    two_levels: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.warns(coach_rl.CoachWarning, match="policies alone"):
        forked = fork_experiment(
            two_levels[1],
            name="fork",
            root=tmp_path,
            overrides={"levels.1.frozen": True},
            steps=EnvironmentSteps(140),
            settings=QUIET,
        )
    assert forked.environment_steps == 140
    assert manifest_of(forked)["ancestry"][-1]["environment_steps"] == 120
    policy, after = (state_of(each)["agents"]["low"] for each in (two_levels[1], forked))
    assert_same_state({key: after[key] for key in policy}, policy)


def test_film_without_an_extension_that_makes_it_is_left_out(
    two_levels: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_offers("exporting")
    monkeypatch.setattr(policy_folder, "FILMS", [])
    with pytest.warns(CoachWarning, match="no episode is filmed: no extension"):
        write_policy(two_levels[1], tmp_path / "policy", episodes=TEN, film=True)
    assert not (tmp_path / "policy" / "film.gif").exists()
