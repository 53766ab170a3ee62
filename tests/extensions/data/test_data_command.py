"""`coach data show`, `check` and `write`: what they print, and their exit codes."""

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.cli.main import main
from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.data.data_facts import problems, returns_of
from coach_rl.extensions.data.files import OpenedFile, open_data, read_data, write_file
from coach_rl.extensions.data.memory_data import memory_of
from coach_rl.extensions.data.minari_data import write_minari
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.memories.batches import OBSERVATIONS
from tests.builders import flat
from tests.extensions.data.test_batch_graph import SEEN, batch_graph, recorded
from tests.extensions.data.test_minari_data import HAS_MINARI
from tests.refusals import check_refused
from tests.small_runs import QUIET


@pytest.fixture
def data(tmp_path):
    return str(write_file(recorded(), tmp_path / "mass.npz", SEEN))


def test_show_prints_what_is_in_a_data_set(data, capsys):
    assert main(["data", "show", data]) == 0
    shown = capsys.readouterr().out
    assert "action:       Box(-1.0, 1.0, (2,), float32)" in shown
    assert "episodes:     5 of 28 transitions; 3 terminated" in shown
    assert "lengths:      mean 5.6; min 1," in shown
    assert f"returns:      mean {returns_of(recorded()).mean():.4g};" in shown
    assert shown.count("#") > 10


def test_returns_are_sums_of_rewards_by_episode():
    known = recorded()
    expected = [
        known.columns["/rewards"][begin : begin + length].sum()
        for begin, length in zip(known.begins, known.lengths, strict=True)
    ]
    np.testing.assert_allclose(returns_of(known), expected)


def test_check_of_a_good_data_set_exits_with_0(data, capsys):
    assert main(["data", "check", data]) == 0
    assert capsys.readouterr().out == "nothing is wrong in 28 transitions of 5 episodes\n"


def test_check_compares_spaces_with_those_of_a_preset(data, capsys):
    assert main(["data", "check", "data:cartpole-expert", "--for", "CartPole_CQL"]) == 0
    assert main(["data", "check", data, "--for", "CartPole_CQL"]) == 1
    assert "the memory keeps" in capsys.readouterr().out


def changed(path, **places):
    """Transitions with other values at places of one column."""
    known = recorded()
    values = known.columns[path].copy()
    for place, value in places.items():
        values[int(place.removeprefix("at_"))] = value
    return OpenedFile(SEEN, Recorded({**known.columns, path: values}, known.begins))


PROBLEMS = [
    (changed("/rewards", at_3=np.nan), "/rewards has 1 numbers that are not finite"),
    (changed("/actions", at_4=2.0), "action [2. 2.] of transition 4 is outside Box"),
    (changed(f"{OBSERVATIONS}observation", at_5=0.25), "behind transition 4 is not that of"),
    (changed("/durations", at_5=0), "/durations has values below 1"),
    (changed("/truncated", at_6=True), "transition 6 has both terminated and been truncated"),
    (OpenedFile(SEEN, Recorded({}, np.zeros(0, np.int64))), "it has no transitions"),
]


@pytest.mark.parametrize(("opened", "expected"), PROBLEMS)
def test_problems_of_a_data_set_are_named(opened, expected):
    (found,) = problems(opened)
    assert expected in found


def test_good_data_set_has_no_problems():
    assert not list(problems(OpenedFile(SEEN, recorded())))


@pytest.mark.skipif(not HAS_MINARI, reason="needs the packages minari and h5py")
def test_minari_data_set_is_shown_and_checked(data, tmp_path, capsys):
    with batch_graph(data, 1, num_envs=1) as manager:
        manager.run()
        spaces = manager.graph.spaces
        trajectories = manager.graph.agents["main"].memory.trajectories()
    path = str(tmp_path / "mine")
    write_minari(
        trajectories, path, observation_space=spaces.observation, action_space=spaces.action
    )
    assert main(["data", "show", path]) == 0
    assert "episodes:     5 of 28 transitions; 3 terminated" in capsys.readouterr().out
    assert main(["data", "check", path]) == 0
    np.testing.assert_array_equal(
        open_data(path).recorded.columns["/actions"], recorded().columns["/actions"]
    )


