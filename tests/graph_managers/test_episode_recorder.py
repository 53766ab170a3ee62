"""Filming evaluations: the goals drawn are those acted for, and no number changes."""

import re
from dataclasses import replace

import gymnasium
import maze_walkers
import numpy as np
import pytest

from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.core.errors import CoachWarning, ConfigurationError, RunError
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments import parameters
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.mujoco import batch
from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    GraphManager,
    ScheduleParameters,
)
from coach_rl.telemetry.camera import LEVEL_COLOURS
from coach_rl.telemetry.episode_recorder import EpisodeRecorder, TrainingRecorder
from coach_rl.telemetry.video import VideoParameters

EPISODES = EnvironmentEpisodes(3)


class Easel:
    """Stands for the renderer, and remembers what it was to draw."""

    drawn: list = []  # noqa: RUF012 - emptied for each test

    def __init__(self, model, task):
        pass

    def frame(self, data, marks=()):
        self.drawn.append((data.qpos.copy(), tuple(marks)))
        return np.full((4, 6, 3), len(self.drawn) % 256, np.uint8)

    def close(self):
        pass


@pytest.fixture
def easel(monkeypatch):
    monkeypatch.setattr(batch, "FrameRenderer", Easel)
    monkeypatch.setattr(Easel, "drawn", [])
    return Easel


def film(experiment, **options):
    """One filmed evaluation: the recorder, the agents and the evaluation's record."""
    recorder = EpisodeRecorder(VideoParameters(**options))
    with GraphManager(experiment) as manager:
        manager.create_graph(Runtime(seed=1), watcher=recorder)
        agents = [level.agent for level in manager.graph.evaluation.levels]
        record = manager.evaluate(EPISODES)
    return recorder, agents, record


def test_each_frame_shows_the_goal_that_was_acted_for(easel):
    recorder, agents, record = film(maze_walkers.maze_experiment())
    length = int(record.arrays["episode/length"][0])
    _, start, *rest = easel.drawn  # the first was drawn to see whether it can be
    assert len(recorder.shots) == 1 + len(rest)
    assert start[1] == ()
    acted_for = [goal for _, goal in agents[-1].seen]
    assert len({*acted_for}) > 2
    marks = [drawn for _, (drawn,) in rest]
    assert [mark.place[:2] for mark in marks] == acted_for[: len(marks)]
    assert {mark.colour for mark in marks} == {(*(c / 255 for c in LEVEL_COLOURS[0]), 1.0)}
    starts = [first for first, _ in agents[-1].seen][: len(marks)]
    for shot, (number, steps) in zip(
        recorder.shots[1:], zip(np.cumsum(starts), range(1, 999), strict=False), strict=False
    ):
        assert shot.caption[0].text.startswith(f"step {steps}, return -")
        assert shot.caption[1].text.startswith(f"low: goal {number}")
    assert len(marks) in record.arrays["episode/length"]
    assert length > 10


def test_the_last_frame_is_of_the_goal_reached_and_not_of_the_next_episode(easel):
    recorder, _, record = film(maze_walkers.maze_experiment())
    place, (mark,) = easel.drawn[-1]
    before, _ = easel.drawn[-2]
    assert np.abs(place - before).max() < 0.11, "the ball has jumped: it is in the next episode"
    assert np.hypot(*(place - mark.place[:2])) < maze_walkers.MAZE.goal_radius + 0.3
    words = recorder.shots[-1].caption[0].text
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


def quarter(step):
    return np.full(len(step.goal), 0.25)


def test_captions_have_the_return_of_a_level_with_rewards_of_its_own(easel):
    experiment = maze_walkers.maze_experiment()
    top, low = experiment.levels
    own = replace(low, goal_space=replace(low.goal_space, reward=quarter))
    recorder, _, _ = film(replace(experiment, levels=(top, own)))
    found = [shot.caption[1].text for shot in recorder.shots[1:]]
    counts = [re.search(r"decision (\d+).*, return ([\d.]+);", text).groups() for text in found]
    assert all(float(earned) == 0.25 * int(count) for count, earned in counts)
    assert len({*counts}) > 2
    standard, _, _ = film(experiment)
    assert not any("return" in shot.caption[1].text for shot in standard.shots)


def test_a_long_episode_is_filmed_whole_in_few_frames(easel):
    experiment = maze_walkers.maze_experiment(kwargs={"terminate": False}, max_episode_steps=150)
    recorder, _, _ = film(experiment, max_frames=20)
    steps = [int(shot.caption[0].text.split(",")[0].split()[1]) for shot in recorder.shots]
    assert 10 <= len(steps) <= 20
    assert steps[0] == 0
    assert steps[-1] == 150
    assert set(np.diff(steps[:-1])) == {8}
    assert recorder.shots[-1].caption[0].text.endswith("success")
    assert len(easel.drawn) < 60


