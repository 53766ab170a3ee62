"""Mistakes on the command line: one line on stderr, exit code 2, and nothing is made."""

from pathlib import Path
from typing import Any

import pytest

from coach_rl.cli.main import main
from tests.extensions.studies.cli.test_studies import STUDY
from tests.extensions.studies.written_runs import write_seeds
from tests.small_runs import FAKE, STACK

FILMED = FAKE.with_name("filmed_preset.py")
OF_FLAGS = [
    ("--seed 1", "nothing to do; give -p PRESET"),
    ("--sed 3 -p x", "unknown flag '--sed'; did you mean '--seed'"),
    ("-p FAKE --render", "unknown flag '--render'; did you mean '-dg' or '-dm'?"),
    ("-p FAKE --lr 1", "unknown flag '--lr'; did you mean '-cp \"learning_rate=...\"'?"),
    ("-p FAKE --zzz", "unknown flag '--zzz' (`coach --help` shows all)"),
    ("sweep -p FAKE --env x", "unknown flag '--env'; did you mean '-lvl'?"),
    ("CartPole-PPO", "unknown command 'CartPole-PPO'; did you mean 'train CartPole_PPO'"),
    ("-p skills", "unknown preset 'skills'; did you mean 'PointMass_PPO_Skills'?"),
    ("describe Hopper", "unknown preset 'Hopper'; it is a task: give a preset, and"),
    ("-p cartpole", "did you mean 'CartPole_SAC' or 'CartPole_PPO' or 'CartPole_DQN'?"),
    ("-p HalfCheetah", "-lvl half_cheetah"),
    ("-p FAKE learning_rate=1e-3", 'changes follow -cp: -cp "learning_rate=1e-3"'),
    ("-seed 1 -p FAKE", "unknown flag '-seed'; did you mean '--seed'"),
    ("cartpole_ppo", "is a preset; did you mean `coach train CartPole_PPO`?"),
    ("trian FAKE", "unknown command 'trian'; did you mean 'train'"),
    ("help trian", "unknown command 'trian'; did you mean 'train'"),
    ("train", "`coach train` needs a preset: coach train PRESET (`coach list` shows"),
    ("resume", "`coach resume` needs a run: coach resume RUN"),
    ("-p FAKE --seed 1 2 3", "unexpected argument '2': --seed takes one value"),
    ("-p FAKE -cp a=1 b=2", "separated by ';': -cp \"a=1; b=2\""),
    ("train FAKE other", "unexpected argument 'other'"),
    ("list nonsense", "no preset's name contains 'nonsense'; `coach -l` lists them all"),
    ("-p CartPole_PP", "unknown preset 'CartPole_PP'; did you mean 'CartPole_PPO'"),
    ("-p nothing.py", "there is no preset file 'nothing.py'"),
    ("-p FAKE:grph_manager", "did you mean 'graph_manager'"),
    ("-p FAKE -cp learning_rat=1", "'learning_rat'; did you mean 'learning_rate'"),
    ("-p FAKE -cp learning_rate=fast", "learning_rate must be float, got 'fast'"),
    ("-p FAKE -cp learning_rate=-1", "learning_rate must be above 0, got -1.0"),
    ("-p FAKE -cp agent.layrs=1", "unknown parameter 'layrs' of 'agent'; did you mean 'layers'"),
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
    ("-p FAKE --evaluate -dg", "`coach evaluate` ignores -dg"),
    ("-p FAKE --video_skip 2", "--video_skip has no effect without -dg or -dm"),
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
    ("-p x --seeds 2 --seed 3", "`coach train` ignores --seed: with --seeds it begins a run"),
    ("-p x --seeds 2 --workers 2", "`coach train` ignores --workers: with --seeds it begins"),
    ("-p x --seeds 2 -dg", "`coach train` ignores -dg: with --seeds"),
    ("-crd RUN --seeds 2", "`coach resume` ignores --seeds: the run is rebuilt"),
    ("-p x --jobs 2", "--jobs belongs to coach train --seeds; give --seeds, too"),
    ("-p x --seeds 3,3", "names the seed 3 twice, in '3,3'"),
    ("-p x --seeds 3,", "or a list, such as 3,5,8; got '3,'"),
    ("-p x --seeds 0", "must be how many, such as 10 (seeds 0 to 9)"),
    ("-p x --seeds -1", "must be how many, such as 10 (seeds 0 to 9)"),
    ("-p x --seeds 2 --jobs 0", "--jobs: must be a whole number of 1 or more, got '0'"),
    ("-p FAKE --seeds 2 --on moon", "unknown place to run 'moon'"),
    ("-p x --seeds 3 5 8", "separated by ',': --seeds 3,5,8"),
    ("-p x --seed 3 5", "--seed takes one value; for several give --seeds 3,5"),
    ("-p FAKE --seeds 2 -cp lerning_rate=1", "did you mean 'learning_rate'?"),
    ("-p FAKE --seeds 2 -e a/b", "the experiment name 'a/b' cannot name a folder"),
    ("watch nowhere", "nowhere does not exist; name a run's folder"),
    ("watch", "experiments does not exist"),
    ("watch --newest", "unknown flag '--newest'; allowed: "),
    ("study run other.py", "there is no study file 'other.py'"),
    ("study run walks.py:studie", "unknown study 'studie' in walks.py; did you mean 'study'?"),
    ("study run walks.py --on mars", "unknown place to run 'mars'"),
    ("study run walks.py --jobs 0", "--jobs: must be a whole number of 1 or more"),
    ("study run", "the following arguments are required: FILE"),
    ("study", "`coach study` needs one of run, status, report, export, import, and FILE"),
    ("film FAKE", "unknown command 'film'; did you mean 'play'"),
    ("-p FAKE --play", "unknown flag '--play'; did you mean 'coach play'"),
    ("study rnu walks.py", "unknown command 'rnu' of `coach study`; did you mean 'run'"),
    ("study status walks.py --jobs 2", "(`coach study status --help` shows all)"),
    ("study report walks.py --runs nowhere", "there is no folder nowhere"),
    ("study report walks.py --write no.md", "there is no page no.md"),
    ("study export walks.py", "has no scored runs in experiments/walks; `coach study run"),
    ("study import none.zip", "cannot read the records none.zip: No such file or directory"),
    ("study import walks.py", "cannot read the records walks.py: it is not a zip file"),
    ("report experiments", "experiments does not exist; give a run's folder, or"),
    ("report none.py", "there is no study file 'none.py'"),
    ("report", "the following arguments are required: STUDY.py"),
    ("compare walks.py", "the study 'walks' has no runs in experiments/walks; `coach study"),
    ("compare walks.py experiments", "walks.py names all that is compared; give it"),
    ("compare experiments --runs x", "--runs adds runs to a study; name its file"),
    ("plot walks.py:walk", "unknown study 'walk' in walks.py"),
    ("-p FILMED -lvl goal_point_mass -dg", "no pictures; leave out the video flags (-dg, -dm)"),
    ("-p FILMED -dg --video_frames 1", "VideoParameters.max_frames must be int >= 2, got 1"),
    ("-p FILMED -dg --video_skip 0", "argument --video_skip"),
    ("dashboard", "experiments does not exist; give the folder of a run"),
    ("dashboard walks.py", "walks.py is a file; give the folder of a run"),
    ("dashboard --port 99999", "'99999' is no port: give a number from 0 to 65535"),
]
OF_SWEEPS = [
    ("", "needs a preset: coach sweep -p PRESET"),
    ("-p Pendulum_SAX", "did you mean 'Pendulum_SAC'"),
    ("Pendulum_SAX", "did you mean 'Pendulum_SAC'"),
    ("-p FAKE --trial 3", "unknown flag '--trial'; did you mean '--trials'"),
    ("-p FAKE", "has no search space of its own"),
    ("-p FAKE --search learning_rte=log(0.1,1)", "did you mean 'learning_rate'"),
    ("-p FAKE --search RATES -cp learning_rate=1", "given twice"),
    ("-p FAKE --search RATES --sampler cmaes", "choose from"),
    ("-p FAKE --search learning_rate=log(0.1,1) --sampler grid", "grid needs"),
    ("-p FAKE --search RATES --trials 0", "must be a whole number of 1 or more"),
    ("-p FAKE --search RATES --confirm_seeds 1", "fresh_seeds must be 2 or more"),
    ("-p FAKE --search RATES --on mars", "unknown place to run 'mars'"),
    ("-p FAKE --search RATES --hours 1", "unknown flag '--hours'"),
    ("-p CartPole_PPO --search discount=uniform(0.9,1) --metric reward", "unknown metric"),
]
OF_RUNS = [
    ("compare nothing experiments", "nothing does not exist; give a run's folder"),
    ("compare experiments/good", "there is only one group of runs with a score, trial"),
    ("compare experiments --metric rewards", "unknown metric 'rewards'"),
    ("compare experiments --at soon", "'soon' is none of final, last, afterwards"),
    ("compare experiments --baseline goo", "did you mean 'good'?"),
    ("report experiments --metric rewards", "unknown metric 'rewards'"),
    ("report experiments --baseline goo", "did you mean 'good'?"),
    ("report experiments study.py", "study.py names all that is compared"),
    ("report experiments --runs x", "--runs adds runs to a study"),
    ("compare", "the following arguments are required: FOLDER"),
    ("plot experiments --metric rewards", "unknown metric 'rewards'"),
    ("plot experiments --baseline goo", "did you mean 'good'?"),
    ("runs nothing", "nothing does not exist; name the folder of your experiments"),
    ("runs --metric rewards", "unknown metric 'rewards'"),
    ("runs a b", "unexpected argument 'b'; `coach runs --help` shows"),
    ("runs --yes", "unknown flag '--yes'"),
    ("runs rm", "name the runs to delete"),
    ("runs rm experiments/good", "experiments/good is not a run's folder"),
    ("runs rm experiments/good/seed0", "no terminal to confirm on"),
    ("dashboard empty", "empty holds no runs; give the folder of a run"),
    ("dashboard experiments/good", "have no TensorBoard files: they were made with -ntb"),
]
OF_LEVELS = [
    ("levels.1.horizon=0", "('low'): levels.1.horizon must be int > 0 | None, got 0"),
    ("levels.1.goal_space.elements=(0,)", "GoalSpace.elements names 1 elements, its bounds"),
    ("levels.1.goal_space.low=(0.0,)", "levels.1 ('low'): GoalSpace needs as many low, high"),
    ("levels.1.goal_space=None", "level 'low' needs a goal_space"),
    ("levels.0.testing_rate=2.0", "testing_rate must be float in [0, 1] | None, got 2.0"),
    ("levels.1.load=nowhere", "level 'low' cannot be loaded from nowhere: "),
    ("levels.1.loadd=x", "unknown parameter 'loadd' of 'levels.1'; did you mean 'load'"),
]


