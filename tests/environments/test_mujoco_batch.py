"""The batch's side of the environment contract: rows, seeds, saved states, errors, frames."""

import dataclasses
import gc
import os
import pickle
import re
import subprocess
import sys
import threading
from pathlib import Path

import mujoco
import numpy as np
import pytest

import coach_rl
import coach_rl as rl
from coach_rl import environments
from coach_rl.core.errors import ActionError, EnvironmentFault, NonFiniteError, RunError
from coach_rl.extensions.testing import check_environment
from coach_rl.extensions.testing.trial import expect_same
from tests.environments.walks import answer_to, walk


def build(level="hopper", *, rows=4, threads=1, **options):
    return rl.MujocoParameters(level=level, threads=threads, **options).build(num_envs=rows)


def play(batch, chosen):
    return [answer_to(batch, action) for action in chosen]


def test_unstable_simulation_error_writes_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    batch = build(threads=2)
    for spoilt in (np.nan, 1e12):
        batch.reset(seed=0)
        batch.simulators.data[2].qvel[0] = spoilt
        batch.send(np.zeros((4, 3)))
        with pytest.raises(NonFiniteError):
            batch.recv()
        with pytest.raises(ActionError):
            batch.send(np.zeros((4, 3)))
    batch.reset(seed=0)
    walk(batch, 2)
    batch.close()
    assert list(tmp_path.iterdir()) == []


def test_threads_end_with_the_batch():
    gc.collect()
    before = threading.active_count()
    batch = build(threads=3)
    assert threading.active_count() == before + 2
    batch.close()
    batch.close()
    assert threading.active_count() == before
    forgotten = build(threads=3)
    forgotten.reset(seed=0)
    walk(forgotten, 1)
    del forgotten
    gc.collect()
    assert threading.active_count() == before


def test_thread_error_reaches_the_caller(monkeypatch):
    batch = build(threads=3)
    batch.reset(seed=0)

    def fail(*arguments):
        raise mujoco.FatalError("out of memory")

    monkeypatch.setattr(mujoco, "mj_step", fail)
    batch.send(np.zeros((4, 3)))
    with pytest.raises(EnvironmentFault):
        batch.recv()
    batch.close()


def test_parameters_are_plain_values():
    kwargs = {"healthy_z_range": [0.5, 2.0], "default_camera_config": {"lookat": np.zeros(3)}}
    parameters = rl.MujocoParameters(level="hopper", kwargs=kwargs)
    again = rl.MujocoParameters(level="hopper", kwargs=dict(parameters.kwargs))
    assert parameters == again
    assert hash(parameters) == hash(again)
    assert pickle.loads(pickle.dumps(parameters)) == parameters
    assert parameters.kwargs["healthy_z_range"] == (0.5, 2.0)
    assert dataclasses.replace(parameters, level="walker2d").task.healthy_z_range == (0.5, 2.0)
    with pytest.raises(TypeError):
        parameters.kwargs["healthy_reward"] = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        parameters.level = "ant"


def test_model_file_broken_error_names_field(tmp_path):
    broken = tmp_path / "broken.xml"
    broken.write_text("<mujoco><worldbody><geom size='-1'/></worldbody></mujoco>")
    with pytest.raises(rl.ConfigurationError) as caught:
        build(kwargs={"xml_file": str(broken)})
    assert "xml_file" in str(caught.value)


def test_no_time_limit():
    batch = build("reacher", rows=1, max_episode_steps=-1)
    batch.reset(seed=0)
    assert not any(answer.truncated.any() for answer in walk(batch, 60))
    batch.close()


