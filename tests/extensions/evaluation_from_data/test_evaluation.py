"""Runs whose policies are judged from data: recorded by others, and by themselves."""

import json
from functools import partial

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.cli.main import main
from coach_rl.extensions.data.action_probabilities import Choices
from coach_rl.extensions.data.files import open_file, write_file
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.extensions.evaluation_from_data.command import FULL_NAMES
from coach_rl.extensions.evaluation_from_data.evaluation import ESTIMATORS
from coach_rl.extensions.evaluation_from_data.fitted_q import fitted_linear, fitted_network
from coach_rl.extensions.evaluation_from_data.judged_policy import (
    JudgedData,
    cut_off,
    cut_off_episodes,
)
from tests.builders import ppo, td3
from tests.refusals import check_refused
from tests.small_runs import QUIET, STACK, experiment, folder_of, preset

SMALL = rl.TorsoParameters(middleware=(8,), activation="relu", orthogonal=False)
CARTPOLE = rl.GymnasiumParameters(level="CartPole-v1")
EPSILON = 0.2
"""Exploration of the run that acts by epsilon-greedy."""
QUICK = {"model_updates": 20}


def dqn():
    return rl.DQNAgentParameters(
        algorithm=rl.DQNAlgorithmParameters(discount=0.9),
        network=rl.QNetworkParameters(torso=SMALL),
        exploration=rl.EpsilonGreedy(epsilon=rl.ConstantSchedule(value=EPSILON)),
        learning=rl.LearningParameters(batch=8, learning_starts=8),
        memory=rl.ReplayMemoryParameters(capacity=200),
        update_mode="eager",
    )


def trained(manager, root):
    """The folder of a run on the CPU."""
    runtime = rl.Runtime(seed=0, device="cpu")
    return folder_of(rl.run_experiment(manager, runtime, name="run", root=root, settings=QUIET))


def recorded(run, file, *, episodes, sampling=True):
    rl.evaluate_run(
        run,
        episodes=episodes,
        sampling=sampling,
        num_envs=8,
        seed=7,
        parts=(rl.RecordingParameters(file=file),),
    )
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("judged")


@pytest.fixture(scope="module")
def pole(folder):
    """A run of DQN that balances a pole for some ten steps."""
    manager = experiment(dqn(), CARTPOLE, training=60)
    return trained(manager, folder / "pole")


@pytest.fixture(scope="module")
def pole_data(pole, folder):
    return recorded(pole, folder / "pole.npz", episodes=400)


@pytest.fixture(scope="module")
def mass(folder):
    """A run of PPO that pushes a point mass."""
    return trained(experiment(), folder / "mass")


@pytest.fixture(scope="module")
def mass_data(mass, folder):
    return recorded(mass, folder / "mass.npz", episodes=30)


def test_recorded_probabilities_are_those_of_epsilon_greedy(pole_data):
    chances = np.exp(open_file(str(pole_data)).recorded.columns["/action_log_prob"])
    is_greedy = chances > 0.5
    np.testing.assert_allclose(chances[is_greedy], 1 - EPSILON / 2)
    np.testing.assert_allclose(chances[~is_greedy], EPSILON / 2)
    assert is_greedy.mean() == pytest.approx(1 - EPSILON / 2, abs=0.02)


def test_greedy_recording_has_no_probabilities(pole, folder):
    file = recorded(pole, folder / "greedy.npz", episodes=3, sampling=False)
    assert "/action_log_prob" not in open_file(str(file)).recorded.columns


@pytest.mark.parametrize("which", ["pole", "mass"])
def test_policy_is_as_good_as_its_own_data(which, request):
    """All ratios are 1, so that every estimator without a model is the mean return."""
    run, data = (request.getfixturevalue(name) for name in (which, f"{which}_data"))
    found, _ = rl.evaluate_from_data(
        run, data, sampling=True, estimators=("is", "wis", "pdis", "wpdis"), **QUICK
    )
    for each in found.estimates.values():
        assert each.value == pytest.approx(found.behaviour, rel=1e-3)
        assert each.effective_samples == pytest.approx(found.episodes, rel=1e-3)
        assert each.low < found.behaviour < each.high


