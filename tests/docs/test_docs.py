"""The programs of the pages run, commands parse, and links, metrics and tables are right.

Every ```python block of a page is run from top to bottom in one namespace; every `coach` and `make`
line of a ```bash block is checked against the command line and the Makefile.
"""

import re
import runpy
import shlex
import sys
import warnings
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import ModuleType
from typing import get_args

import numpy as np
import pytest
import torch

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.dqn_agent import DQNAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.agents.scripted_agent import ScriptedAgentParameters
from coach_rl.agents.td3_agent import TD3AgentParameters
from coach_rl.cli.commands import COMMANDS, parse_arguments
from coach_rl.cli.settings import overrides_of
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset, shipped_presets
from coach_rl.core.clock import LinearSchedule
from coach_rl.core.data_points import DataPoint
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.log_records import Kind
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.faults import Cause
from coach_rl.environments.goal_worlds import GoalWorldParameters
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.toy import GoalPointMassParameters, OneStepParameters
from coach_rl.exploration_policies import ParameterNoise
from coach_rl.extensions.curricula.curriculum import Curriculum
from coach_rl.extensions.hac.hac_graph import HACGraphManager
from coach_rl.extensions.hiro.landmarks import LandmarkParameters
from coach_rl.extensions.hiro.sub_goal_guide import SubGoalGuideParameters
from coach_rl.extensions.learned_goals.lesson_goals import LESSONGoalSpace
from coach_rl.extensions.looking.inspect_parameters import InspectParameters, parse_inspections
from coach_rl.extensions.looking.inspections import KIND
from coach_rl.extensions.looking.inspector import Inspector
from coach_rl.extensions.planning.graph_agent import GraphAgentParameters
from coach_rl.extensions.planning.places import GridPlaces
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    GraphManager,
    GraphParameters,
    HRLGraphManager,
    LevelParameters,
    ScheduleParameters,
    SignalParameters,
)
from coach_rl.memories import PrioritisedParameters, ReplayMemoryParameters
from tests.notebooks import stand_in_for_ipython

CHECKOUT = Path(__file__).parent.parent.parent
DOCS = CHECKOUT / "docs"
PAGES = sorted([*CHECKOUT.glob("*.md"), *DOCS.rglob("*.md")])
METRICS = runpy.run_path(str(CHECKOUT / ".ci" / "metrics_page.py"))
DESCRIBED = {
    name: re.compile(re.sub(r"<\w+>", ".+", name))
    for table, entries in METRICS["descriptions"]().items()
    if table != METRICS["KINDS"]
    for names in entries
    for name in names.split(", ")
}
"""Patterns of the metrics that the rooms describe, by their names."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    line: int  # of its first line of text, from 1
    text: str
    file: str  # that the text is to be saved as; empty for most


def blocks(markdown, language):
    found, opened = [], None
    lines = markdown.splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.startswith("```"):
            continue
        if opened is None:
            opened = (line.removeprefix("```").strip(), number + 1)
        else:
            (name, _, file), first = opened[0].partition(" title="), opened[1]
            text = "\n".join(lines[first - 1 : number - 1]) + "\n"
            found.append(Block(name, first, text, file.strip('"')))
            opened = None
    assert opened is None, f"the block opened before line {opened[1]} is never closed"
    return [block for block in found if block.language == language]


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors are slow on several threads when the machine is busy."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def name_of(page):
    return str(page.relative_to(CHECKOUT))


def pages_with(language):
    return [page for page in PAGES if blocks(page.read_text(), language)]


def other_pages(language):
    """Those with blocks of a language, without the one whose package its own test installs."""
    return [page for page in pages_with(language) if page.stem != "how_to_extension"]


@pytest.mark.parametrize("page", other_pages("python"), ids=name_of)
def test_page_programs_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    stand_in_for_ipython(monkeypatch)
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks(page.read_text(), "python"):
        if block.file:
            Path(block.file).write_text(block.text)
            continue
        # Blank lines in front let a traceback name the line of the page.
        source = "\n" * (block.line - 1) + block.text
        exec(compile(source, str(page), "exec"), module.__dict__)


@pytest.mark.parametrize("page", other_pages("bash"), ids=name_of)
def test_page_commands_parse(page):
    for block in blocks(page.read_text(), "bash"):
        for line in block.text.replace("\\\n", " ").splitlines():
            understand(line)


def understand(line):
    """Raise unless a `coach` or `make` line asks for something that exists."""
    program, *words = shlex.split(line, comments=True) or [""]
    if program == "make":
        targets = re.findall(r"^(\w+):", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
        for word in words:
            assert word in targets, f"`{line}`: make has no target {word}"
    elif Path(program).name == "coach":
        if words == ["--help"]:
            return
        given = parse_arguments(words)
        is_described = given.command in (COMMANDS["train"], COMMANDS["describe"])
        if is_described and not given.preset.partition(":")[0].endswith(".py"):
            preset = load_preset(find_preset(given.preset))
            preset.configure(overrides_of(given, preset))


@pytest.mark.parametrize(
    "wrong",
    [
        "coach -p CartPole_PPO --stepz 5",
        "coach -p CartPole_PPG",
        'coach -p CartPole_PPO -cp "agent.algorithm.discont=0.9"',
        "coach -crd run -lvl hopper",
    ],
)
def test_understand_wrong_command_error(wrong):
    with pytest.raises(ConfigurationError):
        understand(wrong)


def test_understand_wrong_make_target_error():
    with pytest.raises(AssertionError, match="no target trian"):
        understand("make trian")


def test_pages_install_from_a_checkout():
    """Until it is, extras are installed from a checkout: pip install -e ".[video]"."""
    places = [*PAGES, *(CHECKOUT / "benchmarks").rglob("*.md")]
    for folder in ("coach_rl", "environments", "filters", "presets", "benchmarks"):
        places += (CHECKOUT / folder).rglob("*.py")
    wrong = re.compile(r"coach-rl\[|pip install( -\S+)* coach")
    assert wrong.search("pip install -U coach_rl")
    assert not [name_of(place) for place in places if wrong.search(place.read_text())]


def anchors(markdown):
    """The anchors of a page's headings, as GitHub makes them."""
    plain = re.sub(r"^```.*?^```", "", markdown, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", plain, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_links_exist(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+://", target):
            continue
        file, _, anchor = target.partition("#")
        place = (page.parent / file).resolve() if file else page
        assert place.exists(), f"{name_of(page)} links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors(place.read_text()), (
                f"{name_of(page)} links to {target}, which has no such heading"
            )


