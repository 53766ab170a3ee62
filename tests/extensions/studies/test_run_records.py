import socket
import zipfile
from dataclasses import replace

import pytest

from coach_rl import ConfigurationError, Study, Variant
from coach_rl.extensions.studies.job import run_job
from coach_rl.extensions.studies.run_records import unpack_records, write_records
from coach_rl.extensions.studies.study import jobs_of
from coach_rl.extensions.studies.study_runs import evaluate_missing, study_runs
from coach_rl.extensions.studies.tables import report
from coach_rl.runs.folder import RunFolder, read_manifest, write_manifest
from tests.extensions.studies.walks import WALK

STUDY = Study(
    name="walks",
    question="Which?",
    variants=(
        Variant(name="slow", preset=WALK),
        Variant(name="fast", preset=WALK, changes={"learning_rate": 0.5}),
    ),
    seeds=(1, 2),
    steps=60,
    episodes=7,
    baseline="slow",
    device="cpu",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The folder of all experiments, with the runs of the study, scored."""
    root = tmp_path_factory.mktemp("home")
    for job in jobs_of(STUDY, root=root):
        assert run_job(replace(job, tensorboard=False)).state == "done"
    assert len(list(evaluate_missing(STUDY, study_runs(STUDY, root=root)))) == 4
    return root


def folders(root):
    return [run.folder for run in study_runs(STUDY, root=root) if run.folder]


def exported(root, archive):
    write_records(archive, STUDY.name, folders(root))
    return archive


def rewritten(archive, *, change, to):
    """A copy of an archive, some of whose entries are others."""
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(to, "w") as target:
        for entry in source.namelist():
            target.writestr(*change(entry, source.read(entry).decode()))
    return to


def test_records_make_the_same_tables(home, tmp_path):
    archive = exported(home, tmp_path / "walks.zip")
    new, were_there = unpack_records(archive, tmp_path / "elsewhere")
    assert (len(new), were_there) == (4, [])
    before, after = (study_runs(STUDY, root=root) for root in (home, tmp_path / "elsewhere"))
    assert all(run.is_done for run in after)
    assert report(STUDY, after) == report(STUDY, before)
    assert [run.scores.code for run in after] == [run.scores.code for run in before]
    assert list(evaluate_missing(STUDY, after)) == []
    assert not list((tmp_path / "elsewhere").glob("*/*/checkpoints"))
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["walks"]


def test_records_of_the_same_runs_are_the_same_file(home, tmp_path):
    first = exported(home, tmp_path / "first.zip").read_bytes()
    assert exported(home, tmp_path / "second.zip").read_bytes() == first
    unpack_records(tmp_path / "first.zip", tmp_path / "elsewhere")
    assert exported(tmp_path / "elsewhere", tmp_path / "third.zip").read_bytes() == first


def test_records_leave_out_where_a_run_was_made(home, tmp_path):
    folder = RunFolder(tmp_path / "walks" / "resumed")
    folder.path.mkdir(parents=True)
    (other,) = folders(home)[:1]
    for name in ("summary.json", "log.jsonl"):
        (folder.path / name).write_bytes((other.path / name).read_bytes())
    manifest = read_manifest(other) | {"command": ["/secret/coach", "-p", "x"]}
    part = {key: manifest[key] for key in ("command", "hardware", "git", "versions")}
    write_manifest(folder, {**manifest, "resumes": [part]})
    assert manifest["hardware"]["host"] == socket.gethostname()
    write_records(tmp_path / "walks.zip", "walks", [folder])
    ((kept,), _) = unpack_records(tmp_path / "walks.zip", tmp_path / "elsewhere")
    text = kept.manifest.read_text()
    for secret in ("/secret", '"host"', str(home), "/tests/fake_preset"):
        assert secret not in text
    assert read_manifest(kept)["hardware"]["cpu"] == manifest["hardware"]["cpu"]
    assert len(read_manifest(kept)["resumes"]) == 1


def test_unpack_records_order_of_evaluations(home, tmp_path):
    archive = exported(home, tmp_path / "walks.zip")
    unpack_records(archive, tmp_path)
    run = study_runs(STUDY, root=tmp_path)[0]
    (file,) = run.folder.evaluations.glob("*.json")
    score = run.score(STUDY)
    later = file.with_name("a_name_before_the_other.json")
    later.write_text(file.read_text().replace(repr(score), "12.5"))
    assert run.score(STUDY) == 12.5
    exported(tmp_path, archive)
    unpack_records(archive, tmp_path / "elsewhere")
    assert study_runs(STUDY, root=tmp_path / "elsewhere")[0].score(STUDY) == 12.5


def test_unpack_records_existing_runs_unchanged(home, tmp_path):
    archive = exported(home, tmp_path / "walks.zip")
    kept = folders(home)[0].summary.read_bytes()
    new, were_there = unpack_records(archive, home)
    assert (new, {run.path for run in were_there}) == ([], {run.path for run in folders(home)})
    assert folders(home)[0].checkpoints.exists()
    assert folders(home)[0].summary.read_bytes() == kept


def test_runs_of_the_same_name_from_two_places_are_both_kept(home, tmp_path):
    run = folders(home)[0]
    write_records(tmp_path / "walks.zip", "walks", [run, run])
    new, _ = unpack_records(tmp_path / "walks.zip", tmp_path)
    assert [each.path.name for each in new] == [run.path.name, f"{run.path.name}_2"]


def test_write_records_fewer_runs_error(home, tmp_path):
    archive = exported(home, tmp_path / "walks.zip")
    before = archive.read_bytes()
    with pytest.raises(ConfigurationError):
        write_records(archive, "walks", folders(home)[:1])
    assert archive.read_bytes() == before
    write_records(tmp_path / "one.zip", "walks", folders(home)[:1])
    exported(home, tmp_path / "one.zip")
    assert (tmp_path / "one.zip").read_bytes() == before


@pytest.mark.parametrize(
    "name", ["../walks/a/manifest.json", "walks/a/b.py", "walks/../x/log.jsonl"]
)
def test_unpack_records_foreign_archive_error(home, tmp_path, name):
    archive = exported(home, tmp_path / "walks.zip")

    first = f"walks/{min(run.path.name for run in folders(home))}/log.jsonl"

    def change(entry, text):
        return (name if entry == first else entry), text

    wrong = rewritten(archive, change=change, to=tmp_path / "wrong.zip")
    with pytest.raises(ConfigurationError):
        unpack_records(wrong, tmp_path / "elsewhere")
    assert not (tmp_path / "elsewhere").exists()


def test_unpack_records_changed_manifest_error(home, tmp_path):
    archive = exported(home, tmp_path / "walks.zip")

    def change(entry, text):
        return entry, text.replace('"seed": 2', '"seed": 3')

    wrong = rewritten(archive, change=change, to=tmp_path / "wrong.zip")
    with pytest.raises(ConfigurationError):
        unpack_records(wrong, tmp_path / "elsewhere")
    assert list((tmp_path / "elsewhere").iterdir()) == []