@pytest.mark.parametrize(
    ("episodes", "row"),
    [("best", None), ("worst", None), ("longest", None), ("worst", 1), ("best", 0)],
)
def test_the_episode_filmed_is_the_one_asked_for(easel, episodes, row):
    recorder, _, record = film(maze_walkers.maze_experiment(), episodes=episodes, row=row)
    lengths, rewards = record.arrays["episode/length"], record.arrays["episode/reward"]
    last = recorder.shots[-1].caption[0].text
    step, reward = (float(word.split()[1]) for word in last.split(", ")[:2])
    assert last.endswith("success")
    if row is None:
        wanted = {"best": rewards.max(), "worst": rewards.min()}.get(episodes, reward)
        assert reward == wanted
        assert step == (lengths.max() if episodes == "longest" else step)
        assert len(set(rewards)) > 1
    assert (step, reward) in set(zip(lengths, rewards, strict=True))
    assert len(recorder.shots) == 1 + step, "one episode, from its first step on"


def test_episode_recorder_without_opengl_warns(easel, monkeypatch):
    def no_frame(self, data, marks=()):
        raise RunError("cannot draw: no OpenGL; set MUJOCO_GL to egl or osmesa")

    plain = film(maze_walkers.maze_experiment())[2]
    monkeypatch.setattr(Easel, "frame", no_frame)
    with pytest.warns(CoachWarning):
        recorder, _, record = film(maze_walkers.maze_experiment(), episodes="best")
    assert recorder.take_film() is None
    assert record.scalars["evaluation/reward_mean"] == plain.scalars["evaluation/reward_mean"]


