"""PPO on levels: decisions that last, rows out of step, orders that change, stops in the middle."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import small_agents
import torch
from decisions import stored_by
from resuming import after, amid, assert_resumes, rows_below
from small_agents import ddpg

from coach_rl.core.goals import GoalSpace
from coach_rl.core.options import OPTION_KEY, OptionSpace
from coach_rl.core.records import EnvResponse
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.scripts.scripted_agent import ScriptedAgentParameters

PLACES = GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.2, 0.2), elements=(0, 1))
OPTIONS = OptionSpace(count=4)


def ppo(**algorithm):
    plain = small_agents.ppo()
    return replace(plain, algorithm=replace(plain.algorithm, **algorithm))


def go(observation, space):
    """Push to the lower right, whatever the order."""
    return np.tile(np.array([[0.9, -0.4]], np.float32), (len(observation["observation"]), 1))


def manager(upper, lower, space, *, schedule=None, **more):
    return small_agents.stack(lower, space, top=upper, **more, **(schedule or {}))


def agents_of(graph_manager):
    return list(graph_manager.graph.agents.values())


def same(seen, other):
    return all(np.array_equal(seen[key], other[key]) for key in seen)


def slow_advantages(agent, stored, *, discount, trace):
    """GAE by its recursion over each row's transitions; by (row, how many before it)."""

    def value(observation):
        tensors = {key: torch.from_numpy(values) for key, values in observation.items()}
        with torch.inference_mode():
            return agent.model.value(tensors).numpy().astype(np.float64)

    by_row = {}
    for transition in stored:
        before, after = value(transition.observation), value(transition.next_observation)
        for i, row in enumerate(transition.rows):
            step = {
                "reward": transition.reward[i],
                "before": before[i],
                "after": 0.0 if transition.terminated[i] else after[i],
                "ends": transition.terminated[i] or transition.truncated[i],
                "seen": {key: values[i] for key, values in transition.observation.items()},
                "led_to": {key: values[i] for key, values in transition.next_observation.items()},
                "discount": discount ** int(transition.duration[i]),
            }
            by_row.setdefault(int(row), []).append(step)
    found = {}
    for row, steps in by_row.items():
        following, seen_next = 0.0, None
        for number, step in reversed(list(enumerate(steps))):
            if seen_next is not None and not same(step["led_to"], seen_next):
                following = 0.0  # what came next was not kept
            seen_next = step["seen"]
            carried = 0.0 if step["ends"] else step["discount"] * trace * following
            following = step["reward"] + step["discount"] * step["after"] - step["before"] + carried
            found[row, number] = following
    return found


@pytest.mark.parametrize("space", [PLACES, OPTIONS])
def test_advantages_of_decisions_that_last_equal_a_plain_loop(space):
    """Rows have as many decisions as they came to, the last of each is cut off by the rollout."""
    algorithm = {"discount": 0.9, "gae_lambda": 0.8, "discount_by_duration": True}
    upper = ppo(rollout=EnvironmentSteps(10_000), **algorithm)
    script = ScriptedAgentParameters(policy=go)
    graph_manager = manager(upper, script, space, reward_discount=0.9)
    agent = agents_of(graph_manager)[0]
    stored = stored_by(agent)
    list(graph_manager.train_and_act(EnvironmentSteps(340)))
    memory = agent.memory
    rollout = memory.rollout(torch.device("cpu"))
    found = agent.rollout_batch(rollout, memory.grid()).advantage[: len(memory)].tolist()
    expected = slow_advantages(agent, stored, discount=0.9, trace=0.8)
    count, durations = {}, set()
    for position, row in enumerate(memory.columns["/rows"][: len(memory)].tolist()):
        number = count[row] = count.get(row, -1) + 1
        assert found[position] == pytest.approx(expected[row, number], abs=1e-4)
        durations.add(int(memory.columns["/durations"][position]))
    assert len(found) == len(expected) > 50
    assert len(durations) > 1, "the test wants decisions of several lengths"
    if space is PLACES:
        assert len(set(count.values())) > 1, "the test wants rows of several lengths"
    assert rows_below(graph_manager)["open"].any(), (
        "the test wants decisions that are open when the rollout ends"
    )
    graph_manager.close()


