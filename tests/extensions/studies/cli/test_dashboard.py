"""`coach dashboard` starts TensorBoard on runs, and says in one line why it cannot."""

import json
import re
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from urllib.request import Request, urlopen

import pytest

from coach_rl.cli.main import main
from tests.browser import opened
from tests.small_runs import FAKE

CHROMIUM = shutil.which("chromium")


@pytest.fixture
def runs(tmp_path):
    """An experiment with two runs."""
    for rate in (0.1, 0.2):
        words = f"-p {FAKE} -cp learning_rate={rate} --plain -e walk --steps 40"
        assert main(words.split()) == 0
    return tmp_path / "experiments" / "walk"


@contextmanager
def dashboard(*words):
    """Its address."""
    command = [sys.executable, "-m", "coach_rl", "dashboard", *map(str, words), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = process.stdout.readline() + process.stdout.readline()
            yield re.search(r"(http://\S+?/)#", said)[1]
        finally:
            process.terminate()
            rest = process.stdout.read()
    assert (process.returncode, rest) == (0, "\ndashboard ended\n")


def asked(address, *, body=None):
    request = Request(address, data=body, headers={"Content-Type": "application/json"})
    with urlopen(request) as answer:
        return json.loads(answer.read())


def test_dashboard_serves_charts_texts_and_settings(runs):
    one, two = sorted(runs.iterdir())
    with dashboard(one, two) as address:
        data = f"{address}data/plugin"
        assert sorted(asked(f"{address}data/runs")) == [one.name, two.name]
        charts = asked(f"{data}/custom_scalars/layout")["category"]
        assert charts[0]["title"] == "Is it learning?"
        assert len(charts[0]["chart"]) == 3  # those of two runs are merged
        tags = asked(f"{data}/scalars/tags")[one.name]
        assert {"evaluation/reward_iqm_low", "final_evaluation/reward_mean"} <= tags.keys()
        assert "run/differences" in asked(f"{data}/text/tags")[one.name]
        (text,) = asked(f"{data}/text/text?run={two.name}&tag=run/differences")
        assert "<code>0.2</code>" in text["text"]
        found = asked(f"{data}/hparams/experiment", body=b"{}")
        assert {"learning_rate", "seed"} <= {each["name"] for each in found["hparamInfos"]}


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("custom_scalars", ["Is it learning?", "Return in evaluations, 95 % interval", "Matches"]),
        ("text", ["run/command", "run/levels", "random walk"]),
        ("hparams", ["learning_rate"]),
    ],
)
def test_browser_shows_the_page(runs, tmp_path, page, found):
    with dashboard(runs) as address, opened(CHROMIUM, tmp_path / "profile") as browser:
        assert browser.missing(f"{address}#{page}", found, seconds=120) == []


@pytest.mark.filterwarnings("ignore:html5lib", "ignore::ResourceWarning")
def test_taken_port_is_said_in_one_line(tmp_path, capsys):
    (tmp_path / "manifest.json").touch()
    (tmp_path / "events.out.tfevents.1").touch()
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["dashboard", str(tmp_path), "--host", "localhost", "--port", str(port)]) == 2
    err = capsys.readouterr().err
    assert f"{port}" in err
    assert "choose another --port" in err