@pytest.mark.parametrize(("name", "episodes"), [("TMaze_PPO", 20), ("Pendulum_SAC", 4)])
def test_trained_agents_have_the_ratio_1_to_themselves(name, episodes, tmp_path):
    """A recurrent policy, whose hidden state follows the data, and a squashed normal."""
    run = f"trained:{name}"
    data = recorded(run, tmp_path / "own.npz", episodes=episodes)
    found, _ = rl.evaluate_from_data(run, data, sampling=True, estimators=("is",))
    assert found.estimates["is"].effective_samples == pytest.approx(episodes, rel=1e-3)
    assert found.estimates["is"].value == pytest.approx(found.behaviour, rel=1e-2)


def test_greedy_policy_is_judged_by_data_of_its_exploration(pole, pole_data, folder):
    """Its value is the mean of 400 episodes of its own."""
    own = open_file(str(recorded(pole, folder / "own.npz", episodes=400, sampling=False)))
    recorded_own = own.recorded
    places = np.arange(len(recorded_own)) - np.repeat(recorded_own.begins, recorded_own.lengths)
    discounted = recorded_own.columns["/rewards"] * 0.9**places
    value = np.add.reduceat(discounted, recorded_own.begins).mean()
    found, file = rl.evaluate_from_data(pole, pole_data, model_updates=300)
    assert found.discount == 0.9
    assert abs(found.behaviour - value) > 0.2
    for name in ("wis", "pdis", "wpdis", "dr", "wdr"):
        each = found.estimates[name]
        assert each.is_reliable
        assert each.low - 0.05 < value < each.high + 0.05, name
    document = json.loads(file.read_text())
    assert document["estimates"]["dr"]["value"] == found.estimates["dr"].value
    assert document["checkpoint"] == found.checkpoint
    again, _ = rl.evaluate_from_data(pole, pole_data, model_updates=300)
    assert again.estimates == found.estimates


def test_linear_model_is_fitted_to_discrete_actions_alone(pole, pole_data, mass, mass_data):
    found, _ = rl.evaluate_from_data(pole, pole_data, model="linear", estimators=("dm", "dr"))
    weighed, _ = rl.evaluate_from_data(pole, pole_data, estimators=("pdis",))
    robust = found.estimates["dr"]
    plain = weighed.estimates["pdis"]
    assert robust.high - robust.low < 0.5 * (plain.high - plain.low)
    assert plain.low < robust.value < plain.high
    check_refused(
        lambda: rl.evaluate_from_data(
            mass, mass_data, sampling=True, model="linear", estimators=("dm",)
        ),
        rl.ConfigurationError,
        "a linear model ... fit a network",
    )


def test_greedy_policy_in_a_box_is_judged_by_a_model_alone(mass, mass_data):
    found, _ = rl.evaluate_from_data(mass, mass_data, estimators=("dm",), **QUICK)
    assert np.isfinite(found.estimates["dm"].value)
    check_refused(
        lambda: rl.evaluate_from_data(mass, mass_data, **QUICK),
        rl.ConfigurationError,
        "one action of a continuum ... give --sampling, or --estimators dm",
    )


def changed(data, file, change):
    """The data with changed columns, in another file."""
    opened = open_file(str(data))
    columns = dict(opened.recorded.columns)
    change(columns)
    return write_file(Recorded(columns, opened.recorded.begins), file, opened.spaces)


def test_data_without_probabilities_are_refused(mass, mass_data, folder):
    data = changed(mass_data, folder / "bare.npz", lambda c: c.pop("/action_log_prob"))
    check_refused(
        lambda: rl.evaluate_from_data(mass, data, sampling=True),
        rl.ConfigurationError,
        "has no probabilities of its actions ... --sampling --record FILE`, ... give --estimators",
    )
    found, _ = rl.evaluate_from_data(mass, data, sampling=True, estimators=("dm",), **QUICK)
    assert found.estimates.keys() == {"dm"}


def test_choices_that_a_filter_makes_of_a_box_are_judged_by_a_model_alone(mass, mass_data, folder):
    bins = rl.OutputFilter(action=(rl.BoxDiscretization(num_bins=3),))
    run = trained(experiment(ppo(output_filter=bins)), folder / "bins")
    check_refused(
        lambda: rl.evaluate_from_data(run, mass_data, sampling=True, **QUICK),
        rl.ConfigurationError,
        "an OutputFilter makes choices of a Box ... is, wis, ... give --estimators dm",
    )
    found, _ = rl.evaluate_from_data(run, mass_data, sampling=True, estimators=("dm",), **QUICK)
    assert np.isfinite(found.estimates["dm"].value)
    data = recorded(run, folder / "bins.npz", episodes=3)
    assert "/action_log_prob" not in open_file(str(data)).recorded.columns
    check_refused(
        lambda: rl.evaluate_from_data(mass, data, sampling=True, **QUICK),
        rl.ConfigurationError,
        "has no probabilities ... by an agent whose probabilities are known",
    )