@pytest.mark.parametrize("relative", [False, True])
def test_the_first_sub_goals_cover_the_whole_goal_space(relative):
    """Not N(0, 1) in goal units, of which -4 to 52 would see a corner."""
    low, high = np.float32([-4, 10]), np.float32([52, 10.5])
    goals = GoalSpace(
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        threshold=(0.2, 0.2),
        elements=(0, 1),
        relative=relative,
    )
    graph_manager = manager(ppo(rollout=EnvironmentSteps(1000)), ddpg(), goals, horizon=1)
    top, asked = agents_of(graph_manager)[0], []
    act = top.act
    top.act = lambda *given: asked.append(act(*given)) or asked[-1]
    list(graph_manager.train_and_act(EnvironmentSteps(400)))
    sent = np.concatenate(asked)
    first, last = (low - high, high - low) if relative else (low, high)
    share = (sent - first) / (last - first)
    np.testing.assert_allclose(share.mean(axis=0), 0.5, atol=0.06)
    quarters = [((share >= q / 4) & (share <= (q + 1) / 4)).mean(axis=0) for q in range(4)]
    assert np.min(quarters) > 0.12  # N(0, 1) clipped to [-1, 1]: 0.31, 0.19, 0.19, 0.31
    stored = stored_by(top)
    list(graph_manager.train_and_act(EnvironmentSteps(20)))
    drawn = np.concatenate([each.action for each in stored])
    assert abs(drawn.mean()) < 0.5  # in the policy's own units
    graph_manager.close()


def test_the_open_decision_of_a_rollout_comes_into_the_next_one():
    graph_manager = manager(
        ppo(rollout=EnvironmentSteps(8)), ScriptedAgentParameters(policy=go), PLACES
    )
    agent = agents_of(graph_manager)[0]
    stored, decided, act = stored_by(agent), [], agent.act

    def spied(row_state, request, clock):
        if clock is graph_manager.graph.clock:
            decided.extend(request.rows.tolist())
        return act(row_state, request, clock)

    agent.act = spied
    rounds = [r for r in graph_manager.train_and_act(EnvironmentSteps(400)) if r.kind == "train"]
    assert len(rounds) > 5
    open_rows = np.flatnonzero(rows_below(graph_manager)["open"]).tolist()
    came = [int(row) for transition in stored for row in transition.rows]
    assert sorted(came + open_rows) == sorted(decided)  # none lost, none twice
    graph_manager.close()


def test_decisions_made_in_heatup_are_dropped_where_they_end_later():
    """With options of 5 steps and a heat-up of 7, the second decision of a row is open.

    The third ends with the episode, after 13 steps.
    """
    script = ScriptedAgentParameters(policy="still")
    graph_manager = manager(
        ppo(rollout=EnvironmentSteps(1000)),
        script,
        OPTIONS,
        num_envs=3,
        schedule={"heatup": EnvironmentSteps(21)},
    )
    agent = agents_of(graph_manager)[0]
    list(graph_manager.heatup(EnvironmentSteps(21)))
    list(graph_manager.train_and_act(EnvironmentSteps(9)))  # the open decisions end
    assert len(agent.memory) == 0
    list(graph_manager.train_and_act(EnvironmentSteps(6)))
    assert len(agent.memory) == 0
    list(graph_manager.train_and_act(EnvironmentSteps(3)))  # the first decisions of TRAIN end
    assert len(agent.memory) == 3
    graph_manager.close()


@pytest.mark.parametrize("horizon", [1, 4])
def test_advantages_stop_at_a_stretch_of_random_actions(horizon):
    """Where decisions were dropped, the true next state is bootstrapped and the trace is cut."""
    algorithm = {"discount": 0.9, "gae_lambda": 0.8, "discount_by_duration": True}
    graph_manager = manager(
        ppo(rollout=EnvironmentSteps(1000), **algorithm),
        ScriptedAgentParameters(policy="still"),
        OPTIONS,
        horizon=horizon,
        num_envs=2,
    )
    agent = agents_of(graph_manager)[0]
    stored = stored_by(agent)
    for _ in range(3):
        list(graph_manager.train_and_act(EnvironmentSteps(2 * 15)))
        list(graph_manager.heatup(EnvironmentSteps(2 * 10)))
    list(graph_manager.train_and_act(EnvironmentSteps(2 * 15)))
    rollout = agent.memory.rollout(torch.device("cpu"))
    found = agent.rollout_batch(rollout, agent.memory.grid()).advantage.numpy()
    kept, number = {}, {}
    for place, row in enumerate(agent.memory.columns["/rows"][: len(agent.memory)].tolist()):
        number[row] = number.get(row, -1) + 1
        kept[row, number[row]] = found[place]
    expected = slow_advantages(agent, stored, discount=0.9, trace=0.8)
    assert kept == pytest.approx(expected, abs=1e-5)
    gaps = int((~agent.memory.columns["/follows"][: len(agent.memory)]).sum())
    ends = agent.memory.columns["/truncated"][: len(agent.memory)].sum()
    assert gaps > ends, "the test wants gaps in the middle of episodes"
    graph_manager.close()


