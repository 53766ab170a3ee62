"""Workers that collect for a run: the same numbers wherever they are, and after one is killed."""

import os
import signal
from dataclasses import replace

import gymnasium
import pytest

import coach_rl as rl
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.core import parameter_class
from coach_rl.core.parts import trajectories_of
from coach_rl.extensions.testing.states import assert_same_state
from tests.graph_managers.small_runs import parameters, ppo

EVERY = rl.InputFilter(
    observation={
        "observation": (
            rl.ObservationNormalizationFilter(),
            rl.ObservationStackingFilter(stack_size=2),
        )
    },
    reward=(rl.RewardReturnScalingFilter(),),
)
LEARNING = rl.LearningParameters(
    batch=16, updates_per_step=0.4, learning_starts=40, report_every=10
)


def on_policy(**change):
    """PPO on MuJoCo, with rollouts that no number of ticks divides."""
    agent = replace(ppo(rollout=rl.EnvironmentSteps(70), objective="kl"), **change)
    return replace(
        parameters(training=rl.EnvironmentSteps(330)),
        agent=agent,
        environment=rl.MujocoParameters(level="hopper", threads=1),
    )


def off_policy(agent=rl.DDPGAgentParameters, schedule=None, **change):
    given = {"learning": LEARNING, "normalise_observations": 5.0, "update_mode": "eager"}
    made = agent(**{**given, **change})
    return replace(parameters(training=rl.EnvironmentSteps(180), **(schedule or {})), agent=made)


def seldom_learning(agent=rl.DDPGAgentParameters, **change):
    """An agent whose statistics move in many ticks between two of its updates."""
    learning = replace(LEARNING, updates_per_step=0.1)
    return off_policy(agent, {"heatup": rl.EnvironmentSteps(0)}, learning=learning, **change)


def two_levels():
    place = rl.GoalSpace(
        low=(-2.0,) * 2, high=(2.0,) * 2, threshold=(0.2,) * 2, key="achieved_goal"
    )
    learner = rl.DDPGAgentParameters(learning=LEARNING, update_mode="eager")
    top = rl.LevelParameters(
        name="top", agent=rl.HACAgentParameters(learner=learner), goal_space=place, horizon=5
    )
    low = replace(top, name="low", agent=rl.HACAgentParameters(learner=learner))
    return rl.HACGraphParameters(
        stack=(top, low),
        environment=rl.GoalPointMassParameters(),
        num_envs=4,
        schedule=parameters(training=rl.EnvironmentSteps(300)).schedule,
    )


def planning():
    """A graph of visited places above a learner whose critic says what edges cost."""
    below = two_levels()
    top, low = below.stack
    planner = rl.GraphAgentParameters(
        places=rl.FarthestPoints(count=9),
        costs=rl.CriticSteps(every=20),
        exploring=0.5,
        report_every=20,
    )
    return rl.GraphParameters(
        levels=(replace(top, agent=planner), low),
        environment=below.environment,
        num_envs=below.num_envs,
        schedule=parameters(training=rl.EnvironmentSteps(160), evaluation_interval=None).schedule,
    )


class Pair(gymnasium.Env):
    """Two members with an action each, and short episodes of random lengths."""

    action_space = gymnasium.spaces.Dict(
        {name: gymnasium.spaces.Discrete(3) for name in ("left", "right")}
    )
    observation_space = gymnasium.spaces.Dict(
        {name: gymnasium.spaces.Box(-9, 9, (2,)) for name in ("left", "right")}
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observed(), {}

    def step(self, action):
        return self.observed(), float(action["left"]), self.np_random.random() < 0.3, False, {}

    def observed(self):
        return {key: self.np_random.normal(size=2).astype("f4") for key in ("left", "right")}


def members(arbiter=None, shares=None):
    """Two members that learn often, in one environment."""
    group = rl.AgentGroupParameters(
        members=tuple(
            rl.GroupMember(
                agent=replace(ppo(rollout=rl.EnvironmentSteps(21), minibatch=7), name=name),
                actions=name,
                observations=(name,),
                shares=shares,
            )
            for name in ("left", "right")
        ),
        arbiter=arbiter,
    )
    pair = rl.GymnasiumParameters(level=f"{__name__}:Pair")
    return replace(parameters(training=rl.EnvironmentSteps(300)), agent=group, environment=pair)


def selected():
    chooser = replace(ppo(rollout=rl.EnvironmentSteps(21), minibatch=7), name="chooser")
    return members(rl.SelectedTurns(agent=chooser))


def slow(params):
    """A case whose code others run, too."""
    return pytest.param(params, marks=pytest.mark.slow)


def with_workers(params, workers=2, **more):
    chosen = rl.CollectionParameters(workers=workers, **{"on": "inline", "ticks": 7, **more})
    return replace(params, source=chosen)


def manager_of(params, seed=5):
    kind = (
        rl.HACGraphManager if isinstance(params, rl.HACGraphParameters) else rl.BasicRLGraphManager
    )
    manager = (rl.GraphManager if type(params) is rl.GraphParameters else kind)(params)
    manager.create_graph(rl.Runtime(seed=seed, device="cpu"))
    return manager


def finished(params):
    """Log records without times, and the state of all agents, of a whole run."""
    with manager_of(params) as manager:
        records = [
            (each.kind, each.environment_steps, each.phase, {
                name: value
                for name, value in each.scalars.items()
                if not name.startswith(("time/", "collection/"))
                and not name.endswith("planning_seconds")
            })
            for each in manager.improve()
        ]  # fmt: skip
        state = manager.state_dict()
        return records, {"agents": state["agents"], "tracker": state["tracker"]}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    "params",
    [
        on_policy,
        slow(off_policy),
        lambda: off_policy(rl.SACAgentParameters),
        slow(seldom_learning),
        slow(lambda: seldom_learning(rl.SACAgentParameters)),
        lambda: seldom_learning(rl.TD3AgentParameters),
        two_levels,
        planning,
        slow(members),
        lambda: members(shares="both"),
        slow(lambda: members(rl.Turns(order=("left",) * 9 + ("right",)))),
        lambda: members(rl.Turns(), shares="both"),
        selected,
    ],
)
def test_one_worker_makes_the_numbers_of_a_run_without_workers(params):
    alone, collected = finished(params()), finished(with_workers(params(), workers=1))
    assert alone[0] == collected[0]
    assert_same_state(alone[1], collected[1])


