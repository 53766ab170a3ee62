"""HIQL against a plain torch program in double precision, and as two levels of a run."""

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from decisions import context
from gymnasium import spaces
from plain_learners import (
    SMALL,
    assert_same_network,
    batches,
    follow,
    plain_adam,
    plain_critics,
    plain_step,
)

import coach_rl as rl
from coach_rl.architectures.gradient_step import mapped
from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.levels import LevelDescription
from coach_rl.extensions.data.block_filling import fill_in_blocks, learns_in_blocks
from coach_rl.extensions.data.files import open_data, write_file
from coach_rl.extensions.data.reading import read_into
from coach_rl.extensions.testing.states import assert_same_state
from tests.builders import created
from tests.extensions.goals_from_data.test_gciql import BOX, COMMON, SEEN, goal_batches, joined
from tests.extensions.offline.plain_iql import ADAM, PlainPolicy

LOW = GoalSpace(low=(-9.0,), high=(9.0,), threshold=(0.5,), key="x", elements=(0,))
TOP = replace(LOW, threshold=(1.0,))
MEMORY = rl.ReplayMemoryParameters(
    capacity=200, parts=(rl.DataGoalsParameters(goal=LOW, actor_ahead=3),)
)
CUTS = rl.ReplayMemoryParameters(capacity=200, parts=(rl.SubGoalsFromDataParameters(ahead=3),))


def lower(**algorithm):
    return rl.HIQLAgentParameters(
        algorithm=rl.HIQLAlgorithmParameters(**algorithm),
        value=rl.CriticParameters(torso=SMALL),
        policy_optimizer=ADAM,
        value_optimizer=ADAM,
        **{**COMMON, "memory": MEMORY},
    )


def upper(**extraction):
    return rl.HIQLUpperAgentParameters(
        extraction=rl.ExtractionParameters(**extraction),
        policy_optimizer=ADAM,
        **{**COMMON, "memory": CUTS},
    )


def above(agent):
    """The context of the level above an agent."""
    place = LevelPlace(
        level=LevelDescription(name="top", goal_space=TOP),
        below=LevelDescription(name="low", goal_space=LOW),
        agent_below=agent,
    )
    return context(SEEN, LOW.space, place=place)


class PlainHIQL:
    """Park et al. 2023, equations 4, 6 and 7, with both values of the authors' code."""

    def __init__(self, agent):
        self.settings = agent.params.algorithm
        learner = agent.learner
        self.policy = PlainPolicy(learner.policy)
        self.values = plain_critics(learner.value)
        self.targets = copy.deepcopy(self.values)
        self.values_adam = plain_adam(self.values, ADAM)

    def value(self, seen):
        return sum(each(seen)[:, 0] for each in self.values) / 2

    def value_loss(self, plain):
        before, after = joined(plain.observation), joined(plain.next_observation)
        with torch.no_grad():
            following = [each(after)[:, 0] for each in self.targets]
            now = sum(each(before)[:, 0] for each in self.targets) / 2
            advantage = plain.reward + plain.discount * torch.minimum(*following) - now
            side = (self.settings.expectile - (advantage < 0).double()).abs()
        total = 0
        for each, later in zip(self.values, following, strict=True):
            error = plain.reward + plain.discount * later - each(before)[:, 0]
            total = total + side * error**2
        return (plain.weight * total).mean()

    def policy_loss(self, plain):
        sub_goal = plain.extras["actor_goal"]
        before = joined(plain.observation, sub_goal)
        advantage = self.value(joined(plain.next_observation, sub_goal)) - self.value(before)
        return self.policy.cloning_loss(plain, before, advantage, self.settings.extraction)

    def step(self, batch):
        plain = mapped(torch.Tensor.double, batch)
        plain_step(self.values_adam, self.value_loss(plain), self.values, ADAM)
        self.policy.step(self.policy_loss(plain))
        follow(self.targets, self.values, self.settings.target_sync.rate)


@pytest.mark.parametrize(
    "algorithm",
    [
        {},
        {"expectile": 0.9, "extraction": rl.ExtractionParameters(temperature=10.0)},
        {"extraction": rl.ExtractionParameters(largest_weight=1.1)},
    ],
    ids=["defaults", "sharp", "limited"],
)
def test_hiql_equals_a_plain_program(algorithm):
    agent = lower(**algorithm).build(context(SEEN, BOX))
    plain = PlainHIQL(agent)
    for batch in goal_batches(8):
        plain.step(batch)
        agent.learn_from_batch(batch)
    learner = agent.learner
    plain.policy.assert_same(learner.policy)
    assert_same_network(plain_critics(learner.value), plain.values)
    assert_same_network(plain_critics(learner.value, learner.value.target), plain.targets)