def test_import_table_equals_the_enforced_matrix():
    allowed = runpy.run_path(str(CHECKOUT / "tests" / "test_architecture.py"))["ALLOWED"]
    section = (DOCS / "architecture.md").read_text().partition("## Who may import whom")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section.partition("\n## ")[0], re.MULTILINE)
    table = {room: set(re.findall(r"`(\w+)`", rooms)) for room, rooms in rows}
    presets = table.pop("presets")
    assert not presets, "presets may import everything"
    assert table == allowed


def test_reading_lists_name_files_that_exist():
    section = (DOCS / "architecture.md").read_text().partition("## Reading lists")[2]
    files = re.findall(r"`((?:coach_rl|presets)/[\w/]+\.py)`", section)
    assert len(files) > 20
    assert [file for file in files if not (CHECKOUT / file).exists()] == []


def metrics_in_the_source():
    rooms = "|".join({name.partition("/")[0] for name in DESCRIBED})
    literal = re.compile(rf'"((?:(?:final_)?evaluation_)?(?:{rooms})/[a-z0-9_]*[a-z0-9])"')
    names = {f"faults/{cause}" for cause in get_args(Cause)}
    for folder in ("coach_rl", "environments", "filters"):
        for file in (CHECKOUT / folder).rglob("*.py"):
            names |= set(literal.findall(file.read_text()))
    return names


def experiments_with_metrics():
    """Agents and environments that together log whatever there is to log."""
    for objective, environment in (
        ("clip", GoalPointMassParameters(max_episode_steps=8)),
        ("kl", GymnasiumParameters(level="CartPole-v1")),
    ):
        algorithm = PPOAlgorithmParameters(
            rollout=EnvironmentSteps(64), epochs=1, objective=objective
        )
        yield PPOAgentParameters(algorithm=algorithm), environment
    shared = {
        "learning": LearningParameters(batch=4, learning_starts=4, report_every=8),
        "memory": ReplayMemoryParameters(
            capacity=100,
            prioritised=PrioritisedParameters(),
        ),
    }
    yield DQNAgentParameters(**shared), OneStepParameters()
    for agent in (
        DDPGAgentParameters(**shared, parameter_noise=ParameterNoise()),
        TD3AgentParameters(**shared),
        SACAgentParameters(**shared),
    ):
        yield agent, OneStepParameters(continuous=True)


SKILLS = {
    "PointMass_PPO_Skills": {"steps": 512, "rollout": 64, "skills": "option_critic"},
    "PointMass_DIAYN": {"steps": 1_100},
    "PointMaze_METRA": {"steps": 1_100},
}
"""Presets that learn skills, and changes by which they log soon."""
SOON = {"batch": 4, "updates_per_step": 0.05, "learning_starts": 4, "report_every": 2}
"""Settings of learning by which agents with a replay memory log soon."""


def logging_soon(agent):
    learning = getattr(agent, "learning", None)
    return agent if learning is None else replace(agent, learning=replace(learning, **SOON))


