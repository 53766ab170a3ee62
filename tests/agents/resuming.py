"""Runs that continue from a checkpoint as if they had not stopped."""

from itertools import islice

import torch

from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint


def rows_below(manager):
    """The saved rows of the second level from the top."""
    return manager.state_dict()["training"]["top"]["environment"]["rows"]


def amid(manager):
    """Whether a row is in the middle of a sub-episode of the second level."""
    rows = rows_below(manager)
    return (rows["open"] & (rows["decisions"] > 0)).any()


def after(steps, holds=lambda manager: True):
    """Moments between ticks, from a number of environment steps on, in which `holds(manager)`."""

    def is_now(manager):
        has_passed = manager.graph.clock.environment_steps >= steps
        return has_passed and manager.progress.is_settled and holds(manager)

    return is_now


def logged(records, kinds):
    """What records of these kinds have, without times of the clock on the wall."""
    return [
        {name: value for name, value in each.scalars.items() if not name.startswith("time/")}
        for each in records
        if each.kind in kinds
    ]


def assert_resumes(build, folder, *moments, kinds=("train",), check=lambda whole, records: None):
    """Compare a run with those that continue from its checkpoints.

    Each is compared at the next checkpoint, the last one at the end of the run.

    Args:
        build: Builds the manager for a seed. Those that continue have another seed, so whatever is
            not in the state differs.
        folder: Where checkpoints are written.
        moments: Functions of the manager; a checkpoint is written when the first is true, the
            next one when the second is, and so on.
        kinds: Kinds of records that have to be the same.
        check: Called with the manager of the whole run, at its end, and its records.
    """
    torch.set_num_threads(1)
    whole, records, counts = build(seed=0), [], []
    for record in whole.improve():
        records.append(record)
        if len(counts) < len(moments) and moments[len(counts)](whole):
            write_checkpoint(folder / str(len(counts)), whole.state_dict(), {})
            counts.append(len(records))
    assert len(counts) == len(moments), "the run was never in the state to be saved in"
    assert logged(records[counts[-1] :], kinds), "the test wants records to compare"
    states = [read_checkpoint(folder / str(number)).state for number in range(len(counts))]
    for state, count, until in zip(states, counts, [*counts[1:], None], strict=True):
        resumed = build(seed=99)
        resumed.load_state_dict(state)
        running = resumed.improve()
        if until is None:
            found = list(running)
            reached = resumed.state_dict()
            expected = whole.state_dict()
        else:
            found = list(islice(running, until - count))
            write_checkpoint(folder / "again", resumed.state_dict(), {})
            reached = read_checkpoint(folder / "again").state
            expected = states[counts.index(until)]
        assert_same_state(reached, expected)
        assert logged(found, kinds) == logged(records[count:until], kinds)
        running.close()
        resumed.close()
    check(whole, records)
    whole.close()
