"""A script without `if __name__ == "__main__":` that starts workers ends in one line."""

import subprocess
import sys

import pytest

SCRIPT = """
from coach_rl import *
manager = BasicRLGraphManager(
    BasicGraphParameters(
        agent=PPOAgentParameters(update_mode="eager"),
        environment=GymnasiumParameters(level="CartPole-v1"),
        source=CollectionParameters(workers=2),
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
def test_script_without_main_guard_ends_with_the_usual_advice(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    assert "; worker processes import the script unguarded.py, so what starts" in line