@pytest.mark.parametrize("sampling", [True, False])
def test_mixed_actions_are_judged_by_a_model_alone(sampling, tmp_path):
    run = trained(experiment(ppo(), rl.PlatformParameters()), tmp_path / "platform")
    data = recorded(run, tmp_path / "platform.npz", episodes=6)
    found, _ = rl.evaluate_from_data(run, data, sampling=sampling, estimators=("dm",), **QUICK)
    assert np.isfinite(found.estimates["dm"].value)
    for model, estimators, message in (
        ("network", (), "as mixed actions never have, and is, ... them; give --estimators dm"),
        ("linear", ("dm",), "a linear model ... fit a network"),
    ):
        check_refused(
            lambda model=model, estimators=estimators: rl.evaluate_from_data(
                run, data, sampling=sampling, estimators=estimators, model=model
            ),
            rl.ConfigurationError,
            message,
        )


def test_noise_without_known_probabilities_is_judged_by_a_model_alone(mass_data, folder):
    run = trained(experiment(td3()), folder / "noise")
    found, _ = rl.evaluate_from_data(run, mass_data, sampling=True, estimators=("dm",), **QUICK)
    assert np.isfinite(found.estimates["dm"].value)
    check_refused(
        lambda: rl.evaluate_from_data(run, mass_data, sampling=True, **QUICK),
        rl.ConfigurationError,
        "(OffPolicyAgent, Box actions) are not known ... give --estimators dm",
    )


def test_cloned_policies_are_given_a_discount(mass_data, folder):
    params = rl.BCAgentParameters(
        policy=rl.PolicyParameters(torso=SMALL),
        memory=rl.ReplayMemoryParameters(capacity=200),
        learning=rl.LearningParameters(batch=8, learning_starts=8),
        update_mode="eager",
    )
    run = trained(experiment(params), folder / "cloned")
    given = {"sampling": True, "estimators": ("is",)}
    check_refused(
        lambda: rl.evaluate_from_data(run, mass_data, **given),
        rl.ConfigurationError,
        "agent 'agent' has no discount; give one with --value_discount",
    )
    assert rl.evaluate_from_data(run, mass_data, discount=0.9, **given)[0].discount == 0.9


def test_actions_are_listed_for_models_alone(pole, pole_data, monkeypatch):
    def unwanted(*_):
        raise AssertionError("no model is fitted")

    monkeypatch.setattr(Choices, "weighted_actions", unwanted)
    rl.evaluate_from_data(pole, pole_data, estimators=("wis",))
    with pytest.raises(AssertionError, match="no model"):
        rl.evaluate_from_data(pole, pole_data, estimators=("dm",), **QUICK)


def test_episode_that_terminates_at_its_cut_has_terminated():
    flags = {"/terminated": [0, 1, 0, 1, 0], "/truncated": [0, 1, 0, 0, 1]}
    columns = {path: np.array(each, np.bool_) for path, each in flags.items()}
    both = Recorded({"/rewards": np.ones(5), **columns}, np.array([0, 2, 4]))
    assert cut_off_episodes(both) == 1
    assert cut_off(both, np.array([4, 1, 3])).tolist() == [True, False, False]


@pytest.mark.parametrize("model", [fitted_linear, partial(fitted_network, seed=0, updates=3)])
def test_what_is_behind_an_end_does_not_count(model):
    """Chances are undefined there, where a mask allows nothing."""
    ends = np.array([False, True] * 4)
    columns = {"/rewards": np.ones(8), "/terminated": ends, "/truncated": np.zeros(8, np.bool_)}
    rng = np.random.default_rng(0)
    chances = np.full((12, 2), 0.5)
    chances[8:] = np.nan
    data = JudgedData(
        recorded=Recorded(columns, np.arange(0, 8, 2)),
        observation_space=spaces.Dict({"x": spaces.Box(-1, 1, (2,))}),
        action_space=spaces.Discrete(2),
        taken=np.arange(8) % 2,
        log_prob=np.zeros(8),
        obstacle="",
        observation={"x": rng.random((12, 2), np.float32)},
        actions=np.tile(np.arange(2), (12, 1)),
        chances=chances,
    )
    values = model(data, np.arange(8), discount=0.9)
    assert np.isfinite(values(np.arange(8))).all()


