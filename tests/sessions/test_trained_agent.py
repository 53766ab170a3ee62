"""A run's agent acts without its environment as it does in evaluations."""

import json
import shutil
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

import coach_rl
from coach_rl.core.discrete_actions import forbidden
from coach_rl.core.errors import SpaceError
from coach_rl.core.runtime import Runtime
from coach_rl.core.seeding import integer_seed
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.filters import InputFilter, ObservationStackingFilter
from coach_rl.sessions.session import run_experiment
from tests.environments.masked_environments import Doors
from tests.sessions.trained_agents import (
    EPISODES,
    SMALL,
    check_sampled_actions,
    ends_of_equal_episodes,
    observation_of,
    short_run,
)
from tests.small_runs import QUIET, TWO_LEVELS, change_manifest, manifest_of, preset

pytestmark = pytest.mark.filterwarnings("ignore:.*would learn nothing")
HIERARCHY = f"{TWO_LEVELS}:td3_above_td3"
PRESETS = {
    "CartPole_PPO": {"agent.algorithm.rollout": 128},
    "Pendulum_PPO": {"agent.algorithm.rollout": 128},
    "Acrobot_PPO": {
        "agent.algorithm.rollout": 128,
        "agent.input_filter": InputFilter(
            observation={"observation": (ObservationStackingFilter(stack_size=3),)}
        ),
    },
    "CartPole_DQN": {"agent.learning.learning_starts": 100, "agent.update_mode": "eager"},
    "Pendulum_SAC": {},
    "Pendulum_DDPG": {},
    "Mujoco_PPO": {"level": "hopper", "agent.algorithm.rollout": 128},
    HIERARCHY: {},
}
"""Presets, and overrides that let them learn at once."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A function from a preset's name to a short run of it, made once."""
    return cache(lambda name: short_run(name, PRESETS[name], tmp_path_factory.mktemp("runs")))


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", PRESETS, ids=lambda name: name.rpartition(":")[2])
def test_act_equals_an_evaluation_to_the_bit(trained, name):
    assert ends_of_equal_episodes(trained(name)) >= EPISODES


def test_act_in_gymnasium_earns_the_rewards_of_the_evaluation(trained):
    run = trained("CartPole_PPO")
    evaluation, _ = coach_rl.evaluate_run(run, episodes=EnvironmentEpisodes(EPISODES), seed=5)
    agent, totals = coach_rl.load(run), []
    env = gymnasium.make("CartPole-v1")
    first = integer_seed(5, "final evaluation")
    for seed in range(first, first + EPISODES):
        observation, _ = env.reset(seed=seed)
        agent.reset()
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(agent.act(observation))
            total, over = total + float(reward), terminated or truncated
        totals.append(total)
    assert sorted(totals) == sorted(evaluation.arrays["episode/reward"])
    assert len(set(totals)) > 1


def test_act_on_a_gymnasium_batch_equals_the_evaluation(trained):
    """Rewards of a continuous task, which every last bit of an action changes."""
    run = trained("Pendulum_PPO")
    evaluation, _ = coach_rl.evaluate_run(run, episodes=EnvironmentEpisodes(EPISODES), seed=5)
    agent, totals = coach_rl.load(run), np.zeros(EPISODES)
    envs = gymnasium.make_vec("Pendulum-v1", EPISODES, vectorization_mode="sync")
    observations, _ = envs.reset(seed=integer_seed(5, "final evaluation"))
    for _ in range(200):
        observations, rewards, _, truncated, _ = envs.step(agent.act(observations))
        totals += rewards
    assert truncated.all()
    assert sorted(totals) == sorted(evaluation.arrays["episode/reward"])


@pytest.mark.parametrize("name", ["Pendulum_SAC", "CartPole_DQN"])
def test_act_sampled_actions_repeat_with_the_seed(trained, name):
    check_sampled_actions(coach_rl.load(trained(name)))


def test_act_single_and_batch_have_their_shapes(trained):
    agent = coach_rl.load(trained("Pendulum_SAC"))
    array = observation_of(agent)["observation"]
    single = agent.act(array)
    assert single.shape == (1,)
    assert single in agent.spaces.action
    assert np.array_equal(agent.act({"observation": array}), single)
    assert np.array_equal(agent.act(array[None])[0], single)
    assert np.array_equal(agent.act(array.tolist()), single)
    agent.reset()
    assert agent.act(np.stack([array] * 3)).shape == (3, 1)
    discrete = coach_rl.load(trained("CartPole_DQN"))
    assert discrete.act(np.zeros(4)) in discrete.spaces.action


def test_reset_of_some_rows_leaves_the_others(trained):
    run = trained(HIERARCHY)
    whole, alone = coach_rl.load(run), coach_rl.load(run)
    seen = observation_of(whole, (2,))
    later = {key: values + np.float32(0.3) for key, values in seen.items()}
    whole.act(seen)
    alone.act(seen)
    whole.reset([False, True])
    continued, begun = alone.act(later), whole.act(later)
    close = partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6)  # sums depend on the batch
    close(begun[0], continued[0])
    alone.reset()
    close(begun[1], alone.act(later)[1])
    whole.reset(np.array([0]))
    close(whole.act(later)[0], alone.act(later)[0])