def skills(preset, changes):
    """A graph manager of a preset that learns skills."""
    with load_preset(find_preset(preset)).build(changes) as graph_manager:
        params = graph_manager.parameters
    levels = (replace(level, agent=logging_soon(level.agent)) for level in params.levels)
    return GraphManager(replace(params, levels=tuple(levels)))


def strict_hac():
    """Two levels of HAC, of which the upper one ends at failures and has no limits of actions."""
    with load_preset(find_preset("Pendulum_HAC")).build({"steps": 1_000}) as graph_manager:
        params = graph_manager.parameters
    top, low = (
        replace(level, agent=replace(level.agent, learner=logging_soon(level.agent.learner)))
        for level in params.stack
    )
    top = replace(top, stops_on_failure="training", agent=replace(top.agent, actions=None))
    schedule = replace(
        params.schedule,
        evaluation_interval=EnvironmentSteps(1_000),
        evaluation_episodes=EnvironmentEpisodes(1),
    )
    return HACGraphManager(replace(params, stack=(top, low), schedule=schedule))


def slow_features():
    """Two levels with sub-goals in a space that is learned."""
    params = guided_hierarchy()
    (top, low), box = params.levels, {"low": (-9.0,), "high": (9.0,), "threshold": (0.1,)}
    features = LESSONGoalSpace(**box, key="observation", ahead=2, every=1)
    top = replace(top, agent=replace(top.agent, actor_terms=()))
    return replace(params, levels=(top, replace(low, goal_space=features)))


def with_a_curriculum():
    """Two levels whose sub-goals are reached more strictly as they train."""
    params = guided_hierarchy()
    top, low = params.levels
    stricter = Curriculum(threshold=LinearSchedule(start=2.0, end=1.0))
    schedule = replace(params.schedule, progress_interval=EnvironmentSteps(32))
    levels = (top, replace(low, changes=(stricter,)))
    return replace(params, levels=levels, schedule=schedule)


def guided_hierarchy():
    """Two levels, of which the upper one has whatever guides sub-goals."""
    places = GoalSpace(key="achieved_goal", low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.1, 0.1))
    agent = TD3AgentParameters(
        learning=LearningParameters(batch=4, learning_starts=4, report_every=4)
    )
    guide = SubGoalGuideParameters(landmarks=LandmarkParameters(novelty=None))
    return GraphParameters(
        levels=(
            LevelParameters(name="top", agent=replace(agent, actor_terms=(guide,))),
            LevelParameters(name="low", agent=agent, goal_space=places, horizon=4),
        ),
        environment=GoalPointMassParameters(),
        schedule=ScheduleParameters(training=EnvironmentSteps(96), evaluation_interval=None),
        num_envs=4,
    )


def infos_of(environment):
    return ("is_success",) if isinstance(environment, GoalPointMassParameters) else ()


def names_of_what_is_wrong():
    """The names of the numbers by which inspections say that something is wrong."""
    params = InspectParameters(
        checks=("nan", "shape", "range", "staleness"), within=(0, 1), oldest=1, reaction="warn"
    )
    point = DataPoint(name="batch", watch=lambda look: None, ages=("age",))
    found = []
    inspector = Inspector(params, point, level="main", note=found.append)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for columns in ({"age": np.array([2.0, np.inf])}, {"age": np.zeros((1, 2))}):
            inspector.inspect(lambda columns=columns: columns)
    return {name for each in found for name in each.scalars}


def metrics_of_a_selector():
    """The names of the scalars of a level that selects others."""
    names = set()
    with load_preset(find_preset("Workshop_PPO_Selector")).build(
        {"steps": 10_000, "preempt": True}
    ) as graph_manager:
        params = graph_manager.parameters
    selector, *parts = params.levels
    levels = (selector, *(replace(part, frozen=True) for part in parts))
    schedule = replace(params.schedule, evaluation_interval=None)
    selecting = replace(params, levels=levels, schedule=schedule)
    with GraphManager(selecting) as graph_manager:
        for record in graph_manager.improve():
            names |= {*record.scalars}
    return names


