"""Mistakes on the command line: one line on stderr, exit code 2, and nothing is made."""

from pathlib import Path
from typing import Any

import pytest

from coach_rl.cli.main import main
from tests.small_runs import FAKE, STACK

FILMED = FAKE.with_name("filmed_preset.py")
OF_FLAGS = [
    ("--seed 1", "nothing to do; give -p PRESET"),
    ("--sed 3 -p x", "unknown flag '--sed'; did you mean '--seed'"),
    ("-p FAKE --lr 1", "unknown flag '--lr'; did you mean '-cp \"learning_rate=...\"'?"),
    ("-p FAKE --zzz", "unknown flag '--zzz' (`coach --help` shows all)"),
    ("CartPole-PPO", "unknown command 'CartPole-PPO'; did you mean 'train CartPole_PPO'"),
    ("describe Hopper", "unknown preset 'Hopper'; it is a task: give a preset, and"),
    ("-p cartpole", "did you mean 'CartPole_SAC' or 'CartPole_PPO' or 'CartPole_DQN'?"),
    ("-p HalfCheetah", "-lvl half_cheetah"),
    ("-p FAKE learning_rate=1e-3", 'changes follow -cp: -cp "learning_rate=1e-3"'),
    ("-seed 1 -p FAKE", "unknown flag '-seed'; did you mean '--seed'"),
    ("cartpole_ppo", "is a preset; did you mean `coach train CartPole_PPO`?"),
    ("PPO -lvl CartPole-v1", "'PPO' is a preset; did you mean `coach train PPO`?"),
    ("train PPO CartPole-v1", "'CartPole-v1'; a task follows -lvl: -lvl CartPole-v1"),
    ("train PPO", "needs level; give it with -lvl, such as -lvl CartPole-v1"),
    ("train A2C -lvl CartPole-v1", "unknown preset 'A2C'; did you mean 'PPO'?"),
    ("train SACD -lvl CartPole-v1", "unknown preset 'SACD'; did you mean 'SAC'?"),
    ("train SCA -lvl CartPole-v1", "unknown preset 'SCA'; did you mean 'SAC'?"),
    # a suggested setting is one of the preset with its task
    ("train PPO -lvl CartPole-v1 --lr 1", "did you mean '-cp \"agent.optimizer.learning_rate="),
    ("train PPO -lvl=one_step -lr 1", "did you mean '-cp \"agent.optimizer.learning_rate=..."),
    ("-p CartPole_PPO --tau 1", "the setting agent.algorithm.target_sync.rate of other presets"),
    ("-p PPO --gamma 1", "did you mean '-cp \"agent.algorithm.discount=...\"'?"),
    ("train SAC --tau 1 -lvl moon:Lander", '-cp "agent.algorithm.target_sync.rate=..."\'?'),
    ("train PPO --discount 1 -lvl t_maze_10", '-cp "agent.algorithm.discount=..."\'?'),
    ("train PPO -lvl one_step --agent.algorithm.clip 1", '-cp "agent.algorithm.clip=..."'),
    ("train PPO -lvl one_step -cp steps=1M", "steps must be int | None, got '1M'; write 1e6"),
    ("train PPO -lvl one_step -cp recurrence=lstm", "got 'lstm'; write LSTM()"),
    ("train PPO -lvl one_step -cp recurrence=True", "got True; fitting: GRU, LSTM, Attention"),
    ("train ppo-cartpole", "unknown preset 'ppo-cartpole'; did you mean 'CartPole_PPO'?"),
    ("train Hopper_PPO", "unknown preset 'Hopper_PPO'; did you mean 'PPO'?"),
    (
        "-p CartPole_PPO -cp learning_rate=1e-3;agent.optimizer.learning_rate=1e-4",
        "learning_rate and agent.optimizer.learning_rate set the same parameter, which is given",
    ),
    (
        "train PPO -lvl CartPole-v1 -cp environment.wrappers=gymnasium.wrappers.FlattenObservation",
        "and one as ('gymnasium.wrappers.FlattenObservation',)",
    ),
    ("version", "unknown command 'version'; did you mean '--version'?"),
    ("trian FAKE", "unknown command 'trian'; did you mean 'train'"),
    ("help trian", "unknown command 'trian'; did you mean 'train'"),
    ("train", "`coach train` needs a preset: coach train PRESET (`coach list` shows"),
    ("resume", "`coach resume` needs a run: coach resume RUN"),
    ("-p FAKE -cp a=1 b=2", "separated by ';': -cp \"a=1; b=2\""),
    ("train FAKE other", "unexpected argument 'other'"),
    ("list nonsense", "no preset's name contains 'nonsense'; `coach -l` lists them all"),
    ("-p FAKE -cp learning_rate", "cannot read the override 'learning_rate'"),
    ("-p FAKE -lvl moon", "unknown level 'moon'"),
    (
        "-p CartPole_PPO --steps 300 -cp schedule.training=9",
        "steps and schedule.training set the same parameter, which is given twice, by --steps and",
    ),
    ("-p CartPole_PPO --steps 300 -cp schedule=Schedule(training=9)", "schedule set the same"),
    ("-p CartPole_PPO --steps 300 -cp schedule.training.count=9", "training.count set the same"),
    ("-p CartPole_PPO -cp steps=300;schedule.training=9", "steps and schedule.training set"),
    ("-p Mujoco_PPO -lvl hopper -cp environment.level=ant", "given twice, by -lvl and by -cp"),
    ("-p Mujoco_PPO -cp level=hopper;environment.level=ant", "environment.level set the same"),
    ("-p FAKE -lvl a -cp level=b", "level is given twice, by -lvl and by -cp"),
    ("-p FAKE -n 0", "argument -n/--num_envs: must be a whole number of 1 or more, got '0'"),
    ("-p FAKE --steps 1.5", "argument --steps: must be a whole number of 1 or more, got '1.5'"),
    ("-p FAKE --seed -1", "argument --seed"),
    ("-p FAKE --matmul_precision low", "must be 'highest' or 'high' or 'medium', got 'low'"),
    ("-crd run --matmul_precision high", "`coach resume` ignores --matmul_precision"),
    ("-p FAKE -s 0", "argument -s/--checkpoint_seconds: must be a number of seconds above 0"),
    ("-p FAKE -e a/b", "the experiment name 'a/b' cannot name a folder"),
    ("-p FAKE -c --device cpu", "not allowed with argument -c/--use_cpu"),
    ("-p FAKE --evaluate -s 5", "`coach evaluate` ignores -s: agents are evaluated before"),
    ("-p FAKE -crd run", "`coach resume` ignores -p: the run is rebuilt from its manifest"),
    ("-crd run --seed 1", "`coach resume` ignores --seed"),
    ("-crd run -cp a=1", "`coach resume` ignores -cp"),
    ("-crd run --sampling", "`coach resume` ignores --sampling"),
    ("-p FAKE --last_good", "`coach train` ignores --last_good: it begins a new run"),
    ("evaluate run --drop_later", "`coach evaluate` ignores --drop_later"),
    ("fork", "`coach fork` needs a run: coach fork RUN[@STEP] --as NAME"),
    ("fork run", "a fork needs a name of its own, for the folder above it: --as NAME"),
    ("fork run --as x -n 3", "`coach fork` ignores -n: a fork continues from the run's state"),
    ("fork run --as x -cp steps", "cannot read the override 'steps'"),
    ("evaluate run -lvl a -cp environment.level=b", "given twice, by -lvl and by -cp"),
    ("-p FAKE -crd run --evaluate", "`coach evaluate` ignores -p: it trains nothing"),
    ("-crd run --evaluate --print_networks_summary", "ignores --print_networks_summary"),
    ("-crd run", "is neither a run's folder"),
    ("-l -p FAKE", "`coach list` ignores -p: it lists what comes with it and does nothing else"),
    ("describe", "`coach describe` needs a preset"),
    ("describe FAKE --seed 1", "`coach describe` ignores --seed"),
]
OF_LEVELS = [
    ("levels.1.horizon=0", "('low'): levels.1.horizon must be int > 0 | None, got 0"),
    ("levels.1.goal_space.elements=(0,)", "GoalSpace.elements names 1 elements, its bounds"),
    ("levels.1.goal_space.low=(0.0,)", "levels.1 ('low'): GoalSpace needs as many low, high"),
    ("levels.1.goal_space=None", "level 'low' needs a goal_space"),
    ("levels.0.parts=2.0", "levels.0.parts must be tuple[LevelPartParameters, ...], got 2.0"),
    ("levels.1.load=nowhere", "level 'low' cannot be loaded from nowhere: "),
    ("levels.1.loadd=x", "unknown parameter 'loadd' of 'levels.1'; did you mean 'load'"),
]