@pytest.fixture(autouse=True)
def with_a_study(somewhere_else: None) -> None:
    Path("walks.py").write_text(STUDY)


def refused(capsys: pytest.CaptureFixture[str], *words: Any) -> list[str]:
    """The lines of a command that is refused and makes nothing."""
    before = set(Path().rglob("*"))
    assert main([str(word) for word in words]) == 2
    out, err = capsys.readouterr()
    assert "Delete" not in out
    assert words[0] != "sweep" or out == ""
    assert set(Path().rglob("*")) == before
    lines: list[str] = err.splitlines()
    assert all(line.startswith("coach: error: ") for line in lines)
    return lines


@pytest.mark.parametrize(("words", "message"), OF_FLAGS)
def test_mistake_in_flags_is_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = words.replace("FAKE", str(FAKE)).replace("FILMED", str(FILMED))
    (line,) = refused(capsys, *words.split())
    assert message in line


@pytest.mark.parametrize(("words", "message"), OF_SWEEPS)
def test_mistake_in_sweeps_is_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("optuna")
    words = words.replace("FAKE", str(FAKE)).replace("RATES", "learning_rate=choice(0.01,0.1)")
    (line,) = refused(capsys, "sweep", *words.split())
    assert message in line


@pytest.mark.parametrize(("words", "message"), OF_RUNS)
def test_mistake_about_runs_is_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_seeds(Path("experiments/good"), [11, 12])
    write_seeds(Path("experiments/bad"), [1, 2])
    Path("empty").mkdir()
    (line,) = refused(capsys, *words.split())
    assert message in line


@pytest.mark.parametrize(("override", "message"), OF_LEVELS)
def test_mistake_in_levels_is_one_line(
    override: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
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
            ["-e", "a/b", "--device", "moon", "-dm", "--no_checkpoints"],
            ["the experiment name 'a/b' cannot", "device must be auto, cpu, cuda"],
        ),
    ],
)
def test_several_problems_are_a_line_each(
    words: list[str], messages: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = refused(capsys, "-p", FAKE, *words)
    assert len(lines) == len(messages)
    assert all(message in line for message, line in zip(messages, lines, strict=True))
