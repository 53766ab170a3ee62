"""Wrong levels and fields of environments: each is one line that has the value and the rule."""

from functools import partial

import little_environments
import numpy as np
import pytest
import test_mujoco_batch as mujoco_batch
from gymnasium import spaces
from test_inbox import BOX, DICT

import coach_rl as rl
from coach_rl.core.errors import (
    ActionError,
    CheckpointError,
    EnvironmentFault,
    NonFiniteError,
    SpaceError,
)
from coach_rl.environments import make, parameters
from coach_rl.environments.gymnasium.layout import layout_of
from coach_rl.environments.inbox import FloatInbox, Inbox, require_rows, row_seeds
from tests.refusals import check_refused

C, P, S, U = rl.ConfigurationError, rl.ParameterError, SpaceError, rl.UnknownNameError
FIELDS = [  # level, fields of its description, kind of error, message
    ("point_mass", {"max_episode_step": 7}, P, "did you mean 'max_episode_steps'"),
    ("hopper", {"vectorization": "sync"}, P, "'hopper' has no parameter 'vectorization'"),
    ("one_step_continuous", {"continuous": False}, P, "no parameter 'continuous'; allowed: size"),
    ("CartPole-v1", {"max_steps": 5}, P, "its parameters are the fields of GymnasiumParameters"),
    ("bit_flip", {"max_episode_steps": 3}, P, "has no parameter"),
    ("half_cheeta", {}, U, "did you mean 'half_cheetah'"),
    ("halfcheetah-v5", {}, U, "'HalfCheetah-v5'"),
    ("CartPole", {}, U, "'CartPole-v1'"),
    ("pointmass", {}, U, "'point_mass'"),
    ("pointmass", {}, U, "module:Class"),
    ("ALE/Chess-v5", {}, U, "install it and write ale_py:ALE/Chess-v5"),
    ("Cartpole-v1", {}, U, "did you mean 'CartPole-v1' or 'CartPole-v0'? ("),  # none needs jax
    ("gym.make('CartPole-v1')", {}, U, "did you mean 'CartPole-v1'?"),
    ('gymnasium.make("Pendulum-v1", g=9.81)', {}, U, "did you mean 'Pendulum-v1'?"),
    (rl.MujocoParameters, {}, P, "task must be a name"),
]
KWARGS = [  # level, fields of its world or task, kind of error, message
    ("hopper", {"ctrl_cost": 1}, U, "ctrl_cost_weight"),
    ("hopper", {"healthy_reward": "much"}, P, "healthy_reward must be float | int"),
    ("hopper", {"terminate_when_unhealthy": 1}, P, "terminate_when_unhealthy must be bool"),
    ("hopper", {"camera_id": 0, "camera_name": "track"}, P, "got both"),
]
CLASSES = [  # what is built, its arguments, kind of error, message
    (rl.GatesParameters, {"open_steps": 40}, P, "open_steps must be less than period (40)"),
    (rl.SteadyPayParameters, {"low": 3}, P, "got 3.0 and 3.0"),
    (rl.SteadyPayParameters, {"high": np.inf}, P, "both be finite"),
    (rl.MujocoParameters, {"level": "halfcheetah"}, U, "half_cheetah"),
    (rl.MujocoParameters, {"level": "HalfCheetah-v4"}, U, "HalfCheetah-v5"),
    (rl.MujocoParameters, {"level": rl.MujocoTask}, P, "the class MujocoTask; write 'coach_rl.env"),
]
ERRORS = [
    *[(partial(make, level), *rest) for level, *rest in FIELDS],
    *[(partial(parameters, level), {"kwargs": given}, *rest) for level, given, *rest in KWARGS],
    *CLASSES,
]


# Calls that fail.


def gymnasium_of(level, num_envs=1, **options):
    return lambda: rl.GymnasiumParameters(level=level, **options).build(num_envs=num_envs)


def little(name, **options):
    return gymnasium_of(f"little_environments:{name}", num_envs=2, **options)


def vector_of(level, **options):
    return gymnasium_of(level, num_envs=3, vectorization="vector", **options)


def lived(build, action=0, steps=10):
    """A call that resets an environment and steps it."""

    def call():
        environment = build()
        try:
            environment.reset(seed=0)
            for _ in range(steps):
                environment.send(np.stack([action] * environment.num_envs))
                environment.recv()
        finally:
            environment.close()

    return call


