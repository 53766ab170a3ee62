"""Archives and run folders of strangers are refused in one line, or shown beside others."""

import json
import os
import re
import zipfile
from pathlib import Path

import pytest

from coach_rl.cli.main import main
from coach_rl.configuration.strict_json import sealed
from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.extensions.studies import run_records
from coach_rl.extensions.studies.run_records import unpack_records
from coach_rl.extensions.studies.scores import read_scores
from coach_rl.telemetry.log_files import JsonlReader
from tests.extensions.studies.written_runs import LOG, SUMMARY, record, write_run

ESCAPE = "\x1b[2J\x1b]0;own\x07\nx"
RUN = "walks/run"


def archive_of(folder: Path, entries: dict[str, str]) -> Path:
    archive = folder / "walks.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in entries.items():
            target.writestr(name, text)
    return archive


def records_of(folder: Path, **changes: str) -> dict[str, str]:
    """The entries of a run's records; changes by a file's name, empty to leave it out."""
    run = write_run(folder / "made", log=LOG, summary=SUMMARY)
    manifest = json.loads((run / "manifest.json").read_text()) | {"only_records": True}
    entries = {"manifest": json.dumps(sealed(manifest))}
    entries |= {"summary": json.dumps(SUMMARY), "log": LOG, "evaluations": ""} | changes
    names = {"manifest": "manifest.json", "summary": "summary.json", "log": "log.jsonl"}
    return {
        f"{RUN}/{names.get(name, 'evaluations/a.json')}": text
        for name, text in entries.items()
        if text
    }


