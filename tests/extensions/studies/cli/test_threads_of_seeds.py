"""Threads of a seed that is trained alone, or among others."""

from pathlib import Path

from coach_rl.extensions.testing.states import assert_same_state
from tests.cli.commands import coach
from tests.cli.test_cli_threads import FLAGS, LARGE, ROUND, learned, task_of, train
from tests.small_runs import state_of


def test_seed_0_alone_equals_seed_0_among_several_of_a_preset_with_two_threads() -> None:
    words = ("--steps", ROUND, "-cp", "threads=2")
    alone = train("alone", *words)
    assert coach("-p", LARGE, *FLAGS, "-e", "several", *words, "--seeds", 2) == 0
    manifests = Path("experiments", "several").glob("*/manifest.json")
    runs = {task_of(each.parent)["seed"]: each.parent for each in manifests}
    assert sorted(runs) == [0, 1]
    assert_same_state(state_of(runs[0]), state_of(alone))
    assert [task_of(run)["threads"] for run in (alone, *runs.values())] == [2, 2, 2]
    one = train("one", *words, "--threads", 1)
    assert task_of(one)["threads"] == 1
    assert learned(one) != learned(alone), "threads change no number here"
