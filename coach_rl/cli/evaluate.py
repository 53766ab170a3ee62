"""The command that evaluates a trained agent, or one before any training."""

from coach_rl.cli.parser import Given
from coach_rl.cli.settings import configured, opening, overrides_of, run_parts, settings
from coach_rl.cli.terminal import console_of, short
from coach_rl.cli.train import newest_run
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.runtime import Runtime
from coach_rl.sessions.evaluation import evaluate_run, evaluate_untrained
from coach_rl.sessions.run_parts import Written
from coach_rl.sessions.settings import FINAL_EPISODES
from coach_rl.telemetry.summary import evaluation_table


def evaluate(given: Given) -> int:
    """Evaluate a run; the exit code."""
    written: list[Written] = []
    evaluation, file = evaluate_run(
        newest_run(given.run),
        episodes=given.episodes or FINAL_EPISODES,
        overrides=overrides_of(given, without=["num_envs"]),
        num_envs=given.num_envs,
        **opening(given),
        sampling=given.sampling,
        seed=given.seed,
        parts=run_parts(given),
        on_written=written.append,
    )
    console_of(plain=given.plain).print(evaluation_table(evaluation))
    if file is not None:
        print(f"written to {short(file)}")
    for each in written:
        print(f"{each.what:<10} {short(each.path)}{each.note}")
    return 0


def evaluate_preset(given: Given) -> int:
    """Evaluate the agents of a preset before any training; the exit code."""
    preset = load_preset(find_preset(given.preset))
    evaluation = evaluate_untrained(
        configured(given, preset)[0],
        settings(given, Runtime),
        episodes=given.episodes or FINAL_EPISODES,
        sampling=given.sampling,
    )
    print("agents as they are before any training:")
    console_of(plain=given.plain).print(evaluation_table(evaluation))
    return 0
