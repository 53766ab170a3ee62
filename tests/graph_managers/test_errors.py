"""Graphs and runs that are refused or warned of: calls, kinds, and parts of the one line."""

from dataclasses import replace
from functools import partial

import gymnasium
import pytest

import coach_rl as rl
from coach_rl.core.errors import CallbackError, EnvironmentFault, SpaceError
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.run_warnings import warn_of_idle_learners
from tests.graph_managers import test_levels_of_a_graph as levels_of_a_graph
from tests.graph_managers.small_runs import parameters, ppo
from tests.graph_managers.test_callbacks import Counting, manager_with
from tests.graph_managers.test_evaluator import SlowEvaluator, manager_of
from tests.graph_managers.test_faulty_runs import one_level, walk
from tests.graph_managers.test_graph import TASK, off_policy, stacked
from tests.graph_managers.test_policies import DeclaredParameters, ForgottenParameters
from tests.graph_managers.test_policies import experiment as with_state
from tests.refusals import check_refused

C, P, U = rl.ConfigurationError, rl.ParameterError, rl.UnknownNameError
TOP, LOW = levels_of_a_graph.TOP, levels_of_a_graph.LOW
PLACES = rl.GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.3, 0.3), elements=(0, 1))
GOAL_TOP = replace(TOP, goal_space=PLACES, horizon=4)
OPTIONS = rl.OptionSpace(count=3)
STATE = "saves state of its own ({}), ... write SavedAttribute(name, policy=True)"


# Whole descriptions.


def flat(**given):
    both = {"agent": rl.PPOAgentParameters(), "environment": rl.PointMassParameters(), **given}
    return lambda: rl.BasicGraphParameters(**both)


def levels_of(*levels):
    return lambda: rl.GraphParameters(levels=levels, environment=rl.PointMassParameters())


def best_of(metric, *levels):
    return lambda: rl.GraphParameters(
        levels=levels,
        environment=rl.PointMassParameters(),
        checkpoints=rl.CheckpointParameters(best_of=metric),
    )


def schedule(**given):
    return lambda: rl.ScheduleParameters(**given)


def of_cart_pole():
    with gymnasium.make("CartPole-v1") as env:
        flat(environment=env)()


def frozen_for_updates():
    only = levels_of(replace(TOP, frozen=True))()
    replace(only, schedule=rl.ScheduleParameters(training=rl.TrainingSteps(5)))


def low(**given):
    return lambda: replace(LOW, **given)


def callbacks(*given):
    return lambda: replace(parameters(), callbacks=given)


