import numpy as np
import torch

from coach_rl.core.signals import SILENT, SignalChannel, Signals


def test_note_reaches_the_listener_under_the_owners_name():
    channel, heard = SignalChannel(), []
    signals = Signals(channel, "main")
    channel.listener = lambda name, values: heard.append((name, np.asarray(values).tolist()))
    assert signals.are_heard
    signals.note("gap", 2.0)
    signals.of("walker").note("gap", torch.ones(2, requires_grad=True) * 3)
    Signals(channel).note("plain", [1, 2])
    assert heard == [("main/gap", 2.0), ("main/walker/gap", [3.0, 3.0]), ("plain", [1, 2])]


def test_note_without_a_listener_ignores_values():
    assert not SILENT.are_heard
    SILENT.note("gap", object())