@pytest.mark.parametrize(
    ("episodes", "every", "filmed"),
    [("first", 1, [1, 2, 3, 4, 5, 6]), ("first", 3, [1, 4]), ("longest", 3, [3, 6])],
)
def test_training_episodes_are_chosen_among_every_few(lamp, episodes, every, filmed):
    experiment = replace(learning(), environment=GymnasiumParameters(level=lamp))
    recorder = TrainingRecorder(VideoParameters(of="training", episodes=episodes, every=every))
    with BasicRLGraphManager(experiment) as manager:
        manager.create_graph(Runtime(device="cpu"), recorder=recorder)
        films = []
        for _ in manager.train_and_act(EnvironmentSteps(2 * 5 * 6)):
            for each in recorder.take_films():
                films.append((manager.graph.clock.environment_steps // 10, each))
    assert [number for number, _ in films] == filmed
    for _, each in films:
        shades = [int(shot.frame[0, 0, 0]) for shot in each.shots]
        assert shades == [0, 1, 2, 3, 4, 4]


def learning():
    """PPO on a maze, with everything that draws random numbers."""
    return BasicGraphParameters(
        agent=PPOAgentParameters(
            algorithm=PPOAlgorithmParameters(rollout=EnvironmentSteps(64), epochs=1, minibatch=32),
            update_mode="eager",
        ),
        environment=parameters(
            "point_maze_u", max_episode_steps=20, render_width=32, render_height=32
        ),
        num_envs=2,
        schedule=ScheduleParameters(
            training=EnvironmentSteps(192),
            heatup=EnvironmentSteps(16),
            evaluation_interval=EnvironmentSteps(64),
            evaluation_episodes=EnvironmentEpisodes(2),
            progress_interval=EnvironmentSteps(50),
        ),
    )


def said(experiment, recorder):
    with GraphManager(experiment) as manager:
        manager.create_graph(Runtime(seed=3, device="cpu"), watcher=recorder)
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


@pytest.mark.parametrize(
    ("experiment", "evaluations"),
    [
        (learning(), 3),
        (maze_walkers.maze_experiment("middle", render_width=32, render_height=32), 2),
    ],
    ids=["learning", "hierarchy"],
)
def test_filming_changes_no_number(experiment, evaluations):
    """With real frames, bit for bit."""
    recorder = EpisodeRecorder(VideoParameters(frame_skip=4))
    try:
        filmed, filmed_state = said(experiment, recorder)
    except RunError as error:
        pytest.skip(str(error))
    plain, plain_state = said(experiment, None)
    assert len(recorder.shots) > 5
    assert recorder.shots[0].frame.shape == (32, 32, 3)
    assert sum(kind == "evaluation" for kind, *_ in filmed) == evaluations
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
    experiment = replace(learning(), environment=GymnasiumParameters(level=lamp))
    recorder, _, _ = film(experiment)
    assert [int(shot.frame[0, 0, 0]) for shot in recorder.shots] == [0, 1, 2, 3, 4, 4]
    assert [shot.caption[0].text for shot in recorder.shots][-2:] == [
        "step 4, return 8",
        "step 5, return 10, the end",
    ]
    assert len(recorder.shots[0].caption) == 1


def drawn_diary(decisions):
    """A picture of how many decisions there were."""
    return np.full((6, 2, 3), decisions, np.uint8)


def with_picture(monkeypatch, picture):
    """Give scripted agents a picture of a row."""

    def of_agent(self, row_state, row, observation):
        assert self.seen, "it has decided"
        return picture(len(self.seen))

    monkeypatch.setattr(maze_walkers.Scripted, "picture", of_agent, raising=False)


def test_pictures_of_agents_stand_beside_the_scene(easel, monkeypatch):
    with_picture(monkeypatch, drawn_diary)
    recorder, agents, _ = film(maze_walkers.maze_experiment())
    shots = recorder.shots
    assert {shot.frame.shape for shot in shots} == {(6, 6 + 2 + 2, 3)}
    scenes = [int(shot.frame[0, 0, 0]) for shot in shots]
    assert scenes == sorted(scenes), "the scene is at the left"
    assert (shots[0].frame[4:, :6] == shots[0].frame[4, 0]).all(), "below it is nothing"
    low = [int(shot.frame[0, -1, 0]) for shot in shots]
    assert low[:3] == [1, 2, 3], "the lowest level decides at each step"
    assert low[-1] == low[-2], "the picture of the end is the one before"
    top = [int(shot.frame[0, 6, 0]) for shot in shots]
    assert top[-1] < low[-1] <= len(agents[1].seen)


def test_agents_with_pictures_are_filmed_in_worlds_without_any(monkeypatch):
    def picture(self, row_state, row, observation):
        assert {key: len(each) for key, each in observation.items()} == {"observation": 1}
        assert "observation" in row_state.pending, "it has decided"
        return np.full((6, 4, 3), 9, np.uint8)

    monkeypatch.setattr(PPOAgent, "picture", picture, raising=False)
    recorder, _, _ = film(replace(learning(), environment=PointMassParameters()))
    assert {shot.frame.shape for shot in recorder.shots} == {(6, 4, 3)}
    assert len(recorder.shots) > 3


def test_picture_sees_what_its_level_shows_before_filters(easel, monkeypatch):
    """The newest state, with the goal of the level above."""
    shown = []

    def picture(self, row_state, row, observation):
        shown.append({key: each.shape[0] for key, each in observation.items()})
        return np.zeros((2, 2, 3), np.uint8)

    monkeypatch.setattr(maze_walkers.Scripted, "picture", picture, raising=False)
    film(maze_walkers.maze_experiment())
    assert all(set(each.values()) == {1} for each in shown)
    assert all(set(each) == {"observation", "achieved_goal", "desired_goal"} for each in shown)


@pytest.mark.parametrize("method", ["picture", "marks"])
def test_method_that_draws_and_fails_is_named_with_its_level(easel, monkeypatch, method):
    def failing(self, *args):
        return next(iter(()))

    monkeypatch.setattr(maze_walkers.Scripted, "planning", lambda *_: {}, raising=False)
    monkeypatch.setattr(maze_walkers.Scripted, "marks", lambda *_: (), raising=False)
    monkeypatch.setattr(maze_walkers.Scripted, method, failing, raising=False)
    message = rf"nothing is filmed: level 'high': Scripted.{method} failed: StopIteration"
    with pytest.warns(CoachWarning, match=message):
        recorder, _, _ = film(maze_walkers.maze_experiment())
    assert recorder.take_film() is None


def test_picture_without_an_observation_is_refused_with_what_to_write(easel, monkeypatch):
    monkeypatch.setattr(
        maze_walkers.Scripted, "picture", lambda self, row_state, row: None, raising=False
    )
    message = r"level 'high': write Scripted.picture\(self, row_state, row, observation\)"
    with pytest.raises(ConfigurationError, match=message):
        film(maze_walkers.maze_experiment())


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        (lambda decisions: None, "must be uint8 .* got object of shape \\(\\)"),
        (lambda decisions: np.zeros((4, 4)), "must be uint8 .* got float64 of shape \\(4, 4\\)"),
        (
            lambda decisions: np.zeros((4, 4 + decisions, 3), np.uint8),
            "frames of a film must have one size, got 17 x 4 after 16 x 4",
        ),
    ],
)
def test_unfit_pictures_end_the_film_with_a_warning(easel, monkeypatch, picture, message):
    with_picture(monkeypatch, picture)
    with pytest.warns(CoachWarning, match=message):
        recorder, _, _ = film(maze_walkers.maze_experiment())
    assert recorder.take_film() is None
