"""Summary of a run: the numbers of summary.json and of the table at its end."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.table import Table as RichTable

from coach_rl.core.log_records import Evaluation, LogRecord
from coach_rl.telemetry.figures import unit_name
from coach_rl.telemetry.tables import rich_table, written


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A finished run in numbers."""

    evaluation: Evaluation
    """The final evaluation; its counters are the run's."""
    steps_per_second: float
    """Moments of the run per second of training, updates included, evaluations not."""
    best_checkpoint: str | None
    """Path of the checkpoint with the best evaluation; None when there was no evaluation."""
    last_checkpoint: str | None
    """Path of the newest checkpoint; None where the run keeps none, or could write none."""
    incidents: tuple[str, ...] = ()
    """Problems that did not end the run, a line each."""
    best: str = ""
    """The best evaluation while training, by which metric, and when; empty when there was none."""
    ending: str = ""
    """The reason why training was over: `solved`, or the unit whose count was full."""
    target: str = ""
    """The target, and whether it was reached; empty where there is none."""
    solved_at: int | None = None
    """The moment of the first evaluation that reached the target; None if none has."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Number of failures of training environments, whose rows were restarted, by cause."""
    signals: Mapping[str, float] = field(default_factory=dict)
    """The last report of the signals of training."""

    def as_json(self) -> dict[str, object]:
        """The content of summary.json."""
        record = self.evaluation
        scalars = self.evaluation.scalars
        return {
            "env_steps": record.environment_steps,
            "episodes": record.episodes,
            "training_steps": record.training_steps,
            "wall_seconds": record.wall_seconds,
            "steps_per_second": self.steps_per_second,
            "evaluation": {
                **_of_evaluation(scalars),
                "episodes": int(scalars["evaluation/episodes"]),
                "reward_mean": scalars["evaluation/reward_mean"],
                "reward_std": scalars["evaluation/reward_std"],
                "reward_iqm": scalars["evaluation/reward_iqm"],
                "reward_ci95": [
                    scalars["evaluation/reward_iqm_low"],
                    scalars["evaluation/reward_iqm_high"],
                ],
                "success_rate": scalars.get("evaluation/success_rate"),
                "success_any_rate": scalars.get("evaluation/success_any_rate"),
            },
            "levels": {
                level.level: {_short(name): value for name, value in level.scalars.items()}
                for level in record.levels
            },
            "signals": {
                "training": by_signal(self.signals, "signals"),
                "evaluation": by_signal(scalars, "evaluation_signals"),
            },
            "ending": self.ending,
            "target": self.target or None,
            "solved_at": self.solved_at,
            "best_checkpoint": self.best_checkpoint,
            "last_checkpoint": self.last_checkpoint,
            "incidents": list(self.incidents),
            "faults": dict(self.faults),
        }

    def table(self) -> RichTable:
        """The numbers as a table for the terminal."""
        record = self.evaluation
        rows = [
            *_evaluation_rows(record),
            ("environment steps", f"{record.environment_steps:,}"),
            ("gradient updates", f"{record.training_steps:,}"),
            (f"{unit_name(record)} per second", f"{self.steps_per_second:,.0f}"),
            ("ended by", self.ending or "-"),
        ]
        if self.target:
            rows.append(("target", self.target))
        rows += [
            ("best evaluation", self.best or "-"),
            ("best checkpoint", self.best_checkpoint or "-"),
            ("last checkpoint", self.last_checkpoint or "-"),
        ]
        if self.faults:
            counts = ", ".join(f"{count:,} {cause}" for cause, count in self.faults.items())
            rows.append(("environment faults", f"{counts} (rows restarted)"))
        return _facts([*rows, *(("incident", incident) for incident in self.incidents)])


def evaluation_table(evaluation: Evaluation) -> RichTable:
    """A table of mean, standard deviation, interquartile mean, success, and one line per level."""
    return _facts(_evaluation_rows(evaluation))


def _evaluation_rows(evaluation: Evaluation) -> list[tuple[str, str]]:
    of = {name.removeprefix("evaluation/"): each for name, each in evaluation.scalars.items()}
    low, high = of["reward_iqm_low"], of["reward_iqm_high"]
    rows = [
        ("episodes", f"{of['episodes']:.0f}"),
        ("mean reward", f"{of['reward_mean']:,.2f}"),
        ("standard deviation", f"{of['reward_std']:,.2f}"),
        (
            "interquartile mean",
            f"{of['reward_iqm']:,.2f}  (95 % interval {low:,.2f} to {high:,.2f})",
        ),
        ("mean length", f"{of['length_mean']:,.1f}"),
    ]
    if "success_rate" in of:
        at_the_end = f"{of['success_rate']:.1%}"
        rows.append(("success rate", f"{at_the_end}  (at any step {of['success_any_rate']:.1%})"))
    return rows + [(f"level {level.level}", _level_line(level)) for level in evaluation.levels]


def _facts(rows: list[tuple[str, str]]) -> RichTable:
    """The table of an evaluation, a fact and its value in each row."""
    shown = rich_table(written(("", ""), rows, texts=2, title="Evaluation"), show_header=False)
    shown.columns[0].style = "dim"
    shown.columns[0].no_wrap = True
    return shown


def _level_line(level: LogRecord) -> str:
    """Return the line about a level's sub-episodes."""
    of = {_short(name): value for name, value in level.scalars.items()}
    if "sub_episodes" not in of:
        return "none of its sub-episodes ended"
    parts = [f"{of['sub_episodes']:,.0f} sub-episodes of {of['decisions']:.1f} decisions"]
    if of.get("steps", of["decisions"]) != of["decisions"]:
        parts[0] += f" ({of['steps']:,.1f} steps)"
    if "goal_share" in of:
        parts.append(f"{of['goal_share']:.1%} reach the goal, distance {of['distance']:.3g}")
    if "graph_places" in of:
        parts.append(f"graph of {of['graph_places']:,.0f} places, {of['graph_edges']:,.0f} edges")
    if "graph_pruned_edges" in of:
        parts[-1] += f" ({of['graph_pruned_edges']:,.0f} pruned)"
    if "planning_seconds" in of:
        parts.append(f"{1000 * of['planning_seconds']:.3g} ms of planning a decision")
    return ", ".join(parts)


def _of_evaluation(scalars: Mapping[str, float]) -> dict[str, float]:
    """The metrics of the evaluation of all levels, by their names in curves."""
    room = "evaluation/"
    return {
        name.removeprefix(room): value for name, value in scalars.items() if name.startswith(room)
    }


def _short(name: str) -> str:
    """A metric's name without its room."""
    return name.rpartition("/")[2]


def by_signal(scalars: Mapping[str, float], room: str) -> dict[str, dict[str, float]]:
    """The statistics of `SignalWindows.drain` among other scalars, by signal."""
    found: dict[str, dict[str, float]] = {}
    for path, value in scalars.items():
        if path.startswith(f"{room}/"):
            name, _, statistic = path.removeprefix(f"{room}/").rpartition("/")
            found.setdefault(name, {})[statistic] = value
    return found
