"""The experiment loop: phases, counters, evaluations apart, going on bit for bit after a stop."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.core.clock import Phase
from coach_rl.core.errors import ConfigurationError, ParameterError, SpaceError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.schedules import LinearSchedule
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.mujoco import MujocoParameters
from coach_rl.environments.toy import OneStepParameters, PointMassParameters
from coach_rl.experiment.checkpoint import read_checkpoint, write_checkpoint
from coach_rl.filters import (
    InputFilter,
    LinearBoxToBoxMap,
    ObservationNormalizationFilter,
    OutputFilter,
    RewardReturnScalingFilter,
)
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    GraphManager,
    GraphParameters,
    LevelParameters,
    ScheduleParameters,
    TaskParameters,
)
from coach_rl.testing.states import assert_same_state


def ppo(**algorithm):
    return PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(
            **{"rollout": EnvironmentSteps(64), "epochs": 2, "minibatch": 16, **algorithm}
        ),
        update_mode="eager",
    )


def parameters(**schedule):
    return BasicGraphParameters(
        agent=ppo(),
        environment=PointMassParameters(),
        num_envs=4,
        schedule=ScheduleParameters(
            **{
                "training": EnvironmentSteps(400),
                "heatup": EnvironmentSteps(40),
                "evaluation_interval": EnvironmentSteps(100),
                "evaluation_episodes": EnvironmentEpisodes(3),
                "progress_interval": EnvironmentSteps(100),
                **schedule,
            }
        ),
    )


def everything_on():
    """MuJoCo physics, filters with statistics, schedules: whatever has a state."""
    agent = PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(
            rollout=EnvironmentSteps(96),
            epochs=2,
            minibatch=32,
            objective="kl",
            recompute_advantages=True,
            scale_returns=True,
            learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
        ),
        input_filter=InputFilter(
            observation={"observation": (ObservationNormalizationFilter(),)},
            reward=(RewardReturnScalingFilter(),),
        ),
        output_filter=OutputFilter(action=(LinearBoxToBoxMap(),)),
        update_mode="eager",
    )
    return BasicGraphParameters(
        agent=agent,
        environment=MujocoParameters(level="hopper", threads=2),
        num_envs=3,
        schedule=ScheduleParameters(
            training=EnvironmentSteps(900),
            heatup=EnvironmentSteps(90),
            evaluation_interval=EnvironmentSteps(200),
            evaluation_episodes=EnvironmentEpisodes(2),
        ),
    )


def finished(params, seed=0):
    manager = BasicRLGraphManager(params)
    manager.create_graph(TaskParameters(seed=seed, device="cpu"))
    records = list(manager.improve())
    state = manager.state_dict()
    manager.close()
    return records, state


def test_phases_counters_and_records():
    records, state = finished(parameters())
    kinds = Counter(record.kind for record in records)
    assert [r.phase for r in records if r.kind == "phase"] == [Phase.HEATUP, Phase.TRAIN]
    # Heat-up is part of the 400 steps: 360 trained on-policy steps make 5 rounds of 64.
    assert kinds["train"] == 5
    assert records[-1].training_steps == 5 * 2 * 4
    evaluated = [r.environment_steps for r in records if r.kind == "evaluation"]
    assert evaluated == [140, 240, 340, 400]  # every 100 after heat-up, and at the end
    assert kinds["progress"] == 4
    assert state["training"]["clock"]["environment_steps"] == 400
    steps = [record.environment_steps for record in records]
    assert steps == sorted(steps)
    episodes = sum(r.kind == "episode" for r in records)
    assert records[-1].episodes == episodes


def test_evaluations_may_have_an_environment_of_their_own():
    shorter = PointMassParameters(max_episode_steps=7)
    records, _ = finished(replace(parameters(), evaluation_environment=shorter))
    tested = [r.arrays["episode/length"].tolist() for r in records if r.kind == "evaluation"]
    assert tested == [[7] * 3] * 4
    trained = [r.scalars["episode/length"] for r in records if r.kind == "episode"]
    assert set(trained) == {50}


def test_an_evaluation_environment_of_another_kind_is_refused():
    manager = BasicRLGraphManager(
        replace(parameters(), evaluation_environment=MujocoParameters(level="hopper"))
    )
    with pytest.raises(SpaceError, match="evaluation_environment has the observation space"):
        manager.create_graph(TaskParameters(device="cpu"))
    with pytest.raises(ConfigurationError, match="not built"):
        manager.state_dict()


def test_nothing_is_trained_in_heatup():
    records, _ = finished(parameters(heatup=EnvironmentSteps(200)))
    first = next(r for r in records if r.kind == "train")
    assert first.environment_steps == 200 + 64


def test_same_seed_same_numbers_other_seed_other_numbers():
    _, one = finished(parameters(), seed=1)
    _, same = finished(parameters(), seed=1)
    _, other = finished(parameters(), seed=2)
    assert_same_state(one, same)
    weights = [s["agents"]["main"]["network"]["online"]["policy_head.weight"] for s in (one, other)]
    assert not torch.equal(*weights)


def test_evaluations_change_nothing():
    _, often = finished(parameters())
    _, never = finished(parameters(evaluation_interval=None))
    for state in (often, never):
        del state["next_evaluation"], state["evaluated_at"]
    assert_same_state(often, never)


def test_a_run_stopped_before_its_last_evaluation_still_makes_it():
    manager = BasicRLGraphManager(parameters())
    manager.create_graph(TaskParameters(device="cpu"))
    for record in manager.improve():
        if record.environment_steps == 400:
            break
    assert record.kind != "evaluation"
    rest = list(manager.improve())
    assert [r.kind for r in rest if r.kind == "evaluation"] == ["evaluation"]
    assert list(manager.improve()) == []
    manager.close()


def test_breaking_out_and_going_on_equals_not_stopping():
    manager = BasicRLGraphManager(parameters())
    manager.create_graph(TaskParameters(device="cpu"))
    for record in manager.improve():
        if record.kind == "train":
            break
    list(manager.improve())
    _, straight = finished(parameters())
    assert_same_state(manager.state_dict(), straight)
    manager.close()


CONTINUE = """
import sys
from pathlib import Path
import torch
sys.path.insert(0, {tests!r})
from test_graph_manager import everything_on
from coach_rl.experiment.checkpoint import read_checkpoint, write_checkpoint
from coach_rl.graph_managers import BasicRLGraphManager, TaskParameters
torch.set_num_threads(1)
manager = BasicRLGraphManager(everything_on())
manager.create_graph(TaskParameters(seed=3, device="cpu"))
manager.load_state_dict(read_checkpoint(Path({half!r})).state)
for _ in manager.improve():
    pass