@pytest.mark.parametrize("horizon", [1, 3])
def test_the_rollout_has_room_for_whatever_a_tick_brings(horizon):
    """Also where acting turns random and back with decisions open."""
    num_envs, rollout = 7, 9
    graph_manager = manager(
        ppo(rollout=EnvironmentSteps(rollout)),
        ScriptedAgentParameters(policy=go),
        PLACES,
        horizon=horizon,
        num_envs=num_envs,
    )
    agent, rng, most = agents_of(graph_manager)[0], np.random.default_rng(0), 0
    stored = stored_by(agent)
    for _ in range(40):
        for phase in (graph_manager.train_and_act, graph_manager.heatup):
            list(phase(EnvironmentSteps(num_envs * int(rng.integers(1, 6)))))
            most = max(most, len(agent.memory))
    assert sum(len(transition.rows) for transition in stored) > 100
    assert horizon == 1 or most >= rollout, (
        "the test wants decisions that come in while acting is random"
    )
    graph_manager.close()


def test_an_agent_sees_the_option_that_was_chosen_from_its_first_step():
    """Also where only the option changes and the real episode goes on."""
    graph_manager = manager(ppo(), ppo(rollout=EnvironmentSteps(1000)), OPTIONS)
    upper, lower = (stored_by(agent) for agent in agents_of(graph_manager))
    list(graph_manager.train_and_act(EnvironmentSteps(300)))
    chosen, seen = {}, {}
    for transition in upper:
        for row, option, duration in zip(
            transition.rows, transition.action, transition.duration, strict=True
        ):
            chosen.setdefault(int(row), []).extend([int(option)] * int(duration))
    for transition in lower:
        told = transition.observation[OPTION_KEY]
        assert (told == transition.next_observation[OPTION_KEY]).all()
        for row, option in zip(transition.rows, told.argmax(axis=1), strict=True):
            seen.setdefault(int(row), []).append(int(option))
    for row, options in chosen.items():
        assert seen[row][: len(options)] == options
        assert len(set(options)) > 1
    graph_manager.close()


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize(
    ("lower", "space"),
    [(ppo, PLACES), (ppo, OPTIONS), (ddpg, PLACES), (ddpg, OPTIONS)],
    ids=["ppo-goals", "ppo-options", "ddpg-goals", "ddpg-options"],
)
def test_ppo_above_stopped_in_mid_sub_episode_resumes_bit_for_bit(lower, space, tmp_path):
    schedule = {"heatup": EnvironmentSteps(40), "progress_interval": EnvironmentSteps(5)}
    upper = ppo(rollout=EnvironmentSteps(12), discount_by_duration=True)
    more = {"schedule": schedule, "reward_discount": 0.95}
    build = partial(manager, upper, lower(), space, **more)
    assert_resumes(build, tmp_path, after(35, amid), after(295, amid))  # in heat-up; among updates


def test_an_answer_holds_reward_and_ends_of_a_decision():
    """The rewards of an option come up discounted, as the advantages expect them."""
    graph_manager = manager(
        ppo(rollout=EnvironmentSteps(1000), discount=0.9, discount_by_duration=True),
        ScriptedAgentParameters(policy=go),
        OPTIONS,
        num_envs=1,
        reward_discount=0.9,
    )
    stack = graph_manager.graph.training
    upper = stored_by(agents_of(graph_manager)[0])
    rewards, tick = [], stack.tick

    def spied():
        answer = tick()
        assert isinstance(answer, EnvResponse)
        rewards.append(float(answer.reward[0]))
        return answer

    object.__setattr__(stack, "tick", spied)
    list(graph_manager.train_and_act(EnvironmentSteps(60)))
    begin = 0
    for transition in upper:
        took = int(transition.duration[0])
        part = rewards[begin : begin + took]
        assert transition.reward[0] == pytest.approx(np.dot(part, 0.9 ** np.arange(took)))
        begin += took
    assert begin > 40
    graph_manager.close()
