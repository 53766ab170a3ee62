"""Short runs of every shipped preset give the figures that were recorded.

`make golden` runs them all. Of `make test` each preset has either its golden run or its fixture.
"""

import json

import numpy as np
import pytest
from golden_runs import (
    CANCELLING,
    DIVERGENCE,
    EVERY_RUN,
    EXPLAINED,
    FLOAT32,
    RECORDED,
    RUNS,
    condition,
    differences,
    evaluated_as,
    figures,
    is_installed,
    noted_conditions,
    with_conditions,
)

from coach_rl.configuration.presets import shipped_presets
from tests.samples import drawn

pytestmark = pytest.mark.golden


def test_every_shipped_preset_has_a_golden_run():
    assert set(shipped_presets()) <= {run.preset for run in RUNS.values()}
    assert set(json.loads(RECORDED.read_text())) == set(EVERY_RUN)


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("name", drawn(RUNS, one_of=2))
def test_figures_are_those_recorded(name, tmp_path):
    if not is_installed(RUNS[name]):
        pytest.skip(f"{RUNS[name].package} is not installed")
    recorded = recorded_figures()[name]
    with evaluated_as(recorded):
        found = figures(RUNS[name], tmp_path)
    assert any(each["kind"] == "train" for each in recorded["log"])
    moved = differences(found, recorded, RUNS[name].tolerance)
    assert not moved, (
        f"{len(moved)} figures moved, e.g. {moved[:3]}; if that is meant, record the run again: "
        f"python tests/golden/golden_runs.py '{name}', and say why in CHANGELOG.md"
    )


def recorded_figures():
    return json.loads(RECORDED.read_text())


@pytest.mark.parametrize("name", [name for name in RUNS if name.startswith("two levels")])
def test_two_levels_both_learn_and_sub_episodes_end_before_the_episode(name):
    log = recorded_figures()[name]["log"]
    losses = {
        (each["level"], figure)
        for each in log
        for figure, value in each["scalars"].items()
        if figure.endswith("_loss") and value != 0
    }
    assert {level for level, _ in losses} == {"top", "low"}
    ends = [each["scalars"] for each in log if (each["kind"], each["level"]) == ("level", "low")]
    assert all(each["level/horizon_share"] > 0 for each in ends if "level/horizon_share" in each)
    if "TD3" in name:
        assert all(0 < each["level/goal_share"] < 1 for each in ends if "level/goal_share" in each)


def changed(name, value, tolerance):
    """A figure that is wrong by two hundred times a run's tolerance."""
    if name == EXPLAINED:
        return 1 - (1 - value) * (1 + 200 * tolerance)
    besides = 10 * max(CANCELLING.get(name, 0), 2 * FLOAT32 if name == DIVERGENCE else 0)
    return value + 200 * tolerance * abs(value) + besides + 1e-9


@pytest.mark.parametrize("name", RUNS)
def test_differences_any_changed_figure_is_noticed(name):
    recorded, tolerance = recorded_figures()[name], RUNS[name].tolerance
    assert not differences(recorded, recorded, tolerance)
    for record in recorded["log"]:
        run = {"log": [record], "networks": {}}
        for figure, value in record["scalars"].items():
            wrong = record["scalars"] | {figure: changed(figure, value, tolerance)}
            moved = {"log": [record | {"scalars": wrong}], "networks": {}}
            (said,) = differences(moved, run, tolerance)
            assert said.startswith(f"/log/0/scalars/{figure}: ")
    for network, (mean, size) in recorded["networks"].items():
        run, off = {"log": [], "networks": {network: [mean, size]}}, 200 * tolerance
        for wrong in [mean + off * size, size], [mean, size * (1 + off)]:
            (said,) = differences({"log": [], "networks": {network: wrong}}, run, tolerance)
            assert network in said


@pytest.mark.parametrize(
    ("name", "number", "figure", "wrong"),
    [
        ("CartPole_PPO", 0, "train/value_loss", lambda value: value * 1.0001),
        ("CartPole_PPO", 0, "train/learning_rate", lambda value: value * 1.0001),
        ("CartPole_PPO", 0, "train/policy_loss", lambda value: value + 2e-6),
        ("CartPole_PPO", 0, "train/approx_kl", lambda value: value * 1.01),
        ("ConnectFour_PPO", 0, "train/clip_fraction", lambda value: value + 1 / 256),
        ("CartPole_PPO", 0, "train/explained_variance", lambda value: value + 1e-4),
        ("Workshop_PPO_Selector", 4, "train/explained_variance", lambda value: value * 1.01),
        ("PointMaze_LESSON", 0, "train/q_value", lambda value: value * 1.01),
    ],
)
def test_differences_wrong_figure_of_each_kind_is_noticed(name, number, figure, wrong):
    recorded, moved = (recorded_figures()[name] for _ in range(2))
    scalars = moved["log"][number]["scalars"]
    scalars[figure] = wrong(scalars[figure])
    assert len(differences(moved, recorded, EVERY_RUN[name].tolerance)) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda run: run["log"].pop(), "entries instead of"),
        (lambda run: run["log"][0].update(environment_steps=1), "environment_steps: 1 instead"),
        (lambda run: run["log"][0]["scalars"].pop("train/clip"), "other names: ['train/clip']"),
        (lambda run: run["networks"].clear(), "other names"),
    ],
)
def test_differences_missing_or_other_entries_are_noticed(change, said):
    recorded, moved = (recorded_figures()["CartPole_PPO"] for _ in range(2))
    change(moved)
    assert said in differences(moved, recorded, 1e-5)[0]


@pytest.mark.parametrize(
    ("mean", "spread", "noise"), [(0.0, 1.0, 0.3), (5.0, 1.0, 4.0), (0.02, 7e-4, 0.015)]
)
def test_condition_bounds_what_rounding_does_to_an_explained_variance(mean, spread, noise):
    rng = np.random.default_rng(0)
    target = mean + spread * rng.normal(size=50)
    prediction = target + noise * rng.normal(size=50)

    def explained(prediction, target):
        return 1 - (target - prediction).var() / target.var()

    share, exact, bound = 1e-7, explained(prediction, target), condition(prediction, target)
    found = [
        abs(explained(*(each * (1 + share * rng.choice([-1, 1], 50)) for each in both)) - exact)
        for both in [(prediction, target)] * 200
    ]
    assert max(found) <= 1.001 * bound * share
    step = 1e-6 * spread
    slopes = (
        [
            (explained(prediction + step * one, target) - explained(prediction, target)) / step
            for one in np.eye(50)
        ],
        [
            (explained(prediction, target + step * one) - explained(prediction, target)) / step
            for one in np.eye(50)
        ],
    )
    worst = sum(
        np.abs(slope * values).sum()
        for slope, values in zip(np.array(slopes), (prediction, target), strict=True)
    )
    assert bound == pytest.approx(worst, rel=1e-3)


def test_every_recorded_explained_variance_has_its_condition():
    for run in recorded_figures().values():
        for record in run["log"]:
            assert ("condition" in record) == (EXPLAINED in record["scalars"])


def test_noted_conditions_are_those_of_the_run(tmp_path):
    recorded = recorded_figures()["CartPole_PPO"]
    with evaluated_as(recorded), noted_conditions() as noted:
        found = with_conditions(figures(RUNS["CartPole_PPO"], tmp_path), noted)
    for one, other in zip(found["log"], recorded["log"], strict=True):
        assert one.get("condition", 0) == pytest.approx(other.get("condition", 0), rel=0.01)