write_checkpoint(Path({whole!r}), manager.state_dict(), {{}})
manager.close()
"""


@pytest.mark.parametrize("stop_at", [60, 303, 450])
def test_a_new_process_goes_on_bit_for_bit(tmp_path, stop_at):
    """In heat-up, in the middle of a rollout, and later."""
    torch.set_num_threads(1)
    manager = BasicRLGraphManager(everything_on())
    manager.create_graph(TaskParameters(seed=3, device="cpu"))
    saved = False
    for record in manager.improve():
        if not saved and record.environment_steps >= stop_at:
            write_checkpoint(tmp_path / "half", manager.state_dict(), {})
            saved = True
    assert saved
    straight = manager.state_dict()
    manager.close()
    script = CONTINUE.format(
        tests=str(__file__.rsplit("/", 1)[0]),
        half=str(tmp_path / "half"),
        whole=str(tmp_path / "whole"),
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
    assert_same_state(read_checkpoint(tmp_path / "whole").state, straight)


class Probe:
    """An agent that notes torch's settings whenever it computes."""

    def __init__(self, agent):
        self.seen = {}
        for name in ("act", "train"):
            setattr(agent, name, self._noting(name, getattr(agent, name)))

    def _noting(self, name, call):
        def noting(*arguments, **keywords):
            self.seen.setdefault(name, set()).add(torch_settings())
            return call(*arguments, **keywords)

        return noting


def torch_settings():
    return torch.get_num_threads(), torch.get_float32_matmul_precision()


def test_threads_and_precision_of_a_task_hold_while_the_graph_computes_and_nowhere_else():
    before = torch_settings()
    wanted = before[0] + 1, "medium"
    manager = BasicRLGraphManager(parameters())
    task = TaskParameters(device="cpu", threads=wanted[0], matmul_precision=wanted[1])
    manager.create_graph(task)
    assert torch_settings() == before
    probe = Probe(manager._graph.agents[0])
    between = {torch_settings() for _ in manager.improve()}
    assert probe.seen == {"act": {wanted}, "train": {wanted}}
    assert between == {before}
    probe.seen.clear()
    list(manager.evaluate(EnvironmentEpisodes(2)))
    assert probe.seen == {"act": {wanted}}
    manager.close()
    assert torch_settings() == before


def test_one_thread_is_the_default_whatever_the_process_uses():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with BasicRLGraphManager(parameters()) as manager:
            manager.create_graph(TaskParameters(device="cpu"))
            probe = Probe(manager._graph.agents[0])
            manager.run()
        assert {threads for seen in probe.seen.values() for threads, _ in seen} == {1}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_torch_settings_are_put_back_where_computing_fails():
    before = torch_settings()
    manager = BasicRLGraphManager(parameters())
    manager.create_graph(TaskParameters(device="cpu", threads=before[0] + 1))
    manager._graph.agents[0].act = lambda *_, **__: 1 / 0
    with manager, pytest.raises(ZeroDivisionError):
        manager.run()
    assert torch_settings() == before


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_must_be_positive(threads):
    with pytest.raises(ParameterError, match=f"threads must be 1 or more, got {threads}"):
        TaskParameters(threads=threads)