def test_data_of_a_deterministic_policy_are_refused(mass, mass_data, folder):
    def certain(columns):
        columns["/action_log_prob"] = np.zeros_like(columns["/action_log_prob"])

    data = changed(mass_data, folder / "certain.npz", certain)
    check_refused(
        lambda: rl.evaluate_from_data(mass, data, sampling=True),
        rl.ConfigurationError,
        "was made by a deterministic policy ... or give --estimators dm",
    )
    check_refused(
        lambda: rl.evaluate_from_data(mass, data, sampling=True, discount=1.0),
        rl.ConfigurationError,
        "2 problems: (1) ... were cut off ... (2) ... was made by a deterministic policy",
    )


def test_model_behind_a_cut_needs_a_discount(mass, mass_data, folder):
    def cut_off(columns):
        ends = columns["/terminated"] | columns["/truncated"]
        columns["/terminated"] = np.zeros_like(ends)
        columns["/truncated"] = ends

    data = changed(mass_data, folder / "cut.npz", cut_off)
    check_refused(
        lambda: rl.evaluate_from_data(mass, data, sampling=True, discount=1.0),
        rl.ConfigurationError,
        "were cut off ... no bound with a discount of 1 ... lower --value_discount",
    )
    found, _ = rl.evaluate_from_data(mass, data, sampling=True, discount=1.0, estimators=("is",))
    assert found.truncated == found.episodes == 30


def test_unknown_estimators_are_named(mass, mass_data):
    check_refused(
        lambda: rl.evaluate_from_data(mass, mass_data, estimators=("ips",)),
        rl.ParameterError,
        "no estimator 'ips'; allowed: is, wis, pdis",
    )


def test_hierarchies_are_refused(folder, mass_data):
    manager = preset(STACK).build()
    run = trained(manager, folder / "levels")
    check_refused(
        lambda: rl.evaluate_from_data(run, mass_data),
        rl.ConfigurationError,
        "a policy of one level ... evaluate a hierarchy in its environment",
    )


def test_command_prints_a_table_and_writes_a_file(pole, pole_data, capsys):
    given = ["--estimators", "pdis,dm,dr", "--model_updates", "20", "--seed", "3", "--plain"]
    assert main(["evaluate", str(pole), "--from", str(pole_data), *given]) == 0
    shown = capsys.readouterr().out
    assert "400 episodes" in shown
    for part in ("per decision", "direct method", "model's error left out", "doubly robust"):
        assert part in shown
    assert "unreliable" not in shown
    assert "evaluations_from_data" in shown


def test_command_names_estimates_of_few_effective_samples(pole, pole_data, folder, capsys):
    def unlike(columns):
        rng = np.random.default_rng(0)
        columns["/action_log_prob"] = columns["/action_log_prob"] - rng.exponential(
            2, len(columns["/action_log_prob"])
        )

    data = changed(pole_data, folder / "unlike.npz", unlike)
    given = ["--estimators", "wis", "--sampling", "--plain"]
    assert main(["evaluate", str(pole), "--from", str(data), *given]) == 0
    assert "unreliable" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--from", "DATA", "--episodes", "5"], "ignores --evaluate"),
        (["--from", "DATA", "--level", "Hopper-v5"], "ignores -lvl"),
        (["--estimators", "dm"], "belongs to coach evaluate --from"),
        (
            ["--from", "DATA", "--value_discount", "2"],
            "--value_discount takes a number in (0, 1], got 2",
        ),
        (["--from", "DATA", "--model", "tree"], "invalid choice: 'tree'"),
        (["--from", "missing.npz"], "there is no data set 'missing.npz'"),
    ],
)
def test_command_refuses_what_it_would_ignore(given, message, pole, pole_data, capsys):
    given = [str(pole_data) if each == "DATA" else each for each in given]
    assert main(["evaluate", str(pole), *given]) != 0
    shown = capsys.readouterr().err.strip()
    assert message in shown
    assert len(shown.splitlines()) == 1


def test_table_of_estimators_is_complete():
    assert FULL_NAMES.keys() == ESTIMATORS.keys()
