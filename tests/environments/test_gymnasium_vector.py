"""Ready vector environments: every autoreset mode gives the transitions of single environments."""

import little_environments
import numpy as np
import pytest
from gymnasium.vector import VectorEnv

import coach_rl as rl
from coach_rl.core.errors import ActionError, EnvironmentFault, NonFiniteError
from coach_rl.environments.gymnasium import VectorEnvironment
from tests.environments.walks import answer_to

MODES = ["NextStep", "SameStep", "Disabled"]
NOTHING = {"wheel": np.zeros(2), "arm/grip": 0, "arm/joints": np.zeros(2, np.int64)}


def build(level, num_envs=3, **options):
    return rl.GymnasiumParameters(level=level, vectorization="vector", **options).build(
        num_envs=num_envs
    )


def action_of(row, step):
    """Any action that depends on the row and its own step only."""
    rng = np.random.default_rng([row, step])
    return {
        "wheel": rng.uniform(-1, 1, 2).astype(np.float32),
        "arm/grip": rng.integers(2),
        "arm/joints": rng.integers([2, 3]),
    }


def play(environment, action, steps):
    for _ in range(steps):
        answer_to(environment, np.full(environment.num_envs, action))


def batched(actions):
    return {key: np.stack([action[key] for action in actions]) for key in NOTHING}


def lives(environment, steps):
    """Each row's own transitions, whenever they were answered."""
    response = environment.reset(seed=8)
    rows = range(environment.num_envs)
    past = [[{k: v[row].tolist() for k, v in response.observation.items()}] for row in rows]
    ready, ticks = response.rows, 0
    while min(len(life) for life in past) <= steps:
        answer = answer_to(
            environment, batched([action_of(row, len(past[row])) for row in ready]), ready
        )
        ticks += 1
        assert len(answer)
        for position, row in enumerate(answer.rows):
            past[row].append(
                [
                    {k: v[position].tolist() for k, v in answer.observation.items()},
                    {k: v[position].tolist() for k, v in answer.first_observation.items()},
                    answer.reward[position].item(),
                    int(answer.end[position]),
                    int(answer.duration[position]),
                    answer.info["time"][position].item(),
                    answer.info["deep/push"][position].tolist(),
                ]
            )
        ready = answer.rows
    return [life[: steps + 1] for life in past], ticks


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("num_envs", [1, 3])
def test_no_phantom_transition_in_any_mode(mode, num_envs):
    single = rl.GymnasiumParameters(level="little_environments:Walk", kwargs={"limit": 6})
    expected, _ = lives(single.build(num_envs=num_envs), 50)
    environment = build("little_environments:walks", num_envs, kwargs={"mode": mode, "limit": 6})
    found, ticks = lives(environment, 50)
    assert found == expected
    assert sum(step[3] != 0 for life in found for step in life[1:]) >= 8 * num_envs
    assert (ticks > 50) == (mode == "NextStep" and num_envs > 1)
    environment.close()
    environment.close()


def test_waiting_rows_stay_open():
    environment = build("little_environments:walks", kwargs={"limit": 3})
    environment.reset(seed=8)
    everyone = np.arange(3)
    for step in range(40):
        answer = answer_to(
            environment, batched([action_of(row, step) for row in everyone]), everyone
        )
        waiting = np.setdiff1d(np.arange(3), answer.rows)
        if len(waiting):
            break
        everyone = answer.rows
    assert len(waiting)
    assert len(environment.recv()) == 0
    with pytest.raises(ActionError):
        environment.send(batched([action_of(row, 0) for row in waiting]), waiting)
    again = answer_to(
        environment, batched([action_of(row, 99) for row in answer.rows]), answer.rows
    )
    assert set(waiting.tolist()) <= set(again.rows.tolist())
    late = np.isin(again.rows, waiting)
    assert (again.end[late] != 0).all()
    assert (again.duration == 1).all()
    assert environment.reset(seed=8).rows.tolist() == [0, 1, 2]


def test_all_rows_step_together():
    environment = build("little_environments:plains")
    environment.reset(seed=0)
    environment.send(np.zeros(2, np.int64), np.array([0, 2]))
    with pytest.raises(ActionError):
        environment.recv()
    assert answer_to(environment, np.zeros(1, np.int64), np.array([1])).rows.tolist() == [0, 1, 2]


def test_an_id_with_a_vector_entry_point():
    environment = build("CartPole-v1", 4)
    assert isinstance(environment, VectorEnvironment)
    assert environment.reset(seed=0).observation["observation"].shape == (4, 4)
    assert answer_to(environment, np.zeros(4, np.int64)).reward.tolist() == [1] * 4


