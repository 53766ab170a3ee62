"""Exported policies with groups in groups decide as the agents that were trained."""

import numpy as np
import pytest
from small_agents import ppo

import coach_rl as rl
from coach_rl.core.runtime import Runtime
from coach_rl.sessions.session import run_experiment
from tests.builders import graph
from tests.extensions.exporting.test_export import exported

pytest.importorskip("onnx", reason="needs the extra `export`")
pytest.importorskip("onnxruntime", reason="needs the extra `export`")
pytestmark = pytest.mark.filterwarnings("ignore:.*would learn nothing")


def in_turn(name, *agents):
    members = tuple(rl.GroupMember(agent=each) for each in agents)
    return rl.AgentGroupParameters(name=name, members=members, arbiter=rl.Turns())


def test_inner_turns_go_on_in_later_sub_episodes(tmp_path):
    inner = (in_turn(name, *(ppo(f"{name}{part}", 40) for part in "xy")) for name in "gh")
    params = graph(
        rl.LevelParameters(name="top", agent=rl.ScriptedAgentParameters(policy="still")),
        rl.LevelParameters(
            name="low",
            agent=in_turn("both", *inner),
            goal_space=rl.OptionSpace(count=2),
            horizon=3,
        ),
        environment=rl.PointMassParameters(max_episode_steps=30),
        num_envs=1,
        training=20,
    )
    run = run_experiment(
        rl.GraphManager(params),
        Runtime(seed=1, device="cpu"),
        name="run",
        root=tmp_path,
        settings=rl.RunSettings(tensorboard=False),
    ).folder.path
    loaded = rl.load(run)
    policy = exported(run, tmp_path / "policy.zip")
    rng = np.random.default_rng(0)
    shown = loaded.spaces.observation.spaces
    for _ in range(2):
        loaded.reset()
        policy.reset()
        for _ in range(20):
            seen = {key: rng.normal(size=s.shape).astype(s.dtype) for key, s in shown.items()}
            np.testing.assert_allclose(policy.act(seen), loaded.act(seen), atol=1e-6)
