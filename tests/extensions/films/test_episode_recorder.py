"""Filming evaluations: the goals drawn are those acted for, and no number changes."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import coach_rl as rl
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.core.errors import RunError
from coach_rl.environments import parameters
from coach_rl.environments.mujoco import batch
from coach_rl.extensions.films.camera import LEVEL_COLOURS
from coach_rl.extensions.films.episode_recorder import EpisodeRecorder
from tests.builders import flat, ppo
from tests.extensions.films import maze_walkers
from tests.extensions.films.easel import Easel

EPISODES = rl.EnvironmentEpisodes(3)


@pytest.fixture
def easel(monkeypatch):
    monkeypatch.setattr(batch, "FrameRenderer", Easel)
    monkeypatch.setattr(Easel, "drawn", [])
    return Easel


def film(experiment, num_envs=None, **options):
    """One filmed evaluation: the recorder, the agents and the evaluation's record."""
    recorder = EpisodeRecorder(rl.VideoParameters(**options))
    with rl.GraphManager(experiment) as manager:
        manager.create_graph(rl.Runtime(seed=1), watchers=[recorder], evaluation_envs=num_envs)
        agents = [level.agent for level in manager.graph.evaluation.levels]
        record = manager.evaluate(EPISODES)
    return recorder, agents, record


def test_each_frame_shows_the_goal_that_was_acted_for(easel):
    recorder, agents, record = film(maze_walkers.maze_experiment())
    length = int(record.arrays["episode/length"][0])
    _, start, *rest = easel.drawn  # the first was drawn to see whether it can be
    assert len(recorder.film.frames) == 1 + len(rest)
    assert start[1] == ()
    acted_for = [goal for _, goal in agents[-1].seen]
    assert len({*acted_for}) > 2
    marks = [drawn for _, (drawn,) in rest]
    assert [mark.place[:2] for mark in marks] == acted_for[: len(marks)]
    assert {mark.colour for mark in marks} == {(*(c / 255 for c in LEVEL_COLOURS[0]), 1.0)}
    for steps, frame in enumerate(recorder.film.frames[1:], 1):
        assert frame.caption.startswith(f"step {steps}, return -")
    assert len(marks) in record.arrays["episode/length"]
    assert length > 10


def test_the_last_frame_is_of_the_goal_reached_and_not_of_the_next_episode(easel):
    recorder, _, record = film(maze_walkers.maze_experiment())
    place, (mark,) = easel.drawn[-1]
    before, _ = easel.drawn[-2]
    assert np.abs(place - before).max() < 0.11, "the ball has jumped: it is in the next episode"
    assert np.hypot(*(place - mark.place[:2])) < maze_walkers.MAZE.goal_radius + 0.3
    words = recorder.film.frames[-1].caption
    lengths, rewards = record.arrays["episode/length"], record.arrays["episode/reward"]
    assert words in {
        f"step {length:.0f}, return {reward:.5g}, success"
        for length, reward in zip(lengths, rewards, strict=True)
    }


def test_levels_have_colours_and_names_of_their_own(easel):
    _, agents, _ = film(maze_walkers.maze_experiment("middle"))
    _, marks = easel.drawn[-1]
    assert [mark.label for mark in marks] == ["middle", "low"]
    assert marks[0].colour != marks[1].colour
    for depth in (1, 2):
        goals = {goal for _, goal in agents[depth].seen}
        shown = {drawn[depth - 1].place[:2] for _, drawn in easel.drawn[2:]}
        assert shown <= goals


def test_a_long_episode_is_filmed_whole_in_few_frames(easel):
    experiment = maze_walkers.maze_experiment(kwargs={"terminate": False}, max_episode_steps=150)
    recorder, _, _ = film(experiment, max_frames=20)
    steps = [int(frame.caption.split(",")[0].split()[1]) for frame in recorder.film.frames]
    assert 10 <= len(steps) <= 20
    assert steps[0] == 0
    assert steps[-1] == 150
    assert set(np.diff(steps[:-1])) == {8}
    assert recorder.film.frames[-1].caption.endswith("success")
    assert len(easel.drawn) < 60


