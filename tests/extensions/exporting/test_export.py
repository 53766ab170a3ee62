"""Exported policies decide as `load(...)` does, without this package."""

import json
import subprocess
import sys
import tarfile
import zipimport
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib.util import module_from_spec
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

import coach_rl as rl
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.runtime import Runtime
from coach_rl.extensions.exporting import policies
from coach_rl.runs.folder import RunFolder
from coach_rl.sessions.opening import rebuild
from coach_rl.sessions.session import run_experiment
from tests.refusals import check_refused
from tests.small_runs import QUIET, experiment, ppo

pytest.importorskip("onnx", reason="needs the extra `export`")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra `export`")
pytestmark = [
    pytest.mark.filterwarnings("default::coach_rl.core.errors.CoachWarning"),  # other versions
    pytest.mark.filterwarnings("default::DeprecationWarning"),  # presets import earlier modules
]

FIXTURES = Path(__file__).parents[2] / "fixtures" / "runs"
ROWS, STEPS = 2, 150
"""Environments and steps of episodes that are played by both: 300 observations."""
QUICK = (
    "Acrobot_PPO", "AntMaze_HIRO", "BitFlip_DQN_HER", "CartPole_DQN_dueling_three_steps",
    "Gates_HiTS", "Gates_HiTS_no_times_stopping_on_failure", "Mujoco_BC", "Mujoco_Distillation",
    "Mujoco_PPO", "Mujoco_SAC",
    "Pendulum_DDPG", "Pendulum_HAC_three_levels", "PointMass_PPO_Skills_option_critic",
    "PointMass_PPO_Skills_own", "PointMaze_HAC", "PointMaze_HAC_graph_below_a_learner",
    "PointMaze_HIQL", "PointMaze_LESSON", "TMaze_DQN", "TMaze_PPO", "TicTacToe_PPO",
)  # fmt: skip
PACKAGES = {
    "Fetch": "gymnasium_robotics",
    "Lunar": "Box2D",
    "POPGym": "popgym",
    "Speaker": "mpe2",
    "TicTac": "pettingzoo",
}
REFUSED = ("PointMaze_DataGraph",)
"""Runs without a policy of graphs."""
GOLDEN = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in sorted(each.name.partition(".")[0] for each in FIXTURES.iterdir())
    if name not in REFUSED
]


