"""Damaged, huge, foreign and hostile files of every format: one line each, nothing executed.

A child process with a limit on its memory reads the huge ones.
"""

import io
import json
import os
import pickle
import re
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pytest

from coach_rl.core.errors import CoachError
from coach_rl.extensions.data.files import open_file, require_finite
from tests.extensions.data.test_files import D4RL, Bomb
from tests.extensions.data.test_formats import NAMES, TABLE

h5py = pytest.importorskip("h5py")
pyarrow = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def npz(**arrays):
    return lambda path: np.savez(path, **{**D4RL, **arrays})


def members(**contents):
    """A zip with these contents beside the arrays of a good file."""

    def write(path):
        np.savez(path, **D4RL)
        with zipfile.ZipFile(path, "a") as archive:
            for name, content in contents.items():
                archive.writestr(name.replace("__", "/").replace("_npy", ".npy"), content)

    return write


def header(text, version=(1, 0), body=b""):
    """An array's file with a header of one's own."""
    content = text.encode() + b"\n"
    size = len(content).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + size + content + body


def only(content, name="rewards.npy", compression=zipfile.ZIP_STORED):
    """A zip whose array of this name has this content, and good others."""

    def write(path):
        with zipfile.ZipFile(path, "w", compression) as archive:
            for key, values in D4RL.items():
                if f"{key}.npy" != name:
                    file = io.BytesIO()
                    np.save(file, values)
                    archive.writestr(f"{key}.npy", file.getvalue())
            archive.writestr(name, content)

    return write


def shape_of(shape, descr="<f8"):
    return f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}"


def pickled(path):
    file = io.BytesIO()
    np.save(file, np.array([Bomb(path.parent / "executed")], object), allow_pickle=True)
    only(file.getvalue())(path)


def bomb(path):
    path.write_bytes(pickle.dumps(Bomb(path.parent / "executed")))


def cut(share):
    def write(path):
        np.savez(path, **D4RL)
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])

    return write


def flipped(place):
    """One byte of an array's values is another."""

    def write(path):
        np.savez(path, **D4RL)
        content = bytearray(path.read_bytes())
        at = content.find(D4RL["rewards"].tobytes()) + place
        content[at] ^= 0x55
        path.write_bytes(content)

    return write


def encrypted(path):
    np.savez(path, **D4RL)
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for match in re.finditer(re.escape(mark), bytes(content)):
            content[match.start() + offset] |= 1
    path.write_bytes(content)


def tar(path):
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("rewards.npy"))


def many(path):
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(1_001):
            archive.writestr(f"{number}.npy", b"")


NPZ = {
    "empty": lambda path: path.write_bytes(b""),
    "no zip": lambda path: path.write_bytes(b"not a zip" * 50),
    "pickled object": bomb,
    "array of objects": pickled,
    "a tar": tar,
    "cut at 10 %": cut(0.1),
    "cut at 50 %": cut(0.5),
    "cut at 99 %": cut(0.99),
    "a byte changed": flipped(3),
    "encrypted": encrypted,
    "more than arrays": members(readme_txt="x"),
    "more than 1,000 arrays": many,
    "no array": only(b"nothing"),
    "a header that is code": only(header("__import__('os').system('touch executed')")),
    "a header without a shape": only(header("{'descr': '<f8', 'fortran_order': False}")),
    "a header of a megabyte": only(header(" " * (1 << 20) + shape_of((7,)), version=(2, 0))),
    "a header cut off": only(b"\x93NUMPY\x01\x00\xff\xff{"),
    "version 9": only(header(shape_of((7,)), version=(9, 0))),
    "a shape beyond its content": only(header(shape_of((10**12,)))),
    "a negative shape": only(header(shape_of((-7,)))),
    "a shape of text": only(header(shape_of(("'x'",)))),
    "a shape whose product overflows": only(header(shape_of((2**62, 2**62)))),
    "content beyond its shape": only(header(shape_of((7,)), body=bytes(56 + 8))),
    "objects by the header": only(header(shape_of((7,), "|O"), body=bytes(56))),
    "a structure": npz(rewards=np.zeros(7, [("a", "f4"), ("b", "f4")])),
    "texts": npz(rewards=np.array(["a"] * 7)),
    "complex numbers": npz(rewards=np.zeros(7, np.complex64)),
    "times": npz(rewards=np.zeros(7, "datetime64[s]")),
    "Fortran's order": npz(observations=np.asfortranarray(np.zeros((7, 2)))),
    "no dimension": npz(rewards=np.float64(1)),
    "NaN": npz(observations=np.full((7, 2), np.nan)),
    "infinity": npz(rewards=np.full(7, np.inf)),
    "other lengths": npz(actions=np.zeros((6, 1))),
    "terminals of 2": npz(terminals=np.full(7, 2)),
    "terminals of NaN": npz(terminals=np.full(7, np.nan)),
    "several rewards a step": npz(rewards=np.zeros((7, 3))),
    "time that goes back": npz(steps=np.array([0, 1, 2, 0, 1, 0, 0])),
    "spaces that are no JSON": npz(spaces=np.frombuffer(b"{", np.uint8)),
    "spaces of another kind": npz(spaces=np.frombuffer(b"[1]", np.uint8)),
    "spaces deeper than Python": npz(spaces=np.frombuffer(b"[" * 100_000, np.uint8)),
    "spaces of a class": npz(
        spaces=np.frombuffer(json.dumps({"observation": "os:system"}).encode(), np.uint8)
    ),
}