@pytest.mark.parametrize(("num_envs", "episodes"), [(3, "best"), (3, "last"), (2, "last")])
def test_the_episode_filmed_is_the_one_asked_for(easel, num_envs, episodes):
    recorder, _, record = film(maze_walkers.maze_experiment(), num_envs, episodes=episodes)
    lengths, rewards = record.arrays["episode/length"], record.arrays["episode/reward"]
    words = recorder.film.frames[-1].caption.split(", ")
    step, reward = (float(word.split()[1]) for word in words[:2])
    assert words[2] == "success"
    assert len(set(rewards)) > 1
    assert (step, reward) in set(zip(lengths, rewards, strict=True))
    assert len(recorder.film.frames) == 1 + step, "one episode, from its first step on"
    if episodes == "best":
        assert reward == rewards.max()
    if num_envs == 2:
        assert (step, reward) == (lengths[-1], rewards[-1]), "the second of the first row"


def test_episode_recorder_without_opengl_warns(easel, monkeypatch):
    def no_frame(self, data, marks=()):
        raise RunError("cannot draw: no OpenGL; set MUJOCO_GL to egl or osmesa")

    plain = film(maze_walkers.maze_experiment())[2]
    monkeypatch.setattr(Easel, "frame", no_frame)
    with pytest.warns(rl.CoachWarning):
        recorder, _, record = film(maze_walkers.maze_experiment(), episodes="best")
    assert recorder.film is None
    assert record.scalars["evaluation/reward_mean"] == plain.scalars["evaluation/reward_mean"]


def learning():
    """PPO on a maze, with everything that draws random numbers."""
    return flat(
        ppo(64, epochs=1, minibatch=32),
        parameters("point_maze_u", max_episode_steps=20, kwargs={"width": 32, "height": 32}),
        num_envs=2,
        training=192,
        heatup=16,
        evaluation_interval=64,
        progress_interval=50,
    )


def said(experiment, recorder):
    with rl.GraphManager(experiment) as manager:
        manager.create_graph(
            rl.Runtime(seed=3, device="cpu"), watchers=[recorder] if recorder else []
        )
        records = [
            (
                record.kind,
                record.level,
                record.environment_steps,
                {k: v for k, v in record.scalars.items() if not k.startswith("time/")},
            )
            for record in manager.improve()
        ]
        state = manager.state_dict()["training"]["top"]
    while "simulators" not in state:
        state = state["environment"]
    return records, state


def test_filming_changes_no_number():
    """With real frames, bit for bit."""
    experiment = maze_walkers.maze_experiment("middle", kwargs={"width": 32, "height": 32})
    recorder = EpisodeRecorder(rl.VideoParameters(frame_skip=4))
    try:
        filmed, filmed_state = said(experiment, recorder)
    except RunError as error:
        pytest.skip(str(error))
    plain, plain_state = said(experiment, None)
    assert len(recorder.film.frames) > 5
    assert recorder.film.frames[0].picture.shape == (32, 32, 3)
    assert sum(kind == "evaluation" for kind, *_ in filmed) == 2
    assert filmed == plain
    assert np.array_equal(filmed_state["simulators"], plain_state["simulators"])