def test_a_graph_without_training_environments_evaluates_what_it_is_given(monkeypatch):
    built = []
    build = MujocoParameters.build

    def noted(self, *, num_envs):
        built.append(num_envs)
        return build(self, num_envs=num_envs)

    monkeypatch.setattr(MujocoParameters, "build", noted)
    described = everything_on()
    manager = BasicRLGraphManager(described)
    manager.create_graph(TaskParameters(seed=3, device="cpu"))
    manager.run()
    state = manager.state_dict()
    (expected,) = manager.evaluate(EnvironmentEpisodes(3))
    manager.close()
    assert built == [described.num_envs, 2]
    state["training"]["top"] = state["tracker"] = None  # of environments
    tester = BasicRLGraphManager(described)
    tester.create_graph(TaskParameters(seed=3, device="cpu"), training=False)
    assert built == [described.num_envs, 2, 2]
    tester.load_agents(state)
    (record,) = tester.evaluate(EnvironmentEpisodes(3))
    assert record.scalars == expected.scalars
    assert record.environment_steps == expected.environment_steps == 900
    assert record.training_steps == expected.training_steps > 0
    assert record.episodes == expected.episodes > 0
    for call in (tester.run, tester.state_dict, lambda: tester.load_state_dict(state)):
        with pytest.raises(ConfigurationError, match="built to evaluate only"):
            call()
    tester.close()
    tester.close()


def test_evaluation_plays_every_row_its_share():
    manager = BasicRLGraphManager(parameters(evaluation_episodes=EnvironmentEpisodes(16)))
    manager.create_graph(TaskParameters(device="cpu"))
    (record,) = manager.evaluate(EnvironmentEpisodes(21))
    assert len(record.arrays["episode/reward"]) == 21
    assert record.scalars["evaluation/episodes"] == 21
    (again,) = manager.evaluate(EnvironmentEpisodes(21))
    np.testing.assert_array_equal(record.arrays["episode/reward"], again.arrays["episode/reward"])
    (fresh,) = manager.evaluate(EnvironmentEpisodes(21), seed=99)
    assert not np.array_equal(record.arrays["episode/reward"], fresh.arrays["episode/reward"])
    manager.close()


def test_a_two_level_graph_runs_and_learns_on_both_levels():
    reach = GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.1, 0.1), elements=(0, 1))
    params = GraphParameters(
        levels=(
            LevelParameters(name="high", agent=ppo(rollout=EnvironmentSteps(16))),
            LevelParameters(name="low", agent=ppo(), goal_space=reach, horizon=5),
        ),
        environment=PointMassParameters(),
        num_envs=4,
        schedule=parameters().schedule,
    )
    manager = GraphManager(params)
    manager.create_graph(TaskParameters(device="cpu"))
    records = list(manager.improve())
    assert {r.level for r in records if r.kind == "train"} == {"high", "low"}
    assert records[-1].environment_steps == 400
    state = manager.state_dict()
    other = GraphManager(params)
    other.create_graph(TaskParameters(device="cpu"))
    other.load_state_dict(state)
    assert_same_state(other.state_dict(), state)
    manager.close()
    other.close()


def test_ppo_learns_the_one_step_world():
    params = BasicGraphParameters(
        agent=replace(
            ppo(rollout=EnvironmentSteps(256), minibatch=64, epochs=8),
            optimizer=replace(PPOAgentParameters().optimizer, learning_rate=3e-3),
        ),
        environment=OneStepParameters(size=4),
        num_envs=8,
        schedule=ScheduleParameters(
            training=EnvironmentSteps(6_000),
            evaluation_interval=EnvironmentSteps(6_000),
            evaluation_episodes=EnvironmentEpisodes(50),
        ),
    )
    records, _ = finished(params)
    assert records[-1].scalars["evaluation/reward_mean"] >= 0.98


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_run_on_the_gpu_can_be_saved_and_goes_on_on_the_cpu(tmp_path):
    manager = BasicRLGraphManager(everything_on())
    manager.create_graph(TaskParameters(device="cuda"))
    for record in manager.improve():
        if record.environment_steps >= 450:
            break
    write_checkpoint(tmp_path / "half", manager.state_dict(), {})
    manager.close()
    other = BasicRLGraphManager(everything_on())
    other.create_graph(TaskParameters(device="cpu"))
    other.load_state_dict(read_checkpoint(tmp_path / "half").state)
    assert list(other.improve())[-1].environment_steps == 900
    other.close()


def test_records_can_be_written_as_json():
    records, _ = finished(parameters())
    for record in records:
        json.dumps(dict(record.scalars), allow_nan=False)


def test_asking_before_building_says_what_to_do():
    with pytest.raises(ConfigurationError, match="call create_graph"):
        BasicRLGraphManager(parameters()).state_dict()


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(device):
    with pytest.raises(ConfigurationError, match=f"'{device}'"):
        BasicRLGraphManager(parameters()).create_graph(TaskParameters(device=device))
