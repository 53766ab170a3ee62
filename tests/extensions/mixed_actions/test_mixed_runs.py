"""Runs of PPO with mixed actions: nested spaces of Gymnasium, workers, vectors, several agents."""

from dataclasses import replace

import numpy as np
import pytest

import coach_rl
import coach_rl as rl
from coach_rl.core.seeding import integer_seed
from tests.environments.little_environments import Gadget
from tests.small_runs import QUIET, experiment, ppo

LITTLE = "tests.environments.little_environments"
GADGET = rl.GymnasiumParameters(level=f"{LITTLE}:Gadget")
KINDS = {
    "single": GADGET,
    "workers": replace(GADGET, vectorization="subprocess", processes=2, start_method="fork"),
    **{
        mode: rl.GymnasiumParameters(
            level=f"{LITTLE}:gadgets", vectorization="vector", kwargs={"mode": mode}
        )
        for mode in ("NextStep", "SameStep", "Disabled")
    },
}
AGENT = replace(ppo(), arguments={"drive/1/far": ("drive/0", 2)})


def gadget(environment=GADGET, seed=0, **given):
    manager = experiment(AGENT, environment, num_envs=3, training=200, heatup=20, **given)
    manager.create_graph(rl.Runtime(seed=seed, device="cpu"))
    return manager


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("kind", KINDS)
def test_nested_actions_are_learned_and_evaluated(kind):
    with gadget(KINDS[kind]) as manager:
        records = list(manager.improve())
        evaluation = manager.evaluate(rl.EnvironmentEpisodes(4))
    learned = [record.scalars["train/policy_loss"] for record in records if record.kind == "train"]
    assert len(learned) >= 5
    assert np.isfinite(learned).all()
    assert len(evaluation.arrays["episode/reward"]) == 4


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    manager = experiment(AGENT, GADGET, num_envs=3, training=100)
    settings = replace(QUIET, final_episodes=rl.EnvironmentEpisodes(1))
    task = rl.Runtime(seed=1, device="cpu")
    root = tmp_path_factory.mktemp("runs")
    return rl.run_experiment(manager, task, name="gadget", root=root, settings=settings).folder.path


def test_loaded_agent_plays_the_environment_as_it_is(run):
    """With tuples and dicts, and to the rewards of the evaluation."""
    evaluation, _ = coach_rl.evaluate_run(run, episodes=rl.EnvironmentEpisodes(2), seed=5)
    agent, totals = coach_rl.load(run), []
    for seed in range(2):
        env = Gadget()
        observation, _ = env.reset(seed=integer_seed(5, "final evaluation") + seed)
        agent.reset()
        total, over = 0.0, False
        while not over:
            action = agent.act(observation)
            assert env.action_space.contains(action)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        totals.append(total)
    assert sorted(totals) == pytest.approx(sorted(evaluation.arrays["episode/reward"]), rel=1e-5)
