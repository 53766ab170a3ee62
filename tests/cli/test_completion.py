"""Completion of command lines, as a shell requests it."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("argcomplete", reason="needs the extra `completion`")


def completed(line, folder):
    """The completions of a line, whose cursor is at its end."""
    file = folder / "answer"
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(file),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    program = "from coach_rl.cli.main import main; raise SystemExit(main())"
    subprocess.run([sys.executable, "-c", program], env=environment, cwd=folder, check=True)
    return [each.strip() for each in file.read_text().split("\n")]


LINES = {
    "coach tr": "train",
    "coach train Cart": "CartPole_PPO",
    "coach train CartPole_PPO --ste": "--steps",
    "coach train PPO -lvl half": "half_cheetah",
    "coach -p Pend": "Pendulum_SAC",
    "coach evaluate trained": "trained:CartPole_PPO",
    "coach resume exp": "experiments/",
}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("line", LINES)
def test_completion_of_a_line(line, tmp_path):
    (tmp_path / "experiments").mkdir()
    assert LINES[line] in completed(line, tmp_path)


def test_completion_lists_the_flags_of_the_command_alone(tmp_path):
    found = completed("coach evaluate runs --", tmp_path)
    assert "--episodes" in found
    assert "--until_solved" not in found