def trained(folder, steps=40, **changes):
    """A run of SAC in the world of the point mass."""
    memory = rl.ReplayMemoryParameters(capacity=100)
    learning = rl.LearningParameters(batch=8, learning_starts=30)
    acting = rl.SACAgentParameters(memory=memory, learning=learning, **changes)
    graph_manager = rl.BasicRLGraphManager(
        flat(acting, rl.PointMassParameters(max_episode_steps=9), num_envs=2, training=steps)
    )
    return rl.run_experiment(graph_manager, name="mine", root=folder).folder.path


def test_memory_of_a_run_is_written_as_a_data_set(tmp_path, capsys):
    run = trained(tmp_path)
    target = tmp_path / "memory.npz"
    assert main(["data", "write", str(run), str(target)]) == 0
    assert "(40 transitions of 6 episodes)" in capsys.readouterr().out
    assert main(["data", "check", str(target), "--for", str(run)]) == 0
    found = read_data(str(target), observation_space=SEEN.observation, action_space=SEEN.action)
    assert found.lengths.tolist() == [9, 9, 2, 9, 9, 2]


def test_memory_of_a_run_from_data_has_the_data(data, tmp_path):
    run = rl.run_experiment(batch_graph(data, 3), name="mine", root=tmp_path).folder.path
    found, _ = memory_of(run)
    assert sorted(found.lengths) == sorted(recorded().lengths)
    assert found.columns["/rewards"].sum() == pytest.approx(recorded().columns["/rewards"].sum())


def test_actions_are_written_as_the_environment_was_sent_them(data, tmp_path):
    halved = rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-0.5, high=0.5),))
    manager = batch_graph(data, 3, num_envs=1, output_filter=halved)
    run = rl.run_experiment(manager, name="mine", root=tmp_path).folder.path
    found, _ = memory_of(run)
    np.testing.assert_allclose(found.columns["/actions"], recorded().columns["/actions"], rtol=1e-5)


def test_memory_of_filtered_rewards_is_refused(tmp_path):
    filters = rl.InputFilter(reward=(rl.RewardRescaleFilter(factor=10.0),))
    run = trained(tmp_path, input_filter=filters)
    check_refused(
        lambda: memory_of(run), ConfigurationError, "holds what the agent's InputFilter has made"
    )


def one_more(observation, action, outcome):
    return np.ones(len(outcome.rows))


def test_memory_with_a_bonus_is_refused(tmp_path):
    run = trained(tmp_path, bonus=one_more)
    check_refused(lambda: memory_of(run), ConfigurationError, "the agent's bonus ... --record")


def test_memory_below_another_level_is_refused(tmp_path):
    agent = rl.SACAgentParameters(
        memory=rl.ReplayMemoryParameters(capacity=100),
        learning=rl.LearningParameters(batch=8, learning_starts=8),
        update_mode="eager",
    )
    goals = rl.GoalSpace(
        key="observation", elements=(0, 1), low=(-1, -1), high=(1, 1), threshold=(0.1, 0.1)
    )
    parameters = rl.GraphParameters(
        levels=(
            rl.LevelParameters(name="top", agent=agent),
            rl.LevelParameters(name="low", agent=agent, goal_space=goals, horizon=4),
        ),
        environment=rl.PointMassParameters(max_episode_steps=9),
        schedule=rl.ScheduleParameters(training=rl.EnvironmentSteps(20), evaluation_interval=None),
    )
    run = rl.run_experiment(
        rl.HRLGraphManager(parameters), name="mine", root=tmp_path, settings=QUIET
    ).folder.path
    check_refused(
        lambda: memory_of(run), ConfigurationError, "level 'low', with its goals ... --record"
    )


def test_agent_without_a_replay_memory_is_refused(tmp_path):
    manager = rl.BasicRLGraphManager(
        flat(
            rl.PPOAgentParameters(
                algorithm=rl.PPOAlgorithmParameters(rollout=rl.EnvironmentSteps(16), minibatch=16)
            ),
            training=20,
        )
    )
    run = rl.run_experiment(manager, name="mine", root=tmp_path).folder.path
    check_refused(lambda: memory_of(run), ConfigurationError, "has no replay memory")


def test_numbers_that_are_not_finite_are_counted(tmp_path, capsys):
    path = tmp_path / "mine.csv"
    path.write_text("observations.0,actions.0,rewards,terminals\n0,0,1,1\n1,0,nan,0\n2,0,1,1\n")
    assert main(["data", "show", str(path)]) == 0
    assert "returns:      1 are not finite\nreturns:      mean 1;" in capsys.readouterr().out
    assert main(["data", "check", str(path)]) == 1
    assert capsys.readouterr().out == "/rewards has 1 numbers that are not finite\n"
