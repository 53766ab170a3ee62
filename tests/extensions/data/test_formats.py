"""Names for a file's arrays, CSV files, and large files, whose columns are mapped."""

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.data import column_cache, files
from coach_rl.extensions.data.files import open_data, open_file, read_data, write_file
from coach_rl.extensions.data.minari_data import write_minari
from coach_rl.memories.batches import NEXT_OBSERVATIONS, OBSERVATIONS
from tests.extensions.data.test_files import D4RL, MIXED, SEEN, TAKEN, WRITERS, mixed
from tests.extensions.data.test_minari_data import HAS_MINARI, SPACES, played
from tests.refusals import check_refused

TABLE = """x,v,u,r,done,cut,episode,t
0,1.5,-1,0,false,false,1,0
2,3.5,-0.5,1,false,false,1,1
4,5.5,0,2,true,false,1,2
6,7.5,0.5,3,false,false,2,0
8,9.5,1,4,false,true,2,1
"""
NAMES = """observations = ["x", "v"]
actions = ["u"]
rewards = "r"
terminals = "done"
timeouts = "cut"
episodes = "episode"
steps = "t"
"""


def table(folder, text=TABLE, names=NAMES):
    path = folder / "mine.csv"
    path.write_text(text)
    if names:
        (folder / "mine.columns.toml").write_text(names)
    return str(path)


def check_table(source, action_space):
    found = read_data(source, observation_space=SEEN, action_space=action_space)
    assert found.columns["/rewards"].tolist() == [0, 1, 2, 3]  # what 4 leads to is not known
    assert found.columns["/terminated"].tolist() == [False, False, True, False]
    assert found.columns["/truncated"].tolist() == [False, False, False, True]
    assert found.columns[f"{OBSERVATIONS}observation"][1].tolist() == [2, 3.5]
    assert found.columns[f"{NEXT_OBSERVATIONS}observation"][[0, 3]].tolist() == [[2, 3.5], [8, 9.5]]
    assert found.begins.tolist() == [0, 3]


def test_csv_is_read_by_the_names_beside_it(tmp_path):
    check_table(table(tmp_path), spaces.Box(-1, 1, (1,)))


def test_csv_with_numbered_names_needs_none_beside_it(tmp_path):
    text = TABLE.replace(
        "x,v,u,r,done,cut,episode,t",
        "observations.0,observations.1,actions.0,rewards,terminals,timeouts,episodes,steps",
    )
    check_table(table(tmp_path, text, names=""), spaces.Box(-1, 1, (1,)))


def test_whole_numbers_of_csv_are_choices(tmp_path):
    text = "o,a,r,d\n1,0,1,0\n2,1,1,0\n3,0,1,1\n"
    names = 'observations = ["o"]\nactions = "a"\nrewards = "r"\nterminals = "d"\n'
    found = read_data(
        table(tmp_path, text, names),
        observation_space=spaces.Dict({"observation": spaces.Box(0, 9, (1,))}),
        action_space=spaces.Discrete(2),
    )
    assert found.columns["/actions"].tolist() == [0, 1, 0]
    assert found.columns["/actions"].dtype == np.int64


@pytest.mark.parametrize("suffix", WRITERS)
def test_arrays_of_other_names_and_several_keys_are_mapped(suffix, tmp_path):
    path = tmp_path / f"mine{suffix}"
    arrays = {"pos": D4RL["observations"], "goal": D4RL["observations"] * 2}
    arrays |= {"act": D4RL["actions"], "rew": D4RL["rewards"], "end": D4RL["terminals"]}
    WRITERS[suffix](path, arrays)
    (tmp_path / "mine.columns.toml").write_text(
        'actions = "act"\nrewards = "rew"\nterminals = "end"\n'
        '[observations]\nposition = "pos"\ngoal = "goal"\n'
    )
    box = spaces.Box(-np.inf, np.inf, (2,))
    found = read_data(
        str(path),
        observation_space=spaces.Dict({"position": box, "goal": box}),
        action_space=TAKEN,
    )
    assert len(found) == 6
    assert found.columns[f"{OBSERVATIONS}goal"].tolist() == (D4RL["observations"][:6] * 2).tolist()