def test_vector_wrappers():
    environment = build("little_environments:plains", wrappers=("little_environments:VectorBonus",))
    environment.reset(seed=0)
    assert answer_to(environment, np.zeros(3, np.int64)).reward.tolist() == [6, 6, 6]


@pytest.mark.parametrize(
    ("level", "kwargs"),
    [("plains", {}), ("exits", {"how": "exit"}), ("exits", {"how": "generator"})],
)
def test_vector_environment_failure_is_a_fault(level, kwargs):
    environment = build(f"little_environments:{level}", kwargs=kwargs)
    environment.reset(seed=0)
    with pytest.raises(EnvironmentFault):
        play(environment, 3, steps=5)
    with pytest.raises(ActionError):
        environment.send(np.zeros(3, np.int64))
    assert len(environment.reset(seed=0)) == 3


def test_vector_environment_user_interrupt_is_raised(monkeypatch):
    environment = build("little_environments:plains")
    environment.reset(seed=0)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(environment._vector, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        play(environment, 0, steps=1)


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
def test_reused_buffers_are_copied(mode):
    environment = build("little_environments:one_buffer", kwargs={"mode": mode})
    ready, counts, answers = environment.reset(seed=0).rows, np.zeros(3, int), []
    for _ in range(10):
        answers.append(answer_to(environment, np.full((len(ready), 1), 0.5, np.float32), ready))
        ready = answers[-1].rows
    assert sum(int((answer.end != 0).sum()) for answer in answers) >= 6
    for answer in answers:  # later steps wrote into the environment's arrays
        counts[answer.rows] = counts[answer.rows] % 3 + 1
        shown = counts[answer.rows]
        assert answer.observation["observation"][:, 0].tolist() == shown.tolist()
        assert answer.reward.tolist() == shown.tolist()
        assert answer.info["count"][:, 0].tolist() == shown.tolist()
        assert (answer.end != 0).tolist() == (shown == 3).tolist()


@pytest.mark.parametrize("mode", MODES[:2])
def test_wrapper_info_of_ended_episode_is_kept(mode):
    environment = build(
        "little_environments:walks",
        kwargs={"mode": mode, "limit": 3},
        wrappers=("gymnasium.wrappers.vector:RecordEpisodeStatistics",),
    )
    answer, returns, ends = environment.reset(seed=8), np.zeros(3), 0
    for step in range(15):
        ready = answer.rows
        answer = answer_to(environment, batched([action_of(row, step) for row in ready]), ready)
        returns[answer.rows] += answer.reward
        for place in np.flatnonzero(answer.end):
            row, ends = answer.rows[place], ends + 1
            assert answer.info["episode/r"][place] == pytest.approx(returns[row], rel=1e-5)
            assert "start" not in answer.info, "an info of the next episode's start"
            returns[row] = 0
    assert ends >= 9


def test_vector_environment_wrong_rows_error(monkeypatch):
    def one_more(num_envs) -> VectorEnv:
        return little_environments.walks(num_envs + 1)

    monkeypatch.setattr(little_environments, "plains", one_more)
    with pytest.raises(rl.ConfigurationError):
        build("little_environments:plains")


def steps_of(monkeypatch, num_envs=3, **values):
    """The answers to four steps of an environment that gives these values."""
    monkeypatch.setattr(little_environments.Gives, "values", values, raising=False)
    environment = build("little_environments:gives", num_envs)
    answers = [environment.reset(seed=0)]
    for _ in range(4):
        answers.append(answer_to(environment, np.zeros(num_envs, np.int64)))
    return answers


NAN = {"place": np.array([[0, 0], [0, np.nan], [0, 0]], np.float32), "count": np.zeros(3, int)}
ONES = np.ones(3, np.float32)


WRONG_FORMS = {  # of as many rows
    "column": lambda rows: np.ones((rows, 1), np.float32),
    "line": lambda rows: np.ones((1, rows + 1)),
    "too many": lambda rows: np.ones(rows + 1),
    "number": lambda _: 1.0,
    "number of numpy": lambda _: np.float32(1),
    "none": lambda _: None,
    "nones": lambda rows: [None] * rows,
    "texts": lambda rows: ["1"] * rows,
    "ragged": lambda _: [1, [2, 3]],
    "complex": lambda rows: np.full(rows, 1j),
    "huge": lambda rows: [10**400] * rows,
    "dict": lambda _: {"a": 1},
}


@pytest.mark.parametrize("name", ["reward", "terminated", "truncated"])
@pytest.mark.parametrize("form", WRONG_FORMS)
@pytest.mark.parametrize("num_envs", [1, 3])
def test_rewards_and_ends_of_another_form_error_names_them(monkeypatch, name, form, num_envs):
    with pytest.raises(EnvironmentFault, match=f"gave {name} as .* of the shape .*for each row"):
        steps_of(monkeypatch, num_envs, **{name: WRONG_FORMS[form](num_envs)})


@pytest.mark.parametrize("wrong", [2 * ONES, ONES * np.nan, -ONES])
def test_ends_that_are_neither_true_nor_false_error(monkeypatch, wrong):
    with pytest.raises(EnvironmentFault, match="gave terminated as float32"):
        steps_of(monkeypatch, terminated=wrong)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"observation": NAN}, r"row 1 of .* failed in step: the observation 'place'\[1\] is nan"),
        ({"start": NAN}, r"row 1 of .* failed in reset: the observation 'place'\[1\] is nan"),
        ({"reward": [0.0, 0.0, np.inf]}, "row 2 of .* failed in step: the reward is inf"),
        (
            {"info": {"final_obs": NAN, "_final_obs": ONES > 0}, "terminated": ONES > 0},
            "row 1 of .* failed in step: the observation 'place'",
        ),
    ],
)
def test_non_finite_value_error_names_the_row(monkeypatch, values, message):
    with pytest.raises(NonFiniteError, match=message):
        steps_of(monkeypatch, **values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"observation": {"place": NAN["place"]}}, "has no 'count', which its space has"),
        ({"observation": None}, "has no 'count', which its space has; got None"),
        ({"observation": {**NAN, "place": [[1.0], [2.0, 3.0], []]}}, "'place' must be an array"),
        ({"info": None}, "the info must be a dict, got None"),
        ({"info": {"is_success": ["yes"] * 3}}, r"info\['is_success'\] must be a number"),
        ({"info": {"final_obs": 1.0}, "terminated": ONES > 0}, "gave no final_obs for row 0"),
    ],
)
def test_malformed_answer_of_a_vector_environment_error(monkeypatch, values, message):
    with pytest.raises(EnvironmentFault, match=message):
        steps_of(monkeypatch, **values)


