"""Open episodes that restart when a state is loaded: nothing joins the gap, the rest continues."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from coach_rl import OrnsteinUhlenbeckNoise
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.td3_agent import TD3AgentParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.core.errors import CoachWarning
from coach_rl.core.goals import GoalSpace
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.environments.toy import GoalPointMassParameters
from coach_rl.extensions.hindsight import HindsightParameters
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.filters import InputFilter, RewardReturnScalingFilter
from coach_rl.graph_managers import (
    LevelParameters,
)
from coach_rl.memories import ReplayMemoryParameters
from tests import builders
from tests.agents.goal_stacks import RELATIVE as GOALS
from tests.agents.goal_stacks import TORSO
from tests.builders import graph
from tests.graph_managers.small_runs import ppo

REACHED = GoalSpace(
    key="achieved_goal",
    low=(-1.0, -1.0),
    high=(1.0, 1.0),
    threshold=(0.1, 0.1),
    reached_within="ball",
)
SETTINGS = {
    "learning": LearningParameters(
        batch=16, updates_per_step=0.5, learning_starts=20, report_every=5
    ),
    "exploration": OrnsteinUhlenbeckNoise(),
    "actor": ActorParameters(torso=TORSO),
    "critic": CriticParameters(torso=TORSO),
    "update_mode": "eager",
}
STEPS = {"training": 600, "heatup": 60, "num_envs": 3}


def hierarchy(kind=TD3AgentParameters):
    low = TD3AgentParameters(**SETTINGS, memory=ReplayMemoryParameters(capacity=2000, n_step=3))
    top = kind(**SETTINGS, memory=ReplayMemoryParameters(capacity=500))
    return graph(
        LevelParameters(name="top", agent=top),
        LevelParameters(name="low", agent=low, goal_space=GOALS, horizon=7),
        environment=GoalPointMassParameters(threshold=0.2, terminate=True, max_episode_steps=23),
        **STEPS,
    )


def hindsight():
    memory = ReplayMemoryParameters(capacity=2000, relabelling=HindsightParameters(goal=REACHED))
    agent = TD3AgentParameters(**SETTINGS, memory=memory)
    level = LevelParameters(agent=agent)
    return graph(level, environment=GoalPointMassParameters(max_episode_steps=23), **STEPS)


def on_policy():
    return graph(LevelParameters(agent=ppo(rollout=1000)), **STEPS)


created = partial(builders.created, seed=4)


def played(manager, steps):
    for _ in manager.train_and_act(EnvironmentSteps(steps)):
        pass


@pytest.fixture(params=[hierarchy, hindsight, on_policy])
def restarted(request):
    yield from continued(request.param)


def continued(described):
    """A graph in the midst of episodes, and one that continues from it with fresh ones."""
    before, after = created(described()), created(described())
    for _ in before.heatup(EnvironmentSteps(60)):
        pass
    played(before, 3 * 50)
    with pytest.warns(CoachWarning):
        after.load_state_dict(before.state_dict(), restart_episodes=True)
    yield before, after
    before.close()
    after.close()


def test_everything_but_the_open_episodes_goes_on(restarted):
    states = []
    for manager in restarted:
        state = manager.state_dict()
        for agent in state["agents"].values():
            agent.pop("memory")  # it notes where the open episodes end
        state["levels"] = [level.own_state_dict() for level in manager.graph.training.levels]
        for level in state["levels"]:
            level.pop("rows")
            level["agent_rows"].pop("follows")
        state["clock"] = state.pop("training")["clock"]
        state.pop("tracker")
        states.append(state)
    assert_same_state(*states)


def test_the_episodes_are_others_and_all_levels_begin_them(restarted):
    before, after = restarted
    assert after.graph.tracker.lengths.tolist() == [0, 0, 0]
    for level in (one.state_dict()["rows"] for one in after.graph.training.levels):
        assert level["starts"].all()
        assert level["episode_start"].all()
        assert not level["open"].any()
        assert not level["decisions"].any()
    fresh = created(before.parameters)
    seen = [
        manager.graph.training.levels[-1].state_dict()["rows"]["observation"]
        for manager in (before, after, fresh)
    ]
    key = next(iter(seen[0]))
    assert not np.array_equal(seen[1][key], seen[0][key])
    assert not np.array_equal(seen[1][key], seen[2][key])
    fresh.close()


@pytest.mark.parametrize("restarted", [hierarchy, hindsight], indirect=True)
def test_no_transition_of_a_replay_memory_goes_on_across_the_gap(restarted):
    before, after = restarted
    kept = {name: len(agent.memory) for name, agent in before.graph.agents.items()}
    played(after, 3 * 40)
    for name, agent in after.graph.agents.items():
        assert len(agent.memory) > kept[name]
        store, old = agent.memory.store, before.graph.agents[name].memory.store
        for row, count in enumerate(old.counts.tolist()):
            last, first = store.positions_of(np.array([row, row]), np.array([count - 1, count]))
            ended = store.ledger["/terminated"][last] | store.ledger["/truncated"][last]
            (_, end), (begin, _) = (store.episodes_of(np.array([at])) for at in (last, first))
            assert ended
            assert end == begin == count


def test_no_rollout_row_is_joined_across_the_gap():
    before, after = created(on_policy()), created(on_policy())
    played(before, 3 * 10)
    with pytest.warns(CoachWarning):
        after.load_state_dict(before.state_dict(), restart_episodes=True)
    played(after, 3 * 10)
    memory = after.graph.agents["main"].memory
    columns = memory.trajectories()
    follows = memory.columns["/follows"][memory.grid().index.T]
    ended = columns["/terminated"] | columns["/truncated"]
    joined = follows[:, 1:] & ~ended[:, :-1]
    assert not joined[:, 9].any()
    assert joined[:, :9].all()
    assert joined[:, 10:].all()
    before.close()
    after.close()


def test_returns_that_a_reward_filter_adds_up_begin_anew():
    scaled = InputFilter(reward=(RewardReturnScalingFilter(),))
    agent = ppo(rollout=1000, input_filter=scaled)
    params = replace(on_policy(), levels=(LevelParameters(agent=agent),))
    before, after = created(params), created(params)
    fresh = sums_of_returns(before)
    played(before, 3 * 10)
    with pytest.warns(CoachWarning):
        after.load_state_dict(before.state_dict(), restart_episodes=True)
    assert sums_of_returns(before) != fresh
    assert sums_of_returns(after) == fresh
    before.close()
    after.close()


def sums_of_returns(manager):
    rows = manager.graph.training.levels[0].state_dict()["agent_rows"]["filters"]
    return {name: values.tolist() for name, values in rows.items()}
