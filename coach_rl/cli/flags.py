"""The flags of `coach`, declared once: spellings, value, meaning, target, and their commands.

To add one, declare it here: a flag that sets a parameter of the experiment, or a field of a
settings class, needs nothing else. Extensions declare theirs in files that their tables name
(`flags`); `commands.RUNS` joins them. Light on purpose, like `parser`.

`Flag.of` names commands (`train resume fork evaluate describe list`), forms of these (`repeat`:
`train --from`; `untrained`: `evaluate -p`), or what a command of an extension may be: `built`, one
that only builds a preset's experiment; `begun`, one that begins runs in other processes.
"""

from dataclasses import replace
from pathlib import Path

from coach_rl.cli import values
from coach_rl.cli.parser import Flag
from coach_rl.core.steps import EnvironmentEpisodes

DEFAULT_EPISODES = 20
"""Episodes of an evaluation without a number."""


def group(title: str, *flags: Flag, of: str = "") -> tuple[Flag, ...]:
    """Flags below a title of the help, and the commands that take them."""
    return tuple(replace(flag, group=title, of=of or flag.of) for flag in flags)


_TRAINED = "train resume fork repeat"
_KEPT = f"{_TRAINED} begun describe"
_PRESET = "train begun untrained describe built"
_RUN = "resume fork evaluate"