NOT_BY_ROWS = {
    "fps": 60.0,
    "log": {"mean": 1.0, "deep": {"text": "abc"}},
    "none": None,
    "object": object(),
    "number": np.float32(1),
    "short": np.ones(2),
    "long": [1, 2, 3, 4],
    "name": "abc",
    7: "abc",
    "_mask": True,
}


@pytest.mark.parametrize("num_envs", [1, 3])
def test_infos_without_a_value_for_each_row_are_left_out(monkeypatch, num_envs):
    by_rows = {
        "time": np.arange(num_envs),
        5: list(range(num_envs)),
        "log": {"own": [2.0] * num_envs},
    }
    names = np.array(["abc", "de", "f"][:num_envs], object)
    masks = {"_fps": np.ones(num_envs, np.bool_)}
    whole = {**NOT_BY_ROWS, **masks, "log": {**NOT_BY_ROWS["log"], **by_rows["log"]}}
    info = {**whole, **{key: each for key, each in by_rows.items() if key != "log"}, "names": names}
    answers = steps_of(monkeypatch, num_envs, info=info, **{"start info": info})
    for answer in answers:
        assert set(answer.info) == {"time", "5", "log/own", "names"}
        assert answer.info["names"].tolist() == names.tolist()
        np.testing.assert_array_equal(answer.info["time"], range(num_envs))


@pytest.mark.parametrize("is_array", [False, True])
def test_final_infos_are_read_by_rows(monkeypatch, is_array):
    over = np.array([False, True, True])
    final = {"is_success": over, "name": "abc", "fps": 60.0}
    if is_array:
        final = np.array([None, {"is_success": True}, {"is_success": True}], object)
    info = {"final_info": final, "_final_info": over}
    answer = steps_of(monkeypatch, info=info)[2]
    assert set(answer.info) == {"is_success", "_is_success"}
    assert answer.info["is_success"].tolist() == over.tolist()
    assert answer.info["_is_success"].tolist() == over.tolist()


def test_error_of_one_row_names_it():
    environment = build("little_environments:plains")
    environment.reset(seed=0)
    for action in (0, 0, 3):
        environment.send(np.array([0, action, 0]))
        if action < 3:
            environment.recv()
    with pytest.raises(
        EnvironmentFault, match=r"^row 1 of vector environment '.*' failed in step: Z"
    ):
        environment.recv()
