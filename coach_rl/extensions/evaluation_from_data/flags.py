"""The flags of `coach evaluate RUN --from DATA`. Light, like `cli.parser`."""

from coach_rl.cli import values
from coach_rl.cli.flags import group
from coach_rl.cli.parser import Flag
from coach_rl.core.errors import ConfigurationError


def names(text: str) -> tuple[str, ...]:
    """Names separated by commas."""
    return tuple(filter(None, (each.strip() for each in text.split(","))))


def discount(text: str) -> float:
    """A discount, more than 0 and at most 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        raise ConfigurationError(f"--value_discount takes a number in (0, 1], got {text}")
    return number


FOR_RUNS = group(
    "judging from data (coach evaluate RUN --from DATA)",
    Flag(
        "--estimators NAMES",
        "is, wis, pdis, wpdis, dm, dr, wdr, separated by commas (default: all)",
        names,
        separator=",",
    ),
    Flag("--value_discount GAMMA", "discount per decision (default: the agent's)", discount),
    Flag(
        "--model MODEL",
        "of dm, dr and wdr: network (default), or linear in the observation",
        choices=("network", "linear"),
    ),
    Flag("--model_updates N", "gradient updates of a network (default: 5000)", values.positive),
    of="from_data",
)
"""The flags of commands about one run."""
