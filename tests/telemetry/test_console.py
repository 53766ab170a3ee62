import io
import math
import re
import sys
import threading
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from rich.console import Console

from coach_rl.core import Evaluation, LogRecord
from coach_rl.core.clock import Phase
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.telemetry import ConsoleSink
from coach_rl.telemetry.figures import Best
from tests.waiting import wait_until


@pytest.fixture
def clock(monkeypatch):
    """The time the sink sees, and how often it has looked; set `clock[0]`."""
    now = [1000.0, 0]

    def monotonic():
        now[1] += 1
        return now[0]

    monkeypatch.setattr("coach_rl.telemetry.console.time", SimpleNamespace(monotonic=monotonic))
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
    return ConsoleSink(planned=EnvironmentSteps(10_000), console=console, plain=plain), output


def speak(sink):
    """Two progress records 1,000 steps and 2 seconds apart, episodes, updates, evaluations."""
    sink.write(record("phase", 0, Phase.HEATUP))
    sink.write(record("progress", 1000, time__training_seconds=1.0, time__steps_per_second=1e3))
    for reward in [1000.0] + [10.0, 30.0] * 50:  # the first is out of the last hundred
        sink.write(record("episode", 1500, episode__reward=reward, episode__length=5.0))
    sink.write(record("train", 1600, train__policy_loss=-0.0125, train__value_loss=3.5))
    sink.write(record("progress", 2000, time__training_seconds=3.0, time__steps_per_second=667.0))
    sink.write(record("phase", 3000, Phase.TEST))  # says that an evaluation begins, and no more
    sink.write(record("evaluation", 3000, Phase.TEST, evaluation__reward_mean=1250.0))
    sink.write(record("evaluation", 4000, Phase.TEST, evaluation__reward_mean=900.5))


LAST_LINE = (
    "test          4,000 steps   40%  500 steps/s  0:12 left  2,000 updates  episode reward 20.0  "
    "evaluation 900.5 (best 1,250.0)  policy loss -0.0125  value loss 3.5 (at 1,600 steps)"
)


def test_console_level_phase_before_figures_is_printed(clock):
    sink, output = sink_and_output(terminal=False, plain=True)
    sink.write(replace(record("level_phase", 2000), text="level 'top' learns"))
    assert output.getvalue() == "step 2,000: level 'top' learns\n"
    sink.write(record("phase", 2000))
    sink.close()
    assert "2,000 steps" in output.getvalue()


@pytest.mark.parametrize(("terminal", "plain"), [(False, False), (True, True)])
def test_console_plain_lines_at_phases_and_evaluations(clock, terminal, plain):
    sink, output = sink_and_output(terminal=terminal, plain=plain)
    speak(sink)
    sink.close()
    lines = output.getvalue().splitlines()
    assert len(lines) == 3
    assert re.fullmatch(r"heatup +0 steps +0%", lines[0])
    assert lines[-1] == LAST_LINE
    assert "\x1b" not in output.getvalue()


def test_console_plain_line_every_ten_seconds(clock):
    sink, output = sink_and_output(terminal=False)
    for second in range(31):
        clock[0] = 1000.0 + second
        sink.write(record("episode", second, episode__reward=1.0))
    sink.close()
    steps = [int(line.split()[1]) for line in output.getvalue().splitlines()]
    assert steps == [0, 10, 20, 30]