RUNS = (
    *group(
        "what to run",
        Flag(
            "-p, --preset PRESET",
            "a shipped preset's name, FILE.py, or either with :FUNCTION",
            of=_PRESET,
        ),
        Flag("-l, --list", "list the presets", of="list"),
        Flag("--trained", "list the trained agents that come with it, with scores", of="list"),
        Flag(
            "-crd, --checkpoint_restore RUN",
            "resume a run: its folder (last checkpoint), one of its checkpoints, RUN@STEP, or a "
            "folder of runs (the newest); to evaluate or fork also trained:NAME",
            Path,
            name="run",
            of=_RUN,
        ),
        Flag(
            "--from RUN",
            "instead of a preset: train the experiment of a run again, from its beginning",
            Path,
            name="source",
            of="repeat",
        ),
        Flag("--last_good", "take the run's newest checkpoint that can be read", of=_RUN),
        Flag(
            "--drop_later",
            "delete the checkpoints and logs after the one resumed from",
            of="resume",
        ),
        Flag(
            "--evaluate, --episodes [EPISODES]",
            f"only evaluate, greedily (default: {DEFAULT_EPISODES}); usually with -crd",
            values.episodes,
            value=EnvironmentEpisodes(DEFAULT_EPISODES),
            of="evaluate untrained",
        ),
        Flag(
            "--sampling",
            "evaluate with the exploration of training instead of greedily",
            of="evaluate untrained",
        ),
        Flag(
            "--trust MODULES",
            "with another user's run: run the code of these modules, separated by commas",
            values.names,
            of=f"{_RUN} repeat",
        ),
        Flag(
            "--restart_episodes",
            "with -crd: restart open training episodes instead of restoring them, where that "
            "fails or takes long",
            of="resume fork",
        ),
    ),
    *group(
        "changing the experiment",
        Flag(
            "-lvl, --level TASK",
            "the environment's task, such as Hopper-v5",
            sets="environment.level",
            of=f"{_PRESET} evaluate repeat",
        ),
        Flag(
            "--seed SEED",
            "random seed (default: 0)",
            values.whole,
            sets="Runtime.seed",
            of="train fork evaluate untrained repeat",
        ),
        Flag(
            "-n, --num_envs N",
            "environments in parallel",
            values.positive,
            sets="num_envs",
            of=f"{_PRESET} evaluate repeat",
        ),
        Flag(
            "--steps N",
            "environment steps to train to, in all; with -crd a new total",
            values.steps,
            sets="schedule.training",
            of=_KEPT,
        ),
        Flag(
            "--hours H",
            "stop after H hours of the run's own time, pauses not counted; with -crd a new total",
            values.hours,
            sets="schedule.stop_after",
            of=_KEPT,
        ),
        Flag(
            "--until_solved [TARGET]",
            "stop at the evaluation that reaches the preset's target, or TARGET: reward=475, "
            "success_rate=0.9; off: train on",
            values.target,
            value="preset",
            sets=values.until_solved,
            of=_KEPT,
        ),
        Flag(
            "-cp, --custom_parameter CHANGES",
            '"learning_rate=1e-3; agent.algorithm.discount=0.98": panel names or dotted paths',
            is_repeated=True,
            separator="; ",
            of=f"{_PRESET} evaluate fork repeat",
        ),
        Flag(
            "--config FILE",
            "changes in a TOML file, by the same names and paths as -cp, which wins; `coach "
            "describe PRESET --toml` writes one",
            Path,
            of=_PRESET,
        ),
        Flag("--toml", "print the preset's settings as a file for --config", of="describe"),
    ),
    *group(
        "where and how it runs",
        Flag(
            "-e, --as, --experiment_name NAME",
            "the experiment's folder (default: the preset's name); a fork needs one",
            of="train begun fork repeat",
        ),
        Flag(
            "-ep, --experiment_path PATH",
            "the folder of all experiments (default: ./experiments)",
            Path,
            of="train begun fork repeat",
        ),
        Flag(
            "--message TEXT",
            "purpose of the run, which its manifest and TensorBoard keep",
            sets="RunSettings.message",
            of=f"{_TRAINED} begun",
        ),
        Flag(
            "-ntb, --no_tensorboard",
            "write no TensorBoard files",
            name="tensorboard",
            value=False,
            sets="RunSettings.tensorboard",
            of=f"{_TRAINED} begun",
        ),
        *group(
            "",
            Flag("-c, --use_cpu", "use no GPU", name="device", value="cpu", sets="Runtime.device"),
            Flag(
                "--device DEVICE",
                "auto, cpu, cuda or cuda:N (default: auto)",
                sets="Runtime.device",
            ),
            of=f"{_TRAINED} begun evaluate untrained describe",
        ),
        Flag(
            "--threads N",
            "threads of one tensor operation (default: the preset's own; with -crd the run's)",
            values.positive,
            sets="Runtime.threads",
            of=f"{_TRAINED} begun evaluate untrained",
        ),
        Flag(
            "--matmul_precision WORD",
            "precision of float32 matrix products: highest (default), high, or medium (bfloat16 "
            "where that is faster, which costs score)",
            sets="Runtime.matmul_precision",
            of="train begun untrained",
        ),
        Flag("--print_networks_summary", "print levels and networks before starting", of=_TRAINED),
    ),
    *group(
        "checkpoints",
        Flag(
            "-s, --checkpoint_seconds SECONDS",
            "keep a checkpoint every SECONDS, besides best and last",
            values.seconds,
            sets="checkpoints.every_seconds",
        ),
        Flag(
            "--checkpoint_steps N",
            "keep a checkpoint every N environment steps, besides best and last",
            values.steps,
            sets="checkpoints.every_steps",
        ),
        Flag(
            "--keep K",
            "of these, keep the newest K (default: all)",
            values.whole,
            sets="checkpoints.keep_last",
        ),
        Flag(
            "--keep_every N",
            "and every Nth of these for ever",
            values.positive,
            sets="checkpoints.keep_every",
        ),
        Flag(
            "--best METRIC",
            "metric of the best checkpoint: reward_mean, LEVEL/goal_share, ... (default: "
            "success_rate where success is reported, else reward_mean)",
            sets="checkpoints.best_of",
        ),
        Flag(
            "--no_memories",
            "leave replay memories out of checkpoints; a run resumed from them is not exact",
            value=False,
            sets="checkpoints.memories",
        ),
        Flag(
            "--no_checkpoints",
            "keep none: the run can't be resumed, nor evaluated once it is over",
            sets=values.no_checkpoints,
        ),
        of=_KEPT,
    ),
)
"""The engine's flags of commands about one run, or one preset. With those of extensions they are
one table, which each parser knows, so that a flag that a command would ignore is refused by name.
"""


def again(spelling: str, **changes: object) -> Flag:
    """A flag of the table above for a command with flags of its own."""
    (flag,) = (each for each in RUNS if spelling in each.spellings)
    return replace(flag, **{"of": "", "group": "", **changes})  # type: ignore[arg-type]  # by name


A_RUN = Flag(
    "RUN",
    "a run's folder (its last checkpoint), one of its checkpoints, RUN@STEP, a folder of "
    "runs (the newest), or trained:NAME",
    Path,
)
"""The run that a command is about."""
NEW = (
    Flag("KIND", "what to write", choices=("preset", "environment", "agent")),
    Flag("NAME", "its name, such as Docking"),
    Flag("--to FOLDER", "the folder of the files (default: the working directory)", Path),
)
