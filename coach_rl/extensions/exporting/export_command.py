"""The command that exports a policy."""

from coach_rl.cli.parser import Given
from coach_rl.cli.terminal import short
from coach_rl.cli.train import newest_run
from coach_rl.extensions.exporting.archive import export


def export_policy(given: Given) -> int:
    """Export the policy of a run; the exit code."""
    more = {} if given.opset is None else {"opset": given.opset}
    written = export(
        newest_run(given.run),
        given.file,
        sampling=bool(given.sampling),
        last_good=given.last_good,
        trust=given.trust or (),
        **more,
    )
    print(f"written to {short(written)}")
    return 0
