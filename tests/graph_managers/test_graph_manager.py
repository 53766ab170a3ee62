"""The experiment loop: phases, counters, evaluations apart, going on bit for bit after a stop."""

import sys
from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest
import torch

import coach_rl as rl
from coach_rl.core.clock import Phase
from coach_rl.core.errors import RunError
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint
from tests.builders import created, flat
from tests.graph_managers.small_runs import parameters, ppo


def everything_on():
    """MuJoCo physics, filters with statistics, schedules: whatever has a state."""
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(96),
            epochs=2,
            minibatch=32,
            objective="kl",
            recompute_advantages=True,
            scale_returns=True,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        ),
        input_filter=rl.InputFilter(
            observation={"observation": (rl.ObservationNormalizationFilter(),)},
            reward=(rl.RewardReturnScalingFilter(),),
        ),
        output_filter=rl.OutputFilter(action=(rl.LinearBoxToBoxMap(),)),
        update_mode="eager",
    )
    hopper = rl.MujocoParameters(level="hopper", threads=2)
    return flat(agent, hopper, num_envs=3, training=900, heatup=90, evaluation_interval=200)


def finished(params, seed=0):
    manager = created(params, seed)
    records = list(manager.improve())
    state = manager.state_dict()
    manager.close()
    return records, state


@pytest.fixture(scope="module")
def straight():
    """Records and state of a run that is not interrupted."""
    return finished(parameters())


def test_phases_counters_and_records(straight):
    records, state = straight
    kinds = Counter(record.kind for record in records)
    phases = [r.phase for r in records if r.kind == "phase"]
    assert phases == [Phase.HEATUP, Phase.TRAIN, *[Phase.TEST] * 4]
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


def test_same_seed_same_numbers_other_seed_other_numbers(straight):
    _, one = straight
    _, same = finished(parameters())
    _, other = finished(parameters(), seed=2)
    assert_same_state(one, same)
    weights = [s["agents"]["main"]["network"]["online"]["policy_head.weight"] for s in (one, other)]
    assert not torch.equal(*weights)


def test_evaluations_change_nothing(straight):
    _, never = finished(parameters(evaluation_interval=None))
    _, often = straight
    times = ("next_evaluation", "announced_at", "evaluated_at")
    progress = {name: never["progress"][name] for name in times}
    assert_same_state({**often, "progress": often["progress"] | progress}, never)


def test_a_run_stopped_before_its_last_evaluation_still_makes_it():
    with created(parameters()) as manager:
        for record in manager.improve():
            if record.environment_steps == 400:
                break
        assert record.kind != "evaluation"
        rest = list(manager.improve())
        assert [r.kind for r in rest if r.kind == "evaluation"] == ["evaluation"]
        assert list(manager.improve()) == []


def test_breaking_out_and_going_on_equals_not_stopping(straight):
    with created(parameters()) as manager:
        for record in manager.improve():
            if record.kind == "train":
                break
        list(manager.improve())
        assert_same_state(manager.state_dict(), straight[1])


def test_graph_manager_without_training_evaluates_a_loaded_state(monkeypatch):
    built = []
    build = rl.MujocoParameters.build

    def noted(self, *, num_envs):
        built.append(num_envs)
        return build(self, num_envs=num_envs)

    monkeypatch.setattr(rl.MujocoParameters, "build", noted)
    described = everything_on()
    with created(described, 3) as manager:
        manager.run()
        state = manager.state_dict()
        expected = manager.evaluate(rl.EnvironmentEpisodes(3))
    assert built == [described.num_envs, 2]
    state["training"]["top"] = state["tracker"] = None  # of environments
    tester = rl.BasicRLGraphManager(described)
    tester.create_graph(rl.Runtime(seed=3, device="cpu"), training=False)
    assert built == [described.num_envs, 2, 2]
    tester.evaluations.load_agents(state)
    record = tester.evaluate(rl.EnvironmentEpisodes(3))
    assert record.scalars == expected.scalars
    assert record.environment_steps == expected.environment_steps == 900
    assert record.training_steps == expected.training_steps > 0
    assert record.episodes == expected.episodes > 0
    for call in (tester.run, tester.state_dict, lambda: tester.load_state_dict(state)):
        with pytest.raises(rl.ConfigurationError):
            call()
    tester.close()
    tester.close()


def test_ppo_learns_the_one_step_world():
    params = flat(
        replace(
            ppo(rollout=rl.EnvironmentSteps(256), minibatch=64, epochs=8),
            optimizer=replace(rl.PPOAgentParameters().optimizer, learning_rate=3e-3),
        ),
        rl.OneStepParameters(size=4),
        num_envs=8,
        training=6_000,
        evaluation_interval=6_000,
        evaluation_episodes=50,
    )
    records, _ = finished(params)
    assert records[-1].scalars["evaluation/reward_mean"] >= 0.98


@pytest.mark.gpu
def test_a_run_on_the_gpu_can_be_saved_and_continues_on_the_cpu(tmp_path):
    manager = rl.BasicRLGraphManager(everything_on())
    manager.create_graph(rl.Runtime(device="cuda"))
    for record in manager.improve():
        if record.environment_steps >= 450:
            break
    write_checkpoint(tmp_path / "half", manager.state_dict(), {})
    manager.close()
    with created(everything_on()) as other:
        other.load_state_dict(read_checkpoint(tmp_path / "half").state)
        assert list(other.improve())[-1].environment_steps == 900


def leaves(*_):
    sys.exit(0)


def leaves_by_the_builtin(*_):
    exit(0)


@pytest.mark.parametrize("function", [leaves, leaves_by_the_builtin])
@pytest.mark.parametrize("use", ["improve", "evaluate", "run"])
def test_exit_in_a_users_function_is_an_error_that_names_it(function, use):
    agent = rl.ScriptedAgentParameters(policy=function)
    manager = rl.BasicRLGraphManager(replace(parameters(), agent=agent))
    manager.create_graph(rl.Runtime(device="cpu"))
    uses = {
        "improve": lambda: [*manager.improve()],
        "evaluate": lambda: manager.evaluate(rl.EnvironmentEpisodes(1)),
        "run": manager.run,
    }
    with manager, pytest.raises(RunError, match=f"SystemExit: 0 .* in {function.__name__}\\(\\)"):
        uses[use]()


def test_improve_that_is_iterated_no_further_is_closed():
    with closing(rl.BasicRLGraphManager(parameters())) as manager:
        records = manager.improve()
        next(records)
        records.close()
        assert [*records] == []
        assert next(manager.improve())
