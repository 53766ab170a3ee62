"""`coach_rl.train`: a run from the names of an algorithm and a task."""

import json
import os
import signal
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import coach_rl
from coach_rl.cli.main import main
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import any_task_presets, find_preset
from coach_rl.core import errors
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.recurrent_layers.stage import HiddenStates
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import fork_experiment, resume_experiment
from coach_rl.sessions.settings import Audience
from tests.refusals import check_refused
from tests.small_runs import QUIET, AtRecord, manifest_of

SHORT = {
    "agent.algorithm.rollout": 64,
    "agent.algorithm.minibatch": 32,
    "agent.algorithm.epochs": 1,
    "agent.update_mode": "eager",
    "schedule.evaluation_interval": None,
}


def trained(folder, *given, **arguments):
    changes = {**SHORT, **arguments.pop("changes", {})}
    return coach_rl.train(
        *given, folder=folder, changes=changes, audience=Audience(), device="cpu", **arguments
    )


def built(algorithm, **panel):
    return load_preset(any_task_presets()[algorithm]).build(panel)


def test_train_returns_the_agent_of_an_ordinary_run(tmp_path):
    agent = trained(tmp_path, "ppo", "CartPole-v1", steps=200, seed=3, num_envs=2, name="mine")
    assert agent.run.parent == tmp_path / "mine"
    assert agent.act(np.zeros((5, 4), np.float32)).shape == (5,)
    manifest = manifest_of(agent.run)
    assert manifest["task"]["seed"] == 3
    assert manifest["parameters"]["num_envs"] == 2
    assert manifest["parameters"]["agent"]["algorithm"]["minibatch"] == 32
    program, option, code = manifest["command"]
    assert (program, option) == ("python", "-c")
    assert code.startswith("import coach_rl; coach_rl.train('ppo', 'CartPole-v1', steps=200, ")
    compile(code, "command", "exec")


def test_command_trains_an_algorithm_on_a_class_of_a_file_in_the_working_directory(
    tmp_path, monkeypatch
):
    """Python's search path is as in the program `coach`, without the working directory."""
    monkeypatch.chdir(tmp_path)
    assert not {"", ".", str(tmp_path)} & {*sys.path}
    (tmp_path / "shore.py").write_text(
        "from gymnasium.envs.classic_control import CartPoleEnv\n\n\n"
        "class Shore(CartPoleEnv):\n    pass\n"
    )
    changes = "; ".join(f"{path}={value}" for path, value in SHORT.items())
    words = ["train", "PPO", "-lvl", "shore:Shore", "--steps", "64", "-ntb", "-c", "-cp", changes]
    assert main(words) == 0
    (run,) = Path("experiments/PPO").iterdir()
    assert manifest_of(run)["parameters"]["environment"]["level"] == "shore:Shore"


def test_run_of_train_is_resumed_evaluated_and_forked(tmp_path):
    run = trained(tmp_path, "PPO", "CartPole-v1", steps=200).run
    result = resume_experiment(run, steps=EnvironmentSteps(300), settings=QUIET)
    assert result.environment_steps >= 300
    evaluate_run(run, episodes=coach_rl.EnvironmentEpisodes(1))
    fork = fork_experiment(run, name="fork", steps=EnvironmentSteps(400), settings=QUIET)
    assert json.loads(fork.folder.manifest.read_text())["preset"]["name"] == "PPO"


@pytest.mark.parametrize(
    ("algorithm", "level", "preset"),
    [
        ("PPO", "CartPole-v1", "CartPole_PPO"),
        ("DQN", "CartPole-v1", "CartPole_DQN"),
        ("SAC", "Pendulum-v1", "Pendulum_SAC"),
        ("SAC", "CartPole-v1", "CartPole_SAC"),
        ("PPO", "hopper", "Mujoco_PPO"),
        ("TD3", "Hopper-v5", "Mujoco_TD3"),
        ("DDPG", "hopper", "Mujoco_DDPG"),
    ],
)
def test_settings_of_a_task_with_a_preset_are_the_presets(algorithm, level, preset):
    own = load_preset(find_preset(preset))
    panel = {"steps": 5_000, **({"level": level} if "level" in own.panel else {})}
    assert built(algorithm, level=level, steps=5_000).parameters == own.build(panel).parameters


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    ("algorithm", "level"),
    [
        ("PPO", "MountainCar-v0"),
        ("PPO", "MountainCarContinuous-v0"),
        ("PPO", "goal_point_mass"),
        ("PPO", "FrozenLake-v1"),
        ("DQN", "bit_flip"),
        ("DDPG", "point_mass"),
        ("TD3", "MountainCarContinuous-v0"),
        ("SAC", "point_mass"),
        ("SAC", "FrozenLake-v1"),
    ],
)
def test_any_task_can_be_built(algorithm, level):
    with built(algorithm, level=level, num_envs=2) as manager:
        manager.create_graph(Runtime(device="cpu"))
        assert manager.parameters.num_envs == 2
        next(iter(manager.improve()))


