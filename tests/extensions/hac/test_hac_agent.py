"""HAC's agents in their stacks: what they learn from, going on after a stop, wrong input."""

from dataclasses import replace
from functools import partial

import pytest
import torch

import coach_rl as rl
from coach_rl.core.clock import Phase
from coach_rl.extensions.testing.states import assert_same_state
from tests.agents.decisions import transition_batch
from tests.agents.resuming import after, assert_resumes
from tests.builders import ddpg

PLACES = rl.GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.2, 0.2), elements=(0, 1))

TORSO = rl.TorsoParameters(middleware=(8,), activation="relu", orthogonal=False)
LEARNERS = {
    "ddpg": rl.DDPGAgentParameters,
    "td3": rl.TD3AgentParameters,
    "sac": rl.SACAgentParameters,
}


def agent(kind="ddpg", **changes):
    learner = ddpg(LEARNERS[kind], torso=TORSO, learning_starts=10, report_every=10)
    return rl.HACAgentParameters(
        **{"learner": learner, "ratio": 3.0, "bound_values": kind != "sac", **changes}
    )


def stack(horizons=(4, 3, 5), *, kinds=("ddpg", "ddpg", "ddpg"), goals=PLACES):
    names = ("top", "middle", "low") if len(horizons) == 3 else ("top", "low")
    return tuple(
        rl.LevelParameters(name=name, agent=agent(kind), goal_space=goals, horizon=horizon)
        for name, horizon, kind in zip(names, horizons, kinds, strict=False)
    )


def parameters(levels=None, *, steps=450, **changes):
    values = {
        "stack": levels or stack(),
        "environment": rl.GoalPointMassParameters(
            terminate=True, threshold=0.2, max_episode_steps=47
        ),
        "num_envs": 3,
        "testing_rate": 0.5,
        "schedule": rl.ScheduleParameters(
            training=steps, evaluation_interval=300, evaluation_episodes=3, progress_interval=100
        ),
    }
    return rl.HACGraphParameters(**{**values, **changes})


def built(params, seed=0):
    manager = rl.HACGraphManager(params)
    manager.create_graph(rl.Runtime(seed=seed, device="cpu"))
    return manager


def drained(manager, steps=None):
    """The records of a number of environment steps, or of all that are left."""
    records = []
    for record in manager.improve():
        records.append(record)
        if (
            steps is not None
            and manager.graph.clock.environment_steps >= steps
            and manager.progress.is_settled
        ):
            break
    return records


TIMED = rl.TimedGoalSpace.of(PLACES, longest=9)


def timed_stack(kinds=("ddpg", "td3", "ddpg"), longest=(9, 4)):
    top, *below = stack((4, None, None), kinds=kinds)
    spaces = [rl.TimedGoalSpace.of(PLACES, longest=each) for each in longest]
    return (
        top,
        *(replace(level, goal_space=space) for level, space in zip(below, spaces, strict=True)),
    )


def is_amid_everywhere(manager):
    """Whether every level is in the middle of a sub-episode, and a test is under way."""
    level, rows = manager.state_dict()["training"]["top"], []
    while "rows" in level:
        rows.append(level["rows"])
        level = level["environment"]
    open_everywhere = all((each["decisions"] > 0).any() for each in rows)
    return open_everywhere and any(each["decision_tested"].any() for each in rows)


def test_hac_stopped_in_mid_sub_episodes_resumes_bit_for_bit(tmp_path):
    params = parameters(stack(kinds=("td3", "sac", "ddpg")), steps=300)
    assert_resumes(partial(built, params), tmp_path, after(150, is_amid_everywhere))


def test_values_of_goals_with_a_time_lie_between_their_rewards():
    manager = built(parameters(timed_stack(kinds=("ddpg", "td3", "ddpg"))))
    agents = manager.graph.agents
    clips = {name: each.learner.clip_targets for name, each in agents.items()}
    assert clips == {"top": (-4.0, 0.0), "middle": (-1.0, 1.0), "low": (0.0, 1.0)}
    layouts = {name: each.memory.layout for name, each in agents.items()}
    penalties = {name: layouts[name].parts[-1].penalty for name in ("top", "middle")}
    assert penalties == {"top": -4.0, "middle": -1.0}
    manager.close()


def test_evaluations_test_nothing_and_change_nothing():
    top, *rest = stack()
    as_the_environment = replace(PLACES, reached_within="ball")
    manager = built(parameters((replace(top, goal_space=as_the_environment), *rest), steps=400))
    drained(manager)
    before = manager.state_dict()
    record = manager.evaluate(rl.EnvironmentEpisodes(5))
    levels = record.levels
    assert record.kind == "evaluation"
    assert {each.level for each in levels} == {"top", "middle", "low"}
    assert all(each.phase is Phase.TEST for each in levels)
    top = next(each for each in levels if each.level == "top")
    # Episodes end at the goal, so that the top level's successes are the episodes'.
    assert top.scalars["evaluation_level/goal_share"] * top.scalars[
        "evaluation_level/sub_episodes"
    ] == pytest.approx(5 * record.scalars["evaluation/success_rate"])
    assert_same_state(before, manager.state_dict())
    manager.close()