def refused(capsys: pytest.CaptureFixture[str], *words: Any) -> list[str]:
    """The lines of a command that is refused and makes nothing."""
    before = set(Path().rglob("*"))
    assert main([str(word) for word in words]) == 2
    out, err = capsys.readouterr()
    assert "Delete" not in out
    assert words[0] != "sweep" or not out
    assert set(Path().rglob("*")) == before
    lines: list[str] = err.splitlines()
    assert all(line.startswith("coach: error: ") for line in lines)
    return lines


@pytest.mark.parametrize(("words", "message"), OF_FLAGS)
def test_mistake_in_flags_is_one_line(words, message, capsys):
    check_one_line(words, message, capsys)


def check_one_line(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = words.replace("FAKE", str(FAKE)).replace("FILMED", str(FILMED))
    (line,) = refused(capsys, *words.split())
    assert message in line


@pytest.mark.parametrize(("override", "message"), OF_LEVELS)
def test_mistake_in_levels_is_one_line(override, message, capsys):
    (line,) = refused(capsys, "-p", STACK, "-ntb", "-c", "-cp", override)
    assert message in line


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (["-cp", "lerning_rate=1; layrs=2"], ["'lerning_rate'", "'layrs'"]),
        (["-cp", "learning_rate=fast; steps=few"], ["learning_rate must be", "steps must be"]),
        (
            ["-cp", "agent.layrs=1; agent.learning_rate=fast"],
            ["unknown parameter 'layrs'", "agent.learning_rate must be float"],
        ),
        (
            ["-e", "a/b", "--device", "moon", "--no_checkpoints"],
            ["the experiment name 'a/b' cannot", "device must be auto, cpu, cuda"],
        ),
    ],
)
def test_several_problems_are_a_line_each(words, messages, capsys):
    lines = refused(capsys, "-p", FAKE, *words)
    assert len(lines) == len(messages)
    assert all(message in line for message, line in zip(messages, lines, strict=True))
