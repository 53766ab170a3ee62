"""Option-critic: what options are worth where they end, and where they learn to end."""

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from coach_rl.core.clock import LinearSchedule
from coach_rl.core.options import OptionSpace
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.skills.option_critic_agent import continued
from tests.agents import resuming
from tests.agents.small_agents import learning_top, low_agent, ppo, stack
from tests.extensions.skills.skill_stacks import option_critic

OPTIONS = OptionSpace(count=3)


def collected(agent, steps=120, **more):
    graph_manager = stack(agent, OPTIONS, **more)
    list(graph_manager.train_and_act(EnvironmentSteps(steps)))
    return graph_manager


def test_ends_of_options_are_worth_what_the_best_option_is():
    """An option that goes on behind the rollout is worth its own value."""
    graph_manager = collected(option_critic(ppo("skills", 1_000)))
    agent = low_agent(graph_manager)
    rollout, count = agent.memory.rollout(torch.device("cpu")), len(agent.memory)
    positions = torch.arange(count)
    after = {key: values[:count] for key, values in rollout.next_observation.items()}
    with torch.no_grad():
        found = agent.value_after(rollout, positions)
        own = agent.model.value(after)
        every = []
        for option in torch.eye(3):
            every.append(agent.model.value({**after, "option": option.repeat(count, 1)}))
    best = torch.stack(every).max(dim=0).values
    over = rollout.truncated[:count]
    assert over.any()
    assert not over.all()
    torch.testing.assert_close(found, torch.where(over, best, own))
    assert (best > own + 1e-4).any(), "the test wants options of different values"
    graph_manager.close()


def test_advantages_continue_under_the_next_option():
    """Only real episodes, and what was left out in a heat-up, end them."""
    graph_manager = stack(option_critic(ppo("skills", 1_000, normalised=False)), OPTIONS)
    for _ in range(2):
        list(graph_manager.train_and_act(EnvironmentSteps(5 * 20)))
        list(graph_manager.heatup(EnvironmentSteps(5 * 3)))
    memory = low_agent(graph_manager).memory
    rollout, grid = memory.rollout(torch.device("cpu")), memory.grid()
    found = continued(rollout, grid)
    ways = set()
    for row in grid.index.T:
        for this, after in itertools.pairwise(row.tolist()):
            is_next = np.array_equal(
                rollout.next_observation["observation"][this],
                rollout.observation["observation"][after],
            )
            ended, over = bool(rollout.truncated[this]), bool(rollout.extras["episode_over"][this])
            assert bool(found.truncated[this]) == (ended and (over or not is_next))
            if ended and not over and is_next:
                assert found.follows[after]
            ways.add((ended, over, is_next))
    assert {(True, False, True), (True, True, False), (False, False, True)} <= ways
    graph_manager.close()


def test_advantages_of_going_on_are_never_positive():
    """Q(s, w) - max Q(s, .): 0 for the best option, final states do not count."""
    graph_manager = collected(option_critic(ppo("skills", 1_000)))
    agent = low_agent(graph_manager)
    batch, count = agent.termination_batch(), len(agent.memory)
    assert (batch.advantage[:count] <= 0).all()
    assert (batch.advantage[:count] == 0).any()
    assert (batch.advantage[:count] < 0).any()
    torch.testing.assert_close(
        batch.counts[:count], ~torch.from_numpy(agent.memory.columns["/terminated"][:count])
    )
    graph_manager.close()


@pytest.mark.parametrize(("cost", "is_longer"), [(100.0, True), (0.0, False)])
def test_a_cost_of_deliberation_makes_options_last(cost, is_longer):
    graph_manager = stack(
        option_critic(deliberation_cost=cost),
        OPTIONS,
        training=EnvironmentSteps(800),
        evaluation_interval=None,
    )
    chances = [
        record.scalars["train/termination_chance"]
        for record in graph_manager.improve()
        if record.kind == "train"
    ]
    assert chances[0] == pytest.approx(0.3, abs=0.02)
    assert (chances[-1] < chances[0]) == is_longer
    graph_manager.close()


def test_schedule_of_learning_rates_is_that_of_the_termination_too():
    plain = ppo("skills")
    falling = LinearSchedule(start=1.0, end=0.0)
    agent = option_critic(plain)
    agent = replace(agent, algorithm=replace(plain.algorithm, learning_rate_schedule=falling))
    graph_manager = stack(agent, OPTIONS, evaluation_interval=None)
    logged = [each.scalars for each in graph_manager.improve() if each.kind == "train"]
    rates = [each["train/termination_learning_rate"] for each in logged]
    assert rates[0] > 2 * rates[-1] > 0
    shares = [each["train/learning_rate"] / agent.optimizer.learning_rate for each in logged]
    np.testing.assert_allclose(rates, 3e-4 * np.array(shares))
    engine = low_agent(graph_manager)._termination_engine
    assert float(engine.scalars["termination_learning_rate"]) == pytest.approx(rates[-1])
    graph_manager.close()