def plain_text(output):
    """What stands on the screen, without colours and cursor movements."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output)
    return [line.rstrip() for line in text.replace("\r", "").splitlines()]


def last_drawing(output):
    """What was written after the cursor was moved up for the last time."""
    return output.rpartition("\x1b[1A\x1b[2K")[2]


def test_console_terminal_shows_panel(clock):
    sink, output = sink_and_output(terminal=True)
    speak(sink)
    before = output.getvalue()
    assert "900.5" not in before  # the clock stands: nothing is due
    sink.close()
    bar, *numbers = plain_text(output.getvalue())[-6:]  # what was drawn last
    assert re.search(r"test   [━╸╺]{55}  40%    0:12 left$", bar)
    assert [" ".join(line.split()) for line in numbers] == [
        "steps 4,000 of 10,000 episode reward 20.0",
        "steps/s 500 evaluation 900.5",
        "updates 2,000 best 1,250.0",
        "episodes 40 elapsed 0:00",
        "policy loss -0.0125 value loss 3.5",
    ]
    assert output.getvalue().endswith("\x1b[?25h")  # the cursor is back


def test_panel_shows_newest_ranges_of_observations(clock):
    sink, output = sink_and_output(terminal=True)
    name = "signals/main/observations/position"
    for low in (-1.0, -2.5):
        ranges = {f"{name}/min": low, f"{name}/max": 3.0, f"{name}/mean": 0.0}
        sink.write(record("signals", 512, **ranges))
    sink.close()
    assert "main position -2.5 to 3" in last_drawing(output.getvalue())


@pytest.mark.parametrize(
    ("learners", "names"),
    [
        ([("top", "ddpg"), ("low", "ddpg")], ["top", "low"]),
        ([("main", "red"), ("main", "blue")], ["red", "blue"]),
        ([("top", "ddpg"), ("low", "red"), ("low", "blue")], ["top ddpg", "low red", "low blue"]),
    ],
)
def test_console_agents_have_own_losses(clock, learners, names):
    for terminal in (True, False):
        sink, output = sink_and_output(terminal=terminal)
        for number, (level, agent) in enumerate(learners, start=1):
            for loss in (9.0, float(number)):  # the newest is shown
                learned = record("train", 10, train__q_loss=loss, train__learning_rate=0.1)
                sink.write(replace(learned, level=level, agent=agent))
        sink.write(record("phase", 10))
        sink.close()
        expected = [f"{name} q loss {loss}" for loss, name in enumerate(names, start=1)]
        if terminal:
            lines = plain_text(output.getvalue())[-len(names) :]
            assert [" ".join(line.split()) for line in lines] == expected
        else:
            assert output.getvalue().endswith("  ".join(expected) + "\n")


def test_figures_evaluations_lengthen_time_left(clock):
    sink, output = sink_and_output(terminal=False)
    sink.write(record("progress", 1000, time__training_seconds=1.0))
    progress = record("progress", 2000, time__training_seconds=2.0)
    sink.write(replace(progress, wall_seconds=3.0))  # a second of three went elsewhere
    sink.write(record("phase", 2000))
    # 8,000 steps at 1,000 steps/s, times 3 / 2
    assert "1,000 steps/s  0:12 left" in output.getvalue().splitlines()[-1]


@dataclass(frozen=True)
class Policy:
    best_of: str | None
    best_is: str = "largest"


@pytest.mark.parametrize(
    ("policy", "best"),
    [
        (None, "60% success"),  # of all metrics, success counts where it is reported
        (Policy("reward_mean"), "9"),
        (Policy("length_mean", "smallest"), "3 length_mean"),
        (Policy("low/goal_share"), "0.8 low/goal_share"),
        (Policy(None), ""),
    ],
)
@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("is_read", [True, False], ids=["from the log", "live"])
def test_console_best_evaluation_follows_policy(clock, policy, best, terminal, is_read):
    sink, output = sink_and_output(terminal=terminal)
    sink.plan(EnvironmentSteps(10_000), policy=policy)
    for steps, reward, success, length, share in (
        (10, 9.0, 0.2, 5.0, 0.1),  # of the highest reward
        (20, 1.0, 0.6, 7.0, 0.3),  # of the highest success
        (30, 2.0, 0.5, 3.0, 0.2),  # of the shortest episodes
        (40, 3.0, 0.1, 6.0, 0.8),  # of the level that reached most of its goals
    ):
        low = record("level", steps, Phase.TEST, evaluation_level__goal_share=share)
        low = replace(low, level="low")
        figures = {"evaluation__reward_mean": reward, "evaluation__success_rate": success}
        figures["evaluation__length_mean"] = length
        line = record("evaluation", steps, Phase.TEST, **figures)
        sink.write(low)
        sink.write(line if is_read else Evaluation(**vars(line), levels=(low,)))
    sink.close()
    if terminal:
        shown = re.findall(r" best +(.*?)$", "\n".join(plain_text(output.getvalue())), re.MULTILINE)
        assert shown[-1] == (best or "-")
    else:
        newest = output.getvalue().splitlines()[-1]
        assert f" (best {best})" in newest if best else "best" not in newest


def test_console_resumed_best_evaluation_is_dropped_at_roll_back(clock):
    sink, output = sink_and_output(terminal=False)
    before = Best(value=142.8, reward=142.8, environment_steps=500, checkpoint="c")
    sink.plan(EnvironmentSteps(10_000), best=before)
    sink.write(record("evaluation", 600, Phase.TEST, evaluation__reward_mean=116.9))
    sink.write(record("evaluation", 700, Phase.TEST, evaluation__reward_mean=150.0))
    sink.write(replace(record("roll_back", 650), text="the run has diverged"))
    sink.write(record("phase", 650))
    best = re.findall(r"best ([\d.]+)", output.getvalue())
    assert best == ["142.8", "150.0", "142.8"]


def test_plain_line_earlier_loss_is_marked_with_steps(clock):
    sink, output = sink_and_output(terminal=False)
    sink.write(replace(record("train", 100, train__q_loss=1.0), level="low"))  # not due yet
    sink.write(record("phase", 200))
    clock[0] += 20
    sink.write(record("episode", 300, episode__reward=1.0))
    sink.write(replace(record("train", 400, train__q_loss=2.0), level="low"))
    sink.write(record("phase", 500))
    losses = [line.partition("q loss ")[2] for line in output.getvalue().splitlines()]
    assert losses[-3:] == ["1", "1 (at 100 steps)", "2"]
    sink.write(record("evaluation", 500, Phase.TEST, evaluation__reward_mean=1.0))
    assert output.getvalue().endswith("q loss 2\n")  # a second line of the same step
    sink.catch_up([replace(record("train", 600, train__q_loss=3.0), level="low")])
    assert output.getvalue().endswith("q loss 3\n")


def test_plain_line_first_learning_level_is_named(clock):
    sink, output = sink_and_output(terminal=False)
    sink.plan(EnvironmentSteps(10_000), levels=("top", "low"))
    sink.write(replace(record("train", 10, train__q_loss=1.0), level="low", agent="ddpg"))
    sink.write(record("phase", 10))
    assert output.getvalue().endswith("  low q loss 1\n")


def test_console_nan_evaluation_is_shown(clock):
    sink, output = sink_and_output(terminal=False)
    for reward in (math.nan, -5.0, math.nan, -7.0):
        sink.write(record("evaluation", 1, Phase.TEST, evaluation__reward_mean=reward))
    lines = [line.partition("evaluation ")[2] for line in output.getvalue().splitlines()]
    assert lines == ["", "-5 (best -5)", "", "-7 (best -5)"]


def test_console_dumb_terminal_prints_lines(clock, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    sink, output = sink_and_output(terminal=True)
    sink.write(record("phase", 0, Phase.HEATUP))
    assert output.getvalue().startswith("heatup")
    assert "\x1b" not in output.getvalue()


def test_console_panel_without_plan(clock):
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=80)
    sink = ConsoleSink(console=console)
    sink.write(record("progress", 1000, time__training_seconds=1.0))
    sink.write(record("progress", 2000, time__training_seconds=2.0))
    sink.close()
    bar, steps, *_ = plain_text(output.getvalue())[-5:]
    assert not re.search(r"%|left", bar)
    assert steps.startswith("steps    2,000   ")


def test_console_refreshes_four_times_a_second(clock, monkeypatch):
    sink, _ = sink_and_output(terminal=True)
    shown = []
    monkeypatch.setattr(sink, "_refresh", lambda: shown.append(clock[0]))
    for tick in range(1000):
        clock[0] = 1000.0 + tick / 500  # two seconds
        sink.write(record("episode", tick, episode__reward=1.0))
    assert 7 <= len(shown) <= 9
    assert min(later - sooner for sooner, later in pairwise(shown)) >= 0.25


def test_console_write_nothing_due_takes_few_calls(clock):
    sink, _ = sink_and_output(terminal=True)
    speaking = record("episode", 5, episode__reward=1.0)
    sink.write(speaking)
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        for _ in range(100):
            sink.write(speaking)
    finally:
        sys.setprofile(None)
    sink.close()
    assert calls <= 100 * 15


def test_console_later_plan_is_shown(clock):
    output = io.StringIO()
    sink = ConsoleSink(console=Console(file=output, width=80))
    sink.write(record("phase", 100))
    sink.plan(EnvironmentSteps(200), None)
    sink.write(record("phase", 100))
    sink.close()
    first, second = output.getvalue().splitlines()
    assert "%" not in first
    assert "50%" in second


def test_console_close_twice_is_harmless(clock):
    sink, output = sink_and_output(terminal=True)
    sink.close()
    sink.close()
    assert output.getvalue() == ""


def test_console_announcement_is_below_panel_or_immediate(capfd):
    plain, _ = sink_and_output(terminal=False)
    plain.announce("coach: stopping")
    assert capfd.readouterr().err == "coach: stopping\n"
    sink, output = sink_and_output(terminal=True)
    speak(sink)
    sink.announce("coach: stopping")
    sink.close()
    assert re.search(r"coach: stopping\s*(\x1b\S*)?$", output.getvalue())
    assert capfd.readouterr().err == ""


def test_console_panel_shows_activity_without_records(clock, monkeypatch):
    monkeypatch.setattr("coach_rl.telemetry.console.REFRESH_SECONDS", 0.01)
    sink, output = sink_and_output(terminal=True)
    sink.write(record("phase", 0))
    sink.show_activity("compiling the gradient step of agent 'ppo'")
    wait_until(lambda: "agent 'ppo', 0:00" in output.getvalue())
    clock[0] += 65
    wait_until(lambda: "agent 'ppo', 1:05" in output.getvalue())
    assert re.search(r"elapsed +1:05", "\n".join(plain_text(output.getvalue())))
    sink.announce("coach: stopping after this step and saving")
    wait_until(lambda: "stopping after this step" in output.getvalue())
    sink.show_activity("")
    shown = len(output.getvalue())
    clock[0] += 1
    sink.write(record("train", 10))
    assert "compiling" not in output.getvalue()[shown:]
    sink.close()


def test_console_record_or_close_ends_activity(clock, monkeypatch):
    monkeypatch.setattr("coach_rl.telemetry.console.REFRESH_SECONDS", 0.01)
    sink, output = sink_and_output(terminal=True)
    for end in (lambda: sink.write(record("phase", 0)), sink.close):
        sink.write(record("phase", 0))
        sink.show_activity("evaluating, 3 of 10 episodes")
        wait_until(lambda: output.getvalue().count("evaluating"))
        end()
        assert not [each for each in threading.enumerate() if "watch_activity" in each.name]


def test_console_plain_activity_every_ten_seconds(clock, monkeypatch):
    monkeypatch.setattr("coach_rl.telemetry.console.REFRESH_SECONDS", 0.01)
    sink, output = sink_and_output(terminal=False)
    sink.show_activity("evaluating, 0 of 10 episodes")
    for seconds in (9.0, 11.0, 19.0, 22.0):
        clock[0] = 1000.0 + seconds
        if seconds in (11.0, 22.0):
            expected = f"10 episodes, 0:{seconds:02.0f}\n"
            wait_until(lambda expected=expected: output.getvalue().endswith(expected))
        else:
            looked = clock[1]
            wait_until(lambda looked=looked: clock[1] > looked + 3)
    sink.close()
    assert len(output.getvalue().splitlines()) == 2


@pytest.mark.parametrize("terminal", [False, True])
def test_console_final_evaluation_is_shown(clock, terminal):
    sink, output = sink_and_output(terminal=terminal)
    speak(sink)
    final = {"final_evaluation__reward_mean": 912.5, "final_evaluation__success_rate": 0.25}
    sink.write(record("final_evaluation", 4000, Phase.TEST, **final))
    sink.close()
    last = output.getvalue()[-1200:]
    assert re.search(r"912\.5, 25%", last)
    assert "900.5" in last
    assert "1,250.0" in last  # the best of those while training


def test_console_final_evaluation_of_a_step_that_was_shown_is_a_line_of_its_own(clock):
    sink, output = sink_and_output(terminal=False)
    speak(sink)
    final = {"final_evaluation__reward_mean": 912.5, "final_evaluation__success_rate": 0.25}
    steps = sink._printed_at
    sink.write(record("final_evaluation", steps, Phase.TEST, **final))
    sink.close()
    last = output.getvalue().splitlines()[-1]
    assert last.split("  ")[-1] == "final evaluation 912.5, 25% success"
    assert "episode reward" not in last


def test_figures_success_of_newest_evaluation(clock):
    sink, output = sink_and_output(terminal=False)
    told = {"evaluation__reward_mean": 1.0, "evaluation__success_rate": 0.5}
    sink.write(record("evaluation", 1000, Phase.TEST, **told))
    sink.write(record("evaluation", 2000, Phase.TEST, evaluation__reward_mean=2.0))
    sink.close()
    first, second = output.getvalue().splitlines()
    assert "evaluation 1, 50% success (best 50% success)" in first
    assert "evaluation 2 (best 50% success)" in second


def level(name, **scalars):
    told = {key.replace("__", "/"): value for key, value in scalars.items()}
    return replace(record("level", 10), level=name, scalars=told)


def test_console_levels_top_first_goals_before_losses(clock):
    sink, output = sink_and_output(terminal=True)
    for name in ("low", "top"):  # in the order in which they learn
        learned = record("train", 10, train__q_loss=2.0)
        sink.write(replace(learned, level=name, agent="ddpg"))
    sink.write(level("top", level__goal_share=0.25))
    sink.write(level("low", level__goal_share=0.5))
    sink.write(level("top", evaluation_level__goal_share=0.75))
    sink.close()
    top, low = plain_text(output.getvalue())[-2:]
    assert top.split() == ["top", "goals", "25%", "in", "evaluation", "75%", "q", "loss", "2"]
    assert low.split() == ["low", "goals", "50%", "q", "loss", "2"]


def test_console_level_without_learner_only_in_panel(clock):
    for terminal in (True, False):
        sink, output = sink_and_output(terminal=terminal)
        sink.write(level("top", level__goal_share=0.25))
        sink.write(replace(record("train", 10, train__q_loss=2.0), level="low", agent="ddpg"))
        sink.write(record("phase", 10))
        sink.close()
        last = [" ".join(line.split()) for line in plain_text(output.getvalue())[-2:]]
        if terminal:
            assert last == ["top goals 25%", "low q loss 2"]
        else:
            assert last[-1].endswith("updates q loss 2")


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 300])
def test_console_panel_fits_any_width(clock, width):
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=width, highlight=False)
    sink = ConsoleSink(planned=EnvironmentSteps(10_000), console=console)
    speak(sink)
    sink.write(replace(record("train", 4000, train__q_loss=2.0), level="low", agent="ddpg"))
    sink.close()
    lines = plain_text(last_drawing(output.getvalue()))
    assert max(map(len, lines)) <= min(width, 120)
    if width >= 40:
        assert any(re.search(r"steps +4,000 of 10,000( |$)", line) for line in lines)
        assert any(re.search(r"best +1,250\.0$", line) for line in lines)


def test_console_four_losses_fit_eighty_columns(clock):
    sink, output = sink_and_output(terminal=True)
    losses = {"policy_loss": -0.00512, "value_loss": 0.773, "entropy": 0.526, "approx_kl": 0.00283}
    sink.write(record("train", 10, **{f"train__{name}": of for name, of in losses.items()}))
    sink.close()
    line = plain_text(output.getvalue())[-1]
    shown = "policy loss -0.00512 value loss 0.773 entropy 0.526 approx kl 0.00283"
    assert " ".join(line.split()) == shown


def test_console_problems_stay_in_panel(clock):
    sink, output = sink_and_output(terminal=True)
    fault = replace(record("fault", 100), text="row 3 died: KeyError: 'x'")
    for each in (record("checkpoint_failed", 50), fault, fault, record("progress", 300)):
        sink.write(each)
    sink.close()
    line = plain_text(output.getvalue())[-1]
    assert line == "1 unwritten checkpoint, 2 faults: row 3 died: KeyError: 'x'"


def test_console_early_activity_leaves_no_trace(clock, monkeypatch):
    monkeypatch.setattr("coach_rl.telemetry.console.REFRESH_SECONDS", 0.01)
    sink, output = sink_and_output(terminal=True)
    sink.show_activity("building 8 environments for training")
    wait_until(lambda: "building 8 environments for training, 0:00" in output.getvalue())
    sink.show_activity("")
    assert output.getvalue().endswith("\x1b[2K")  # erased
    sink.close()
    assert output.getvalue().count("building") == output.getvalue().count("0:00")


@pytest.mark.parametrize("terminal", [True, False])
def test_console_catch_up_replaces_figures(clock, terminal):
    sink, output = sink_and_output(terminal=terminal)
    sink.write(record("evaluation", 9000, Phase.TEST, evaluation__reward_mean=77.0))
    shown = len(output.getvalue())
    phases = [record("phase", steps) for steps in (0, 1000)]
    sink.catch_up([*phases, record("evaluation", 2000, evaluation__reward_mean=5.0)])
    sink.close()
    text = output.getvalue()[shown:]
    assert "77" not in text
    assert "2,000" in text
    if not terminal:
        assert len(text.splitlines()) == 1
