"""The table of flags of `coach evaluate RUN --from DATA`: that of all commands about one run."""

from dataclasses import replace

from coach_rl.cli.commands import RUNS
from coach_rl.cli.parser import Flag

_TAKEN = {"--checkpoint_restore", "--from", "--last_good", "--sampling", "--trust", "--seed"}
_TAKEN |= {"--use_cpu", "--device", "--threads"}


def _taking(flag: Flag) -> Flag:
    """The flag, which this form of `evaluate` takes if it means something to it."""
    is_taken = _TAKEN & {*flag.spellings}
    return replace(flag, of=f"{flag.of} from_data") if is_taken else flag


FROM_DATA = tuple(map(_taking, RUNS))
"""The flags."""