XML = """
<mujoco>
  <option timestep="0.02"/>
  <worldbody>
    <body name="goal" mocap="true"><geom size="0.1" contype="0" conaffinity="0"/></body>
    <body name="cart"><joint name="x" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
  </worldbody>
  <actuator><motor joint="x" gear="5"/></actuator>
</mujoco>
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class CartToGoal(rl.MujocoTask):
    """A goal task: the goal is a mocap body, so it is saved with the simulator."""

    reads = ("qpos", "qvel", "mocap_pos")
    max_episode_steps = 7
    xml_file: str = XML
    reach: float = 0.5

    def reset(self, scene, data, rng):
        data.mocap_pos[0, 0] = rng.uniform(-self.reach, self.reach)

    def observation(self, state):
        return {
            "observation": np.concatenate((state.qpos, state.qvel), axis=1),
            "achieved_goal": state.qpos,
            "desired_goal": state.mocap_pos[:, 0, :1],
        }

    def reward(self, before, action, after):
        return -np.abs(after.qpos[:, 0] - after.mocap_pos[:, 0, 0])

    def info(self, before, action, after):
        return {"moved": after.qpos[:, 0] - before.qpos[:, 0]}


def test_own_goal_task_keeps_the_contract():
    parameters = rl.MujocoTaskParameters(own_task=CartToGoal(), threads=1)
    check_environment(lambda num_envs: parameters.build(num_envs=num_envs), steps=12)


def test_own_goal_task():
    parameters = rl.MujocoTaskParameters(own_task=CartToGoal(reach=2.0), threads=1)
    assert parameters.level == "CartToGoal"
    batch, copy = parameters.build(num_envs=3), parameters.build(num_envs=3)
    assert set(batch.spaces.observation) == {"observation", "achieved_goal", "desired_goal"}
    assert batch.spaces.action.high == np.inf  # the motor has no limits
    goals = batch.reset(seed=0).observation["desired_goal"]
    assert len(np.unique(goals)) == 3
    chosen = np.random.default_rng(0).normal(size=(10, 3, 1))
    for action in chosen[:5]:
        answer = answer_to(batch, action)
        assert np.array_equal(answer.observation["desired_goal"], goals)
        # One step of semi-implicit Euler: v += 5 a h, x += v h
        velocity = answer.observation["observation"][:, 1]
        assert answer.info["moved"] == pytest.approx(velocity * 0.02)
    copy.load_state_dict(batch.state_dict())
    for left, right in zip(play(batch, chosen[5:]), play(copy, chosen[5:]), strict=True):
        expect_same(left, right, "both")
        if left.truncated.any():
            assert not np.array_equal(left.first_observation["desired_goal"], goals)
    batch.close()
    copy.close()


@dataclasses.dataclass(frozen=True, kw_only=True)
class CartInGusts(CartToGoal):
    """The wind is no part of MuJoCo; the count of gusts is saved with the simulator."""

    reads = ("qpos", "qvel", "mocap_pos", "userdata")
    xml_file: str = XML.replace("<worldbody>", "<size nuserdata='1'/><worldbody>")
    wind: float = 0.1

    def advance(self, scene, data, action, rng):
        super().advance(scene, data, action, rng)
        if self.wind:
            data.qvel[0] += self.wind * rng.normal()
            data.userdata[0] += 1

    def observation(self, state):
        return {**super().observation(state), "gusts": state.userdata}


def test_own_advance_keeps_the_contract():
    parameters = rl.MujocoTaskParameters(own_task=CartInGusts(), threads=2)
    check_environment(lambda num_envs: parameters.build(num_envs=num_envs), steps=12)


def test_own_advance():
    gusty = rl.MujocoTaskParameters(own_task=CartInGusts(), threads=2).build(num_envs=3)
    calm = rl.MujocoTaskParameters(own_task=CartInGusts(wind=0.0), threads=2).build(num_envs=3)
    plain = rl.MujocoTaskParameters(own_task=CartToGoal(), threads=2).build(num_envs=3)
    for batch in (gusty, calm, plain):
        batch.reset(seed=0)
    chosen = np.random.default_rng(0).normal(size=(6, 3, 1))
    answers = zip(*(play(batch, chosen) for batch in (gusty, calm, plain)), strict=True)
    for step, (blown, ours, theirs) in enumerate(answers, start=1):
        assert blown.observation["gusts"].tolist() == [[step]] * 3
        assert np.array_equal(ours.observation["observation"], theirs.observation["observation"])
        pushes = (blown.observation["observation"] - ours.observation["observation"])[:, 1]
        assert len(np.unique(pushes)) == 3  # each row has its own
    for batch in (gusty, calm, plain):
        batch.close()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flawed(CartToGoal):
    flaw: str = ""

    def reward(self, before, action, after):
        if self.flaw == "unread":
            return after.xpos
        if self.flaw == "nan":
            return np.where(after.qpos[:, 0] == 0, 0.0, np.nan)
        return after.qpos if self.flaw == "shape" else after.qpos[:, 0]

    def terminated(self, state):
        return state.qpos[:, 0] if self.flaw == "dtype" else super().terminated(state)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Misread(CartToGoal):
    reads = ("qpos", "qvell")


RENDER = """
import numpy as np
from coach_rl.core.errors import RunError
from coach_rl.environments.mujoco import MujocoParameters

