"""Runs that are refused, fail or warn: a run, a call, the kind of error, and its message."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coach_rl
from coach_rl.agents.dqn_agent import DQNAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.configuration.presets import find_preset
from coach_rl.core import errors
from coach_rl.core.errors import CoachError, RunError
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.toy import GoalPointMassParameters
from coach_rl.exploration_policies import Greedy
from coach_rl.extensions.scripts.scripted_agent import ScriptedAgentParameters
from coach_rl.graph_managers import BasicRLGraphManager, HRLGraphManager
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint
from coach_rl.runs.folder import find_run
from coach_rl.sessions.evaluation import evaluate_run, evaluate_untrained
from coach_rl.sessions.session import fork_experiment, resume_experiment, run_experiment
from coach_rl.sessions.settings import Audience, RunSettings
from tests.refusals import check_refused
from tests.sessions import test_loaded_levels as levels
from tests.sessions import test_memories_left_out as memories
from tests.sessions import test_record_stream as stream
from tests.sessions import test_resuming as resuming
from tests.sessions import test_runner as walks
from tests.small_runs import (
    QUIET,
    STACK,
    change_manifest,
    contents,
    experiment,
    manifest_of,
    preset,
)

C, D, P = errors.ConfigurationError, errors.CheckpointError, errors.ParameterError
U, W = errors.UnknownNameError, errors.CoachWarning
TWO = EnvironmentEpisodes(2)
Make = Callable[[Path], Path]
Case = tuple[Make | None, Callable[[Path], object], type[Exception], str]


def trained(name: str, **given: Any) -> Make:
    """A run of a small experiment."""

    def make(root: Path) -> Path:
        manager, task = experiment(**given), Runtime(seed=3, device="cpu")
        return run_experiment(manager, task, name=name, root=root, settings=QUIET).folder.path

    return make


def walk(root: Path, **panel: Any) -> Path:
    """A finished random walk of 100 steps."""
    return walks.run(root, **panel).folder.path


stopped = partial(walk, signal_at=60)
CARTPOLE = GymnasiumParameters(level="CartPole-v1")
DQN = DQNAgentParameters(
    learning=LearningParameters(batch=8, learning_starts=8), exploration=Greedy()
)
poles = trained("poles", environment=CARTPOLE, num_envs=2)
greedy = trained("greedy", agent=DQN, environment=CARTPOLE)
goals = trained("goals", environment=GoalPointMassParameters())
parent = trained("parent", num_envs=2, training=120)


def often(root: Path) -> Path:
    every = replace(QUIET, checkpoints=CheckpointParameters(every_seconds=1e-9))
    return walks.run(root, every).folder.path


def without_checkpoints(root: Path, *, log: str | None = None) -> Path:
    run = stopped(root)
    shutil.rmtree(run / "checkpoints")
    if log is not None:
        (run / "log.jsonl").write_text(log)
    return run


def with_manifest(text: str = "", **changes: Any) -> Make:
    def make(root: Path) -> Path:
        run = walk(root)
        change_manifest(run, **changes)
        if text:
            (run / "manifest.json").write_text(text)
        return run

    return make


def made_with(name: str, **changes: Any) -> Make:
    """A walk whose manifest has other values in one of its parts."""

    def make(root: Path) -> Path:
        run = walk(root)
        change_manifest(run, **{name: manifest_of(run)[name] | changes})
        return run

    return make


def of_the_past(root: Path) -> Path:
    """A walk whose checkpoint lacks a key."""
    run = walk(root)
    checkpoint = read_checkpoint(run / "checkpoints" / "step_100")
    del checkpoint.state["agents"]["main"]["weights"]
    shutil.rmtree(checkpoint.path)
    write_checkpoint(checkpoint.path, checkpoint.state, checkpoint.notes)
    return run


def damaged(root: Path) -> Path:
    run = walk(root)
    (run / "checkpoints" / "step_100" / "tensors.safetensors").write_bytes(b"nothing")
    return run


def solved(root: Path, **settings: Any) -> Path:
    return resuming.run(root, settings=replace(resuming.SETTINGS, **settings)).folder.path


def ended_by_callback(root: Path) -> Path:
    callbacks = (stream.PatienceParameters(most=1),)
    return stream.run(root, callbacks=callbacks).folder.path


def with_callback(root: Path) -> Path:
    return stream.run(root, audience=Audience(callbacks=(stream.Patience(1),))).folder.path


def two_levels(root: Path) -> Path:
    return levels.run(levels.graph(), root).path


def one_level(root: Path) -> Path:
    return levels.run(levels.flat(), root).path


def resume(run: Path, *, steps: int | None = None, **more: Any) -> None:
    total = None if steps is None else EnvironmentSteps(steps)
    resume_experiment(run, steps=total, settings=QUIET, **more)


def evaluate(run: Path, **more: Any) -> None:
    evaluate_run(run, episodes=TWO, **more)


def named(name: str) -> Callable[[Path], object]:
    return lambda _: run_experiment(preset().build(), name=name, root=Path("root"))


def on_a_disk_of(free: int, **shape: Any) -> Callable[[Path], object]:
    def call(_: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            memories.limit_disk(patch, free)
            memories.run(Path("root"), memories=True, **shape)

    return call


def with_sink(_: Path) -> None:
    stream.run(Path("root"), sinks=(stream.Nowhere(),))


def frozen_below(_: Path) -> None:
    stack = preset(STACK).build()
    top, low = stack.parameters.levels
    frozen = replace(stack.parameters, levels=(top, replace(low, frozen=True)))
    evaluate_untrained(type(stack)(frozen), Runtime(), episodes=TWO, sampling=True)


def fork(**changes: Any) -> Callable[[Path], object]:
    return lambda run: fork_experiment(
        run, name="fork", overrides=changes, steps=EnvironmentSteps(200)
    )


def load(load: str = "{run}", **given: Any) -> Callable[[Path], object]:
    """Begin a run one level of which is loaded from another one."""
    return lambda run: levels.run(levels.graph(load=load.format(run=run), **given), Path("root"))


def load_flat(**given: Any) -> Callable[[Path], object]:
    return lambda run: levels.run(levels.flat(load=str(run), **given), Path("root"))


def load_top_without_filters(run: Path) -> None:
    parameters = levels.graph(top=levels.ppo(input_filter=None)).parameters
    top, low = parameters.levels
    changed = replace(parameters, levels=(replace(top, load=str(run)), low))
    levels.run(HRLGraphManager(changed), Path("root"))


def load_unsaved(run: Path) -> None:
    parameters = levels.flat(load=str(run)).parameters
    agent = levels.forgotten(parameters.agent)
    levels.run(BasicRLGraphManager(replace(parameters, agent=agent)), Path("root"))


def act(observation: Any) -> Callable[[Path], object]:
    return lambda run: coach_rl.load(run).act(observation)


def act_twice(run: Path) -> None:
    agent = coach_rl.load(run)
    agent.act(np.zeros((2, 4)))
    agent.act(np.zeros((3, 4)))


def act_on_other_sizes(run: Path) -> None:
    agent = coach_rl.load(run)
    space = agent.spaces.observation
    agent.act({key: np.zeros((1 + (key == "desired_goal"), *space[key].shape)) for key in space})


def reset(*rows: Any, **more: Any) -> Callable[[Path], object]:
    def call(run: Path) -> None:
        agent = coach_rl.load(run)
        agent.act(np.zeros((2, 4)))
        agent.reset(*rows, **more)

    return call


def exits(error: BaseException, kind: str) -> Callable[[Path], object]:
    def stop(record: Any, *_: object) -> None:
        if record.kind == kind:
            raise error

    sink = type("Exits", (walks.Listener,), {"write": lambda _, record: stop(record)})()
    return lambda _: walks.run_with(Runtime(), Path("root"), Audience(sinks=(sink,)))


def exits_while_built(error: BaseException) -> Callable[[Path], object]:
    def call(_: Path) -> None:
        manager = preset().build()
        manager.create_graph = lambda *_, **__: (_ for _ in ()).throw(error)
        run_experiment(manager, name="walk", root=Path("root"))

    return call


def broken(record: Any, _run: Any) -> None:
    if record.environment_steps >= 60:
        raise ZeroDivisionError("division by zero")


def walk_with(settings: RunSettings = QUIET, **panel: Any) -> Callable[[Path], object]:
    return lambda _: walks.run(Path("root"), settings, **panel)


EVERY_10 = replace(QUIET, checkpoints=CheckpointParameters(every_steps=EnvironmentSteps(10)))
NO_MEMORIES = replace(QUIET, checkpoints=CheckpointParameters(memories=False))
SCRIPT = ScriptedAgentParameters(policy="still")
CONTINUED = "has continued from step_30 to step_100 ... coach fork ... @step_30 --as NAME`; ... --d"
NOT_LOADED = "level 'low' cannot be loaded from"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Make], Path]:
    """Makes a run, or returns the one that was made so."""
    return cache(lambda make: make(tmp_path_factory.mktemp("made")))


REFUSED: list[Case] = [
    (None, lambda _: find_run(Path()), C, "is neither a run's folder"),
    (None, lambda _: resume(Path("nowhere")), C, "is neither a run's folder"),
    (None, lambda _: coach_rl.load("nowhere"), C, "neither a run's folder"),
    (None, lambda _: coach_rl.load("CartPole_PPO"), C, "did you mean trained:CartPole_PPO?"),
    (None, lambda _: coach_rl.load("nowhere", gpu=1), C, "unknown argument 'gpu' (the function"),
    (
        None,
        lambda _: coach_rl.evaluate_run("nowhere", n_eval_episodes=2),
        C,
        "unknown argument 'n_eval_episodes'",
    ),
    (None, lambda _: coach_rl.evaluate_run("nowhere", episodes=0), C, "must be 1 or more, got 0"),
    (walk, partial(resume, steps=50), C, "nothing left to train: step_100 has done 100"),
    (walk, partial(resume, steps=200, changes={"schedule.training": 300}), C, "twice, as steps"),
    (stopped, partial(resume, steps=60), C, "has done 60 of 60 ... above 60 with --steps"),
    (often, lambda run: resume(run / "checkpoints" / "step_30"), C, CONTINUED),
    (often, lambda run: resume(Path(f"{run}@30")), C, CONTINUED),
    (without_checkpoints, resume, D, "all checkpoints of the run ... have been deleted"),
    (partial(without_checkpoints, log=""), evaluate, D, "has no checkpoint yet to evaluate"),
    (partial(without_checkpoints, log=""), coach_rl.load, D, "no checkpoint yet"),
    (solved, resume, C, "after 30 environment steps; ... --until_solved off"),
    (solved, partial(resume, changes={"num_envs": 2}), C, "keeps its 'num_envs'; what may change"),
    (
        partial(solved, checkpoints=CheckpointParameters(enabled=False)),
        resume,
        D,
        "keeps no checkpoints",
    ),
    (ended_by_callback, resume, C, "callback has stopped ... 1 evaluations ... --steps"),
    (with_manifest('{"schema_version": 9}'), resume, D, "has schema version 9"),
    (
        with_manifest(graph_manager="coach_rl.core.steps:EnvironmentSteps"),
        resume,
        C,
        "which is no GraphManager",
    ),
    (with_manifest("[]"), resume, D, "holds no JSON object"),
    (with_manifest("{}"), resume, D, "lacks schema_version"),
    (
        of_the_past,
        partial(resume, steps=200),
        RunError,
        "step_100 does not fit the experiment ... weights ... written by coach_rl",
    ),
    (damaged, coach_rl.load, D, "is damaged"),
    (walk, lambda run: coach_rl.load(run, checkpoint="step_7"), U, "unknown checkpoint 'step_7'"),
    (
        None,
        lambda _: run_experiment(find_preset, name="walk", root=Path("root")),
        C,
        "an experiment is a GraphManager, got <function",
    ),
    (None, walk_with(level="moon"), C, "moon"),
    *(
        (None, named(name), C, "cannot name a folder")
        for name in ("", "a/b", "..", "../x", ".hidden", "a\nb")
    ),
    (None, walk_with(NO_MEMORIES, response="roll_back"), C, "response='roll_back' needs"),
    (None, with_sink, C, "no such place"),
    (None, on_a_disk_of(1_000), C, "replay memory takes ... kB, and 1 kB are"),
    *(
        (poles, partial(evaluate, overrides=overrides), C, message)
        for overrides, message in [
            ({"environment.level": "Pendulum-v1"}, "the observation ... (4,) ... it is ... (3,"),
            ({"environment.level": "MountainCar-v0"}, "know the observation space Dict"),
            ({"environment.levell": "x"}, "unknown parameter 'levell' of 'environment'"),
            ({"agent.update_mode": "eager"}, "an evaluation cannot change 'agent.update_mode'"),
            ({"num_envs": 3}, "an evaluation cannot change 'num_envs'"),
            ({"environments": 3}, "an evaluation cannot change 'environments'"),
        ]
    ),
    (greedy, partial(evaluate, sampling=True), C, "nothing to sample: agent ... of level 'main"),
    *(
        (parent, fork(**changes), kind, message)
        for changes, kind, message in [
            ({"num_envs": 3}, C, "num_envs cannot be changed in a fork"),
            (
                {"agent.network.torso.middleware": (8,)},
                CoachError,
                "does not fit the experiment with agent.network.torso.middleware=(8,)",
            ),
            ({"agent": SACAgentParameters()}, CoachError, "does not fit ... with agent=SACAgent"),
            ({"agent.optimizer.learning_rate": -1.0}, C, "learning_rate must be"),
            ({"environment": CARTPOLE}, CoachError, "does not fit ... CartPole-v1"),
            ({"levell": 1}, U, "unknown parameter 'levell'"),
        ]
    ),
    (
        parent,
        lambda run: fork_experiment(run, name="fork"),
        C,
        "nothing left to train: step_120",
    ),
    *(
        (two_levels, call, C, f"{NOT_LOADED} ... {message}")
        for call, message in [
            (load("nowhere"), "nowhere is neither a run's folder"),
            (load("nowhere:low"), "nowhere is neither a run's folder"),
            (load("{run}:lwo"), "unknown level 'lwo' there; did you mean 'low'"),
            (load("{run}:top"), "the saved policy has no 'networks': it is another kind of agent"),
            (load(low=levels.ppo(input_filter=None)), "has no 'network'"),
            (
                load(low=levels.ddpg(normalise_observations=None)),
                "its normalised observations hold ... desired_goal/count ... , those here nothing",
            ),
            (load("{run}:top", low=levels.ppo()), "should have the shape (64, 6), found (64, 4)"),
            (load(low=SCRIPT), "agent 'script' follows a script, into which nothing can be loaded"),
            (load("{run}:top", load_partly=True), "nothing of it fits"),
        ]
    ),
    (two_levels, load(name="legs"), C, "unknown level 'legs' there; ... (name it as RUN:LEVEL)"),
    (
        two_levels,
        load_top_without_filters,
        C,
        "level 'top' cannot be loaded ... : its filters hold input/ ... , those here nothing",
    ),
    (partial(without_checkpoints, log=""), load(), C, "has no checkpoint yet"),
    (one_level, load_unsaved, C, "ForgottenAgent saves state of its own"),
    *(
        (
            one_level,
            load_flat(symmetry=levels.Unturned(), load_partly=partly),
            C,
            "symmetry=None, and this agent has symmetry=Unturned(); give it the same",
        )
        for partly in (False, True)
    ),
    (
        one_level,
        load_flat(middleware=(64, 32)),
        C,
        "should have the shape ... ; load_partly=True would take the ... parts that fit",
    ),
    *(
        (poles, act(given), CoachError, message)
        for given, message in [
            (np.zeros(3), "'observation' has shape (3,), its space (4,); ... batch (N, 4)"),
            (np.zeros((2, 2, 4)), "has shape (2, 2, 4)"),
            (np.zeros((0, 4)), "batch of no observations"),
            (np.array(["a"] * 4), "'observation' is <U1, its space float32"),
            (np.zeros(4, complex), "'observation' is complex128"),
            (None, "'observation' is object"),
            ({"observatoin": np.zeros(4)}, "unknown observation key 'observatoin'; did you mean"),
            ({}, "lacks observation"),
            (np.full(4, np.nan), "not finite"),
            ((np.zeros(4), {}), "unpack it: `observation, info = env.reset()`"),
        ]
    ),
    (poles, act_twice, CoachError, "got 3 observations, 2 before; call reset() first"),
    (poles, reset(np.array([5])), CoachError, "mask"),
    (poles, reset([True, False], seed=1), CoachError, "seeds all rows or none"),
    (
        goals,
        act(np.zeros(4)),
        CoachError,
        "is a dict with the keys ... desired_goal ... got ndarray",
    ),
    (goals, act_on_other_sizes, CoachError, "one batch, got sizes"),
]
FAILED: list[Case] = [
    (
        None,
        walk_with(EVERY_10, diverge_at=75),
        errors.DivergedError,
        "has diverged. ... step_70, was",
    ),
    (
        None,
        lambda _: walks.run_with(Runtime(), Path("root"), Audience(callbacks=(broken,))),
        errors.CallbackError,
        "callback broken failed ... last checkpoint",
    ),
    *(
        (None, exits(error, "evaluation"), RunError, f"{name} ... The run had done 20 env")
        for error in (SystemExit(0), GeneratorExit(), stream.Stop("enough"))
        for name in [type(error).__name__]
    ),
    *(
        (None, exits_while_built(error), RunError, f"{name}: ... was raised inside the run, in ")
        for error in (SystemExit(0), stream.Stop("enough"))
        for name in [type(error).__name__]
    ),
]
WARNED: list[Case] = [
    (
        None,
        walk_with(EVERY_10, diverge_at=75, response="roll_back"),
        W,
        "has diverged. Rolled back from 75 environment steps to step_70, ... (1 of 3 times",
    ),
    (made_with("versions", torch="2.0.0"), evaluate, W, "was made with torch 2.0.0, now ... ; its"),
    (
        made_with("versions", torch="2.0.0"),
        partial(resume, steps=200),
        W,
        "was made with torch 2.0.0, now ... ; its numbers may differ",
    ),
    (made_with("task", threads=3), partial(evaluate, threads=1), W, "with threads 3, now 1; its"),
    (
        made_with("settings", numpy_threads=64, deterministic_algorithms=True),
        evaluate,
        W,
        "numpy threads 64, now ... , deterministic algorithms True, now F",
    ),
    (with_callback, partial(resume, steps=700), W, "callback Patience, which this run does not"),
    (
        lambda root: memories.run(root),
        partial(resume, steps=48),
        W,
        "without replay memories, so the ... is not exact",
    ),
    (None, on_a_disk_of(2_000, capacity=10), W, "may take ... kB in all, ... --no_memories"),
    (None, frozen_below, W, "of level 'low' explored nothing"),
]


@pytest.mark.parametrize(("make", "call", "kind", "message"), [*REFUSED, *FAILED, *WARNED])
def test_session_error_names_value_and_rule(
    make: Make | None,
    call: Callable[[Path], object],
    kind: type[Exception],
    message: str,
    tmp_path: Path,
    made: Callable[[Make], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Path()
    if make is not None:
        original = made(make)
        run = Path(shutil.copytree(original, Path("runs", original.parent.name, original.name)))
    before = contents(Path())
    check_refused(lambda: call(run), kind, message)
    if (make, call, kind, message) in REFUSED:
        assert contents(Path()) == before
        assert not Path("root").exists()