def test_values_lie_between_minus_the_horizon_and_nothing():
    manager = built(parameters(stack((4, 3))))
    for each, horizon in zip(manager.graph.agents.values(), (4, 3), strict=True):
        batch = {
            "observation": 9 * torch.randn(500, 4),
            "achieved_goal": 9 * torch.randn(500, 2),
            "desired_goal": 9 * torch.randn(500, 2),
        }
        low, high = each.action_space.low, each.action_space.high
        action = torch.rand(500, 2) * torch.from_numpy(high - low) + torch.from_numpy(low)
        values = each.learner.critics.call(50 * each.learner.critics.online, batch, action)
        assert values.min() >= -horizon
        assert values.max() <= 0
        hopeful = each.learner.critics.call(0 * each.learner.critics.online, batch, action)
        assert (hopeful > -0.02 * horizon).all(), "values start near 0, where good ones lie"
    manager.close()


@pytest.mark.parametrize("kind", ["ddpg", pytest.param("td3", marks=pytest.mark.slow)])
def test_a_state_that_was_hopeless_for_long_is_soon_worth_something_again(kind):
    """Targets below minus the horizon would push the squashed value where no gradient is left."""
    manager = built(parameters(stack((10, 3), kinds=(kind, kind)), num_envs=1))
    top = manager.graph.agents["top"]
    batch = hopeless(top, 64)
    for _ in range(1_200):
        top.learn_from_batch(batch)
    critics = top.learner.networks["critic" if kind == "ddpg" else "critics"]
    seen = {key: batch.observation[key] for key in top.observation_space.spaces}
    values = critics.call(critics.online, seen, batch.action)
    assert values.mean() < -9.5
    hopeful = batch._replace(reward=torch.full((64,), -1.0), discount=torch.zeros(64))
    for _ in range(160):
        top.learn_from_batch(hopeful)
    assert critics.call(critics.online, seen, batch.action).mean() > -3.0
    manager.close()


def hopeless(agent, size):
    """A batch from which nothing but the bound follows: -1 a decision and 0.98 times -10 more."""
    rng = torch.Generator().manual_seed(0)
    shapes = {key: part.shape for key, part in agent.observation_space.spaces.items()}
    before, after = (
        {key: torch.rand((size, *shape), generator=rng) for key, shape in shapes.items()}
        for _ in range(2)
    )
    return transition_batch(
        before, 2 * torch.rand((size, 2), generator=rng) - 1, after, reward=-1.0 - 0.98 * 10
    )


def test_targets_of_bounded_values_are_clipped_to_the_bounds():
    for kind in ("ddpg", "td3"):
        manager = built(parameters(stack((4, 3), kinds=(kind, kind))))
        clips = [each.learner.clip_targets for each in manager.graph.agents.values()]
        assert clips == [(-4.0, 0.0), (-3.0, 0.0)]
        manager.close()
    learner = replace(
        agent().learner, algorithm=rl.DDPGAlgorithmParameters(clip_targets=(-2.5, 0.0))
    )
    top, low = stack((4, 3))
    manager = built(parameters((top, replace(low, agent=agent(learner=learner)))))
    assert manager.graph.agents["low"].learner.clip_targets == (-2.5, 0.0), "a learner's own stay"
    manager.close()


def test_hindsight_actions_are_for_levels_with_one_below():
    agents = built(parameters(stack((4, 3)))).graph.agents
    top, low = (agents[name].memory.layout for name in ("top", "low"))
    _, actions = top.parts
    assert actions.sub_goal == PLACES
    assert actions.penalty == -4.0
    (own,) = low.parts
    assert own.hindsight.goal == PLACES
    assert own.hindsight.goal_ends_episode


def test_a_goal_to_be_held_is_no_end_in_hindsight():
    top, low = stack((4, 3))
    agents = built(parameters((top, replace(low, goal_is_terminal=False)))).graph.agents
    top, low = (agents[name].memory.layout.parts[0].hindsight for name in ("top", "low"))
    assert top.goal_ends_episode
    assert not low.goal_ends_episode


FREE = {"bound_values": False}


@pytest.mark.parametrize("actions", [None, rl.HindsightActionParameters(penalty=-12.0)])
def test_goals_rewarded_by_distance_where_nothing_counts_on_rewards_of_minus_1(actions):
    dense = {"goal_space": replace(PLACES, reward="dense"), "agent": agent(actions=actions, **FREE)}
    manager = built(parameters(tuple(replace(each, **dense) for each in stack((4, 3))), steps=200))
    drained(manager)
    assert manager.graph.clock.training_steps > 0
    manager.close()


def test_a_learner_keeps_bounds_of_its_own_and_the_name_it_shares():
    learner = replace(agent().learner, name="upper", critic=rl.CriticParameters(bounds=(-9.0, 0.0)))
    own = agent(learner=learner, name="upper", bound_values=False)
    top, low = stack((4, 3))
    manager = built(parameters((replace(top, agent=own), low)))
    assert manager.graph.agents["top"].name == "upper"
    assert manager.graph.agents["top"].params.critic.bounds == (-9.0, 0.0)
    manager.close()


def test_hac_unbounded_values_accept_any_penalty():
    unbounded = agent(actions=rl.HindsightActionParameters(penalty=-3.0), bound_values=False)
    assert unbounded.learner.critic.bounds is None