def test_the_answers_of_other_processes_are_followed():
    """Where workers collect, options end as they did there, by networks that may be older."""
    graph_manager = collected(option_critic(ppo("skills", 1_000)))
    agent = low_agent(graph_manager)
    rows, every = agent.new_rows(4, seed=0), np.arange(4)
    seen = {
        "observation": np.zeros((4, 4), np.float32),
        "option": np.eye(3, dtype=np.float32)[[0, 1, 2, 0]],
    }
    made = np.array([True, False, True, True])
    rows.follow({"ended": made, "action": np.zeros((4, 2), np.float32)})
    found = agent.ends(rows, every, seen, graph_manager.graph.clock)
    np.testing.assert_array_equal(found, made)
    np.testing.assert_array_equal(rows.decisions()["ended"], made)
    graph_manager.close()


def test_stack_stopped_in_mid_option_resumes_bit_for_bit(tmp_path):
    schedule = {"heatup": EnvironmentSteps(40), "progress_interval": EnvironmentSteps(5)}
    build = partial(stack, option_critic(), OPTIONS, top=learning_top(), **schedule)
    moments = (resuming.after(steps, resuming.amid) for steps in (35, 295))
    resuming.assert_resumes(build, tmp_path, *moments)  # in heat-up; among updates


class MirroredFirst:
    """States whose first element has another sign are alike; actions are left as they are."""

    description = "mirrored first element"

    def build(self, context):
        self.observation_space = context.spaces.observation
        return self

    def canonical(self, observation):
        seen = observation["observation"].copy()
        seen[:, 0] = np.abs(seen[:, 0])
        return {**observation, "observation": seen}

    def restored(self, action, observation):
        return action


def test_ends_are_drawn_for_what_stands_for_a_state(monkeypatch):
    params = replace(option_critic(ppo("skills", 1_000)), symmetry=MirroredFirst())
    graph_manager = collected(params, steps=20)
    agent, shown = low_agent(graph_manager), []
    filtered = agent.input_filter.observation

    def kept(rows, which, observation, **more):
        shown.append(observation["observation"])
        return filtered(rows, which, observation, **more)

    monkeypatch.setattr(agent.input_filter, "observation", kept)
    seen = {
        "observation": np.array([[-1, -2, 3, 4], [1, 2, -3, 4]], np.float32),
        "option": np.eye(3, dtype=np.float32)[:2],
    }
    agent.ends(agent.new_rows(2, seed=0), np.arange(2), seen, graph_manager.graph.clock)
    np.testing.assert_array_equal(shown, [[[1, -2, 3, 4], [1, 2, -3, 4]]])
    graph_manager.close()


def test_filters_see_each_state_once():
    """Asking where an option ends leaves what filters keep of a row as it was."""
    agent = option_critic(ppo("skills", 1_000))
    graph_manager = collected(agent, steps=50)
    counts = low_agent(graph_manager).input_filter.state_dict()
    other = stack(replace(ppo("skills", 1_000), name="skills"), OPTIONS)
    list(other.train_and_act(EnvironmentSteps(50)))
    plain = low_agent(other).input_filter.state_dict()
    (found,), (expected,) = ([v for k, v in _flat(s) if "count" in k] for s in (counts, plain))
    assert float(found) == float(expected)
    for each in (graph_manager, other):
        each.close()


def _flat(tree, path=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}/{key}")
        else:
            yield f"{path}/{key}", value


def test_gradient_steps_of_policy_and_termination_are_counted_apart():
    graph_manager = collected(option_critic(ppo("skills", 40)), steps=400)
    agent = low_agent(graph_manager)
    engines = agent.engine, agent._termination_engine
    assert agent.training_steps == agent.engine.steps > 0, "ages of minibatches begin at 0"
    assert engines[1].steps > 0
    other = stack(option_critic(ppo("skills", 40)), OPTIONS)
    low_agent(other).load_state_dict(agent.state_dict())
    again = low_agent(other)
    assert [each.steps for each in (again.engine, again._termination_engine)] == [
        each.steps for each in engines
    ]
    graph_manager.close()
    other.close()