DESCRIPTIONS = [
    (flat(environment="CartPole-v1"), P, "write parameters('CartPole-v1'), with `from coach_rl"),
    (flat(environment=rl.PointMassParameters), P, "write PointMassParameters(...), with brackets"),
    (flat(evaluation_environment="hopper"), P, "write parameters('hopper')"),
    (flat(agent=rl.PPOAgentParameters), P, "got the class PPOAgentParameters; write PPOAgent"),
    (flat(agnet=rl.PPOAgentParameters()), U, "did you mean 'agent'"),
    (flat(levels=1), U, "'levels'"),
    (flat(reward_discount=1), U, "'reward_discount'"),
    (of_cart_pole, P, "e.g. GymnasiumParameters(level='CartPole-v1')"),
    *(
        (lambda kind=kind, wrong=wrong: kind(wrong), P, f"{kind.__name__} needs ... got ")
        for kind, wrong in (
            (rl.BasicRLGraphManager, levels_of(GOAL_TOP)()),
            (rl.BasicRLGraphManager, rl.PPOAgentParameters()),
            (rl.GraphManager, rl.PointMassParameters()),
        )
    ),
    (levels_of(TOP, TOP), P, "different names, got ['top', 'top']"),
    (levels_of(TOP, replace(LOW, goal_space=None)), P, "level 'low' needs a goal_space"),
    (levels_of(TOP, replace(LOW, name="episodes")), P, "log file, ['top', 'episodes"),
    (
        levels_of(TOP, replace(LOW, parts=(rl.StopOnFailure(),))),
        P,
        "stops on failure, and no level",
    ),
    (best_of("top/failure_share", TOP), U, "unknown metric of evaluations 'top/failure_share'"),
    (levels_of(replace(TOP, name=""), LOW), P, "has an empty one or one of the run's own"),
    (low(parts=(1,)), P, "parts of 'low' must be tuple[LevelPartParameters, ...]"),
    (low(agent=None), P, "agent of 'low' must be AgentParameters, got None; describe one"),
    (low(agent="PPO"), P, "agent of 'low' must be AgentParameters, got 'PPO'; describe one"),
    (low(agent=rl.PPOAgentParameters), P, "write PPOAgentParameters(...), with brackets"),
    (lambda: rl.LevelParameters(name="low"), P, "LevelParameters of 'low' lacks agent"),
    (schedule(training="all"), P, "got 'all'; write a whole number, or EnvironmentSteps"),
    (lambda: parameters(heatup=rl.TrainingSteps(3)), P, "heatup cannot be counted in gradient"),
    (lambda: parameters(heatup=400).schedule.check_heatup(), P, "must be shorter than schedule"),
    (lambda: parameters(until_solved=True), P, "until_solved needs a target"),
    (
        lambda: parameters(until_solved=True, evaluation_interval=None),
        P,
        "until_solved needs evaluations",
    ),
    (frozen_for_updates, P, "training counts gradient updates, and there are none"),
    (rl.ValidationParameters, P, "give reward, success_rate or both"),
    (callbacks(Counting), P, "write Counting(...), with brackets"),
    (callbacks(3), P, "callbacks must be"),
    (lambda: manager_with(Counting), P, "write Counting(...), with brackets"),
]

# Graphs.


def stack(*levels):
    return lambda: levels_of_a_graph.stack(*levels).create_graph(rl.Runtime(device="cpu"))


def small():
    return rl.BasicRLGraphManager(parameters())


def on_device(device):
    return lambda: small().create_graph(rl.Runtime(device=device))


def of_evaluations_only(method):
    with small() as graph_manager:
        graph_manager.create_graph(TASK, training=False)
        getattr(graph_manager, method)()


def other_evaluation():
    hopper = rl.MujocoParameters(level="hopper")
    Graph(replace(parameters(), evaluation_environment=hopper), TASK)


def stateful(kind, use):
    def call():
        with manager_of(with_state(kind)) as graph_manager:
            assert list(graph_manager.improve())  # one process needs no policies
            use(graph_manager)

    return call


def await_evaluator(graph_manager):
    next(graph_manager.improve(evaluator=SlowEvaluator(parameters(), looks=1)))


