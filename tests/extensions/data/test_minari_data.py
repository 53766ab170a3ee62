import importlib
import re
import warnings

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import CoachWarning, ConfigurationError, SpaceError
from coach_rl.extensions.data.files import open_data
from coach_rl.extensions.data.minari_data import minari_infos, read_minari, write_minari
from coach_rl.extensions.data.prefill import DataSetParameters
from coach_rl.extensions.prioritised import PrioritisedParameters
from coach_rl.memories import RolloutMemory
from tests.agents.decisions import transition
from tests.memories.replay_worlds import ACTED, OBSERVED, Stream, build

HAS_MINARI = all(importlib.util.find_spec(name) for name in ("minari", "h5py"))
pytestmark = pytest.mark.skipif(not HAS_MINARI, reason="needs the packages minari and h5py")
SPACES = {"observation_space": OBSERVED, "action_space": ACTED}


def data(source):
    return (DataSetParameters(source=source),)


@pytest.fixture
def data_sets(tmp_path, monkeypatch):
    """A place of this test's own for data sets named by id."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "ids"))
    return tmp_path


def played(num_envs=2, ticks=40, capacity=60, **parameters):
    """A memory whose rings have gone round, and what was put in."""
    memory, stream = build(num_envs=num_envs, capacity=capacity, **parameters), Stream(num_envs)
    for _ in range(ticks):
        memory.add(stream.step())
    return memory, stream


def by_number(trajectories):
    """Every transition by the number of its state, whatever row it is in."""
    mask = trajectories["/mask"]
    numbers = trajectories["/agents/agent/actions"][mask][:, 0].astype(int)
    order = np.argsort(numbers)
    return {
        path: values[mask][order]
        for path, values in trajectories.items()
        if path not in ("/mask", "/rows")
    }


@pytest.mark.parametrize("kind", ["id", "path"])
def test_minari_written_data_reads_back(data_sets, kind):
    memory, _ = played()
    name = "walks/random-v0" if kind == "id" else str(data_sets / "somewhere" / "walk")
    shown = memory.trajectories()
    write_minari(shown, name, **SPACES)
    back = build(num_envs=3, capacity=120, parts=data(name))
    assert len(back) == len(memory) == 60
    left, right = by_number(shown), by_number(back.trajectories())
    assert left.keys() == right.keys()
    tails = ~(left["/terminated"] | left["/truncated"]) & right["/truncated"]
    assert tails.sum() <= 2  # only a row's open tail is truncated
    right["/truncated"] = right["/truncated"] & ~tails
    for path, values in left.items():
        np.testing.assert_array_equal(values, right[path], err_msg=path)


def test_minari_gap_splits_episode(data_sets):
    memory, numbers = RolloutMemory(10), [0, 1, 2, 7, 8]
    for number in numbers:
        memory.add(
            transition(
                {"observation": np.array([[0.0, number]])},
                np.array([[number]], np.float32),
                {"observation": np.array([[0.0, number + 1]])},
                follows=np.array([number not in (0, 7)]),
            )
        )
    path = str(data_sets / "gap")
    write_minari(memory.trajectories(), path, **SPACES)
    episodes = list(read_minari(path, **SPACES))
    found = [
        [episode[f"/{when}observations/observation"][:, 1].tolist() for when in ("", "next_")]
        for episode in episodes
    ]
    assert found == [[[0, 1, 2], [1, 2, 3]], [[7, 8], [8, 9]]]
    assert [episode["/truncated"].tolist() for episode in episodes] == [[0, 0, 1], [0, 1]]


def test_minari_written_data_is_read_by_minari(data_sets):
    import minari

    memory, _ = played()
    write_minari(memory.trajectories(), "walks/random-v3", **SPACES, description="A walk.")
    assert list(minari.list_local_datasets()) == ["walks/random-v3"]
    data = minari.load_dataset("walks/random-v3")
    assert data.total_steps == 60
    assert data.observation_space == OBSERVED["observation"]  # plain, as others have it
    assert data.action_space == ACTED
    for episode in data.iterate_episodes():
        assert episode.observations.shape == (len(episode) + 1, 2)
        assert episode.observations.dtype == np.float64
        assert episode.terminations[-1] | episode.truncations[-1]
        assert not (episode.terminations | episode.truncations)[:-1].any()
        assert (np.diff(episode.observations[:, 1]) == 1).all()


def test_minari_data_of_minari_fills_memory(data_sets):
    import minari
    from minari.data_collector import EpisodeBuffer

    acted = spaces.Discrete(4)
    observed = spaces.Dict({"image": spaces.Box(0, 255, (3, 3, 3), np.uint8)})
    frames = np.arange(4 * 27).reshape(4, 3, 3, 3).astype(np.uint8)
    episode = EpisodeBuffer(
        observations={"image": frames},
        actions=np.array([1, 0, 3]),
        rewards=np.array([1.0, 2.0, 3.0]),
        terminations=np.array([False, False, True]),
        truncations=np.array([False, False, False]),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about authors and the like
        minari.create_dataset_from_buffers(
            "grid-v0",
            [episode],
            observation_space=observed,
            action_space=acted,
            jpeg_encoding=False,
        )
    memory = build(
        num_envs=1,
        observed=observed,
        acted=acted,
        parts=data("grid-v0"),
        discount=0.5,
    )
    shown = memory.trajectories()
    np.testing.assert_array_equal(shown["/agents/agent/actions"], [[1, 0, 3]])
    np.testing.assert_array_equal(shown["/observations/image"][0], frames[:3])
    np.testing.assert_array_equal(shown["/next_observations/image"][0], frames[1:])
    np.testing.assert_array_equal(shown["/durations"], [[1, 1, 1]])
    batch = memory.sample(40)
    assert set(batch.discount[batch.action == 3].tolist()) == {0.0}


def test_minari_dict_actions_and_images_round_trip(data_sets):
    acted = spaces.Dict({"move": spaces.Box(-1, 1, (2,), np.float32), "grip": spaces.Discrete(3)})
    observed = spaces.Dict({"image": spaces.Box(0, 255, (8, 8, 3), np.uint8)})
    memory, rng = build(num_envs=1, observed=observed, acted=acted), np.random.default_rng(0)
    images = rng.integers(0, 256, (6, 8, 8, 3)).astype(np.uint8)
    for step in range(5):
        memory.add(
            transition(
                {"image": images[step : step + 1]},
                {
                    "move": np.full((1, 2), step / 8, np.float32),
                    "grip": np.array([step % 3]),
                },
                {"image": images[step + 1 : step + 2]},
                truncated=step == 4,
            )
        )
    shown = memory.trajectories()
    path = str(data_sets / "pictures")
    write_minari(shown, path, observation_space=observed, action_space=acted)
    back = build(num_envs=1, observed=observed, acted=acted, parts=data(path)).trajectories()
    for name, values in shown.items():
        np.testing.assert_array_equal(values, back[name], err_msg=name)


def created(path, observed, acted, observations, actions, reward=1.0, infos=(None,)):
    """A data set of one episode for each of `infos`, as others write them, under a path."""
    from minari.data_collector import EpisodeBuffer
    from minari.dataset.minari_storage import MinariStorage

    time = 3
    path.mkdir(parents=True)
    storage = MinariStorage.new(
        path / "data", observation_space=observed, action_space=acted, jpeg_encoding=False
    )
    storage.update_metadata({"dataset_id": "made-v0", "minari_version": "0.5.3"})
    storage.update_episodes(
        EpisodeBuffer(
            observations=observations,
            actions=actions,
            rewards=np.full(time, reward),
            terminations=np.zeros(time, np.bool_),
            truncations=np.arange(time) == time - 1,
            infos=each,
        )
        for each in infos
    )
    return str(path)


def with_infos(path, *infos):
    """A data set whose episodes of three steps have these infos."""
    return created(path, PLAIN, CHOICE, np.zeros((4, 2), np.float32), np.arange(3), infos=infos)


def test_minari_infos_of_one_number_are_read(data_sets):
    infos = {
        "cost": np.arange(4.0),
        "arm": {"touches": np.array([False, True, False, True])},
        "late": np.arange(3),  # none for the reset
        "velocity": np.zeros((4, 2)),
        "name": ["a"] * 4,
    }
    path = with_infos(data_sets / "made", infos, infos)
    recorded = open_data(path).recorded
    assert {name: each.tolist() for name, each in recorded.infos.items()} == {
        "cost": [1, 2, 3] * 2,
        "arm/touches": [1, 0, 1] * 2,
        "late": [0, 1, 2] * 2,
    }
    assert minari_infos(path) == ["arm/touches", "cost", "late"]


def test_minari_info_of_some_episodes_is_0_in_others(data_sets):
    path = with_infos(data_sets / "made", {"cost": np.ones(4)}, {"other": np.ones(4)})
    with pytest.warns(CoachWarning, match="the infos cost are not in all episodes"):
        recorded = open_data(path).recorded
    assert {name: each.tolist() for name, each in recorded.infos.items()} == {
        "cost": [1, 1, 1, 0, 0, 0]
    }


@pytest.mark.parametrize(
    ("values", "durations"),
    [
        ([0, 2, 1, 3], [2, 1, 3]),
        ([0.0, 2.0, 1.5, 3.0], None),
        ([0, 2, 0, 3], None),
        ([4, 5, 6, 7], None),
    ],
)
def test_minari_duration_counts_only_as_it_is_written(data_sets, values, durations):
    path = with_infos(data_sets / "made", {"duration": np.array(values)})
    recorded = open_data(path).recorded
    assert recorded.columns["/durations"].tolist() == (durations or [1, 1, 1])
    infos = {name: each.tolist() for name, each in recorded.infos.items()}
    assert infos == ({} if durations else {"duration": values[1:]})
    assert minari_infos(path) == ["duration"]


def drawn(space, count):
    """So many values of a space, as an episode of a data set has them."""
    if isinstance(space, spaces.Dict):
        return {key: drawn(part, count) for key, part in space.items()}
    space.seed(0)
    return np.stack([space.sample() for _ in range(count)])


PLAIN = spaces.Box(-1, 1, (2,), np.float32)
IMAGE = spaces.Box(0, 255, (2, 2), np.uint8)
CHOICE = spaces.Discrete(3)
OTHERS = {
    "count": ("actions", spaces.MultiDiscrete([3, 9]), spaces.MultiDiscrete([3, 4])),
    "start": (
        "actions",
        spaces.MultiDiscrete([3, 4]),
        spaces.MultiDiscrete([3, 4], start=[5, -2]),
    ),
    "choice": ("actions", spaces.Discrete(3), spaces.Discrete(3, start=1)),
    "part": (
        "actions",
        spaces.Dict({"a": CHOICE, "b": spaces.MultiDiscrete([2, 9])}),
        spaces.Dict({"a": CHOICE, "b": spaces.MultiDiscrete([2, 4])}),
    ),
    "bounds": ("actions Box(1,) from -1 to 1", spaces.Box(-1, 1, (1,)), spaces.Box(0, 10, (1,))),
    "bits": ("actions", spaces.MultiBinary(2), spaces.MultiBinary(3)),
    "seen": ("observations", spaces.MultiDiscrete([9, 9]), spaces.MultiDiscrete([3, 3])),
    "image": ("observations 'observation'", spaces.Box(0, 1, (2, 2), np.float32), IMAGE),
    "left": (
        "observations 'left'",
        spaces.Dict({"left": spaces.Box(0, 1, (2, 2), np.float32)}),
        spaces.Dict({"left": IMAGE}),
    ),
}
"""What is named in the refusal, the space of the data and that of the memory."""


@pytest.mark.parametrize("case", OTHERS)
def test_minari_data_of_another_meaning_is_refused(data_sets, case):
    what, theirs, ours = OTHERS[case]
    is_acted = what.startswith("actions")
    (observed, acted), (seen, taken) = (
        (PLAIN, each) if is_acted else (each, CHOICE) for each in (theirs, ours)
    )
    path = created(data_sets / "made", observed, acted, drawn(observed, 4), drawn(acted, 3))
    kept = seen if isinstance(seen, spaces.Dict) else spaces.Dict({"observation": seen})
    with pytest.raises(SpaceError, match=re.escape(f"has {what} ".strip())):
        build(num_envs=1, observed=kept, acted=taken, parts=data(path))


@pytest.mark.parametrize(
    ("values", "lost"),
    [
        (np.arange(16, dtype=np.float32).reshape(4, 2, 2), None),
        (np.full((4, 2, 2), 0.5, np.float32), "0.5 (float32), which uint8 makes 0"),
        (np.full((4, 2, 2), 256, np.float32), "256.0 (float32), which uint8 makes"),
    ],
)
def test_minari_floats_in_memory_of_bytes_are_kept_where_whole(data_sets, values, lost):
    space = spaces.Box(0, 255, (2, 2), np.float32)
    path = created(data_sets / "made", space, CHOICE, values, np.array([0, 1, 2]))
    observed = spaces.Dict({"observation": IMAGE})
    if lost is not None:
        with pytest.raises(SpaceError, match=re.escape(lost)):
            build(num_envs=1, observed=observed, acted=CHOICE, parts=data(path))
        return
    shown = build(num_envs=1, observed=observed, acted=CHOICE, parts=data(path)).trajectories()
    np.testing.assert_array_equal(shown["/observations/observation"][0], values[:3])


def test_minari_data_set_that_minari_cannot_read_error_names_it(data_sets):
    observed = spaces.Dict({"a/b": PLAIN})  # which Minari writes as nested
    seen = {"a/b": np.zeros((4, 2), np.float32)}
    path = created(data_sets / "made", observed, CHOICE, seen, np.arange(3))
    with pytest.raises(ConfigurationError, match="made' cannot be read: KeyError: 'a'"):
        build(num_envs=1, observed=observed, acted=CHOICE, parts=data(path))


def test_minari_rewards_that_float32_makes_infinite_are_refused(data_sets):
    seen = np.zeros((4, 2), np.float32)
    path = created(data_sets / "made", PLAIN, CHOICE, seen, np.arange(3), reward=1e300)
    observed = spaces.Dict({"observation": PLAIN})
    with pytest.raises(SpaceError, match=r"1e\+300 .* under '/rewards'"):
        build(num_envs=1, observed=observed, acted=CHOICE, parts=data(path))


def test_minari_nested_data_is_read_by_flat_names(data_sets):
    observed = spaces.Dict(
        {"n": spaces.Dict({"a": PLAIN}), "pair": spaces.Tuple((spaces.Discrete(5), PLAIN))}
    )
    acted = spaces.Dict({"arm": spaces.Dict({"grip": CHOICE})})
    seen, taken = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2), np.array([2, 0, 1])
    path = created(
        data_sets / "made",
        observed,
        acted,
        {"n": {"a": seen}, "pair": (np.arange(4), -seen)},
        {"arm": {"grip": taken}},
    )
    flat = spaces.Dict({"n/a": PLAIN, "pair/0": spaces.Discrete(5), "pair/1": PLAIN})
    memory = build(
        num_envs=1,
        observed=flat,
        acted=spaces.Dict({"arm/grip": CHOICE}),
        parts=data(path),
    )
    shown = memory.trajectories()
    np.testing.assert_array_equal(shown["/observations/n/a"][0], seen[:3])
    np.testing.assert_array_equal(shown["/next_observations/pair/0"][0], [1, 2, 3])
    np.testing.assert_array_equal(shown["/observations/pair/1"][0], -seen[:3])
    np.testing.assert_array_equal(shown["/agents/agent/actions/arm/grip"][0], taken)
    again = str(data_sets / "again")
    parts = {"observation_space": flat, "action_space": memory.layout.action_space}
    write_minari(shown, again, **parts)
    back = build(
        num_envs=1,
        observed=flat,
        acted=parts["action_space"],
        parts=data(again),
    )
    for name, values in back.trajectories().items():
        np.testing.assert_array_equal(values, shown[name], err_msg=name)


def test_minari_rollout_is_written(data_sets):
    rollout, stream = RolloutMemory(40), Stream(2)
    for _ in range(10):
        rollout.add(stream.step())
    path = str(data_sets / "rollout")
    write_minari(rollout.trajectories("walker"), path, **SPACES, agent="walker")
    assert sum(len(each["/rewards"]) for each in read_minari(path, **SPACES)) == 20


def test_minari_prefilled_memory_adds_transitions(data_sets):
    memory, _ = played()
    path = str(data_sets / "walk")
    write_minari(memory.trajectories(), path, **SPACES)
    filled = build(
        capacity=400,
        parts=data(path),
        n_step=3,
        prioritised=PrioritisedParameters(),
    )
    stream = Stream(2, seed=8)
    filled.add(stream.step())
    assert len(filled) == 62
    firsts = filled.store.sizes - 1
    for row in range(2):
        assert filled.store.episodes_of(np.array([row * 200 + firsts[row]]))[0] == firsts[row]
    assert filled.sample(64).weight.max() == 1


def test_minari_no_transitions_error(data_sets):
    with pytest.raises(ConfigurationError):
        write_minari(build().trajectories(), str(data_sets / "walk"), **SPACES)
    assert not (data_sets / "walk").exists()
