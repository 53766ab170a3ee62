"""Mistakes in commands of studies: one line on stderr, exit code 2, and nothing is made."""

from pathlib import Path

import pytest

from tests.cli.test_errors import check_one_line, refused
from tests.extensions.studies.cli.test_studies import STUDY
from tests.extensions.studies.written_runs import write_seeds
from tests.small_runs import FAKE


@pytest.fixture(autouse=True)
def with_a_study(somewhere_else: None) -> None:
    Path("walks.py").write_text(STUDY)


OF_FLAGS = [
    ("-p FAKE --seed 1 2 3", "unexpected argument '2': --seed takes one value"),
    ("sweep -p FAKE --env x", "unknown flag '--env'; did you mean '-lvl'?"),
    ("-p x --seeds 2 --seed 3", "`coach train` ignores --seed: with --seeds it begins a run"),
    ("-p x --seeds 2 --workers 2", "`coach train` ignores --workers: with --seeds it begins"),
    ("-p x --seeds 2 -dg", "`coach train` ignores -dg: with --seeds"),
    ("-crd RUN --seeds 2", "`coach resume` ignores --seeds: the run is rebuilt"),
    ("train --from RUN --seeds 3", "`coach train` ignores --seeds: with --from"),
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
    ("study run", "the following arguments are required: FILE"),
    ("study", "`coach study` needs one of run, status, report, export, import, and FILE"),
    ("study rnu walks.py", "unknown command 'rnu' of `coach study`; did you mean 'run'"),
    ("study status walks.py --jobs 2", "(`coach study status --help` shows all)"),
    ("study report walks.py --write no.md", "there is no page no.md"),
    ("study export walks.py", "has no scored runs in experiments/walks; `coach study run"),
    ("study import none.zip", "cannot read the records none.zip: No such file or directory"),
    ("report experiments", "experiments does not exist; give a run's folder, or"),
    ("report", "the following arguments are required: STUDY.py"),
    ("compare walks.py", "the study 'walks' has no runs in experiments/walks; `coach study"),
    ("compare walks.py experiments", "walks.py names all that is compared; give it"),
    ("compare experiments --runs x", "--runs adds runs to a study; name its file"),
    ("dashboard", "experiments does not exist; give the folder of a run"),
    ("dashboard walks.py", "walks.py is a file; give the folder of a run"),
    ("dashboard --port 99999", "'99999' is no port: give a number from 0 to 65535"),
]


@pytest.mark.parametrize(("words", "message"), OF_FLAGS)
def test_mistake_in_flags_of_studies_is_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    check_one_line(words, message, capsys)


OF_SWEEPS = [
    ("", "needs a preset: coach sweep -p PRESET"),
    ("-p Pendulum_SAX", "did you mean 'Pendulum_SAC'"),
    ("Pendulum_SAX", "did you mean 'Pendulum_SAC'"),
    ("-p FAKE --trial 3", "unknown flag '--trial'; did you mean '--trials'"),
    ("-p FAKE", "has no search space of its own"),
    ("FAKE learning_rate=log(1,2)", 'did you mean --search "learning_rate=log(1,2)"?'),
    ("-p FAKE --search learning_rte=log(0.1,1)", "did you mean 'learning_rate'"),
    ("-p FAKE --search RATES -cp learning_rate=1", "given twice"),
    ("-p FAKE --search RATES --sampler cmaes", "choose from"),
    ("-p FAKE --search learning_rate=log(0.1,1) --sampler grid", "grid needs"),
    ("-p FAKE --search RATES --trials 0", "must be a whole number of 1 or more"),
    ("-p FAKE --search RATES --confirm_seeds 1", "fresh_seeds must be 2 or more"),
    ("-p FAKE --search RATES --hours 1", "unknown flag '--hours'"),
    ("-p CartPole_PPO --search discount=uniform(0.9,1) --metric reward", "unknown metric"),
]


@pytest.mark.parametrize(("words", "message"), OF_SWEEPS)
def test_mistake_in_sweeps_is_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("optuna")
    words = words.replace("FAKE", str(FAKE)).replace("RATES", "learning_rate=choice(0.01,0.1)")
    (line,) = refused(capsys, "sweep", *words.split())
    assert message in line


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


@pytest.mark.parametrize(("words", "message"), OF_RUNS)
def test_mistake_about_runs_is_one_line(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_seeds(Path("experiments/good"), [11, 12])
    write_seeds(Path("experiments/bad"), [1, 2])
    Path("empty").mkdir()
    (line,) = refused(capsys, *words.split())
    assert message in line