@pytest.mark.parametrize("extraction", [{}, {"temperature": 0.5}], ids=str)
def test_hiql_upper_level_climbs_the_value_of_the_level_below(extraction):
    below = lower().build(context(SEEN, BOX))
    agent = upper(**extraction).build(above(below))
    values = PlainHIQL(below)
    plain = PlainPolicy(agent.learner.policy)
    narrow = batches(6, box=spaces.Box(-1, 1, (1,)))
    for seen, chosen in zip(goal_batches(6), narrow, strict=True):
        batch = seen._replace(action=chosen.action, extras={})
        double = mapped(torch.Tensor.double, batch)
        before, after = joined(double.observation), joined(double.next_observation)
        advantage = values.value(after) - values.value(before)
        wanted = plain.cloning_loss(double, before, advantage, agent.params.extraction)
        loss, _ = agent.learner.policy_loss(agent.learner.policy.online, batch, {})
        assert loss.item() == pytest.approx(wanted.item(), rel=2e-5)
        plain.step(wanted)
        agent.learn_from_batch(batch)
    plain.assert_same(agent.learner.policy)


def test_hiql_upper_level_without_values_below_is_refused():
    cloning = rl.BCAgentParameters(**COMMON).build(context(SEEN, BOX))
    with pytest.raises(ConfigurationError, match="give that level HIQLAgentParameters, got Policy"):
        upper().build(above(cloning))
    without = replace(upper(), memory=rl.ReplayMemoryParameters(capacity=200))
    with pytest.raises(ConfigurationError, match="learns sub-goals from data"):
        without.build(above(lower().build(context(SEEN, BOX))))
    other = {**SEEN, "x": spaces.Box(-9, 9, (3,))}
    with pytest.raises(ConfigurationError, match="give both levels goals of one size"):
        upper().build(above(lower().build(context(other, BOX))))


U_MAZE = rl.GoalWorldParameters(level="point_maze_u", max_episode_steps=20)
CENTRED = rl.InputFilter(observation={"y": (rl.ObservationNormalizationFilter(),)})
WITH_Y = {**SEEN, "y": spaces.Box(-9, 9, (1,))}


@pytest.mark.parametrize("filtered", ["low", "top"])
def test_hiql_upper_level_and_values_that_see_other_numbers_are_refused(filtered):
    filters = {"low": rl.InputFilter(), "top": rl.InputFilter(), filtered: CENTRED}
    below = replace(lower(), input_filter=filters["low"]).build(context(WITH_Y, BOX))
    place = above(below).place
    with pytest.raises(ConfigurationError, match="changes 'y'; leave its filters out"):
        replace(upper(), input_filter=filters["top"]).build(context(WITH_Y, LOW.space, place=place))


def test_hiql_with_huber_is_refused():
    with pytest.raises(ParameterError, match=r"huber is 0\.1, and HIQL squares all errors"):
        rl.HIQLAlgorithmParameters(huber=0.1)


RECURRENT = rl.TorsoParameters(embedder=(), recurrence=rl.GRU(size=4), middleware=(4,))


def prioritised(agent):
    return replace(agent, memory=replace(agent.memory, prioritised=rl.PrioritisedParameters()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (prioritised, "memory.prioritised is PrioritisedParameters; leave that out"),
        (
            lambda agent: replace(agent, policy=rl.PolicyParameters(torso=RECURRENT)),
            "which no recurrent network can",
        ),
    ],
    ids=["prioritised", "recurrent"],
)
def test_hiql_levels_with_priorities_or_hidden_states_are_refused(change, message):
    with pytest.raises(ConfigurationError, match=message):
        change(lower()).build(context(SEEN, BOX))
    with pytest.raises(ConfigurationError, match=message):
        change(upper()).build(above(lower().build(context(SEEN, BOX))))


def test_hiql_with_recurrent_values_is_refused():
    values = rl.CriticParameters(torso=RECURRENT)
    with pytest.raises(ConfigurationError, match="which no recurrent network can"):
        replace(lower(), value=values).build(context(SEEN, BOX))