small = MujocoParameters(level="ant", threads=1, kwargs={"width": 64, "height": 48})
batch = small.build(num_envs=2)
batch.reset(seed=0)
try:
    frame = batch.render(1)
except RunError as error:
    raise SystemExit(f"NO GL: {error}")
assert frame.shape == (48, 64, 3) and frame.dtype == np.uint8
assert frame.std() > 5, "a plain frame"
assert not np.array_equal(frame, batch.render(0))
for _ in range(20):
    batch.send(np.ones((2, 8), np.float32))
    batch.recv()
assert not np.array_equal(frame, batch.render(1))
other = MujocoParameters(level="ant", kwargs={"camera_name": "trak"}).build(num_envs=1)
other.reset(seed=0)
try:
    other.render()
except Exception as error:
    assert "track" in str(error)
else:
    raise AssertionError("a camera that does not exist")
batch.close()
"""


def test_frames(tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "MUJOCO_GL"}
    done = subprocess.run(
        [sys.executable, "-c", RENDER],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    if "NO GL" in done.stderr:
        pytest.skip(f"no OpenGL on this machine: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr


WITHOUT_OPENGL = """
import os
import sys
from coach_rl.environments import parameters
from coach_rl.core.errors import RunError

for level in sys.argv[1:]:
    batch = parameters(level).build(num_envs=1)
    batch.reset(seed=0)
    try:
        batch.render()
    except RunError as error:
        print(error)
    batch.close()
assert os.environ["MUJOCO_GL"]
"""


CHOICES = [
    ("off", "MUJOCO_GL=off turns drawing off"),
    ("disable", "MUJOCO_GL=disable turns drawing off"),
    ("osmesa", "AttributeError no library"),
    ("egl", "AttributeError no library"),
]


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize(("choice", "reason"), CHOICES)
@pytest.mark.skipif(sys.platform != "linux", reason="MUJOCO_GL has other values there")
def test_render_without_opengl_error_tasks_work(tmp_path, choice, reason):
    check_works_without_opengl(tmp_path, choice, reason, "walker2d", "hopper")


def check_works_without_opengl(tmp_path, choice, reason, *levels):
    (tmp_path / "OpenGL.py").write_text("raise AttributeError('no library')")
    root = Path(coach_rl.__file__).parent.parent
    path = os.pathsep.join(map(str, (tmp_path, root, *sys.path)))
    environ = {**os.environ, "MUJOCO_GL": choice, "PYTHONPATH": path}
    environ.pop("PYOPENGL_PLATFORM", None)  # which MuJoCo sets once it has drawn in this process
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_OPENGL, *levels],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [reason in line for line in done.stdout.splitlines()] == [True] * len(levels)


def test_mujoco_is_imported_by_engine_only():
    files = Path(environments.__file__).parent.rglob("*.py")
    files = [path for path in files if path.parent.name != "dm_control"]  # with its own simulator
    found = [
        path.stem for path in files if re.search(r"^(import|from) mujoco", path.read_text(), re.M)
    ]
    assert found == []


def test_render_without_opengl_error_names_mujoco_gl(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "cgl" if sys.platform != "darwin" else "egl")
    batch = build(rows=1)
    batch.reset(seed=0)
    with pytest.raises(RunError):
        batch.render()
    with pytest.raises(ActionError):
        batch.render(1)
    batch.close()