def manifest_with(folder: Path, **changes: object) -> str:
    run = write_run(folder / "other", summary=SUMMARY)
    document = json.loads((run / "manifest.json").read_text()) | {"only_records": True} | changes
    return json.dumps(sealed(document))


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("manifest", "", "without its manifest.json"),
        ("summary", "", "without its summary.json"),
        ("summary", '{"evaluation": {"reward_mean": NaN}}', "NaN is not a JSON number"),
        (
            "summary",
            f'{{"steps_per_second": {"9" * 5000}}}',
            "a number of 5,000 digits is too long",
        ),
        ("summary", f'{{"steps_per_second": {"9" * 400}}}', "a number of 400 digits is too long"),
        ("summary", "[]", "damaged"),
        ("summary", '{"evaluation": 7}', "damaged"),
        ("summary", '{"a": ' * 20_000, "nested too deeply"),
        ("log", record("evaluation", 10**30), "'environment_steps' is no whole number"),
        ("log", record("evaluation", -5), "'environment_steps' is no whole number"),
        ("log", record("evaluation", 5, {"evaluation/x": float("nan")}), "NaN is no number"),
        ("log", '{"kind": "evaluation"}\n', "damaged"),
        ("log", "evaluation\n", "damaged"),
        ("evaluations", '{"scalars": {}}', "damaged"),
        ("evaluations", '{"scalars": {}, "environment_steps": 1e999}', "1e999 is larger than any"),
    ],
)
def test_import_run_that_could_not_be_used_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, text: str, reason: str
) -> None:
    archive = archive_of(tmp_path, records_of(tmp_path, **{file: text}))
    with pytest.raises(ConfigurationError, match=reason):
        unpack_records(archive, tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []
    assert main(["study", "import", str(archive), "-ep", str(tmp_path / "root")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(archive) in line
    assert "Error" not in line


@pytest.mark.parametrize(
    "changes",
    [{"task": {"seed": "x"}}, {"task": {"seed": -1}}, {"name": 5}, {"job": 5},
     {"only_records": False}, {"preset": {"name": 3}}],
    ids=str,
)  # fmt: skip
def test_import_manifest_of_another_shape_is_refused(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    entries = records_of(tmp_path, manifest=manifest_with(tmp_path, **changes))
    with pytest.raises(ConfigurationError):
        unpack_records(archive_of(tmp_path, entries), tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


@pytest.mark.parametrize(
    ("limit", "reason"),
    [("MOST_BYTES", "bytes, more than the 100"), ("MOST_BYTES_IN_ALL", "bytes, more than the 100"),
     ("MOST_ENTRIES", "3 entries, more than the 1 ")],
)  # fmt: skip
def test_import_too_large_archive_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, reason: str
) -> None:
    archive = archive_of(tmp_path, records_of(tmp_path))
    monkeypatch.setattr(run_records, limit, 1 if limit == "MOST_ENTRIES" else 100)
    with pytest.raises(ConfigurationError):
        unpack_records(archive, tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_import_entry_larger_than_it_says_is_refused(tmp_path: Path) -> None:
    archive = archive_of(tmp_path, records_of(tmp_path, summary=" " * 100_000))
    data = bytearray(archive.read_bytes())
    said = (100_000).to_bytes(4, "little")
    while (at := data.find(said)) >= 0:
        data[at : at + 4] = (50).to_bytes(4, "little")
    archive.write_bytes(data)
    with pytest.raises(ConfigurationError):
        unpack_records(archive, tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("change", ["crc", "name", "twice", "escape"])
def test_import_damaged_archive_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    entries = records_of(tmp_path)
    if change == "name":
        entries[f"walks/{'x' * 300}/summary.json"] = "{}"
    if change == "escape":
        entries[f"walks/{ESCAPE}/summary.json"] = "{}"
    archive = archive_of(tmp_path, entries)
    if change == "crc":
        with zipfile.ZipFile(archive) as source:
            crc = source.getinfo(f"{RUN}/summary.json").CRC.to_bytes(4, "little")
        archive.write_bytes(archive.read_bytes().replace(crc, b"\0\0\0\0"))
    if change == "twice":
        with zipfile.ZipFile(archive, "a") as target:
            target.writestr(f"{RUN}/summary.json", "{}")
    assert main(["study", "import", str(archive), "-ep", str(tmp_path / "root")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable()
    assert not re.search(r"Errno|\w+Error", line)
    assert not list(tmp_path.glob("root/*"))


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    """Two good runs and one whose summary is damaged; one has a level that steers terminals."""
    root = tmp_path / "experiments"
    for seed in (0, 1):
        write_run(root / f"walks/run{seed}", seed=seed, level=ESCAPE, log=LOG, summary=SUMMARY)
    write_run(root / f"walks/{ESCAPE.splitlines()[0]}", seed=2, name=ESCAPE, log=LOG)
    bad = write_run(root / "walks/bad", seed=3, log=LOG)
    (bad / "summary.json").write_text('{"steps_per_second": NaN}')
    holder = {"process": 10**12, "host": ESCAPE, "started": 1e300}
    (bad / ".lock").write_text(json.dumps(holder))
    return root


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["runs"], 0),
        (["compare", "--metric", "reward_mean"], 0),
        (["watch", "--plain"], 1),
        (["runs", "--sort", "age"], 0),
    ],
)
def test_command_on_hostile_runs_shows_them_all_without_control_characters(
    experiments: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
) -> None:
    paths = [*experiments.glob("walks/*")] if words[0] != "runs" else [experiments]
    assert main([*words, *map(str, paths)]) == code
    said = capsys.readouterr()
    assert all(line.isprintable() for line in (said.out + said.err).splitlines())
    if words[0] != "watch":
        assert r"\x1b[2J" in said.out
        assert "NaN is not a JSON number" in said.out


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_read_scores_log_that_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    run = write_run(tmp_path / "run")
    (run / "log.jsonl").unlink()
    os.mkfifo(run / "log.jsonl") if kind == "pipe" else (run / "log.jsonl").mkdir()
    with pytest.raises(CheckpointError):
        read_scores(run)


@pytest.mark.parametrize(
    "change",
    [{"environment_steps": "x"}, {"wall_seconds": None}, {"level": 5}, {"scalars": {"a": 10**400}}],
)
def test_jsonl_reader_line_of_another_shape_is_left_out(
    tmp_path: Path, change: dict[str, object]
) -> None:
    line = json.dumps(json.loads(record("progress", 5, level=ESCAPE)) | change) + "\n"
    (tmp_path / "log.jsonl").write_text(line + record("progress", 6, level=ESCAPE))
    (kept,) = JsonlReader(tmp_path / "log.jsonl").read()
    assert (kept.environment_steps, kept.level.isprintable()) == (6, True)
