"""A script without `if __name__ == "__main__":` that starts worker processes ends in one line."""

import subprocess
import sys

import pytest

from coach_rl.processes.worker_process import script_advice

SCRIPT = """
import sys
from coach_rl import *
environment = GymnasiumParameters(
    level="CartPole-v1", vectorization="subprocess", processes=2, start_method=sys.argv[1]
)
manager = BasicRLGraphManager(
    BasicGraphParameters(
        agent=PPOAgentParameters(update_mode="eager"),
        environment=environment,
        schedule=ScheduleParameters(training=EnvironmentSteps(64)),
        num_envs=2,
    )
)
try:
    manager.create_graph()
except CoachError as error:
    print("ends with:", error)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_script_without_main_guard_ends_with_the_usual_advice(tmp_path, how):
    script = tmp_path / "unguarded.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script, how], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    assert line.endswith(
        "; worker processes import the script unguarded.py, so what starts the run must stand "
        'below the line `if __name__ == "__main__":`'
    )


@pytest.mark.parametrize(
    ("name", "text", "is_given"),
    [
        ("script.py", "train()", True),
        ("script.py", "if __name__ == '__main__':\n    train()", False),
        ("__main__.py", "train()", False),
        ("coach", "train()", False),
        ("gone.py", None, False),
    ],
)
def test_script_advice_only_for_a_script_without_the_line(
    tmp_path, monkeypatch, name, text, is_given
):
    if text is not None:
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / name), raising=False)
    assert bool(script_advice()) == is_given
