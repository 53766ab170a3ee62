"""Trying an environment, and saying what was found: `coach check`."""

import warnings
from collections import Counter
from contextlib import closing
from pathlib import Path

from coach_rl import environments, testing  # whose names are imported when they are used
from coach_rl.configuration.overrides import apply_overrides
from coach_rl.configuration.trust import code_in_parameters
from coach_rl.configuration.user_modules import let_import_named
from coach_rl.core.errors import CoachWarning
from coach_rl.core.interfaces import EnvironmentParameters
from coach_rl.core.level_name import shown_level
from coach_rl.graph_managers.restoring import obstacle_to_restoring

_SHORT_EPISODES = 25
"""Time limit of the episodes that most checks play."""


def level_parameters(level: str) -> EnvironmentParameters:
    """Describe the environment of a level; modules in the working directory are found as well."""
    described = environments.parameters(level)
    let_import_named(code_in_parameters(described), Path.cwd())
    return described


def check_environment(environment: EnvironmentParameters) -> int:
    """Print what an environment keeps of its promises, a line each.

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
    verdicts: Counter[str] = Counter()
    is_vector = getattr(environment, "vectorization", "") == "vector"
    recipe = None if is_vector else getattr(short or environment, "recipe", None)
    for finding in testing.examine(
        lambda num_envs: environment.build(num_envs=num_envs),
        build_short=None if short is None else lambda num_envs: short.build(num_envs=num_envs),
        obstacle_to_restoring=obstacle,
        steps_together=is_vector,
        single=None if recipe is None else recipe().make,
    ):
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
