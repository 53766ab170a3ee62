"""Runs of levels that form a graph: learning, resuming, evaluating, filming and describing them."""

from dataclasses import replace

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.clock import Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.films.camera import acting_of
from coach_rl.extensions.films.episode_recorder import EpisodePlayer
from coach_rl.extensions.films.video import Film
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.graph_managers.stack import Stack
from coach_rl.telemetry import description
from tests.builders import graph
from tests.random_graphs import GOALS
from tests.refusals import check_refused

PPO = rl.PPOAgentParameters(
    algorithm=rl.PPOAlgorithmParameters(rollout=rl.EnvironmentSteps(40), minibatch=20, epochs=2)
)
SAC = rl.SACAgentParameters()


def level(name, **settings):
    """A level that learns by PPO."""
    return rl.LevelParameters(**{"name": name, "agent": PPO, **settings})


def below(*preempt, **names):
    """The arrangement as a setting of an experiment."""
    return {"arrangement": rl.LevelGraph(below=names, preempt=preempt)}


TOP = level("top")
LEFT = level("left", goal_space=GOALS, horizon=3)
RIGHT = level("right", horizon=2, goal_space=rl.OptionSpace(count=2))
LOW = level("low", goal_space=GOALS, horizon=4)
DIAMOND = (TOP, LEFT, RIGHT, LOW)
CHAIN = {"arrangement": rl.LevelChain()}
NAMES = {"top": ("left", "right"), "left": ("low",), "right": ("low",)}
"""The levels below each of the diamond."""


def manager_of(*levels, **settings):
    """A run of these levels on point masses."""
    given = {
        **below(**NAMES),
        "environment": rl.PointMassParameters(max_episode_steps=30),
        "num_envs": 4,
        "training": 800,
        "progress_interval": 400,
        **settings,
    }
    return rl.GraphManager(graph(*levels, **given))


def training(*levels, **settings):
    """A graph that trains."""
    manager = manager_of(*levels, **settings)
    manager.create_graph(rl.Runtime(seed=3))
    return manager


def test_frozen_level_loaded_from_a_flat_run_keeps_its_parameters(tmp_path):
    flat = rl.run_experiment(
        manager_of(rl.LevelParameters(name="main", agent=PPO), **CHAIN),
        name="flat",
        root=tmp_path,
    )
    low = level("walk", horizon=5, load=f"{flat.folder.path}:main", frozen=True)
    levels = TOP, low, level("wait", horizon=5)
    manager = manager_of(*levels, **below(top=("walk", "wait")))
    manager.create_graph(rl.Runtime(seed=3))
    rl.load_levels(manager)
    before = manager.graph.agents["walk"].policy_state_dict()
    manager.run()
    assert_same_state(manager.graph.agents["walk"].policy_state_dict(), before)


def turns_of_two(arbiter):
    """A level of two members that act in turn."""
    members = tuple(rl.GroupMember(agent=replace(PPO, name=name)) for name in ("walk", "push"))
    return rl.AgentGroupParameters(members=members, arbiter=arbiter)


def by_place(observation, space):
    return (np.abs(observation["observation"][:, 0]) * 1_000).astype(np.int64) % 2


UNIFORM = level("top", agent=rl.UniformAgentParameters())
CHOOSER = rl.ScriptedAgentParameters(name="chooser", policy=by_place)
SKILLS = rl.SkillAgentsParameters.of(PPO, count=2)
TWO_OPTIONS = {"goal_space": rl.OptionSpace(count=2), "horizon": 3}
FILMED = {
    "graph": (
        DIAMOND,
        {f"top > {way} > low" for way in ("left", "right/option 0", "right/option 1")},
    ),
    "turns": ((level("main", agent=turns_of_two(rl.Turns())),), {"main/walk", "main/push"}),
    "selector": (
        (level("main", agent=turns_of_two(rl.SelectedTurns(agent=CHOOSER))),),
        {"main/walk (by chooser)", "main/push (by chooser)"},
    ),
    "turns above": (
        (
            level("main", agent=turns_of_two(rl.Turns(order=("walk", "push", "push")))),
            level("low", goal_space=GOALS, horizon=3),
        ),
        {"main/walk > low", "main/push > low"},
    ),
    "skills": (
        (UNIFORM, level("low", agent=SKILLS, **TWO_OPTIONS)),
        {"top > low/agent_0", "top > low/agent_1"},
    ),
    "options": (
        (UNIFORM, level("low", **TWO_OPTIONS)),
        {"top > low/option 0", "top > low/option 1"},
    ),
}


