"""Steps that are read once, against the lists of a replay memory; saved and loaded with it."""

from functools import partial

import pytest
from hypothesis import seed
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from coach_rl.extensions.hiro.unread_steps import UnreadSteps
from tests.memories.test_memory_machine import EXAMPLES, ReplayMachine


class UnreadMachine(ReplayMachine):
    """A memory whose new steps are read now and then."""

    def __init__(self, number):
        super().__init__(number)
        self.unread = None

    @rule(overlap=st.integers(0, 3))
    def take_unread(self, overlap):
        if self.unread is None:
            self.unread = UnreadSteps(self.memory.store)
        assert len(self.unread) == sum(end - max(0, begin) for begin, end in self.unread_all())
        begins, ends = self.unread.take(overlap)
        expected = self.plain.unread(self.read, overlap)
        assert [*zip(begins.tolist(), ends.tolist(), strict=True)] == expected
        self.read[:] = self.plain.added

    def unread_all(self):
        """Unread steps of each row, those that are overwritten too."""
        for own, count in zip(self.read, self.plain.added, strict=True):
            yield (0 if own > count else own), count

    def more_state(self):
        if self.unread is None:
            self.unread = UnreadSteps(self.memory.store)
        return {"unread": self.unread.state_dict()}

    def load_more(self, state):
        self.unread = UnreadSteps(self.memory.store)
        self.unread.load_state_dict(state["unread"])


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("number", range(8))
def test_unread_steps_equal_those_of_plain_lists(number):
    machine = seed(number)(partial(UnreadMachine, number))  # else all make the same calls
    run_state_machine_as_test(machine, settings=EXAMPLES)