ENDING = replace(LOW, agent=levels_of_a_graph.EndingParameters())
ENDS = "level 'low': its agent ends ... (EndingAgent.ends)"
FORGOTTEN, DECLARED = STATE.format("state_dict"), STATE.format("SAVED: shift")
GRAPHS = [
    (stack(replace(ENDING, goal_space=None, horizon=None)), C, f"{ENDS} ... from a level above"),
    (
        stack(replace(TOP, agent=rl.DQNAgentParameters()), LOW),
        C,
        "level 'top': agent ... cannot act in Box",
    ),
    (stack(replace(TOP, agent=rl.DQNAgentParameters())), C, "cannot act in Box"),
    (
        stack(
            replace(TOP, agent=levels_of_a_graph.ddpg()),
            replace(LOW, goal_space=rl.OptionSpace(count=4)),
        ),
        C,
        "level 'top': this agent acts in a flat Box ... got Discrete(4)",
    ),
    (
        stack(TOP, replace(LOW, goal_space=replace(PLACES, elements=None))),
        C,
        "level 'low': the goal has 2 elements, observation 'observation' has 4",
    ),
    (
        stack(TOP, replace(LOW, goal_space=replace(PLACES, elements=(0, 4)))),
        C,
        "level 'low': GoalSpace.elements (0, 4) do not all lie in observation",
    ),
    (
        stack(TOP, replace(LOW, agent=rl.ScriptedAgentParameters(policy="nowhere:f"))),
        C,
        "level 'low': the script 'nowhere:f' needs the module 'nowhere'",
    ),
    (
        lambda: levels_of_a_graph.stack(TOP, LOW, replace(LOW, name="lower", goal_space=None)),
        P,
        "level 'lower' needs a goal_space",
    ),
    *((on_device(device), C, f"'{device}'") for device in ("gpu", "cuda:x", "cuda:99")),
    (other_evaluation, SpaceError, "evaluation_environment has the observation space"),
    (lambda: small().graph, C, "not built"),
    (lambda: small().state_dict(), C, "call create_graph"),
    (partial(of_evaluations_only, "run"), C, "built to evaluate only"),
    (partial(of_evaluations_only, "state_dict"), C, "built to evaluate only"),
    (
        lambda: Graph(parameters(), TASK, training=False).training.tick(),
        C,
        "built to evaluate only",
    ),
    *(
        (stateful(kind, use), C, message)
        for kind, message in ((ForgottenParameters, FORGOTTEN), (DeclaredParameters, DECLARED))
        for use in (lambda graph_manager: graph_manager.evaluations.policies(), await_evaluator)
    ),
]

# Runs.


def with_callback(answer):
    def call():
        with manager_with(answer) as graph_manager:
            list(graph_manager.improve())

    return call


def wrong(record, run):
    if record.kind == "evaluation":
        raise KeyError("rewrad")


def evaluated(make, seed):
    def call():
        with make() as graph_manager:
            graph_manager.create_graph(TASK)
            graph_manager.evaluate(rl.EnvironmentEpisodes(3), seed=seed)

    return call


def idle(described=None, **changed):
    return lambda: warn_of_idle_learners(described or replace(parameters(), **changed))


RUNS = [
    (
        with_callback(wrong),
        CallbackError,
        "callback wrong failed at the evaluation ... step ... KeyError: 'rewrad'; correct it",
    ),
    (with_callback(lambda record, run: ["text"]), CallbackError, "'text'"),
    (with_callback(lambda record, run: record), CallbackError, "kind 'phase'"),
    (with_callback(lambda record, run: run.stop("")), CallbackError, "needs the reason"),
    (with_callback(lambda record, run: 3), CallbackError, "TypeError"),
    (
        evaluated(small, -1),
        P,
        "a whole number of 0 or more, got -1",
    ),
    pytest.param(
        evaluated(lambda: one_level(ppo(), walk(0.7)), 5),
        EnvironmentFault,
        "failed in 4 episodes of an evaluation of 3",
        marks=pytest.mark.filterwarnings("ignore:row"),
    ),
    (idle(agent=rl.PPOAgentParameters()), rl.CoachWarning, "2,048 decisions, the run 360 after"),
    (idle(num_envs=65), rl.CoachWarning, "less than a step of each of 65 environments"),
    (idle(agent=off_policy(400)), rl.CoachWarning, "waits for 400 transitions, the run has 400"),
    (
        idle(agent=off_policy(5, batch=401)),
        rl.CoachWarning,
        "draws batches of 401 from 400 transitions at most; lower learning.batch",
    ),
    (
        idle(stacked(top=ppo(rollout=rl.EnvironmentSteps(401)))),
        rl.CoachWarning,
        "level 'top': agent 'agent' would learn nothing",
    ),
    (
        idle(stacked(low=off_policy(500, name="lower"))),
        rl.CoachWarning,
        "level 'low': agent 'lower' would learn nothing: it waits for 500 transitions",
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [*DESCRIPTIONS, *GRAPHS, *RUNS],
)
def test_graphs_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