class ByLearns(OffPolicyAgent):
    """Chooses otherwise while `clock.learns`, and ends its goals then."""

    def choose(self, row_state, request, clock):
        info = super().choose(row_state, request, clock)
        if clock.learns:
            info.action[:, 0] = 0.5
        return info


class EndsByLearns(ByLearns):
    def ends(self, row_state, rows, observation, clock):
        return (observation["observation"][:, 0] > 0) & clock.learns


@parameter_class
class ByLearnsParameters(rl.DDPGAgentParameters):
    AGENT = ByLearns


@parameter_class
class EndsByLearnsParameters(rl.DDPGAgentParameters):
    AGENT = EndsByLearns


def ending_below():
    stack = two_levels().stack
    own = EndsByLearnsParameters(learning=LEARNING, update_mode="eager")
    top = replace(stack[0], agent=rl.DDPGAgentParameters(learning=LEARNING, update_mode="eager"))
    low = replace(stack[1], agent=own)
    return replace(planning(), levels=(top, low))


@pytest.mark.parametrize("params", [lambda: off_policy(ByLearnsParameters), ending_below])
def test_choices_and_ends_by_what_the_clock_learns_are_the_same_in_a_worker(params):
    alone, collected = finished(params()), finished(with_workers(params(), workers=1))
    assert alone[0] == collected[0]


def test_ticks_that_nobody_has_learned_from_yet_are_saved():
    params = with_workers(on_policy(), ticks=100)
    with manager_of(params) as first, manager_of(params) as second:
        list(first.train_and_act(rl.EnvironmentSteps(100)))
        saved = first.state_dict()
        assert len(saved["training"]["top"]["environment"]["blocks"][0]["made"]) > 0
        second.load_state_dict(saved)
        for manager in (first, second):
            list(manager.train_and_act(rl.EnvironmentSteps(100)))
        assert_same_state(first.state_dict(), second.state_dict())


def test_a_rollout_is_made_by_one_policy():
    with manager_of(with_workers(on_policy(), ticks=100)) as manager:
        list(manager.train_and_act(rl.EnvironmentSteps(72)))
        stack = manager.graph.training
        assert manager.graph.clock.training_steps > 0
        assert not any(block.made for block in stack.simulators.blocks)


def test_collection_other_workers_restart_episodes():
    with manager_of(with_workers(on_policy())) as first:
        list(first.train_and_act(rl.EnvironmentSteps(40)))
        saved = first.state_dict()
    with manager_of(with_workers(on_policy(), workers=4)) as third:
        with pytest.warns(rl.CoachWarning):
            third.load_state_dict(saved, restart_episodes=True)
        list(third.train_and_act(rl.EnvironmentSteps(200)))


def test_collection_killed_worker_is_replaced():
    with manager_of(with_workers(off_policy(), on="local", ticks=1)) as manager:
        list(manager.train_and_act(rl.EnvironmentSteps(60)))
        block = manager.graph.training.simulators.blocks[1]
        os.kill(block.worker.pid, signal.SIGKILL)
        with pytest.warns(rl.CoachWarning):
            records = list(manager.train_and_act(rl.EnvironmentSteps(60)))
        faults = [each for each in records if each.kind == "fault"]
        assert len(faults) == 2
        assert manager.graph.tracker.faults == {"died": 2}
        kept = trajectories_of(manager.graph.agents["main"])
        assert kept["/truncated"][2:].sum() > kept["/truncated"][:2].sum()
        assert manager.graph.clock.environment_steps >= 120
        list(manager.train_and_act(rl.EnvironmentSteps(20)))
        assert manager.graph.tracker.faults == {"died": 2}


def test_asynchronous_workers_act_within_the_bound_of_staleness():
    params = with_workers(off_policy(), on="local", mode="asynchronous", ticks=2, staleness=4)
    with manager_of(params) as manager:
        records = list(manager.improve())
    progress = [each.scalars for each in records if each.kind == "progress"]
    found = [each["collection/staleness_max"] for each in progress]
    assert found
    assert 1 <= max(found) <= 4
    assert records[-1].environment_steps >= 180


@pytest.mark.slow
def test_collection_ray_actors_give_the_same_numbers(monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # or other tests leave them no time
    params = off_policy()
    ray.init(
        address="local", num_cpus=2, include_dashboard=False, object_store_memory=100_000_000,
        log_to_driver=False, logging_level="ERROR",
    )  # fmt: skip
    try:
        inline, there = finished(with_workers(params)), finished(with_workers(params, on="ray"))
        assert inline[0] == there[0]
        assert_same_state(inline[1], there[1])
        with manager_of(with_workers(params, on="ray")) as manager:
            list(manager.train_and_act(rl.EnvironmentSteps(40)))
            ray.kill(manager.graph.training.simulators.blocks[0].worker.actor)
            with pytest.warns(rl.CoachWarning):
                list(manager.train_and_act(rl.EnvironmentSteps(60)))
            assert manager.graph.tracker.faults == {"died": 2}
        with pytest.raises(rl.ConfigurationError):
            manager_of(with_workers(params, workers=3, on="ray"))
    finally:
        ray.shutdown()
