import numpy as np

from coach_rl.core.errors import RunError
from coach_rl.runs.logs import write_evidence


def test_every_failure_leaves_its_message(tmp_path):
    assert write_evidence(tmp_path, RunError("it fell"), 96) == ""
    assert (tmp_path / "faults" / "step_96.txt").read_text() == "it fell\n"


def test_what_an_error_carries_is_written_beside(tmp_path):
    error = RunError("it fell", evidence={"action": np.ones(2), "traceback": "line 1"})
    assert write_evidence(tmp_path, error, 96) == f"; its data are in {tmp_path}/faults/step_96.*"
    assert "traceback:\nline 1" in (tmp_path / "faults" / "step_96.txt").read_text()
    with np.load(tmp_path / "faults" / "step_96.npz") as arrays:
        assert arrays["action"].tolist() == [1, 1]


def test_a_disk_that_refuses_is_said_only_where_something_is_lost(tmp_path):
    (tmp_path / "faults").write_text("a file")
    assert write_evidence(tmp_path, RunError("it fell"), 96) == ""
    error = RunError("it fell", evidence={"traceback": "line 1"})
    assert "its data could not be written" in write_evidence(tmp_path, error, 96)


def test_evidence_of_text_without_an_encoding_is_written_escaped(tmp_path):
    error = RunError("it fell", evidence={"traceback": "line 1\nValueError: \ud800"})
    write_evidence(tmp_path, error, 96)
    text = (tmp_path / "faults" / "step_96.txt").read_text()
    assert text == "it fell\n\ntraceback:\nline 1\nValueError: \\ud800\n"
