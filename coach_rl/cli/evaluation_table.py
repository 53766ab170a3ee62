"""An evaluation as a small table."""

from coach_rl.telemetry.records import LogRecord

_REWARD = "evaluation/reward_"
_ROWS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("episodes", "{:.0f}", ("evaluation/episodes",)),
    ("mean reward", "{:.6g}", (f"{_REWARD}mean",)),
    ("standard deviation", "{:.6g}", (f"{_REWARD}std",)),
    (
        "interquartile mean",
        "{:.6g}, 95% interval {:.6g} to {:.6g}",
        (f"{_REWARD}iqm", f"{_REWARD}iqm_low", f"{_REWARD}iqm_high"),
    ),
    ("mean length", "{:.6g}", ("evaluation/length_mean",)),
    ("success rate", "{:.1%}", ("evaluation/success_rate",)),
)
"""Name, pattern, and the scalars it takes; a row appears where all of them were measured."""


def evaluation_table(record: LogRecord) -> str:
    """The reward's mean, deviation, interquartile mean with its interval, and what else there is.

    Args:
        record: Of kind "evaluation".
    """
    measured = record.scalars
    lines = [
        f"  {name:<20} {pattern.format(*(measured[scalar] for scalar in scalars))}"
        for name, pattern, scalars in _ROWS
        if all(scalar in measured for scalar in scalars)
    ]
    return "\n".join([f"evaluation after {record.environment_steps} environment steps", *lines])
