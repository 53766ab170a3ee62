"""The page of charts that TensorBoard shows under "Custom Scalars", for the metrics a run has.

Its first categories answer whether a run learns and how fast; those below say what is wrong: the
losses of each agent, the sub-goals of each level, faults.
"""

import re
from collections.abc import Iterable, Iterator

from tensorboard.plugins.custom_scalar.layout_pb2 import (  # type: ignore[import-untyped]  # has no types
    Category,
    Chart,
    Layout,
    MarginChartContent,
    MultilineChartContent,
)

_LEARNING = (
    (
        "Return of training episodes, and mean of evaluations",
        "episode/reward evaluation/reward_mean",
    ),
    ("Success", "episode/success evaluation/success_rate"),
    ("Return of each agent in evaluations", "evaluation/reward_mean/[^/]+"),
    ("Length of episodes", "episode/length evaluation/length_mean"),
)
_LEVELS = "Sub-goals reached in evaluations, by level", "[^/]+/evaluation_level/goal_share"
_SPEED = (
    ("Environment steps per second", "time/steps_per_second"),
    ("Processor, percent of a core", "resources/cpu_percent"),
    ("Memory, MiB", "resources/memory_mib"),
    ("GPU memory, MiB", "resources/gpu_memory_mib resources/gpu_memory_reserved_mib"),
)
_TROUBLE = (
    ("Failures of environments", "faults/(?!row).+ evaluation/faults"),
    ("Updates skipped", "[^/]+/[^/]+/train/skipped_updates"),
    ("Roll-backs", "divergence/roll_backs"),
    ("Records lost", "log/lost_records"),
)
_AGENT = (
    ("Policy loss", "train/policy_loss train/actor_loss"),
    ("Value loss", "train/value_loss"),
    ("Error of the critic: TD error, squared or Huber", "train/critic_loss train/q_loss"),
    ("Q values: mean, lowest, highest", "train/q_value train/q_lowest train/q_highest"),
    ("KL divergence of an update", "train/approx_kl"),
    ("Share of actions clipped", "train/clip_fraction"),
    ("Variance of returns explained", "train/explained_variance"),
    ("Entropy", "train/entropy"),
    ("Temperature", "train/temperature"),
    ("Gradient norm", "train/(.+_)?gradient_norm"),
    ("Learning rate", "train/(.+_)?learning_rate"),
    ("Exploration", "exploration/.+"),
    ("Sub-goals corrected", "train/subgoals_.+"),
    ("Graph of way-points", "graph/.+"),
)
_LEVEL = (
    ("Whether it learns", "level/learns"),
    ("Sub-goals reached", "level/goal_share evaluation_level/goal_share"),
    ("Distance to the sub-goal, at start and end", "level/distance_at_start level/distance"),
    ("Ends of sub-episodes", "level/(horizon|outer|terminated|truncated)_share"),
    ("Decisions in a sub-episode", "level/decisions evaluation_level/decisions"),
    ("Environment steps in a sub-episode", "level/steps evaluation_level/steps"),
    ("Return of the level", "level/return evaluation_level/return"),
    ("Decisions tested, and penalised", "level/tested_share level/penalised_share"),
    ("Size of the graph", "level/graph_(places|edges) evaluation_level/graph_(places|edges)"),
    ("Seconds of planning a decision", "level/planning_seconds evaluation_level/planning_seconds"),
)


def layout(tags: Iterable[str]) -> Layout | None:
    """The charts for metrics by the tags of TensorBoard; None where there is nothing to chart.

    A chart is the same whatever other metrics a run has: TensorBoard merges the layouts of several
    runs, and would show charts twice that differ.
    """
    known = tuple(tags)
    agents = dict.fromkeys(
        match[1] for tag in known if (match := re.match(r"([^/]+/[^/]+)/train/", tag))
    )
    levels = dict.fromkeys(match[1] for tag in known if (match := re.match(r"([^/]+)/level/", tag)))
    pages = [
        ("Is it learning?", [*_interval(known), *_charts((*_LEARNING, _LEVELS), known)]),
        *((f"Agent {name}", _charts(_AGENT, known, f"{name}/")) for name in agents),
        *((f"Level {name}", _charts(_LEVEL, known, f"{name}/")) for name in levels),
        ("How fast, and what it takes", _charts(_SPEED, known)),
        ("What went wrong", _charts(_TROUBLE, known)),
    ]
    categories = [
        Category(title=title, chart=charts) for title, page in pages if (charts := [*page])
    ]
    return Layout(category=categories) if categories else None


def _interval(tags: tuple[str, ...]) -> Iterator[Chart]:
    """The return in evaluations with its interval, exactly these tags."""
    value = "evaluation/reward_iqm"
    if value in tags:
        series = MarginChartContent.Series(value=value, lower=f"{value}_low", upper=f"{value}_high")
        yield Chart(
            title="Return in evaluations, 95 % interval",
            margin=MarginChartContent(series=[series]),
        )


def _charts(
    wanted: Iterable[tuple[str, str]], tags: tuple[str, ...], prefix: str = ""
) -> Iterator[Chart]:
    """Those charts for which there is a metric; their tags are patterns."""
    for title, patterns in wanted:
        found = [f"{re.escape(prefix)}{pattern}$" for pattern in patterns.split()]
        if any(re.match(pattern, tag) for pattern in found for tag in tags):
            yield Chart(title=title, multiline=MultilineChartContent(tag=found))