def unpacked(name, folder):
    for start, package in PACKAGES.items():
        if name.startswith(start):
            pytest.importorskip(package)
    with tarfile.open(FIXTURES / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder


def exported(run, file):
    """The policy of an archive, by the runtime that is in it."""
    rl.export(run, file)
    spec = zipimport.zipimporter(str(file)).find_spec("coach_policy")
    runtime = module_from_spec(spec)
    spec.loader.exec_module(runtime)
    return runtime.Policy(file)


def environment_of(run):
    graph_manager, _, _ = rebuild(RunFolder(run), learns=False)
    parameters = graph_manager.parameters
    return (parameters.evaluation_environment or parameters.environment).build(num_envs=ROWS)


def leaves(action, path=""):
    parts = dict(enumerate(action)) if isinstance(action, tuple) else action
    if not isinstance(parts, dict):
        return {path: np.asarray(action)}
    named = ((f"{path}/{name}".strip("/"), part) for name, part in parts.items())
    return {key: leaf for name, part in named for key, leaf in leaves(part, name).items()}


def assert_same(actions, expected):
    """Actions differ by at most 1e-5 of their range."""
    found, wanted = leaves(actions), leaves(expected)
    assert found.keys() == wanted.keys()
    for key, values in wanted.items():
        assert found[key].dtype == values.dtype
        assert found[key].shape == values.shape
        if values.dtype.kind == "f":
            size = max(1.0, float(np.abs(values).max()))
            assert np.abs(found[key] - values).max() <= 1e-5 * size
        else:
            assert np.array_equal(found[key], values)


class Half:
    """A generator whose uniform numbers are all 0.5."""

    def random(self, shape, dtype):
        return np.full(shape, 0.5, dtype)


def without_chance(policy, monkeypatch):
    """Let options end where that is likelier than not, on both sides."""
    monkeypatch.setattr(policy, "_rng", Half())
    drawn = RowNoise.draw

    def draw(self, rows):
        return np.full_like(drawn(self, rows), 0.5)

    monkeypatch.setattr(RowNoise, "draw", draw)


def play_both(run, policy, steps=STEPS):
    """Play episodes by `load(...)`, and compare each decision; how many episodes ended."""
    agent, ended = rl.load(run), 0
    with closing(environment_of(run)) as environment:
        answer = environment.reset(5)
        for _ in range(steps):
            expected = agent.act(answer.first_observation)
            assert_same(policy.act(answer.first_observation), expected)
            parts = leaves(expected)
            environment.send(parts.get("", parts))
            answer = environment.recv()
            over = answer.terminated | answer.truncated
            agent.reset(over)
            policy.reset(over)
            ended += over.sum()
    return ended


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize("name", GOLDEN)
def test_exported_golden_run_decides_as_load_does(name, tmp_path, monkeypatch):
    run = unpacked(name, tmp_path / "run")
    policy = exported(run, tmp_path / "policy.zip")
    without_chance(policy, monkeypatch)
    play_both(run, policy)


def test_runtime_acts_without_torch_and_this_package(tmp_path):
    file = tmp_path / "policy.zip"
    run = unpacked("PointMaze_HAC", tmp_path / "run")
    rl.export(run, file)
    seen = environment_of(run).reset(5).first_observation
    np.savez(tmp_path / "seen.npz", **seen)
    program = f"""
import sys
import numpy as np
sys.path.insert(0, {str(file)!r})
from coach_policy import Policy
policy, seen = Policy({str(file)!r}), dict(np.load({str(tmp_path / "seen.npz")!r}))
np.save({str(tmp_path / "action.npy")!r}, policy.act(seen))
assert not {{"torch", "coach_rl", "gymnasium", "onnx"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-I", "-c", program], check=True)
    assert_same(np.load(tmp_path / "action.npy"), rl.load(run).act(seen))


def test_runtime_has_at_most_565_lines():
    runtime = Path(rl.__file__).parent / "extensions/exporting/coach_policy.py"
    assert len(runtime.read_text().splitlines()) <= 565


class Wide(nn.Module):
    """A network of a user's."""

    def __init__(self, space):
        super().__init__()
        self.layer = nn.Linear(space["observation"].shape[0], 5)
        self.output_size = 5

    def forward(self, seen):
        return torch.sin(self.layer(seen["observation"].float()))


class Bessel(Wide):
    """One with an operation that ONNX lacks."""

    def forward(self, seen):
        return torch.special.i0e(super().forward(seen))


class Fixed(Wide):
    """One that reads the size of a batch as a number."""

    def forward(self, seen):
        values = super().forward(seen)
        return values + torch.zeros(len(values), 5)


class Cut(Wide):
    """Another one, whose graph fails with more rows."""

    def forward(self, seen):
        values = super().forward(seen)
        return values.reshape(len(values), 5)


class Arm(gymnasium.Env):
    """Observations and actions with parts of every kind, nested."""

    observation_space = spaces.Tuple(
        (spaces.Box(-9, 9, (2,), np.float64), spaces.Dict({"lamp": spaces.Discrete(3, start=1)}))
    )
    action_space = spaces.Dict(
        {
            "kind": spaces.Discrete(3, start=5),
            "move": spaces.Tuple((spaces.Box(-1, 3, (1, 2)), spaces.Box(-np.inf, np.inf, (1,)))),
            "switches": spaces.MultiBinary(2),
        }
    )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.seen(), {}

    def step(self, action):
        return self.seen(), float(action["move"][0].sum()), self.np_random.random() < 0.2, False, {}

    def seen(self):
        lamp = np.int64(self.np_random.integers(1, 4))
        return self.np_random.normal(size=2).clip(-9, 9), {"lamp": lamp}


class Renamed(gymnasium.Env):
    """An observation with the name of an output."""

    observation_space = spaces.Dict({"action": spaces.Box(-1, 1, (2,))})
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return {"action": np.zeros(2, np.float32)}, {}

    def step(self, action):
        return {"action": np.zeros(2, np.float32)}, 0.0, False, False, {}


def small(agent, environment):
    return experiment(agent, environment, training=40)


CARTPOLE = rl.GymnasiumParameters(level="CartPole-v1")
DOORS = rl.GymnasiumParameters(
    level="tests.environments.masked_environments:Doors",
    kwargs={"sizes": (3, 4)},
    action_mask="info:action_mask",
)
PENDULUM = rl.GymnasiumParameters(level="Pendulum-v1")
STACKED = rl.InputFilter(
    observation={
        "observation": (
            rl.ObservationCropFilter(low=(1,), high=(None,)),
            rl.ObservationClippingFilter(low=-1.0, high=None),
            rl.ObservationStackingFilter(stack_size=3, axis=0, differences=True),
            rl.ObservationNormalizationFilter(),
        )
    }
)
LEARNING = {
    "learning": rl.LearningParameters(learning_starts=16, batch=8),
    "update_mode": "eager",
}
PLAIN = rl.TorsoParameters(middleware=(8,))
RECURRENT = rl.TorsoParameters(middleware=(8,), recurrence=rl.GRU(size=4))


def recurrent_candidates(names):
    """SAC with candidates, some of whose networks are recurrent."""
    torso = {each: RECURRENT if each in names else PLAIN for each in ("actor", "critic")}
    memory = rl.ReplayMemoryParameters(capacity=100, draws=rl.SequenceParameters(length=4))
    return small(
        rl.SACAgentParameters(
            greedy_candidates=4,
            actor=rl.ActorParameters(torso=torso["actor"]),
            critic=rl.CriticParameters(torso=torso["critic"]),
            memory=memory,
            **LEARNING,
        ),
        PENDULUM,
    )


class Glimpses(gymnasium.Env):
    """Random images of 48 x 37 pixels."""

    action_space = spaces.Discrete(2)

    def __init__(self, kind):
        high = 255 if kind == "uint8" else 1.0
        self.observation_space = spaces.Box(0, high, (48, 37, 3), np.dtype(kind))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.seen(), {}

    def step(self, action):
        return self.seen(), float(action), self.np_random.random() < 0.2, False, {}

    def seen(self):
        box = self.observation_space
        drawn = self.np_random.random(box.shape) * box.high.max()
        return np.floor(drawn).astype(box.dtype) if box.dtype == np.uint8 else np.float32(drawn)


def resized_images(kind, size):
    height, width = size
    resize = rl.ObservationRescaleToSizeFilter(height=height, width=width)
    filters = rl.InputFilter(observation={"observation": (resize,)})
    environment = rl.GymnasiumParameters(
        level="tests.extensions.exporting.test_export:Glimpses",
        kwargs={"kind": kind},
        max_episode_steps=20,
    )
    torso = rl.TorsoParameters(middleware=(8,), images="channels_last")
    agent = rl.PPOAgentParameters(
        **vars(ppo()) | {"input_filter": filters, "network": rl.ActorCriticParameters(torso=torso)}
    )
    return small(agent, environment)


BUILT = {
    "filters before PPO": lambda: small(
        rl.PPOAgentParameters(**vars(ppo()) | {"input_filter": STACKED}), CARTPOLE
    ),
    **{
        f"resized images of {kind}": partial(resized_images, kind, size)
        for kind, size in (("uint8", (40, 37)), ("float32", (36, 50)))
    },
    "discretised actions": lambda: small(
        rl.DQNAgentParameters(
            output_filter=rl.OutputFilter(action=(rl.BoxDiscretization(num_bins=5),)), **LEARNING
        ),
        PENDULUM,
    ),
    "masked and mapped Box": lambda: small(
        rl.DDPGAgentParameters(
            output_filter=rl.OutputFilter(
                action=(rl.BoxMasking(low=-1.5, high=0.5), rl.LinearBoxToBoxMap())
            ),
            normalise_observations=5.0,
            **LEARNING,
        ),
        PENDULUM,
    ),
    "candidates of SAC": lambda: small(
        rl.SACAgentParameters(greedy_candidates=4, **LEARNING), PENDULUM
    ),
    **{
        f"candidates of SAC, recurrent {' and '.join(names)}": partial(recurrent_candidates, names)
        for names in (("actor",), ("critic",), ("actor", "critic"))
    },
    "PPO with a recurrent critic": lambda: small(
        rl.PPOAgentParameters(
            **vars(ppo())
            | {"network": rl.ActorCriticParameters(critic_torso=RECURRENT, torso=PLAIN)}
        ),
        PENDULUM,
    ),
    "quantiles": lambda: small(
        rl.DQNAgentParameters(
            network=rl.QNetworkParameters(head=rl.QuantileHead(count=5), dueling=True), **LEARNING
        ),
        CARTPOLE,
    ),
    "module of the user's": lambda: of_module(Wide),
    "mixed and nested parts": lambda: small(
        rl.PPOAgentParameters(**vars(ppo()) | {"arguments": {"move/0": ("kind", 6)}}),
        rl.GymnasiumParameters(level="tests.extensions.exporting.test_export:Arm"),
    ),
    "SAC of several choices": lambda: small(
        rl.SACAgentParameters(**LEARNING),
        replace(DOORS, kwargs={"sizes": (3, 4), "start": 2}),
    ),
    "branches of DQN": lambda: small(
        rl.DQNAgentParameters(network=rl.QNetworkParameters(dueling=True), **LEARNING),
        DOORS,
    ),
    "masks of several choices": lambda: small(
        ppo(),
        DOORS,
    ),
}


def run_of(graph_manager, folder):
    made = run_experiment(
        graph_manager, Runtime(seed=1, device="cpu"), name="run", root=folder, settings=QUIET
    )
    return made.folder.path


@pytest.mark.drawn(one_of=4)
@pytest.mark.filterwarnings("ignore:.*would learn nothing")
@pytest.mark.parametrize("name", BUILT)
def test_exported_filters_masks_and_heads_decide_as_load_does(name, tmp_path):
    run = run_of(BUILT[name](), tmp_path)
    play_both(run, exported(run, tmp_path / "policy.zip"), steps=40)


def test_mask_beside_the_observation_is_followed(tmp_path):
    run = run_of(BUILT["masks of several choices"](), tmp_path)
    policy, agent = exported(run, tmp_path / "policy.zip"), rl.load(run)
    seen, mask = np.zeros(2, np.float32), [[0, 1, 0], [0, 0, 1, 0]]
    assert policy.act(seen, mask=mask).tolist() == [1, 2] == agent.act(seen, mask=mask).tolist()
    check_refused(lambda: policy.act(seen, mask=np.zeros(7)), ValueError, "without any action")
    check_refused(lambda: policy.act(seen), ValueError, "got ndarray; allowed actions: mask=")


@pytest.fixture(scope="module")
def walker(tmp_path_factory):
    return unpacked("Mujoco_PPO", tmp_path_factory.mktemp("walker"))


def test_single_graph_samples_by_the_noise_it_is_given(walker, tmp_path):
    greedy, sampled = (
        onnxruntime.InferenceSession(
            rl.export(walker, tmp_path / f"{sampling}.onnx", sampling=sampling)
        )
        for sampling in (False, True)
    )
    seen = {"observation": np.random.default_rng(0).normal(size=(500, 17))}
    noise = np.random.default_rng(1).normal(size=(500, 6)).astype(np.float32)
    (mean,) = greedy.run(["action"], seen)
    (drawn,) = sampled.run(["action"], {**seen, "noise_normal": noise})
    (still,) = sampled.run(["action"], {**seen, "noise_normal": np.zeros_like(noise)})
    std = rl.load(walker).network["actor_critic"].log_std.exp().detach().numpy()
    assert_same(still, mean)
    assert_same(drawn, np.clip(mean + std * noise, -1, 1))
    notes = greedy.get_modelmeta().custom_metadata_map
    assert json.loads(notes["task"]) == "walker2d"
    assert json.loads(notes["seed"]) == 7


def test_program_of_torch_acts_on_a_batch(walker, tmp_path):
    program = torch.export.load(rl.export(walker, tmp_path / "walker.pt2")).module()
    seen = np.random.default_rng(0).normal(size=(5, 17))
    agent = rl.load(walker)
    (action,) = program(torch.from_numpy(seen))
    assert_same(action.detach().numpy(), agent.act(seen))


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    "name",
    ["TMaze_PPO", "TMaze_DQN", "Mujoco_SAC", "Pendulum_DDPG", "CartPole_DQN_dueling_three_steps"],
)
def test_program_of_torch_computes_what_the_onnx_graph_does(name, tmp_path):
    run, about = unpacked(name, tmp_path / "run"), {"policy.json": ""}
    program = torch.export.load(rl.export(run, tmp_path / "policy.pt2"), extra_files=about)
    about = json.loads(about["policy.json"])
    graph = onnxruntime.InferenceSession(rl.export(run, tmp_path / "policy.onnx"))
    assert about["outputs"] == [each.name for each in graph.get_outputs()]
    read, rng = {each.name for each in graph.get_inputs()}, np.random.default_rng(0)
    inputs = program.graph_signature.user_inputs
    examples = [each.meta["val"] for each in program.graph.nodes if each.name in inputs]
    for rows in (1, 2, 5):
        given = {
            name: torch.from_numpy(rng.normal(size=(rows, *like.shape[1:]))).to(like.dtype)
            for name, like in zip(about["inputs"], examples, strict=True)
        }
        wanted = graph.run(None, {name: given[name].numpy() for name in read})
        for one, other in zip(program.module()(*given.values()), wanted, strict=True):
            assert_same(one.detach().numpy(), other)