class Lamp(gymnasium.Env):
    """Gets brighter; has pictures only if it was made to."""

    observation_space = gymnasium.spaces.Box(-1, 9, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - Gymnasium's

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.brightness = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.brightness = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.brightness += 1
        over = self.brightness == 5
        return np.full(1, self.brightness, np.float32), 2.0, over, False, {}

    def render(self):
        return np.full((4, 4, 3), self.brightness, np.uint8)


@pytest.fixture
def lamp():
    gymnasium.register(id="coach_rl_test/Lamp-v0", entry_point=Lamp, disable_env_checker=True)
    yield "coach_rl_test/Lamp-v0"
    del gymnasium.registry["coach_rl_test/Lamp-v0"]


def test_a_gymnasium_environment_is_made_to_be_drawn(lamp):
    experiment = replace(learning(), environment=rl.GymnasiumParameters(level=lamp))
    recorder, _, _ = film(experiment)
    assert [int(frame.picture[0, 0, 0]) for frame in recorder.film.frames] == [0, 1, 2, 3, 4, 4]
    assert [frame.caption for frame in recorder.film.frames][-2:] == [
        "step 4, return 8",
        "step 5, return 10, the end",
    ]


def test_film_of_an_episode_that_a_failure_cut_short_begins_again(lamp, monkeypatch):
    """The first step to full light fails, in the row that is filmed."""
    step, failures = Lamp.step, [ValueError("it flickers")]

    def failing(self, action):
        if self.brightness == 2 and failures:
            raise failures.pop()
        return step(self, action)

    monkeypatch.setattr(Lamp, "step", failing)
    world = rl.GymnasiumParameters(level=lamp, faults=rl.FaultParameters(limit=10))
    with pytest.warns(rl.CoachWarning, match="it flickers"):
        recorder, _, record = film(replace(learning(), environment=world), 3)
    assert record.scalars["evaluation/faults"] == 1
    assert [int(each.picture[0, 0, 0]) for each in recorder.film.frames] == [0, 1, 2, 3, 4, 4]


@pytest.mark.parametrize(("num_envs", "brightness"), [(3, [0, 1, 2, 3]), (1, None)])
def test_episodes_after_the_evaluation_step_limit_are_not_filmed(lamp, num_envs, brightness):
    """Three episodes: the last of the first row begins after the limit where it plays them all."""
    world = replace(learning(), environment=rl.GymnasiumParameters(level=lamp))
    limited = replace(world.schedule, evaluation_step_limit=3)
    with pytest.warns(rl.CoachWarning, match="cut off"):
        recorder, _, record = film(replace(world, schedule=limited), num_envs)
    assert record.arrays["episode/length"].tolist() == [3, 3, 3]
    frames = recorder.film and [int(each.picture[0, 0, 0]) for each in recorder.film.frames]
    assert frames == brightness


def with_picture(monkeypatch, picture):
    """Give scripted agents a picture: a function of how many decisions there were."""

    def of_agent(self, row_state, row, observation):
        assert self.seen, "it has decided"
        return picture(len(self.seen))

    monkeypatch.setattr(maze_walkers.Scripted, "picture", of_agent, raising=False)


def test_pictures_of_agents_are_beside_the_scene(easel, monkeypatch):
    with_picture(monkeypatch, lambda decisions: np.full((6, 2, 3), decisions, np.uint8))
    recorder, agents, _ = film(maze_walkers.maze_experiment())
    pictures = [frame.picture for frame in recorder.film.frames]
    assert recorder.film.frames[0].caption.startswith("step 1,")
    assert {picture.shape for picture in pictures} == {(6, 6 + 2 + 2, 3)}
    scenes = [int(picture[0, 0, 0]) for picture in pictures]
    assert len({*scenes}) == len(scenes), "the scene is at the left"
    assert not pictures[0][4:, :6].any(), "below it is nothing"
    low = [int(picture[0, -1, 0]) for picture in pictures]
    assert low[1:3] == [low[0] + 1, low[0] + 2], "the lowest level decides at each step"
    assert low[-1] == low[-2], "the picture of the end is the one before"
    top = [int(picture[0, 6, 0]) for picture in pictures]
    assert top[-1] < low[-1] <= len(agents[1].seen)


def test_agents_with_pictures_are_filmed_in_worlds_without_any(monkeypatch):
    def picture(self, row_state, row, observation):
        assert {key: len(each) for key, each in observation.items()} == {"observation": 1}
        assert "observation" in row_state.pending, "it has decided"
        return np.full((6, 4, 3), 9, np.uint8)

    monkeypatch.setattr(PPOAgent, "picture", picture, raising=False)
    recorder, _, _ = film(replace(learning(), environment=rl.PointMassParameters()))
    assert {frame.picture.shape for frame in recorder.film.frames} == {(6, 4, 3)}
    assert len(recorder.film.frames) > 3


def test_picture_of_an_episode_of_one_step_is_filmed(lamp, monkeypatch):
    """It is beside its one frame, which is the last as well."""
    monkeypatch.setattr(PPOAgent, "picture", lambda *_: np.zeros((4, 3, 3), "u1"), raising=False)
    monkeypatch.setattr(Lamp, "step", lambda *_: (np.zeros(1, np.float32), 2.0, True, False, {}))
    recorder, _, _ = film(replace(learning(), environment=rl.GymnasiumParameters(level=lamp)))
    ((picture, caption),) = recorder.film.frames
    assert picture.shape == (4, 4 + 3, 3)
    assert caption == "step 1, return 2, the end"


def test_picture_gets_the_newest_unfiltered_observation_with_the_goal(easel, monkeypatch):
    shown = []

    def picture(self, row_state, row, observation):
        shown.append(observation)
        return np.zeros((2, 2, 3), np.uint8)

    monkeypatch.setattr(maze_walkers.Scripted, "picture", picture, raising=False)
    film(maze_walkers.maze_experiment())
    for each in shown:
        assert set(each) == {"observation", "achieved_goal", "desired_goal"}
        assert {len(value) for value in each.values()} == {1}
    place, _ = easel.drawn[-2]
    assert np.allclose(shown[-1]["achieved_goal"][0], place[:2])


@pytest.mark.parametrize("method", ["picture", "marks"])
def test_method_that_draws_and_fails_is_named_with_its_level(easel, monkeypatch, method):
    def failing(self, *args):
        return next(iter(()))

    monkeypatch.setattr(maze_walkers.Scripted, "planning", lambda *_: {}, raising=False)
    monkeypatch.setattr(maze_walkers.Scripted, "marks", lambda *_: (), raising=False)
    monkeypatch.setattr(maze_walkers.Scripted, method, failing, raising=False)
    message = f"nothing is filmed: level 'high': Scripted.{method} failed: StopIteration"
    with pytest.warns(rl.CoachWarning, match=message):
        recorder, _, _ = film(maze_walkers.maze_experiment())
    assert recorder.film is None


def test_picture_of_other_arguments_is_refused_with_what_to_write(easel, monkeypatch):
    monkeypatch.setattr(
        maze_walkers.Scripted, "picture", lambda self, row_state, row: None, raising=False
    )
    message = r"level 'high': write Scripted.picture\(self, row_state, row, observation\)"
    with pytest.raises(rl.ConfigurationError, match=message):
        film(maze_walkers.maze_experiment())


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        (lambda _: None, r"'high': Scripted.picture .* uint8 .* got object of shape \(\)"),
        (lambda _: np.zeros((4, 4)), r"Scripted.picture .* got float64 of shape \(4, 4\)"),
        (lambda _: np.zeros((0, 4, 3), np.uint8), r"Scripted.picture .* of shape \(0, 4, 3\)"),
        (
            lambda decisions: np.zeros((4, 4 + decisions, 3), np.uint8),
            r"the pictures of a film must have one shape, got .* after \(4, \d+, 3\)",
        ),
    ],
)
def test_unfit_pictures_end_the_film_with_a_warning(easel, monkeypatch, picture, message):
    with_picture(monkeypatch, picture)
    with pytest.warns(rl.CoachWarning, match=message):
        recorder, _, _ = film(maze_walkers.maze_experiment())
    assert recorder.film is None