def maze_run(data, *, updates=None, training=20, **changes):
    """Two levels in a small maze that learn from a data set."""
    task = U_MAZE
    low = rl.LevelParameters(
        name="low",
        agent=replace(lower(), memory=memory(rl.DataGoalsParameters(actor_ahead=3))),
        goal_space=task.task.subgoal_space,
        horizon=3,
    )
    cuts = rl.SubGoalsFromDataParameters(ahead=3)
    top = rl.LevelParameters(
        name="top", agent=replace(upper(), memory=memory(cuts)), goal_space=task.task.goal_space
    )
    schedule = rl.batch_schedule(training, every=20, episodes=2)
    if updates is not None:
        schedule = replace(schedule, training=rl.EnvironmentSteps(training))
    given = {"stack": (top, low), "environment": task, "schedule": schedule, **changes}
    return rl.BatchHierarchyParameters(data=str(data), updates=updates, num_envs=2, **given)


def memory(part):
    return rl.ReplayMemoryParameters(capacity=400, parts=(part,))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    params = rl.MazeDataParameters(kind="stitch", level="point_maze_u", episodes=4, steps=30)
    recorded, known = rl.maze_data(params, 0)
    return write_file(recorded, tmp_path_factory.mktemp("maze") / "maze.npz", known)


def test_both_levels_of_hiql_learn_from_data_and_act_in_the_world(data):
    manager = created(maze_run(data), 0)
    records = list(manager.improve())
    agents = manager.graph.agents
    assert {name: agent.training_steps for name, agent in agents.items()} == {"top": 10, "low": 10}
    assert {name: len(agent.memory) for name, agent in agents.items()} == {"top": 120, "low": 120}
    evaluation = [each for each in records if each.kind == "evaluation"][-1]
    assert evaluation.scalars["evaluation/length_mean"] <= 20


def test_data_of_levels_have_the_goals_that_each_level_achieves(data):
    manager = created(maze_run(data), 0)
    manager.run()
    top, low = (manager.graph.agents[name] for name in ("top", "low"))
    above_, below = (each.memory.trajectories() for each in (top, low))
    achieved = above_["/next_observations/achieved_goal"]
    np.testing.assert_array_equal(below["/next_observations/desired_goal"], achieved)
    sent = top.output_filter.apply(above_["/agents/agent/actions"][0])
    np.testing.assert_allclose(sent, achieved[0], atol=1e-5)


def assert_goals_are_normalised_as_what_is_achieved(normaliser):
    for numbers in (normaliser.mean, normaliser.scale):
        torch.testing.assert_close(numbers["desired_goal"], numbers["achieved_goal"])


def test_networks_normalise_goals_as_they_are_drawn_in_every_way_of_filling(data):
    agent = replace(
        lower(),
        memory=memory(rl.DataGoalsParameters(goal=U_MAZE.task.goal_space)),
        normalise_observations=10.0,
    )
    params = rl.BatchGraphParameters(data=str(data), agent=agent, environment=U_MAZE)
    found = []
    for fill in (partial(read_into, seed=1), partial(fill_in_blocks, learn=True)):
        mine = created(params, 0).graph.agents["main"]
        assert learns_in_blocks(mine, 1)
        fill(mine, open_data(str(data)).recorded, num_rows=1)
        assert_goals_are_normalised_as_what_is_achieved(mine.normaliser)
        found.append(mine.normaliser.state_dict())
    assert_same_state(*found)


def test_upper_level_normalises_goals_as_they_are_drawn(data):
    top, low = maze_run(data).stack
    top = replace(top, agent=replace(top.agent, normalise_observations=10.0))
    manager = created(maze_run(data, stack=(top, low)), 0)
    manager.run()
    assert_goals_are_normalised_as_what_is_achieved(manager.graph.agents["top"].normaliser)


def test_hiql_continues_in_the_world_and_its_decisions_are_cut_alike(data):
    manager = created(maze_run(data, updates=10, training=40), 0)
    manager.run()
    top, low = (manager.graph.agents[name] for name in ("top", "low"))
    assert len(low.memory) == 120 + 40
    assert 120 < len(top.memory) < 120 + 40
    batch = top.memory.sample(500)
    goals = top.output_filter.apply(batch.action.numpy())
    shown = batch.next_observation["achieved_goal"].numpy()
    bounds = low.place.goal.bounds
    np.testing.assert_allclose(goals, np.clip(shown, *bounds), atol=1e-5)


def test_levels_without_goals_from_trajectories_are_refused(data):
    top, low = maze_run(data).stack
    plain = replace(low, agent=rl.BCAgentParameters())
    with pytest.raises(ParameterError, match=r"level 'low' has no part that does, such as Data"):
        maze_run(data, stack=(top, plain))


def test_preset_passes_on_the_share_of_the_data():
    preset = rl.load_preset(rl.find_preset("PointMaze_HIQL"))
    changes = {"updates": 1, "steps": 10, "data_share": 0.25}
    assert preset.configure(changes).parameters.data_share == 0.25
