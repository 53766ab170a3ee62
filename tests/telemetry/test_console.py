import io
import re
import time
from itertools import pairwise

import pytest
from rich.console import Console

from coach_rl.core.clock import Phase
from coach_rl.telemetry import ConsoleSink, LogRecord


@pytest.fixture
def clock(monkeypatch):
    """The time the sink sees; set `clock[0]`."""
    now = [1000.0]
    monkeypatch.setattr("coach_rl.telemetry.console.time.monotonic", lambda: now[0])
    return now


def record(kind, steps, phase=Phase.TRAIN, **scalars):
    named = {name.replace("__", "/"): value for name, value in scalars.items()}
    return LogRecord(
        kind=kind,
        phase=phase,
        environment_steps=steps,
        training_steps=steps // 2,
        episodes=steps // 100,
        wall_seconds=0.0,
        scalars=named,
    )


def sink_and_output(*, terminal, plain=False):
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=80, highlight=False)
    return ConsoleSink(planned_steps=10_000, console=console, plain=plain), output


def speak(sink):
    """Two progress records 1,000 steps and 2 seconds apart, episodes, updates, evaluations."""
    sink.write(record("phase", 0, Phase.HEATUP))
    sink.write(record("progress", 1000, time__training_seconds=1.0, time__steps_per_second=1e3))
    for reward in [1000.0] + [10.0, 30.0] * 50:  # the first is out of the last hundred
        sink.write(record("episode", 1500, episode__reward=reward, episode__length=5.0))
    sink.write(record("train", 1600, train__policy_loss=-0.0125, train__value_loss=3.5))
    sink.write(record("progress", 2000, time__training_seconds=3.0, time__steps_per_second=667.0))
    sink.write(record("evaluation", 3000, Phase.TEST, evaluation__reward_mean=1250.0))
    sink.write(record("evaluation", 4000, Phase.TEST, evaluation__reward_mean=900.5))


LAST_LINE = (
    "test          4,000 steps   40%  500 steps/s  0:12 left  2,000 updates  episode reward 20.0  "
    "evaluation 900.5 (best 1,250.0)  policy loss -0.0125  value loss 3.5"
)


@pytest.mark.parametrize(("terminal", "plain"), [(False, False), (True, True)])
def test_lines_at_phases_and_evaluations(clock, terminal, plain):
    sink, output = sink_and_output(terminal=terminal, plain=plain)
    speak(sink)
    sink.close()
    lines = output.getvalue().splitlines()
    assert len(lines) == 3
    assert re.fullmatch(r"heatup +0 steps +0%", lines[0])
    assert lines[-1] == LAST_LINE
    assert "\x1b" not in output.getvalue()


def test_a_line_about_every_ten_seconds(clock):
    sink, output = sink_and_output(terminal=False)
    for second in range(31):
        clock[0] = 1000.0 + second
        sink.write(record("episode", second, episode__reward=1.0))
    sink.close()
    steps = [int(line.split()[1]) for line in output.getvalue().splitlines()]
    assert steps == [0, 10, 20, 30]


def test_a_terminal_gets_a_panel_with_the_newest_numbers(clock):
    sink, output = sink_and_output(terminal=True)
    speak(sink)
    before = output.getvalue()
    assert "900.5" not in before  # the clock stands: nothing is due
    sink.close()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.getvalue().removeprefix(before))
    assert max(map(len, text.splitlines())) <= 80
    for part in (
        "test",
        "40%",
        "0:12 left",
        "4,000 / 10,000",
        "500",
        "2,000",
        "20.0",
        "900.5",
        "1,250.0",
        "policy loss",
        "-0.0125",
        "value loss",
        "3.5",
    ):
        assert part in text
    assert output.getvalue().endswith("\x1b[?25h")  # the cursor is back


def test_four_times_a_second_at_most(clock, monkeypatch):
    sink, _ = sink_and_output(terminal=True)
    shown = []
    monkeypatch.setattr(sink, "_refresh", lambda record: shown.append(clock[0]))
    for tick in range(1000):
        clock[0] = 1000.0 + tick / 500  # two seconds
        sink.write(record("episode", tick, episode__reward=1.0))
    assert 7 <= len(shown) <= 9
    assert min(later - sooner for sooner, later in pairwise(shown)) >= 0.25


def test_cheap_while_nothing_is_shown():
    sink, _ = sink_and_output(terminal=True)
    speaking = record("episode", 5, episode__reward=1.0)
    sink.write(speaking)
    rounds = []
    for _ in range(10):
        begin = time.perf_counter()
        for _ in range(1000):
            sink.write(speaking)
        rounds.append((time.perf_counter() - begin) / 1000)
    sink.close()
    assert min(rounds) < 5e-6


def test_a_plan_that_comes_later(clock):
    output = io.StringIO()
    sink = ConsoleSink(console=Console(file=output, width=80))
    sink.write(record("phase", 100))
    sink.plan(200)
    sink.write(record("phase", 100))
    sink.close()
    first, second = output.getvalue().splitlines()
    assert "%" not in first
    assert "50%" in second


def test_closing_twice_and_before_anything(clock):
    sink, output = sink_and_output(terminal=True)
    sink.close()
    sink.close()
    assert output.getvalue() == ""
