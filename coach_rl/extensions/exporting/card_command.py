"""The command that writes a policy with its card, as a folder for a model hub."""

from pathlib import Path

from coach_rl.cli.parser import Given
from coach_rl.cli.terminal import program, short, word
from coach_rl.cli.train import newest_run
from coach_rl.core.errors import CoachError, warn
from coach_rl.extensions.exporting.archive import export
from coach_rl.extensions.exporting.policy_folder import EPISODES, write_policy
from coach_rl.runs.folder import ONLY_POLICY, find_folder
from coach_rl.runs.trained import score_text


def write_card(given: Given) -> int:
    """Write a policy with its card; the exit code."""
    run = newest_run(given.run)
    named = find_folder(run).path
    to = given.to or Path(f"card_{named.name if 'trained:' in str(run) else named.parent.name}")
    manifest = write_policy(
        run,
        to,
        episodes=given.episodes or EPISODES,
        film=not given.no_film,
        last_good=given.last_good,
        trust=given.trust or (),
    )
    try:
        export(run, to / "policy.zip", last_good=given.last_good, trust=given.trust or ())
    except CoachError as error:
        warn(f"the card has no export: {error}")
    print(f"score:      {score_text(manifest[ONLY_POLICY]['score'])}")
    print(f"written to  {short(to.absolute())}")
    print(f"play:       {program('coach')} play {word(to.absolute())}")
    print(f"upload:     hf upload USER/NAME {word(to.absolute())}    (hf: extra `hub`)")
    return 0
