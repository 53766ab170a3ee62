"""The package without what only POSIX systems have: it is imported, and trains in one process.

Windows itself is not tried here; docs/install.md lists what does not work there.
"""

import subprocess
import sys
from pathlib import Path

BLOCKED = """
import os, signal, sys
import asyncio, multiprocessing.pool, subprocess, tempfile  # Python's own, which differ there
import filelock, psutil, torch, gymnasium.envs.classic_control.cartpole, scipy.stats, rich.live
import jinja2, mujoco, numpy.testing, PIL.Image, platformdirs, pygame, safetensors.torch, typeguard
import tensorboard.compat.proto.event_pb2, torch._dynamo
for name in ("fcntl", "grp", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for name in (
    "O_DIRECTORY", "O_NOFOLLOW", "fchmod", "fork", "forkpty", "getegid", "geteuid", "getgid",
    "getloadavg", "getpgid", "getuid", "killpg", "lockf", "nice", "posix_fallocate", "pread",
    "preadv", "pwrite", "pwritev", "sched_getaffinity", "sched_setaffinity", "setsid", "sysconf",
    "uname",
):
    if hasattr(os, name):
        delattr(os, name)
for name in dir(signal):
    if name in ("pthread_sigmask", "setitimer", "sigwait") or (
        name.startswith("SIG") and name[3:] not in
        ("ABRT", "FPE", "ILL", "INT", "SEGV", "TERM", "_DFL", "_IGN")
    ):
        delattr(signal, name)
"""
PROGRAM = """
import importlib, pkgutil
from pathlib import Path
import coach_rl
missing = []
for each in pkgutil.walk_packages(coach_rl.__path__, "coach_rl."):
    if not each.name.endswith(("__main__", ".exported")):
        try:
            importlib.import_module(each.name)
        except ModuleNotFoundError as error:
            missing.append(error.name)
assert not {*missing} & {"fcntl", "grp", "pwd", "resource", "termios", "tty"}, missing
from coach_rl.cli.main import main
assert main("train CartPole_PPO --steps 600 -ep runs --device cpu --plain".split()) == 0
(folder,) = Path("runs").glob("*/*")
assert main(["resume", str(folder), "--steps", "1200", "--plain"]) == 0
from coach_rl.runs.lock import RunInUseError, locked
with locked(folder):
    try:
        with locked(folder):
            raise SystemExit("a run was held twice")
    except RunInUseError as error:
        assert "in use by process" in str(error), error
print("trained", coach_rl.load(folder).act([0, 0, 0, 0]))
"""


def test_package_trains_and_resumes_without_posix(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BLOCKED + PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "trained" in done.stdout
