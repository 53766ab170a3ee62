"""Data sets in files: our own form, D4RL's in npz and HDF5, and files that are no data sets."""

import pickle
import zipfile

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import CoachWarning, ConfigurationError, SpaceError
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.data.files import open_file, read_data, write_file
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.memories.batches import NEXT_OBSERVATIONS, OBSERVATIONS
from tests.refusals import check_refused

SEEN = spaces.Dict({"observation": spaces.Box(-np.inf, np.inf, (2,))})
TAKEN = spaces.Box(-1, 1, (1,))
MIXED = EnvironmentSpaces(
    observation=spaces.Dict(
        {"camera": spaces.Box(0, 255, (4, 4, 1), np.uint8), "kind": spaces.Discrete(3, start=1)}
    ),
    action=spaces.Dict({"go": spaces.Discrete(2), "far": spaces.Box(-1, 1, (2,))}),
    nested=None,
)


def mixed(count=9, seed=0):
    """Transitions with bytes, choices and parts of actions."""
    rng = np.random.default_rng(seed)
    truncated = np.zeros(count, np.bool_)
    truncated[[3, count - 1]] = True
    columns = {
        "/actions/go": rng.integers(0, 2, count),
        "/actions/far": rng.uniform(-1, 1, (count, 2)).astype(np.float32),
        "/rewards": rng.normal(size=count),
        "/terminated": np.zeros(count, np.bool_),
        "/truncated": truncated,
        "/durations": np.ones(count, np.int64),
    }
    for prefix in (OBSERVATIONS, NEXT_OBSERVATIONS):
        columns[f"{prefix}camera"] = rng.integers(0, 256, (count, 4, 4, 1), dtype=np.uint8)
        columns[f"{prefix}kind"] = rng.integers(1, 4, count)
    return Recorded(columns, np.array([0, 4]))


def test_written_file_is_read_back_bit_for_bit(tmp_path):
    path = write_file(mixed(), tmp_path / "deep" / "mixed.npz", MIXED)
    found = open_file(str(path)).recorded
    assert found.begins.tolist() == [0, 4]
    known = mixed().columns
    assert found.columns.keys() == known.keys()
    for name, values in known.items():
        np.testing.assert_array_equal(found.columns[name], values)
        assert found.columns[name].dtype == values.dtype
    assert [each.name for each in path.parent.iterdir()] == ["mixed.npz"]


def test_observations_that_follow_are_kept_once(tmp_path):
    seen = np.arange(7, dtype=np.float32)[:, None]
    recorded = mixed(5)
    columns = {
        name: values for name, values in recorded.columns.items() if "observations" not in name
    }
    columns[f"{OBSERVATIONS}x"] = seen[[0, 1, 2, 3, 5]]
    columns[f"{NEXT_OBSERVATIONS}x"] = seen[[1, 2, 3, 4, 6]]  # an episode of 4, and one of 1
    known = EnvironmentSpaces(
        observation=spaces.Dict({"x": spaces.Box(0, 9, (1,))}), action=MIXED.action
    )
    path = write_file(Recorded(columns, np.array([0, 4])), tmp_path / "mine.npz", known)
    with np.load(path) as archive:
        np.testing.assert_array_equal(archive["observations/x"], seen)
        assert "next_observations/x" not in archive.files
    found = open_file(str(path)).recorded
    for name, values in columns.items():
        np.testing.assert_array_equal(found.columns[name], values)


def test_file_is_never_overwritten(tmp_path):
    path = write_file(mixed(), tmp_path / "mixed.npz", MIXED)
    with pytest.raises(ConfigurationError, match="exists already"):
        write_file(mixed(), path, MIXED)


D4RL = {
    "observations": np.arange(14, dtype=np.float32).reshape(7, 2),
    "actions": np.linspace(-1, 1, 7, dtype=np.float32)[:, None],
    "rewards": np.arange(7.0),
    "terminals": np.array([0, 0, 1, 0, 0, 0, 0], np.bool_),
    "timeouts": np.array([0, 0, 0, 0, 1, 0, 0], np.bool_),
}
"""An episode that ends, one that is cut off, and one that is not over where the file ends."""


def write_hdf5(path, arrays):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values
        file["metadata/policy/weights"] = np.zeros(3)