@pytest.fixture
def mapped(tmp_path, monkeypatch):
    """Every file counts as large, and is converted into this folder."""
    monkeypatch.setattr(files, "IN_MEMORY", 0)
    monkeypatch.setattr(column_cache, "BLOCK_BYTES", 100)
    monkeypatch.setattr(column_cache, "SPARE", 0)
    monkeypatch.setenv("COACH_DATA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_large_file_is_converted_once_and_mapped(tmp_path, mapped, monkeypatch):
    path = write_file(mixed(50), tmp_path / "mixed.npz", MIXED)
    first = open_file(str(path))
    monkeypatch.setattr(files, "_opened", None)  # a second conversion would fail
    second = open_file(str(path))
    assert first.recorded.folder == second.recorded.folder
    assert [each.name for each in mapped.iterdir()] == [first.recorded.folder.name]
    for found in (first, second):
        assert found.spaces == MIXED
        for name, values in mixed(50).columns.items():
            column = found.recorded.columns[name]
            assert isinstance(column, np.memmap)
            np.testing.assert_array_equal(column, values)


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("more", [{}, {"next_observations": D4RL["observations"] + 1}])
def test_large_file_gives_the_numbers_of_a_small_one(suffix, more, tmp_path, mapped, monkeypatch):
    path = tmp_path / f"mine{suffix}"
    WRITERS[suffix](path, D4RL | more)
    large = open_file(str(path)).recorded
    monkeypatch.setattr(files, "IN_MEMORY", 1 << 20)
    small = open_file(str(path)).recorded
    assert large.columns.keys() == small.columns.keys()
    for name, column in small.columns.items():
        np.testing.assert_array_equal(large.columns[name], column)
        assert large.columns[name].dtype == column.dtype


def test_changed_names_are_converted_again_and_make_other_data(tmp_path, mapped):
    source = table(tmp_path)
    first = files.content_key(files.path_of(source))
    assert open_file(source).recorded.columns["/rewards"].tolist() == [0, 1, 2, 3]
    table(tmp_path, names=NAMES.replace('"r"', '"v"'))
    assert open_file(source).recorded.columns["/rewards"].tolist() == [1.5, 3.5, 5.5, 7.5]
    assert files.content_key(files.path_of(source)) != first


def test_damaged_cache_is_converted_again(tmp_path, mapped):
    path = write_file(mixed(50), tmp_path / "mixed.npz", MIXED)
    folder = open_file(str(path)).recorded.folder
    next(iter(folder.glob("*.npy"))).write_bytes(b"damaged")
    found = open_file(str(path)).recorded
    np.testing.assert_array_equal(found.columns["/rewards"], mixed(50).columns["/rewards"])


def test_full_disk_is_refused_and_leaves_nothing(tmp_path, mapped, monkeypatch):
    path = write_file(mixed(50), tmp_path / "mixed.npz", MIXED)
    monkeypatch.setattr(column_cache, "SPARE", 1 << 62)
    check_refused(
        lambda: open_file(str(path)), ConfigurationError, "free space, or set COACH_DATA_CACHE"
    )
    assert not list(mapped.iterdir())


def test_large_damaged_file_leaves_nothing_in_the_cache(tmp_path, mapped):
    path = tmp_path / "mine.npz"
    np.savez(path, **{**D4RL, "rewards": np.full((7, 2), 1.0)})
    check_refused(lambda: open_file(str(path)), ConfigurationError, "cannot be read")
    assert not list(mapped.iterdir())


@pytest.mark.skipif(not HAS_MINARI, reason="needs the packages minari and h5py")
def test_large_minari_data_set_is_mapped(tmp_path, mapped, monkeypatch):
    path = str(tmp_path / "walk")
    write_minari(played()[0].trajectories(), path, **SPACES)
    first = open_data(path).recorded
    second = open_data(path).recorded
    assert first.folder == second.folder == next(mapped.iterdir())
    monkeypatch.setattr(files, "IN_MEMORY", 1 << 20)
    small = open_data(path).recorded
    assert small.folder is None
    assert small.begins.tolist() == second.begins.tolist()
    for name, column in small.columns.items():
        np.testing.assert_array_equal(second.columns[name], column)
        assert second.columns[name].dtype == column.dtype
