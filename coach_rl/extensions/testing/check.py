"""`coach check`: the contract suites on an environment, or on the parts of a preset."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from coach_rl import environments  # whose names are imported when they are used
from coach_rl.cli.parser import Given
from coach_rl.cli.settings import configured
from coach_rl.configuration.overrides import apply_overrides
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.configuration.trust import code_in_parameters
from coach_rl.configuration.user_modules import let_import_named
from coach_rl.core.errors import CoachWarning
from coach_rl.core.interfaces import EnvironmentParameters
from coach_rl.core.shown_text import shown_level
from coach_rl.extensions import testing  # likewise
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.restoring import obstacle_to_restoring

_SHORT_EPISODES = 25
"""Time limit of the episodes that most checks play."""


def check(given: Given) -> int:
    """Check an environment; the exit code."""
    return check_environment(task_parameters(given.environment))


def check_preset(given: Given) -> int:
    """Check the parts of a preset's experiment, each by its contract suite; the exit code."""
    preset = load_preset(find_preset(given.preset))
    graph_manager, _ = configured(given, preset)
    return max(suite(graph_manager) for suite in _SUITES)


def task_parameters(task: str) -> EnvironmentParameters:
    """Parameters of a task's environment; modules in the working directory are found as well."""
    described = environments.parameters(task)
    let_import_named(code_in_parameters(described), Path.cwd())
    return described


def check_environment(environment: EnvironmentParameters) -> int:
    """Print whether an environment keeps its promises, a line each.

    Args:
        environment: Which; where it takes a time limit, most checks play short episodes.

    Returns:
        The exit code: 1 if a promise is broken.

    Raises:
        ConfigurationError: It cannot be built.
    """
    with warnings.catch_warnings(), closing(environment.build(num_envs=1)) as built:
        warnings.simplefilter("ignore", CoachWarning)  # each is a finding below
        obstacle = obstacle_to_restoring(built, environment)
    short = _with_short_episodes(environment)
    print(f"checking {shown_level(environment.level)}")
    is_vector = getattr(environment, "vectorization", "") == "vector"
    recipe = None if is_vector else getattr(short or environment, "recipe", None)
    return _exit_code(
        testing.examine(
            lambda num_envs: environment.build(num_envs=num_envs),
            build_short=None if short is None else lambda num_envs: short.build(num_envs=num_envs),
            obstacle_to_restoring=obstacle,
            steps_together=is_vector,
            single=None if recipe is None else recipe().make,
        )
    )


def _exit_code(findings: Iterable[testing.Finding]) -> int:
    """Print findings, a line each, and their numbers; 1 if a promise is broken, else 0."""
    verdicts: Counter[str] = Counter()
    for finding in findings:
        verdicts[finding.verdict] += 1
        text = f": {finding.text}" if finding.text else ""
        print(f"{finding.verdict:<8} {finding.subject}{text}")
    print(", ".join(f"{verdicts[verdict]} {verdict}" for verdict in ("passed", "warned", "failed")))
    return 1 if verdicts["failed"] else 0


def _with_short_episodes(environment: EnvironmentParameters) -> EnvironmentParameters | None:
    """The environment with a short time limit; None where it takes none."""
    takes_limit = hasattr(environment, "max_episode_steps")
    if not takes_limit or getattr(environment, "vectorization", "") == "vector":
        return None
    return apply_overrides(environment, {"max_episode_steps": _SHORT_EPISODES})


def _environment_suite(graph_manager: GraphManager) -> int:
    return check_environment(graph_manager.parameters.environment)


def _agents_suite(graph_manager: GraphManager) -> int:
    agents = ", ".join(level.agent.name for level in graph_manager.parameters.levels)
    print(f"checking {agents}")
    with graph_manager:
        return _exit_code(testing.examine_agents(graph_manager))


_SUITES: tuple[Callable[[GraphManager], int], ...] = (_environment_suite, _agents_suite)
"""The suites that `coach check -p PRESET` runs: each prints its findings, and returns 1 if a
promise is broken, else 0."""