def write_parquet(path, arrays):
    """Arrays as columns, those of several axes as columns of lists."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {name: values.tolist() for name, values in arrays.items()}
    types = {name: pyarrow.from_numpy_dtype(values.dtype) for name, values in arrays.items()}
    for name, values in arrays.items():
        for _ in values.shape[1:]:
            types[name] = pyarrow.list_(types[name])
    parquet.write_table(
        pyarrow.table(columns, pyarrow.schema(types.items())), path, row_group_size=3
    )


WRITERS = {
    ".npz": lambda path, arrays: np.savez(path, **arrays),
    ".hdf5": write_hdf5,
    ".parquet": write_parquet,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_d4rl_without_next_observations_drops_what_is_unknown(suffix, tmp_path):
    path = tmp_path / f"mine{suffix}"
    WRITERS[suffix](path, D4RL)
    found = read_data(str(path), observation_space=SEEN, action_space=TAKEN)
    columns = found.columns
    # By hand: 0, 1, 2 end; 3 leads to 4, of which nothing is known; 5 leads to 6, likewise.
    assert columns["/rewards"].tolist() == [0, 1, 2, 3, 5]
    assert columns["/terminated"].tolist() == [False, False, True, False, False]
    assert columns["/truncated"].tolist() == [False, False, False, True, True]
    assert found.begins.tolist() == [0, 3, 4]
    following = columns[f"{NEXT_OBSERVATIONS}observation"]
    # That of the terminal transition is not in the file: its own stands there, not the next start.
    assert following.tolist() == D4RL["observations"][[1, 2, 2, 4, 6]].tolist()


def test_d4rl_with_next_observations_keeps_all(tmp_path):
    path = tmp_path / "mine.npz"
    behind = np.concatenate([D4RL["observations"][1:], D4RL["observations"][:1]])
    behind[[2, 4]] = 50  # where episodes end
    np.savez(path, **D4RL, next_observations=behind)
    found = read_data(str(path), observation_space=SEEN, action_space=TAKEN)
    assert found.columns["/rewards"].tolist() == list(range(7))
    assert found.columns["/truncated"].tolist() == [*[False] * 4, True, False, True]
    np.testing.assert_array_equal(found.columns[f"{NEXT_OBSERVATIONS}observation"], behind)


def test_episodes_are_cut_where_the_next_observation_does_not_follow(tmp_path):
    path = tmp_path / "mine.npz"
    behind = D4RL["observations"] + 2
    behind[[0, 5]] = 50  # transitions behind these were left out, or are in another order
    np.savez(path, **D4RL, next_observations=behind)
    with pytest.warns(CoachWarning, match="in 2 of 7 transitions .* an episode is cut off there"):
        found = read_data(str(path), observation_space=SEEN, action_space=TAKEN)
    assert np.flatnonzero(found.columns["/truncated"]).tolist() == [0, 4, 5, 6]
    assert found.begins.tolist() == [0, 1, 3, 5, 6]
    for prefix, values in ((OBSERVATIONS, D4RL["observations"]), (NEXT_OBSERVATIONS, behind)):
        np.testing.assert_array_equal(found.columns[f"{prefix}observation"], values)


def test_episodes_of_one_step_are_in_order(tmp_path):
    path = tmp_path / "mine.npz"
    behind = D4RL["observations"]
    np.savez(path, **{**D4RL, "terminals": np.ones(7, np.bool_)}, next_observations=behind)
    found = read_data(str(path), observation_space=SEEN, action_space=TAKEN)
    assert found.begins.tolist() == list(range(7))


def test_transition_that_ends_and_is_cut_off_has_ended(tmp_path):
    data = mixed()
    data.columns["/terminated"][:] = data.columns["/truncated"]
    path = write_file(data, tmp_path / "mixed.npz", MIXED)
    with pytest.warns(CoachWarning, match="is cut off there"):
        found = read_data(
            str(path), observation_space=MIXED.observation, action_space=MIXED.action
        ).columns
    assert not (found["/terminated"] & found["/truncated"]).any()
    np.testing.assert_array_equal(found["/terminated"], data.columns["/terminated"])


def test_bounds_of_actions_are_compared_in_the_digits_of_the_space(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, **{**D4RL, "actions": np.full((7, 1), 0.7)})
    taken = spaces.Box(-0.7, 0.7, (1,), np.float32)
    found = read_data(str(path), observation_space=SEEN, action_space=taken)
    assert len(found) == 5


@pytest.mark.parametrize(
    ("name", "values", "kind", "message"),
    [
        ("/actions/far", np.zeros((9, 3), np.float32), ConfigurationError, "shape (3,) each, and"),
        ("/actions/far", np.full((9, 2), 2, np.float32), SpaceError, "has the action [2. 2.]"),
        ("/actions/go", np.full(9, 2), SpaceError, "has the action 2 in transition 0"),
    ],
)
def test_file_of_our_own_is_compared_with_its_spaces(name, values, kind, message, tmp_path):
    data = mixed()
    data.columns[name] = values
    path = str(write_file(data, tmp_path / "mixed.npz", MIXED))
    check_refused(
        lambda: read_data(path, observation_space=MIXED.observation, action_space=MIXED.action),
        kind,
        message,
    )


class Bomb:
    """An object that would create a file when it is unpickled."""

    def __init__(self, path):
        self._path = path

    def __reduce__(self):
        return open, (str(self._path), "w")


def with_objects(path):
    hostile = np.array([Bomb(path.parent / "executed")], object)
    np.savez(path, **{**D4RL, "observations": hostile})


def with_a_claim_of_size(path):
    """A zip whose entry is claimed to have a terabyte."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("observations.npy", b"x" * 100)
    content = bytearray(path.read_bytes())
    place = content.rfind(b"PK\x01\x02")
    content[place + 24 : place + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    path.write_bytes(content)


def changed(**arrays):
    return lambda path: np.savez(path, **{**D4RL, **arrays})


def without(name):
    return lambda path: np.savez(path, **{key: each for key, each in D4RL.items() if key != name})


C = ConfigurationError
DAMAGED = [
    (lambda path: path.write_bytes(b""), C, "cannot be read"),
    (lambda path: path.write_bytes(b"not a zip" * 50), C, "cannot be read"),
    (lambda path: path.write_bytes(pickle.dumps(D4RL)), C, "cannot be read"),
    (lambda path: path.mkdir(), C, "there is no data set"),
    (with_objects, C, "cannot be read"),
    (with_a_claim_of_size, C, "cannot be read|needs twice as much"),
    (without("rewards"), C, "it has no 'rewards'; expected observations, actions"),
    (without("observations"), C, "it has no 'observations'"),
    (lambda path: np.savez(path), C, "got nothing"),
    (lambda path: np.savez(path, spaces=np.zeros(3, np.uint8)), C, "cannot be read"),
    (changed(spaces=np.frombuffer(b"{}", np.uint8)), C, "cannot be read"),
    (changed(actions=np.zeros((6, 1), np.float32)), C, "cannot be read"),
    (changed(actions=np.full((7, 1), np.nan, np.float32)), C, "that is not finite in transition 0"),
    (changed(actions=np.array([["a"]] * 7)), C, "not numbers"),
    (changed(rewards=np.zeros((7, 2))), C, "cannot be read"),
    (changed(actions=np.full((7, 1), 2, np.float32)), SpaceError, "has the action [2.] in tran"),
    (changed(actions=np.zeros((7, 2), np.float32)), SpaceError, "actions of shape (2,)"),
    (changed(observations=np.zeros((7, 5), np.float32)), SpaceError, "observations of shapes"),
]


@pytest.mark.parametrize(("damage", "kind", "message"), DAMAGED)
def test_damaged_file_is_refused_in_one_line_and_runs_nothing(damage, kind, message, tmp_path):
    path = tmp_path / "mine.npz"
    damage(path)
    parts = message.split("|")
    for number, part in enumerate(parts):
        try:
            check_refused(
                lambda: read_data(str(path), observation_space=SEEN, action_space=TAKEN), kind, part
            )
        except AssertionError:
            if number == len(parts) - 1:
                raise
        else:
            break
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("seed", range(20))
def test_cut_or_changed_bytes_never_give_other_numbers(seed, tmp_path):
    """The zip's checksums find what the headers of arrays do not."""
    path = write_file(mixed(50), tmp_path / "mixed.npz", MIXED)
    rng = np.random.default_rng(seed)
    content = bytearray(path.read_bytes())
    if seed % 2:
        content = content[: rng.integers(len(content))]
    else:
        for place in rng.integers(len(content), size=3):
            content[place] ^= 1 << rng.integers(8)
    path.write_bytes(content)
    try:
        found = open_file(str(path))
    except ConfigurationError:
        check_refused(lambda: open_file(str(path)), ConfigurationError, "cannot be read")
        return
    known = mixed(50).columns  # only a byte that means nothing was changed
    for name, values in known.items():
        np.testing.assert_array_equal(found.recorded.columns[name], values)


def test_a_gymnasium_task_is_read_from_d4rl_names(tmp_path):
    env = gymnasium.make("Pendulum-v1")
    steps = 12
    observation, _ = env.reset(seed=1)
    arrays = {name: [] for name in ("observations", "actions", "rewards", "terminals")}
    env.action_space.seed(1)
    for _ in range(steps):
        action = env.action_space.sample()
        arrays["observations"].append(observation)
        arrays["actions"].append(action)
        observation, reward, terminated, _, _ = env.step(action)
        arrays["rewards"].append(reward)
        arrays["terminals"].append(terminated)
    path = tmp_path / "pendulum.npz"
    np.savez(path, **{name: np.array(values) for name, values in arrays.items()})
    seen = spaces.Dict({"observation": env.observation_space})
    found = read_data(str(path), observation_space=seen, action_space=env.action_space)
    assert len(found) == steps - 1