def stops(name, limit=None, **kwargs):
    faults = rl.FaultParameters(on_crash="stop")
    return lived(little(name, faults=faults, kwargs=kwargs, max_episode_steps=limit), 3, steps=1)


def saved(build):
    """A call that saves an environment that was reset."""

    def call():
        environment = build()
        environment.reset(seed=0)
        environment.state_dict()

    return call


def loaded(build, other):
    """A call that loads the state of an environment into another one."""

    def call():
        environment = build()
        environment.reset(seed=0)
        other().load_state_dict(environment.state_dict())

    return call


def ready(kind=Inbox, space=BOX):
    box = kind(space, num_envs=3)
    box.start()
    return box


def put(*given, **options):
    return lambda: ready(**options).put(*given)


def put_twice(kind):
    box = ready(kind)
    box.put(np.zeros((1, 2)), np.array([2]))
    box.put(np.zeros((3, 2)))


def stopped(box, *, is_loaded=False):
    box.start()
    box.stop_after(ValueError("the wheels came off"))
    if is_loaded:
        state, box = box.state_dict(), ready()
        box.load_state_dict(state)
    box.put(np.zeros((3, 2)))


def hopper(**options):
    return lambda: rl.MujocoParameters(level="hopper", threads=1, **options).build(num_envs=4)


def own_task(task):
    return lambda: rl.MujocoTaskParameters(own_task=task, threads=1).build(num_envs=2)


def unpicklable():
    options = {"vectorization": "subprocess", "start_method": "spawn"}
    little("Plain", kwargs={"trouble_at": lambda: 3}, **options)()