def hdf5(**arrays):
    def write(path):
        with h5py.File(path, "w") as file:
            for name, values in {**D4RL, **arrays}.items():
                file[name] = values

    return write


def hdf5_with(change):
    """A good file without rewards, and what is done to it."""

    def write(path):
        with h5py.File(path, "w") as file:
            for name, values in D4RL.items():
                if name != "rewards":
                    file[name] = values
            change(file, path)

    return write


def external_link(file, path):
    with h5py.File(path.parent / "other.h5", "w") as other:
        other["r"] = D4RL["rewards"]
    file["rewards"] = h5py.ExternalLink("other.h5", "/r")


def external_storage(file, path):
    (path.parent / "raw").write_bytes(D4RL["rewards"].tobytes())
    file.create_dataset("rewards", (7,), "f8", external=[("raw", 0, 56)])


def virtual(file, path):
    with h5py.File(path.parent / "other.h5", "w") as other:
        other["r"] = D4RL["rewards"]
    layout = h5py.VirtualLayout((7,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "r", (7,))
    file.create_virtual_dataset("rewards", layout)


def huge(file, _):
    file.create_dataset("rewards", (10**13,), "f8", chunks=(1024,))


def circle(file, _):
    file["loop"] = h5py.SoftLink("/")
    file["rewards"] = h5py.SoftLink("/rewards")


def objects(file, _):
    file.create_dataset("rewards", data=np.array(["x"] * 7, object), dtype=h5py.string_dtype())


def hdf5_cut(path):
    hdf5()(path)
    path.write_bytes(path.read_bytes()[:900])


HDF5 = {
    "empty": lambda path: path.write_bytes(b""),
    "no HDF5": lambda path: path.write_bytes(b"text" * 500),
    "pickled object": bomb,
    "cut": hdf5_cut,
    "a link to another file": hdf5_with(external_link),
    "content in another file": hdf5_with(external_storage),
    "a view of another file": hdf5_with(virtual),
    "a claim of 80 TB": hdf5_with(huge),
    "links in a circle": hdf5_with(circle),
    "texts": hdf5_with(objects),
    "a group": hdf5_with(lambda file, _: file.create_group("rewards")),
    "NaN": hdf5(rewards=np.full(7, np.nan)),
    "other lengths": hdf5(actions=np.zeros((6, 1))),
}


def text(content, names=NAMES):
    def write(path):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        (path.parent / "mine.columns.toml").write_text(names)

    return write


CSV = {
    "empty": text(""),
    "names alone": text(TABLE.splitlines()[0]),
    "bytes": text(bytes(range(256)) * 8),
    "a pickled object": text(pickle.dumps([1, 2])),
    "a line of 2 MB": text("x," * (1 << 20)),
    "an open quote": text(TABLE + '"' + "1,\n" * 100),
    "a value too few": text(TABLE + "1,2\n"),
    "a value too many": text(TABLE + "1,2,3,4,5,6,7,8,9\n"),
    "a text for a number": text(TABLE.replace("1.5", "=cmd|' /C calc'!A0")),
    "nothing for a number": text(TABLE.replace("1.5", "")),
    "a number of 400 digits": text(TABLE.replace("1.5", "9" * 400)),
    "NaN": text(TABLE.replace("1.5", "nan")),
    "a name twice": text(TABLE.replace("x,v", "x,x")),
    "a name that is missing": text(TABLE, NAMES.replace('"u"', '"w"')),
    "names that are no TOML": text(TABLE, "observations = ["),
    "names of another kind": text(TABLE, NAMES.replace('["u"]', "7")),
    "a name that is not known": text(TABLE, NAMES + 'reward = "r"\n'),
    "time that goes back": text(TABLE.replace("1,1\n", "1,0\n", 1)),
}


def parquet(**columns):
    """A good file with other columns, lists of values or pyarrow's arrays."""

    def write(path):
        good = {name: values.tolist() for name, values in D4RL.items()}
        pq.write_table(pyarrow.table({**good, **columns}), path)

    return write


def parquet_with(change):
    """A good file whose bytes are changed."""

    def write(path):
        parquet()(path)
        path.write_bytes(change(path.read_bytes()))

    return write


def pickled_type(path):
    """A type of Python's own, which old versions of pyarrow unpickled."""
    parquet()(path)
    table = pq.read_table(path)
    payload = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": pickle.dumps(Bomb(path.parent / "executed")),
    }
    place = table.schema.get_field_index("rewards")
    field = pyarrow.field("rewards", pyarrow.string(), metadata=payload)
    pq.write_table(table.set_column(place, field, [["x"] * 7]), path)