def test_policy_resets_some_rows_alone(tmp_path):
    run = unpacked("TMaze_PPO", tmp_path / "run")
    policy, agent = exported(run, tmp_path / "policy.zip"), rl.load(run)
    with closing(environment_of(run)) as environment:
        seen = environment.reset(5).first_observation
    for rows in ([], [1], [], [0]):
        policy.reset(np.array(rows, np.int64))
        if len(rows):
            agent.reset(np.array(rows))
        assert_same(policy.act(seen), agent.act(seen))


ERRORS = {
    "kind": (lambda run, folder: rl.export(run, folder / "a.h5"), "exported to .zip, .onnx, .pt2"),
    "opset": (lambda run, folder: rl.export(run, folder / "a.onnx", opset=3), "14 to 20, got 3"),
    "there": (lambda run, folder: rl.export(run, run / "manifest.json"), "exported to"),
    "no run": (lambda run, folder: rl.export(folder / "none", folder / "a.zip"), "none"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_export_error_is_one_line_and_nothing_is_written(case, walker, tmp_path):
    call, message = ERRORS[case]
    check_refused(lambda: call(walker, tmp_path), rl.ConfigurationError, message)
    assert not [*tmp_path.iterdir()]


def test_export_keeps_a_file_that_exists(walker, tmp_path):
    file = tmp_path / "a.zip"
    file.write_text("mine")
    check_refused(lambda: rl.export(walker, file), rl.ConfigurationError, "exists")
    assert file.read_text() == "mine"


def test_export_without_the_package_names_the_extra(walker, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    message = "needs the package onnx; `pip install -e ... export"
    check_refused(lambda: rl.export(walker, tmp_path / "a.zip"), rl.ConfigurationError, message)


def test_export_of_several_levels_to_one_graph_is_refused(tmp_path):
    run = unpacked("PointMaze_HAC", tmp_path / "run")
    message = "levels top, low; export to a .zip"
    check_refused(lambda: rl.export(run, tmp_path / "a.onnx"), rl.ConfigurationError, message)


def of_module(module):
    """A run whose network is a user's module."""
    network = rl.ActorCriticParameters(torso=rl.ModuleParameters(module=module))
    return small(rl.PPOAgentParameters(**vars(ppo()) | {"network": network}), PENDULUM)


RENAMED = rl.GymnasiumParameters(level="tests.extensions.exporting.test_export:Renamed")


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: of_module(Fixed), "computes another 'action' ... sizes of batches"),
        (lambda: of_module(Cut), "fails: ... sizes of batches"),
        (lambda: of_module(Bessel), "cannot be written as a graph"),
        (lambda: small(ppo(), RENAMED), "observation 'action' has the name"),
    ],
)
def test_export_of_a_run_without_a_graph_is_refused(make, message, tmp_path, capfd):
    run = run_of(make(), tmp_path)
    capfd.readouterr()
    check_refused(lambda: rl.export(run, tmp_path / "a.zip"), rl.ConfigurationError, message)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("seen", "message"),
    [
        (np.zeros(3), "is float64 (17,), or a batch; got float64 (3,)"),
        ({"place": np.zeros(17)}, "observations have the keys observation; got place"),
        (np.zeros((0, 17)), "come in one batch"),
        (np.array(["a"] * 17), "got <U1"),
        (np.full(17, np.nan), "is float64, which does not hold its numbers"),
        (np.full((2, 17), np.inf), "is float64, which does not hold its numbers"),
    ],
)
def test_policy_names_what_it_cannot_act_on(seen, message, walker, tmp_path):
    policy = exported(walker, tmp_path / "policy.zip")
    check_refused(lambda: policy.act(seen), ValueError, message)


def test_export_of_a_policy_without_a_known_graph_is_refused(tmp_path, monkeypatch):
    run = unpacked("Mujoco_SAC", tmp_path / "run")
    monkeypatch.setattr(policies, "KINDS", {})
    with pytest.raises(rl.ConfigurationError, match="no graph for its SquashedGaussianActor is"):
        rl.export(run, tmp_path / "policy.zip")