def test_network_of_a_hierarchy_is_found_by_level(trained):
    agent = coach_rl.load(trained("Pendulum_SAC"))
    assert set(agent.network) == {"actor", "critics", "temperature"}
    with torch.no_grad():
        for parameter in agent.network["actor"].parameters():
            parameter.zero_()
    assert agent.act(np.ones(3)) == 0  # they are the ones it acts with
    stack = coach_rl.load(trained(HIERARCHY))
    assert set(stack.network) == {"top", "low"}
    assert set(stack.network["low"]) == {"actor", "critics"}


def changed(run, folder, **changes):
    """A copy of a run with parts of its manifest replaced."""
    copy = Path(shutil.copytree(run, folder / "copy"))
    change_manifest(copy, **changes)
    return copy


def test_load_needs_no_environment(trained, tmp_path):
    run = trained("CartPole_DQN")
    parameters = manifest_of(run)["parameters"]
    gone = {**parameters, "environment": {"$type": "sold_simulator.tasks:Runtime"}}
    agent = coach_rl.load(changed(run, tmp_path, parameters=gone))
    assert agent.act(np.zeros(4)) in agent.spaces.action


def test_load_reads_no_replay_memory(trained, tmp_path):
    run = changed(trained("CartPole_DQN"), tmp_path)
    entries = list((run / "checkpoints" / "step_600").glob("rows_*.bin"))
    assert entries
    for file in entries:
        file.unlink()
    assert coach_rl.load(run).act(np.zeros(4)) in (0, 1)


def test_load_needs_no_mujoco(trained):
    run = trained("Mujoco_PPO")
    program = (
        "import sys; sys.modules['mujoco'] = None\n"
        "import coach_rl, numpy; agent = coach_rl.load(sys.argv[1])\n"
        "print(agent.act(numpy.zeros(11)).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, run], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == coach_rl.load(run).act(np.zeros(11)).tolist()


def test_load_run_from_a_gpu_acts_on_the_cpu(trained, tmp_path):
    run = trained("CartPole_DQN")
    task = manifest_of(run)["task"] | {"device": "cuda:7"}
    agent = coach_rl.load(changed(run, tmp_path, task=task))
    assert agent.act(np.zeros(4)) == coach_rl.load(run).act(np.zeros(4))


def test_load_checkpoint_by_path_or_name(trained):
    run = trained("CartPole_DQN")
    by_path = coach_rl.load(str(run / "checkpoints" / "last"))
    for by_name in (
        coach_rl.load(run, checkpoint="step_600"),
        coach_rl.load(run, checkpoint=600),
        coach_rl.load(run.parent),  # the experiment: its newest run
        coach_rl.load(f"{run.parent}@600"),
    ):
        assert by_path.act(np.ones(4)) == by_name.act(np.ones(4))


@pytest.fixture(scope="module", params=[(4,), (2, 3)], ids=["one choice", "two choices"])
def masked_run(tmp_path_factory, request):
    """An agent of an environment whose masks are in its infos, and the environment."""
    level, kwargs = "tests.environments.masked_environments:Doors", {"sizes": request.param}
    environment = GymnasiumParameters(level=level, kwargs=kwargs, action_mask="info:action_mask")
    changes = {
        **SMALL,
        **PRESETS["CartPole_PPO"],
        "schedule.training": EnvironmentSteps(300),
        "environment": environment,
    }
    result = run_experiment(
        preset("CartPole_PPO").configure(changes),
        Runtime(seed=1, device="cpu"),
        name="masked",
        root=tmp_path_factory.mktemp("runs"),
        settings=QUIET,
    )
    return coach_rl.load(result.folder.path), Doors(**kwargs)


def test_act_with_masks_takes_allowed_actions_alone(masked_run):
    agent, env = masked_run
    observation, _ = env.reset(seed=0)
    agent.reset(seed=3)
    for step in range(200):
        mask = env.masks if step % 2 else env.action_masks()
        action = agent.act(observation, mask=mask, greedy=bool(step % 3))
        same = {"observation": observation, "action_mask": env.action_masks()}
        if step % 3:
            np.testing.assert_array_equal(action, agent.act(same))
        observation, _, ended, _, _ = env.step(action)  # raises where it is forbidden
        if ended:
            observation, _ = env.reset()
            agent.reset()


def test_act_with_masks_of_a_batch_takes_allowed_actions(masked_run):
    agent, env = masked_run
    agent.reset()
    mask, seen = [], []
    for seed in range(50):
        seen.append(env.reset(seed=seed)[0])
        mask.append(env.action_masks())
    actions = agent.act(np.array(seen), mask=np.array(mask), greedy=False)
    assert not forbidden(env.action_space, actions, np.array(mask)).any()
    agent.reset()


def test_act_without_the_mask_or_with_one_that_is_not_read_is_refused(masked_run, trained):
    agent, env = masked_run
    observation, _ = env.reset(seed=0)
    agent.reset()
    with pytest.raises(SpaceError, match="is a dict with the keys"):
        agent.act(observation)
    with pytest.raises(SpaceError, match="'action_mask' has shape"):
        agent.act(observation, mask=np.ones(9))
    unmasked = coach_rl.load(trained("CartPole_PPO"))
    with pytest.raises(SpaceError, match="has no action mask; leave it out"):
        unmasked.act(np.zeros(4, np.float32), mask=np.ones(2))
