import json
import random
from dataclasses import dataclass

import numpy as np
import pytest

from coach_rl.core.errors import CoachWarning
from coach_rl.extensions.looking import profiler as profiler_module
from coach_rl.extensions.looking.profiler import Profiler, shown_duration


class Time:
    """A clock in nanoseconds that goes on only when told to."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def work(self, seconds):
        self.now += round(seconds * 1e9)


class Part:
    def __init__(self, time):
        self.time = time

    def outer(self, times):
        self.time.work(1)
        for _ in range(times):
            self.inner(2)
        return times

    def inner(self, seconds):
        self.time.work(seconds)

    def fails(self):
        self.time.work(3)
        raise ValueError


@pytest.fixture
def time():
    return Time()


@pytest.fixture
def part(time):
    return Part(time)


@pytest.fixture
def profiler(time):
    return Profiler(time)


def times(profile):
    """Calls, inclusive and exclusive seconds by path."""
    found, path = {}, []
    for depth, node in profile.root.walk():
        path[depth:] = [node.name]
        found["/".join(path)] = node.calls, node.inclusive, node.exclusive
    return found


def test_inclusive_and_exclusive_time_of_nested_calls(time, part, profiler):
    profiler.time(part, "outer", "level", "outer")
    profiler.time(part, "inner", "inner")
    assert part.outer(3) == 3
    part.inner(5)
    time.work(4)
    assert times(profiler.profile()) == {
        "run": (1, 16, 4),
        "run/level": (0, 7, 0),  # a group
        "run/level/outer": (1, 7, 1),
        "run/level/outer/inner": (3, 6, 6),
        "run/inner": (1, 5, 5),
    }
    assert profiler.profile().parts() == {"inner": 11, "run": 4, "outer": 1, "level": 0}


def test_a_call_that_fails_is_counted_and_left(part, profiler):
    profiler.time(part, "fails", "fails")
    profiler.time(part, "inner", "inner")
    with pytest.raises(ValueError):  # noqa: PT011
        part.fails()
    part.inner(1)
    assert times(profiler.profile()) == {
        "run": (1, 4, 0),
        "run/fails": (1, 3, 3),
        "run/inner": (1, 1, 1),
    }


def test_mean_and_99th_percentile(part, profiler):
    profiler.time(part, "inner", "inner")
    rng = random.Random(0)
    seconds = [rng.lognormvariate(0, 2) for _ in range(5_000)]  # more than are added up at once
    for each in seconds:
        part.inner(each)
    node = profiler.profile().root.children["inner"]
    assert (node.calls, len(node.recent)) == (5_000, 0)
    assert node.mean == pytest.approx(np.mean(seconds))
    assert node.longest == pytest.approx(1e9 * max(seconds))
    exact = float(np.quantile(seconds, 0.99))
    assert exact * 0.99 <= node.p99 <= exact * 1.03


def test_objects_are_left_as_they_were(part, profiler):
    @dataclass(frozen=True)
    class Frozen:
        size: int = 1

        def grown(self):
            return self.size + 1

    frozen = Frozen()
    part.inner = own = lambda seconds: part.time.work(10 * seconds)
    profiler.time(part, "inner", "inner")
    profiler.time(part, "outer", "outer")
    profiler.time(frozen, "grown", "grown")
    assert frozen.grown() == 2
    part.inner(1)
    profiler.stop()
    assert vars(frozen) == {"size": 1}
    assert vars(part) == {"time": part.time, "inner": own}
    part.inner(1)
    assert times(profiler.profile())["run/inner"] == (1, 10, 10)


def test_what_has_slots_is_left_out_with_a_warning(profiler):
    class Slotted:
        __slots__ = ()

        def run(self):
            return 1

    with pytest.warns(CoachWarning):
        profiler.time(Slotted(), "run", "level", "run")


def test_a_trace_keeps_the_first_and_the_last_calls(part, profiler, tmp_path, monkeypatch):
    monkeypatch.setattr(profiler_module, "TRACE_ENDS", 8)
    monkeypatch.setattr(profiler_module, "_FOLD_AT", 4)
    monkeypatch.setattr(profiler, "_last", type(profiler._last)(maxlen=8))
    profiler.time(part, "outer", "outer")
    profiler.time(part, "inner", "inner")
    for _ in range(100):
        part.outer(1)  # inner, then outer: 3 seconds
    profiler.profile(process="rank1").write_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    name, *calls, gap = events
    assert name["args"] == {"name": "rank1"}
    assert [each["name"] for each in calls[:3]] == ["inner", "outer", "inner"]
    assert (calls[0]["ts"], calls[0]["dur"]) == (1e6, 2e6)
    assert (calls[1]["ts"], calls[1]["dur"]) == (0, 3e6)
    assert calls[-1]["ts"] + calls[-1]["dur"] == 300e6
    assert len(calls) <= 20
    assert gap["name"] == f"{200 - len(calls)} calls left out"
    assert gap["dur"] > 270e6


def test_table_says_what_took_longest(part, profiler):
    profiler.time(part, "outer", "outer")
    profiler.time(part, "inner", "inner")
    part.outer(2)
    table = profiler.profile().table()
    assert table.caption == "inner 80%, outer 20%, run 0%"
    assert [cell.strip() for cell in table.columns[0].cells] == ["run", "outer", "inner"]
    assert list(table.columns[-1].cells) == ["5 s", "5 s", "2 s"]


@pytest.mark.parametrize(
    ("seconds", "shown"), [(12.34, "12.3 s"), (0.0345, "34.5 ms"), (0.0000012, "1.2 µs")]
)
def test_durations_in_units_that_suit_them(seconds, shown):
    assert shown_duration(seconds) == shown