PARQUET = {
    "empty": lambda path: path.write_bytes(b""),
    "its first bytes": lambda path: path.write_bytes(b"PAR1"),
    "no Parquet": lambda path: path.write_bytes(b"text" * 500),
    "cut": parquet_with(lambda content: content[:-200]),
    "no content": parquet_with(lambda content: content[:4] + bytes(300) + content[304:]),
    "a pickled type": pickled_type,
    "texts": parquet(rewards=["x"] * 7),
    "a gap": parquet(rewards=[1.0, None, *[0.0] * 5]),
    "a gap in a list": parquet(actions=[[1.0], [None], *[[0.0]] * 5]),
    "a list that is missing": parquet(actions=[[1.0], None, *[[0.0]] * 5]),
    "lists of several lengths": parquet(actions=[[1.0], [0.0, 1.0], *[[0.0]] * 5]),
    "many lists in lists": parquet(actions=[[[[[[1.0]]]]]] * 7),
    "NaN": parquet(rewards=[float("nan")] * 7),
}
CASES = [
    *((".npz", name, write) for name, write in NPZ.items()),
    *((".hdf5", name, write) for name, write in HDF5.items()),
    *((".csv", name, write) for name, write in CSV.items()),
    *((".parquet", name, write) for name, write in PARQUET.items()),
]


@pytest.mark.parametrize(
    ("suffix", "name", "write"), CASES, ids=[f"{name}{suffix}" for suffix, name, _ in CASES]
)
def test_hostile_file_is_refused_in_one_line(suffix, name, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COACH_DATA_CACHE", str(tmp_path / "cache"))
    path = tmp_path / f"mine{suffix}"
    write(path)
    before = sorted(each.name for each in tmp_path.iterdir())
    with pytest.raises(CoachError) as caught:
        require_finite(str(path), open_file(str(path)).recorded)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000
    assert not (tmp_path / "executed").exists(), name
    left = [each.name for each in tmp_path.iterdir() if each.name != "cache"]
    assert sorted(left) == before
    assert not list((tmp_path / "cache").glob("*"))


LIMITED = """
import resource, sys
from coach_rl.core.errors import CoachError
from coach_rl.extensions.data.files import open_file
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_DATA, (used + (100 << 20), used + (100 << 20)))
try:
    found = open_file(sys.argv[1])
except CoachError as error:
    print("refused", str(error))
else:
    print("read", len(found.recorded), found.recorded.folder)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs limits of memory")
def test_large_compressed_file_is_converted_in_little_memory(tmp_path):
    """150 MB of zeros in 150 KB: more than the process may have, with what follows on each."""
    path = tmp_path / "mine.npz"
    count = 500_000
    np.savez_compressed(
        path,
        observations=np.zeros((count, 70), np.float32),
        actions=np.zeros((count, 1), np.float32),
        rewards=np.zeros(count, np.float32),
        terminals=np.arange(count) % 100 == 99,
    )
    environment = {**os.environ, "COACH_DATA_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.stdout.startswith(f"read {count} {tmp_path}"), done.stdout + done.stderr
