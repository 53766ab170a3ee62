"""Chromium without a window, asked over a pipe for the text that a page shows."""

import itertools
import json
import os
import subprocess
import time
from contextlib import contextmanager

SHOWN = """
(function shown(node) {
  if (["SCRIPT", "STYLE", "TEMPLATE"].includes(node.nodeName)) return "";
  if (node.nodeType === Node.TEXT_NODE) return node.data;
  const inside = [node.shadowRoot, node.contentDocument && node.contentDocument.body];
  return [...inside.filter(Boolean), ...node.childNodes].map(shown).join(" ");
})(document.body)
"""
"""The text of a page, that of its components included, which `--dump-dom` leaves out."""


class Page:
    """A page in a browser.

    Args:
        commands: Where the browser reads.
        answers: Where it writes.
    """

    def __init__(self, commands, answers):
        self._commands, self._answers = commands, answers
        self._numbers, self._rest = itertools.count(1), b""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}

    def missing(self, address, wanted, *, seconds):
        """Open a page; what of the wanted text it still doesn't show after these seconds."""
        self._ask("Page.navigate", self._session, url=address)
        until = time.monotonic() + seconds
        while True:
            answer = self._ask("Runtime.evaluate", self._session, expression=SHOWN)
            text = " ".join(str(answer["result"].get("value", "")).split())
            missing = [each for each in wanted if each not in text]
            if not missing or time.monotonic() > until:
                return missing
            time.sleep(0.2)

    def _ask(self, method, session=None, **params):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params, **(session or {})}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            pass  # an event
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self):
        while b"\0" not in self._rest:
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


@contextmanager
def opened(chromium, profile):
    """A page in a browser of its own.

    Args:
        chromium: The program.
        profile: A folder for its files.
    """
    its_input, commands = os.pipe()
    answers, its_output = os.pipe()
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    words += ["--remote-debugging-pipe", "--no-proxy-server", "--window-size=1400,1000"]

    def place_pipes():
        os.dup2(its_input, 3)  # where Chromium reads
        os.dup2(its_output, 4)  # and where it writes

    with subprocess.Popen(
        [chromium, *words],
        preexec_fn=place_pipes,
        pass_fds=(3, 4),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as browser:
        os.close(its_input)
        os.close(its_output)
        try:
            yield Page(commands, answers)
        finally:
            os.close(commands)
            os.close(answers)
            browser.terminate()