def test_vectors_alone_are_normalised():
    (goals,) = built("PPO", level="goal_point_mass").parameters.levels
    assert set(goals.agent.input_filter.observation) >= {"observation", "desired_goal"}
    (discrete,) = built("PPO", level="FrozenLake-v1").parameters.levels
    assert discrete.agent.input_filter is None


class Lever(gymnasium.Env):
    """Ends after a step."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.zeros(2, np.float32), float(action), True, False, {}


def lever() -> gymnasium.Env:
    """A lever."""
    return Lever()


@pytest.mark.parametrize("made_by", [Lever, lever])
def test_train_takes_a_class_or_an_annotated_function(tmp_path, made_by):
    agent = trained(tmp_path, "PPO", made_by, steps=100)
    place = f"{__name__}:{made_by.__name__}"
    assert manifest_of(agent.run)["parameters"]["environment"]["level"] == place


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("algorithm", ["PPO", "DQN", "DDPG", "TD3", "SAC"])
def test_networks_have_the_recurrent_layer_that_is_set(algorithm):
    level = "CartPole-v1" if algorithm == "DQN" else "MountainCarContinuous-v0"
    with built(algorithm, level=level, recurrence=coach_rl.GRU(size=8)) as manager:
        manager.create_graph(Runtime(device="cpu"))
        (agent,) = manager.graph.agents.values()
        assert agent.stages.of(HiddenStates).state.size >= 8
        next(iter(manager.improve()))


def test_short_runs_evaluate_no_policy_twice():
    parameters = built("PPO", level="MountainCar-v0", steps=20_000).parameters
    assert parameters.schedule.evaluation_interval.count >= parameters.agent.algorithm.rollout.count


def test_preset_on_another_task_has_no_target_unless_one_is_given():
    preset = load_preset(find_preset("CartPole_PPO"))
    assert preset.configure({"environment.max_episode_steps": 9}).parameters.validation is not None
    other = {"environment.level": "Acrobot-v1"}
    assert preset.configure(other).parameters.validation is None
    target = coach_rl.ValidationParameters(reward=-90, within=coach_rl.EnvironmentSteps(10_000))
    given = preset.configure({**other, "validation": target})
    assert given.parameters.validation == target


def test_stopped_training_is_an_error_with_the_command_that_resumes_it(tmp_path):
    stop = AtRecord(
        lambda record: record.environment_steps >= 150,
        lambda: os.kill(os.getpid(), signal.SIGINT),
    )
    audience = Audience(sinks=(stop,))
    arguments = {"steps": 400, "changes": SHORT | {"schedule.progress_interval": 50}}
    check_refused(
        lambda: coach_rl.train(
            "PPO", "CartPole-v1", folder=tmp_path, audience=audience, device="cpu", **arguments
        ),
        errors.RunError,
        f"training was stopped by a signal ... resume it with: coach -crd {tmp_path}",
    )


C, P, U = errors.ConfigurationError, errors.ParameterError, errors.UnknownNameError


@pytest.mark.parametrize(
    ("given", "arguments", "kind", "message"),
    [
        (("PPOO", "CartPole-v1"), {}, U, "unknown algorithm 'PPOO'; did you mean 'PPO'"),
        ((None, "CartPole-v1"), {}, U, "algorithm 'NoneType' ... allowed: DDPG, DQN, PPO, SAC"),
        (("CartPole-v1", "PPO"), {}, P, "the algorithm comes first: coach_rl.train('PPO', TASK"),
        (
            ("PPO", "CartPole-v1"),
            {"agent.algorithm.discount": 0.9},
            U,
            "did you mean \"changes={'agent.algorithm.discount': ...}\"",
        ),
        (("PPO", "CartPole-v1"), {"agent": 1}, U, "did you mean \"changes={'agent': ...}\""),
        (("PPO", "CartPole-v1"), {"callback": 1}, U, "did you mean \"changes={'callbacks': ...}\""),
        (("PPO", "CartPole-v9"), {}, C, "unknown task 'CartPole-v9'; did you mean 'CartPole-v"),
        (("PPO", 3), {}, P, "level must be ... got 3"),
        (("PPO", gymnasium.make("CartPole-v1")), {}, C, "give its name, 'CartPole-v1'"),
        (("PPO", Lever()), {}, C, f"name its class, here '{__name__}:Lever'"),
        (("PPO", lambda: Lever()), {}, C, "cannot import ... module:Class"),
        (("PPO", "CartPole-v1"), {"steps": "many"}, P, "steps must be ... got 'many'"),
        (("PPO", "CartPole-v1"), {"steps": 0}, P, "training must be ... > 0, got"),
        (("PPO", "CartPole-v1"), {"seed": -1}, P, "seed must be ... got -1"),
        (("PPO", "CartPole-v1"), {"num_envs": 0}, P, "num_envs must be ... got 0"),
        (("DQN", "Pendulum-v1"), {}, errors.SpaceError, "Box"),
        (("PPO", "CartPole-v1"), {"changes": "a=1"}, P, "changes must be ... got 'a=1'"),
        (("PPO", "CartPole-v1"), {"name": "a/b"}, C, "the experiment name 'a/b' cannot name"),
        (("PPO", "CartPole-v1"), {"device": "tpu"}, C, "tpu"),
        (("PPO", "CartPole-v1"), {"audience": 3}, P, "audience must be Audience ... got 3"),
        (
            ("PPO", "CartPole-v1"),
            {"changes": {"agent.algorithm.klip": 0.1}},
            U,
            "unknown parameter 'klip' of 'agent.algorithm'; did you mean 'clip'",
        ),
        (
            ("PPO", "CartPole-v1"),
            {"changes": {"schedule.training": 10}},
            C,
            "'schedule.training' is the argument steps of train()",
        ),
        (
            ("PPO", "CartPole-v1"),
            {"changes": {"checkpoints.enabled": False}},
            C,
            "checkpoints.enabled=False keeps none",
        ),
    ],
)
def test_train_invalid_input_error(tmp_path, given, arguments, kind, message):
    arguments = {"folder": tmp_path, "audience": Audience(), **arguments}
    check_refused(lambda: coach_rl.train(*given, **arguments), kind, message)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("total_timesteps", "steps=..."),
        ("n_envs", "num_envs=..."),
        ("env", "level=..."),
        ("tensorboard_log", "folder=..."),
        ("verbose", "audience=..."),
        ("gamma", "changes={'agent.algorithm.discount': ...}"),
        ("learning_rate", "changes={'agent.optimizer.learning_rate': ...}"),
        ("clip", "changes={'agent.algorithm.clip': ...}"),
        ("stepz", "steps"),
        ("recurrent", "recurrence"),
    ],
)
def test_argument_of_another_library_is_answered_with_the_one_here(tmp_path, name, meant):
    with pytest.raises(errors.UnknownNameError) as caught:
        trained(tmp_path, "PPO", "CartPole-v1", **{name: 1})
    message = str(caught.value)
    assert message.startswith(f"unknown argument '{name}' of train(); did you mean ")
    assert meant in message
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("algorithm", "meant"),
    [
        ("A2C", "PPO"),
        ("rainbow", "DQN"),
        ("Mujoco_TD3", "TD3"),
        (coach_rl.DQNAgentParameters, "DQN"),
        (coach_rl.SACAgentParameters(), "SAC"),
    ],
)
def test_algorithm_of_another_name_is_answered_with_the_one_here(tmp_path, algorithm, meant):
    with pytest.raises(errors.UnknownNameError, match=f"did you mean '{meant}'"):
        trained(tmp_path, algorithm, "CartPole-v1")


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("runs"), "PPO", "CartPole-v1", steps=64)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("predict", "act"),  # Stable-Baselines3
        ("compute_single_action", "act"),  # RLlib
        ("save", "coach_rl.export"),
        ("learn", r"coach_rl.resume_experiment\(agent.run\)"),
        ("observation_space", "spaces"),
        ("policy", "network"),
    ],
)
def test_method_of_another_library_is_answered_with_the_one_here(agent, name, meant):
    with pytest.raises(AttributeError, match=f"has no '{name}'; did you mean {meant}"):
        getattr(agent, name)
    assert not hasattr(agent, name)


def test_attribute_of_no_library_is_missing_without_a_hint(agent):
    with pytest.raises(AttributeError, match=r"a trained agent has no 'colour'$"):
        agent.colour  # noqa: B018
    assert not hasattr(agent, "_repr_svg_")  # which notebooks look for


@pytest.mark.parametrize(
    ("name", "meant"),
    [("deterministic", "greedy=..."), ("action_masks", "mask=..."), ("gready", "greedy")],
)
def test_argument_of_act_of_another_library_is_answered_with_the_one_here(agent, name, meant):
    with pytest.raises(errors.UnknownNameError, match=f"'{name}'; did you mean '{meant}'"):
        agent.act(np.zeros(4, np.float32), **{name: True})
