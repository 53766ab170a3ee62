"""Warnings about runs that would be of little use, each with what to change."""

from itertools import chain
from operator import attrgetter

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import warn
from coach_rl.core.parameter_classes import LearnerParameters
from coach_rl.core.records import IntArray
from coach_rl.core.shown_text import shown_level
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.parameters import GraphParameters, ScheduleParameters

ENDLESS = 10_000
"""Steps of each environment without the end of an episode that are worth a warning."""
STANDSTILL = 100_000
"""Environment steps after which a length that is still at 0 is worth a warning."""
ANY_NUMBER = 1 << 60
"""Environment steps of a run whose length is counted in something else."""
TRIAL = 10_000
"""Environment steps of a run that may well go without a learning curve."""


class StandstillWatch:
    """Warns, once each, of episodes that don't end and of lengths that don't grow.

    Args:
        schedule: The lengths of the experiment.
        level: The name of its environment.
    """

    def __init__(self, schedule: ScheduleParameters, level: str) -> None:
        self._schedule = schedule
        self._level = level
        self._has_seen_episodes = self._has_seen_lengths = False

    def check(self, clock: Clock, open_episodes: IntArray) -> None:
        """Check the counters, and the lengths [N] of the open episodes."""
        if not self._has_seen_episodes and open_episodes.min() >= ENDLESS:
            self._has_seen_episodes = True
            warn(
                f"no training episode of '{shown_level(self._level)}' has "
                f"ended in the last {ENDLESS:,} steps of each environment; where they should, give "
                'it a time limit (-cp "environment.max_episode_steps=1000") or let it report '
                "terminated or truncated",
            )
        if not self._has_seen_lengths and clock.environment_steps >= STANDSTILL:
            self._has_seen_lengths = True
            self._warn_of_lengths(clock)

    def _warn_of_lengths(self, clock: Clock) -> None:
        """Warn of lengths that are still at 0, so that they may never be reached."""
        schedule = self._schedule
        lengths = {
            "training": schedule.training,
            "evaluation_interval": schedule.evaluation_interval,
        }
        if clock.phase is Phase.HEATUP:
            lengths = {"heatup": schedule.heatup}
        for name, length in lengths.items():
            if length is not None and length.counted(clock) == 0:
                warn(
                    f"schedule.{name} is {length}, and there were none in the first "
                    f"{clock.environment_steps:,} environment steps; it may never be reached",
                )


def warn_of_useless_settings(parameters: GraphParameters) -> None:
    """Warn where a run would teach its agents nothing, or show nothing of what they learn."""
    warn_of_idle_learners(parameters)
    schedule = parameters.schedule
    steps, heatup = _steps(schedule.training), _steps(schedule.heatup)
    interval = _steps(schedule.evaluation_interval)
    if steps is None or heatup is None or interval is None:
        return
    if interval > steps - heatup >= TRIAL:
        warn(
            f"the first evaluation comes at the end of the run: schedule.evaluation_interval has "
            f"{interval:,} steps, the run {steps - heatup:,} after heat-up; lower it for a "
            "learning curve",
        )


def warn_of_idle_learners(parameters: GraphParameters) -> None:
    """Warn where an agent would not learn anything in the whole run, or nothing of use."""
    levels = parameters.levels
    schedule = parameters.schedule
    for index, level in enumerate(levels):
        if level.frozen or not isinstance(level.agent, LearnerParameters):
            continue
        ends = [schedule.training, *map(attrgetter("learns_until"), level.changes)]
        below = chain.from_iterable(each.changes for each in levels[index + 1 :])
        begins = [schedule.heatup, *map(attrgetter("leads_until"), below)]
        obstacle = level.agent.obstacle_to_learning(
            num_envs=parameters.num_envs,
            steps=min(filter(None, map(_steps, ends)), default=ANY_NUMBER),
            heatup=max(filter(None, map(_steps, begins)), default=0),
        )
        if obstacle is not None:
            of = "" if len(levels) == 1 else f"level '{level.name}': "
            warn(f"{of}{obstacle}")


def warn_of_endless_heatup(schedule: ScheduleParameters) -> None:
    """Warn that a run was over before its heat-up."""
    warn(
        f"the run ended within its heat-up of {schedule.heatup}, so nothing was trained; shorten "
        f"schedule.heatup, or give it in the unit of schedule.training ({schedule.training.noun})",
    )


def warn_of_cut_off_episodes(parameters: GraphParameters) -> None:
    """Warn that episodes of an evaluation did not end in time."""
    environment = parameters.evaluation_environment or parameters.environment
    warn(
        f"evaluation episodes of '{shown_level(environment.level)}' were cut off after "
        f"{parameters.schedule.evaluation_step_limit:,} steps and count as truncated; give it a "
        "time limit (environment.max_episode_steps), or change schedule.evaluation_step_limit",
    )


def _steps(length: object) -> int | None:
    """The environment steps of a length; None where it is counted in something else."""
    return length.count if isinstance(length, EnvironmentSteps) else None