def metrics_of_runs():
    """The names of every scalar and array of small runs."""
    names = set()
    for agent, environment in experiments_with_metrics():
        parameters = BasicGraphParameters(
            agent=agent,
            environment=environment,
            schedule=ScheduleParameters(
                training=EnvironmentSteps(128),
                evaluation_interval=EnvironmentSteps(64),
                evaluation_episodes=EnvironmentEpisodes(2),
                progress_interval=EnvironmentSteps(64),
            ),
            num_envs=4,
            signals=SignalParameters(infos=infos_of(environment)),
            callbacks=parse_inspections("batch:stats"),
        )
        with BasicRLGraphManager(parameters) as graph_manager:
            for record in graph_manager.improve():
                names |= {*record.scalars, *record.arrays}
    planner = LevelParameters(
        name="graph",
        agent=GraphAgentParameters(places=GridPlaces(spacing=1.0), prune_after=2),
        goal_space=GoalWorldParameters(level="point_maze_u").task.goal_space,
        frozen_from=EnvironmentSteps(200),
    )
    walker = LevelParameters(
        name="low",
        agent=ScriptedAgentParameters(policy="still"),
        goal_space=GoalWorldParameters(level="point_maze_u").task.subgoal_space,
        horizon=5,
    )
    with GraphManager(
        GraphParameters(
            levels=(planner, walker),
            environment=GoalWorldParameters(level="point_maze_u"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(240),
                evaluation_interval=EnvironmentSteps(120),
                evaluation_episodes=EnvironmentEpisodes(1),
                progress_interval=EnvironmentSteps(60),
            ),
        )
    ) as graph_manager:
        for record in graph_manager.improve():
            names |= {*record.scalars}
    with strict_hac() as graph_manager:
        for record in graph_manager.improve():
            names |= {*record.scalars}
    names |= metrics_of_a_selector()
    for preset, changes in SKILLS.items():
        with skills(preset, changes) as graph_manager:
            for record in graph_manager.improve():
                names |= {*record.scalars}
    with HRLGraphManager(guided_hierarchy()) as graph_manager:
        for record in graph_manager.improve():
            names |= {*record.scalars}
    for params in (slow_features(), with_a_curriculum()):
        with HRLGraphManager(params) as graph_manager:
            for record in graph_manager.improve():
                names |= {*record.scalars}
    return names | names_of_what_is_wrong()


def test_logged_metrics_are_described():
    """Each in the metrics.toml of its room; after a change: `python .ci/metrics_page.py`."""
    logged = {
        re.sub(r"^(final_)?evaluation_(level|signals)/", r"\2/", name).removeprefix("final_")
        for name in metrics_in_the_source() | metrics_of_runs()
    }
    assert {
        "train/kl_coefficient",
        "train/policy_loss",
        "train/q_loss",
        "train/critic_loss",
        "train/temperature_gradient_norm",
        "episode/success",
        "exploration/epsilon",
        "exploration/parameter_scale",
        "memory/beta",
    } <= logged
    patterns = DESCRIBED.values()
    assert not {name for name in logged if not any(each.fullmatch(name) for each in patterns)}
    unused = {name for name, each in DESCRIBED.items() if not any(map(each.fullmatch, logged))}
    of_groups = {"episode/reward/<agent>", "evaluation/reward_mean/<agent>"}
    assert unused == {*of_groups, "level/own_end_share"}  # of agents of one's own


def test_described_kinds_of_records_are_those_of_the_code():
    kinds = METRICS["descriptions"]()[METRICS["KINDS"]]
    assert sorted(kinds) == sorted([*get_args(Kind), KIND])


def test_metrics_page_equals_the_descriptions():
    """After a change: `python .ci/metrics_page.py`."""
    text = METRICS["PAGE"].read_text()
    assert text == METRICS["rendered"](text)
    assert sorted(METRICS["TABLE"].findall(text)) == sorted(METRICS["descriptions"]())


def test_presets_page_names_every_preset():
    text = (DOCS / "presets.md").read_text()
    assert not [name for name in shipped_presets() if f"`{name}`" not in text]


def test_ppo_table_names_every_parameter_and_the_presets_that_differ():
    text = (DOCS / "algorithms" / "ppo.md").read_text()
    section = text.partition("## Parameters")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([\w.]+)` \|.*\|([^|]*)\|$", section, re.MULTILINE))
    default = PPOAlgorithmParameters()
    expected = {field.name: set() for field in fields(default)}
    for name, preset in shipped_presets().items():
        graph_manager = load_preset(preset).build()
        agents = [level.agent for level in graph_manager.parameters.levels]
        agents += [member.agent for each in agents for member in getattr(each, "members", ())]
        for agent in agents:
            algorithm = getattr(agent, "algorithm", None)
            if not isinstance(algorithm, PPOAlgorithmParameters):
                continue
            for field in expected:
                if getattr(algorithm, field) != getattr(default, field):
                    expected[field].add(name)
    for field, presets in expected.items():
        named = set(re.findall(r"`(\w+)`", rows[field]))
        if "by task" in rows[field]:  # and the preset's own task may have none
            presets |= {"Mujoco_PPO", "Mujoco_PPO_KL"}
        assert named == presets, field


NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)((?:::\w+)*)`")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if NAMED_TEST.search(page.read_text())], ids=name_of
)
def test_named_tests_exist(page):
    for file, names in NAMED_TEST.findall(page.read_text()):
        assert (CHECKOUT / file).is_file(), file
        source = (CHECKOUT / file).read_text()
        for name in filter(None, names.split("::")):
            assert re.search(rf"^\s*(?:def|class) {name}\b", source, re.M), f"{file}::{name}"