PAIR = spaces.Tuple((spaces.Discrete(2), spaces.Sequence(spaces.Discrete(3))))
BUILDS = [
    (gymnasium_of("CartPol-v1"), U, "did you mean 'CartPole-v1'"),
    (gymnasium_of("no_such_module:Env"), C, "'no_such_module' cannot be imported"),
    (little("Wlk"), U, "did you mean ... little_environments:Walk"),
    (
        little("HasGraph"),
        S,
        "the action of 'little_environments:HasGraph' has a Text space at 'plan/1'; allowed: Box, "
        "... Dict or Tuple of these ... .ActionWrapper",
    ),
    (little("NoSpaces"), S, "has no observation_space, got None; set"),
    (gymnasium_of("ALE/Chess-v5"), U, "install it and write ale_py:ALE/Chess-v5"),
    (
        gymnasium_of(little_environments.Plain),
        P,
        "GymnasiumParameters.level must be str, got ... write 'little_environments:Plain'",
    ),
    (
        gymnasium_of(little_environments.Plain()),
        P,
        "name its class, here 'little_environments:Plain'",
    ),
    (gymnasium_of(lambda: None), P, "name a class or function of a module as module:Class"),
    (little("CollidingKeys"), S, "fall together when flattened"),
    (little("not_an_environment"), C, "made a str, not a"),
    (little("needs_a_package"), C, "pip install swim"),
    (gymnasium_of("CartPole-v1", kwargs={"wheels": 3}), C, "check its kwargs"),
    (
        little("NoSpaces", kwargs={"render_mode": "rgb_array"}),
        C,
        "to be filmed or played, it takes",
    ),
    (gymnasium_of("CartPole-v1", wrappers=("Double",)), C, "named as module:Class"),
    (
        gymnasium_of("CartPole-v1", wrappers=("little_environments:Doubl",)),
        U,
        "unknown wrapper ... did you mean 'little_environments:Double'",
    ),
    (
        gymnasium_of("CartPole-v1", wrappers=(("little_environments:AddToReward", {"sum": 1}),)),
        C,
        "wrapper 'little_environments:AddToReward' cannot be made",
    ),
    (vector_of("CartPole-v1", max_episode_steps=5), P, "cannot be set for a ready vector"),
    (
        vector_of("CartPole-v1", action_repeat=2),
        P,
        "action_repeat cannot be set for a ready vector",
    ),
    (gymnasium_of("CartPole-v1", num_envs=0), P, "num_envs must be 1 or more, got 0"),
    (
        gymnasium_of("CartPole-v1", faults=rl.FaultParameters(step_seconds=1.0)),
        P,
        "step_seconds needs vectorization='subprocess'",
    ),
    (little("DifferentSpaces"), S, "different spaces"),
    (unpicklable, C, "cannot be sent to a worker process"),
    (vector_of("little_environments:SilentVector"), C, "autoreset_mode None in its metadata; all"),
    (vector_of("Pendulum-v1"), C, "not registered with a vector entry point"),
    (vector_of("little_environments:Plain"), C, "not annotated as making a gymnasium.vector.Vec"),
    (
        lambda: layout_of(PAIR, BOX, level="Pair-v0"),
        S,
        "the observation of 'Pair-v0' has a Sequence space at '1'; allowed ... FlattenObs",
    ),
    *(
        (
            partial(
                layout_of, *((shown, BOX) if what == "observation" else (BOX, shown)), level="A-v0"
            ),
            S,
            f"the {what} of 'A-v0' has a Dict space with the key ... of type int; keys must be str",
        )
        for what in ("observation", "action")
        for shown in (
            spaces.Dict({1: BOX, 0: BOX}),
            spaces.Dict({"slots": spaces.Dict({1: BOX})}),
            spaces.Tuple([spaces.Dict({1: BOX})]),
            spaces.Dict({1: BOX, "1": BOX}),
        )
    ),
    *(
        (partial(layout_of, shown, BOX, level="A-v0"), S, f"is {shown}, which has no parts")
        for shown in (spaces.Dict({}), spaces.Tuple(()), spaces.Dict({"a": spaces.Dict({})}))
    ),
    (lambda: row_seeds([1, 2], 3), P, "got 2 seeds for 3 rows"),
    *(
        (partial(row_seeds, bad, 3), P, "whole number of 0 or more")
        for bad in (-1, [1, 2, -3], [[1, 2]], 1.5, "seed")
    ),
    (hopper(kwargs={"xml_file": "hoper.xml"}), C, "hopper.xml"),
    (hopper(kwargs={"xml_file": "./nowhere.xml"}), C, "does not exist"),
    (partial(rl.MujocoParameters(level="hopper").build, num_envs=0), P, "num_envs"),
    (partial(make, "ant", kwargs={"main_body": "torse"}), U, "torso"),
    (own_task(mujoco_batch.Flawed(flaw="dtype")), EnvironmentFault, "must be boolean"),
    (
        own_task(mujoco_batch.Flawed(flaw="shape")),
        EnvironmentFault,
        "Flawed gave 'reward' of shape (2, 1), expected (2,)",
    ),
    (
        own_task(mujoco_batch.Flawed(flaw="unread")),
        AttributeError,
        "add 'xpos' to its `reads`",
    ),
    (own_task(mujoco_batch.Misread()), U, "qvel"),
]
WHEELS = "the wheels came off (little_environments.py, line ... environment step"
RUNS = [
    (lived(little("WrongShape")), EnvironmentFault, "shape (1,), its space (2,)"),
    (lived(little("WrongKind")), EnvironmentFault, "is float32, its space int64"),
    (lived(little("MissingKey")), EnvironmentFault, "has no 'there'"),
    (
        lived(little("FailsToReset")),
        EnvironmentFault,
        "row 1 of ... failed in reset: RuntimeError: no way to begin",
    ),
    *(
        (
            stops(name, limit, **kwargs),
            EnvironmentFault,
            f"row ... 'little_environments:{name}' ... {line}",
        )
        for limit in (None, 5)  # a time limit wraps the environment
        for name, kwargs, line in (
            ("OldStep", {}, "step: step gave 4 values, not 5; this is Gym's old interface"),
            ("OldReset", {}, "reset: reset takes no seed; this is Gym's old interface"),
            ("OldResetWithSeed", {}, "it gave no pair (observation, info); this is Gym's old"),
            ("ReturnsNone", {}, "step: ... (observation, reward, terminated, truncated, info)"),
            ("Answers", {"reward": None}, "step: the reward must be a number, got None"),
            ("Answers", {"reward": np.ones(1)}, "step: the reward must be a number, got array([1"),
            ("Answers", {"success": "yes"}, "info['is_success'] must be a number or a bool, got"),
            ("Answers", {"success": np.ones(1)}, "info['is_success'] must be a number or a bool"),
            ("Plain", {"trouble_at": 1}, WHEELS),
        )
    ),
    (
        lived(vector_of("little_environments:NoFinalObs")),
        EnvironmentFault,
        "gave no final_obs for row 0",
    ),
    (
        lived(own_task(mujoco_batch.Flawed(flaw="nan")), action=np.ones(1)),
        NonFiniteError,
        "of 'Flawed' failed in step: the reward is nan",
    ),
    (
        saved(gymnasium_of("CartPole-v1", resume="restart")),
        CheckpointError,
        "GymnasiumParameters.resume is 'restart'",
    ),
    (
        saved(vector_of("little_environments:plains")),
        CheckpointError,
        "has no way to be saved; vectorization='sync' and",
    ),
    (
        lambda: vector_of("little_environments:plains")().load_state_dict({}),
        CheckpointError,
        "has no way to be saved",
    ),
    (
        loaded(gymnasium_of("CartPole-v1", 2), gymnasium_of("CartPole-v1", 3)),
        CheckpointError,
        "has 2 rows, this one 3",
    ),
    (
        loaded(
            partial(rl.PointMassParameters().build, num_envs=2),
            partial(rl.PointMassParameters().build, num_envs=3),
        ),
        CheckpointError,
        "elapsed was saved with shape (2,) ... has shape (3,)",
    ),
    *(
        (
            loaded(partial(make, level, num_envs=rows), hopper()),
            CheckpointError,
            "another task or n",
        )
        for level, rows in (("hopper", 3), ("walker2d", 4))
    ),
    (lambda: require_rows(2, 3), CheckpointError, "has 2 rows, this one 3; build it with as many"),
]
OPEN = "rows [2] have an open decision; call recv"
PUTS = [
    *(
        (put(np.zeros((len(rows), 2)), np.array(rows), kind=kind), line)
        for kind in (Inbox, FloatInbox)
        for rows, line in (
            ([0, 0], "name a row twice"),
            ([3], "rows go from 0 to 2"),
            ([-1], "rows go from 0 to 2"),
            ([[0]], "flat array of row numbers"),
            ([0.5], "flat array of row numbers"),
            ([True, False, True], "flat array of row numbers"),
        )
    ),
    (partial(put_twice, Inbox), OPEN),
    (partial(put_twice, FloatInbox), OPEN),
    (put(np.zeros((2, 2))), "3 rows were sent actions of shape (2, 2)"),
    (put(np.zeros((2, 2)), kind=FloatInbox), "shape (3, 2), got (2, 2)"),
    (put(np.float32(0)), "3 rows were sent actions of shape ()"),
    (put(np.float32(0), kind=FloatInbox), "shape (3, 2), got ()"),
    *(
        (put(action, *rows, kind=kind), line)
        for kind in (Inbox, FloatInbox)
        for action, rows, line in (
            (np.zeros((3, 1)), (), "shape"),
            (np.full((3, 2), np.nan), (), "of row 0 lies outside"),
            ({"a": np.zeros((3, 2))}, (), "must be one array"),
            (
                np.array([[0, 0], [0, 1.01]]),
                (np.array([2, 1]),),
                "of row 1 lies outside Box ... OutputFilter",
            ),
        )
    ),
    (put(np.full((3, 1), 0.7), space=spaces.Box(0, 9, (1,), np.uint8)), "[0.7] of row 0 lies out"),
    (put({"a": np.zeros((3, 2))}, space=DICT), "needs the keys"),
    (
        put({"a": np.zeros((3, 2)), "b": np.zeros(1, np.int64)}, space=DICT),
        "3 rows were sent actions of shape (1,)",
    ),
    (lambda: Inbox(BOX, num_envs=3).put(np.zeros((3, 2))), "not reset yet; call reset first"),
    (lambda: stopped(Inbox(BOX, num_envs=3)), "the wheels came off); call reset first"),
    (
        lambda: stopped(Inbox(BOX, num_envs=3), is_loaded=True),
        "saved while it had no episode; call reset first",
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        *((partial(build, **given), *rest) for build, given, *rest in ERRORS),
        *BUILDS,
        *RUNS,
        *((call, ActionError, line) for call, line in PUTS),
    ],
)
def test_environments_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