@pytest.mark.parametrize("kind", FILMED)
def test_films_of_several_rows_show_who_acts_in_each(kind):
    levels, known = FILMED[kind]
    arrangement = below(**NAMES) if kind == "graph" else CHAIN
    with training(*levels, **arrangement) as manager:
        stack = manager.graph.evaluation
        stack.simulators.render = lambda row: np.full((4, 4, 3), row, np.uint8)
        stack.reset(0)
        films = [Film(), Film()]
        players = [EpisodePlayer(lambda row=row: films[row]) for row in (0, 1)]
        for row, player in enumerate(players):
            player.follow(stack, row, wanted=range(1))
        for _ in range(25):
            answer = stack.tick()
            acting = [
                " > ".join(acting_of(each, row) for each in stack.path(row)) for row in (0, 1)
            ]
            for row, player in enumerate(players):
                frames = len(films[row].frames)
                player.note_tick(answer)
                for frame in films[row].frames[frames:]:
                    assert frame.caption.endswith(f", {acting[row]}")
    shown = {frame.caption.split(", ")[-1] for film in films for frame in film.frames[1:]}
    assert len(shown) > 1
    assert shown <= known


def test_film_of_members_that_all_act_names_none():
    members = (rl.GroupMember(agent=PPO, actions=("0", "1")),)
    with training(
        level("main", agent=rl.AgentGroupParameters(members=members)), **CHAIN
    ) as manager:
        stack = manager.graph.evaluation
        stack.reset(0)
        stack.tick()
        assert acting_of(stack.levels[0], 0) == "main"


def test_description_names_every_level_once_and_what_it_selects():
    manager = training(*DIAMOND)
    text = description.described(manager)
    lines = [line.strip() for line in text.splitlines()]
    starts = [line for line in lines if "level " in line and line.lstrip("└─ ").startswith("level")]
    assert [line.lstrip("└─ ") for line in starts] == [
        f"level {each.name}: {each.agent.name}" for each in DIAMOND
    ]
    assert lines.count("selects for each decision:") == 1
    assert "acts through level right: one of 2 options" in lines
    manager.close()


def test_chain_written_as_a_graph_makes_the_same_transitions():
    one = training(TOP, LOW, **CHAIN)
    other = training(TOP, LOW, **below(top=("low",)))
    assert type(one.graph.training) is Stack
    assert type(other.graph.training) is not Stack
    for manager in (one, other):
        manager.graph.clock.phase = Phase.TRAIN
        for _ in range(120):
            manager.graph.tick()
    mine, others = (
        {name: agent.state_dict() for name, agent in manager.graph.agents.items()}
        for manager in (one, other)
    )
    assert_same_state(mine, others)
    one.close()
    other.close()


P, U = rl.ParameterError, rl.UnknownNameError
REFUSED = [
    (
        lambda: manager_of(TOP, LOW, **below(top=("lwo",))),
        U,
        "unknown level 'lwo' in below of 'top'",
    ),
    (
        lambda: manager_of(TOP, LOW, **below(tpo=("low",))),
        U,
        "unknown level 'tpo' in below of LevelGraph",
    ),
    (
        lambda: manager_of(*DIAMOND, **below("tpo", **NAMES)),
        U,
        "unknown level 'tpo' in preempt of LevelGraph",
    ),
    (lambda: manager_of(*DIAMOND, **below(**NAMES, low=("left",))), P, "a cycle has no"),
    (lambda: manager_of(*DIAMOND, **below(**NAMES, low=("low",))), P, "names itself"),
    (lambda: manager_of(*DIAMOND, level("idle")), P, "level 'idle' is never reached"),
    (
        lambda: manager_of(TOP, LOW, **below(top=("low", "low"))),
        P,
        "names 'low' 2 times in below, and the later ones could never be selected",
    ),
    (
        lambda: manager_of(TOP, replace(LOW, goal_space=None), **below(top=("low",))),
        P,
        "level 'low' needs a goal_space: level 'top' above acts in it",
    ),
    (
        lambda: manager_of(TOP, level("a", horizon=2), level("b"), **below(top=("a", "b"))),
        P,
        "level 'b' receives no goals and has no horizon",
    ),
    (lambda: manager_of(*DIAMOND, **below("low", **NAMES)), P, "no level below"),
    (
        lambda: manager_of(TOP, LEFT, RIGHT, replace(LOW, changes=(rl.LevelTimes(warmup=9),))),
        P,
        "has warmup",
    ),
    (
        lambda: manager_of(TOP, replace(LEFT, changes=(rl.LevelTimes(turn=9),)), RIGHT, LOW),
        P,
        "has turn",
    ),
    (
        lambda: training(TOP, LEFT, RIGHT, replace(LOW, goal_space=replace(GOALS, key="place"))),
        ConfigurationError,
        "level 'low': the goal's key 'place' is not observed",
    ),
    (
        lambda: training(replace(TOP, agent=SAC), LEFT, RIGHT, LOW),
        ConfigurationError,
        "level 'top'",
    ),
    (
        lambda: training(
            TOP,
            replace(LEFT, name="choice"),
            RIGHT,
            LOW,
            **below(top=("choice", "right"), choice=("low",), right=("low",)),
        ),
        ConfigurationError,
        "level 'choice' has the name of the part",
    ),
]


@pytest.mark.parametrize(("call", "kind", "parts"), REFUSED)
def test_graph_that_does_not_fit_is_refused_in_one_line(call, kind, parts):
    check_refused(call, kind, parts)
