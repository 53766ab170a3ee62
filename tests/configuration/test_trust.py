"""A run's folder from somebody else is data: loading, evaluating or resuming it runs none of it."""

import json
import shutil
import sys
from collections.abc import Callable
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

import coach_rl
import coach_rl as rl
from coach_rl.cli.main import main
from coach_rl.configuration.file_writing import sha256_of_file
from coach_rl.configuration.parameters_json import encode
from coach_rl.configuration.trust import (
    Trust,
    is_own_preset,
    remember_own_code,
)
from coach_rl.runs.folder import RunFolder, write_manifest
from coach_rl.runs.manifest import Origin
from tests.small_runs import QUIET, change_manifest, experiment, manifest_of

SHELL = {"command": "touch SENTINEL"}
Manifest = dict[str, Any]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    agent = rl.DQNAgentParameters(
        learning=rl.LearningParameters(batch=8, learning_starts=8),
        memory=rl.ReplayMemoryParameters(capacity=100),
        update_mode="eager",
    )
    manager = experiment(agent, rl.GymnasiumParameters(level="CartPole-v1"), training=20)
    root = tmp_path_factory.mktemp("runs")
    return rl.run_experiment(
        manager, rl.Runtime(device="cpu"), name="short", root=root, settings=QUIET
    ).folder.path


def at(*path: str) -> Callable[..., Callable[[Manifest], None]]:
    """Makes changes of the part of a manifest at a path."""
    return lambda **changes: lambda manifest: reduce(getitem, path, manifest).update(changes)


whole, task, parameters = at(), at("task"), at("parameters")
agent, network = at("parameters", "agent"), at("parameters", "agent", "network")
environment = at("parameters", "environment")


def evaluated_in(**changes: Any) -> Callable[[Manifest], None]:
    def change(manifest: Manifest) -> None:
        parameters = manifest["parameters"]
        parameters["evaluation_environment"] = {**parameters["environment"], **changes}

    return change


def torso(module: Any) -> Callable[[Manifest], None]:
    return network(torso={**encode(rl.ModuleParameters(module="a:B")), "module": module})


def script(policy: Any) -> Callable[[Manifest], None]:
    return parameters(
        agent={**encode(rl.ScriptedAgentParameters(policy="still")), "policy": policy}
    )


def preset(file: str = "FOLDER/preset.py", **names: str) -> Callable[[Manifest], None]:
    """A hostile preset.py, with a manifest that names what is in it."""
    entry = {"name": "evil", "file": file, "function": "graph_manager"}
    module = names.pop("module", "coach_preset_preset_0123456789ab")
    changes = {key: f"{module}:{name}" for key, name in names.items()}
    return whole(preset={**entry, "module": module, "neighbours": {}}, **changes)


HOSTILE = {
    "level os:system": environment(level="os:system", kwargs=SHELL),
    "level subprocess": environment(level="subprocess:Popen", kwargs={"args": ["true"]}),
    "level of an own module": environment(level="evil:Env"),
    "level that a module registers": environment(level="evil:Evil-v0"),
    "level in a package": environment(level="evil.deep:Env"),
    "level of two colons": environment(level="coach_rl.core:evil:Env"),
    "level that looks like ours": environment(level="coach_rl_evil:Env"),
    "gymnasium.make": environment(level="gymnasium:make", kwargs={"id": "evil:Evil-v0"}),
    "gymnasium.envs.make": environment(level="gymnasium.envs:make", kwargs={"id": "evil:E-v0"}),
    "registration.make": environment(
        level="gymnasium.envs.registration:make", kwargs={"id": "evil:E-v0"}
    ),
    "make_vec": environment(
        level="gymnasium:make_vec", kwargs={"id": "evil:E-v0"}, vectorization="vector"
    ),
    "an old environment's id": environment(
        level="GymV26Environment-v0", kwargs={"env_id": "evil:E-v0"}
    ),
    "subprocess rows": environment(level="evil:Env", vectorization="subprocess"),
    "vector level": environment(level="evil:Env", vectorization="vector"),
    "wrapper": environment(wrappers=["evil:Wrapper"]),
    "wrapper with arguments": environment(wrappers=[["evil:Wrapper", {"x": 1}]]),
    "wrapper os:system": environment(wrappers=[["os:system", SHELL]]),
    "name in a wrapper's arguments": environment(
        wrappers=[["gymnasium.wrappers:TimeLimit", {"deep": {"$list": ["evil:Env"]}}]]
    ),
    "type in kwargs": environment(kwargs={"x": {"$type": "evil:Parameters"}}),
    "enum in kwargs": environment(kwargs={"x": {"$enum": "evil:Colour", "value": 1}}),
    "reference in kwargs": environment(kwargs={"x": {"$reference": "evil:function"}}),
    "list in kwargs": environment(kwargs={"x": {"$list": [{"$type": "evil:Parameters"}]}}),
    "items in kwargs": environment(kwargs={"$items": [[{"$type": "evil:Parameters"}, 1]]}),
    "name deep in kwargs": environment(kwargs={"make": {"ids": ["evil:Evil-v0"]}}),
    "environment's type": environment(**{"$type": "evil:Parameters"}),
    "evaluation environment": evaluated_in(level="evil:Env"),
    "evaluation wrapper": evaluated_in(wrappers=["evil:Wrapper"]),
    "evaluation type": evaluated_in(**{"$type": "evil:Parameters"}),
    "graph manager": whole(graph_manager="evil:GraphManager"),
    "graph manager os:system": whole(graph_manager="os:system"),
    "graph manager by another's import": whole(
        graph_manager="coach_rl.runs.manifest:subprocess.run"
    ),
    "parameters' type": parameters(**{"$type": "evil:Parameters"}),
    "parameters os:system": whole(parameters={"$type": "os:system", **SHELL}),
    "schedule": parameters(schedule={"$type": "evil:Parameters"}),
    "validation": parameters(validation={"$reference": "evil:function"}),
    "task's type": task(**{"$type": "evil:Parameters"}),
    "task's field": task(seed={"$enum": "evil:Colour", "value": 0}),
    "agent's type": agent(**{"$type": "evil:Parameters"}),
    "exploration": agent(exploration={"$type": "evil:Parameters"}),
    "input filter": agent(input_filter={"$type": "evil:Parameters"}),
    "memory": agent(memory={"$type": "evil:Parameters"}),
    "network by name": torso("evil:Net"),
    "network os:system": torso("os:system"),
    "network by reference": torso({"$reference": "evil:Net"}),
    "script by name": script("evil:act"),
    "script os:system": script("os:system"),
    "script by reference": script({"$reference": "evil:act"}),
    "script by another's import": script({"$reference": "coach_rl.runs.folder:shutil.rmtree"}),
    "graph manager in preset.py": preset(graph_manager="GraphManager"),
    "preset.py at a place of its own": preset(file="preset.py", graph_manager="GraphManager"),
    "preset.py by the name of a known one": preset(
        file="KNOWN", module="MODULE", graph_manager="GraphManager"
    ),
    "folders that are none": whole(module_folders=[["FOLDER"]]),
    "a module by a preset's name": whole(graph_manager="coach_preset_x_0123456789ab:X"),
}
"""Changes to a manifest, each of which names code that nobody trusts."""


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """The sentinel that every hostile module writes when it is imported or called."""
    sentinel = tmp_path / "SENTINEL"
    source = f"open({str(sentinel)!r}, 'w').close()\n"
    found_by_python = tmp_path / "modules"
    (found_by_python / "evil").mkdir(parents=True)
    (found_by_python / "evil" / "__init__.py").write_text(source)
    (found_by_python / "evil" / "deep.py").write_text(source)
    (found_by_python / "coach_rl_evil.py").write_text(source)
    monkeypatch.syspath_prepend(found_by_python)
    monkeypatch.chdir(tmp_path)
    return sentinel


def hostile_copy(original: Path, evil: Path, change: Callable[[Manifest], None]) -> Path:
    folder = Path(shutil.copytree(original, evil.parent / "run"))
    (folder / "preset.py").write_text(f"open({str(evil)!r}, 'w').close()\n")
    manifest = manifest_of(folder)
    manifest["module_folders"] = {str(folder): {}, str(evil.parent / "modules"): {}}
    change(manifest)
    text = json.dumps(manifest).replace("SENTINEL", str(evil)).replace("FOLDER", str(folder))
    known = rl.load_preset(rl.find_preset("CartPole_PPO"))
    text = text.replace("KNOWN", str(known.reference.path)).replace("MODULE", known.module_name)
    write_manifest(RunFolder(folder), json.loads(text))
    return with_checksum(folder)


def with_checksum(folder: Path) -> Path:
    """The run, with the checksum of its copy of the preset in its manifest."""
    if preset := manifest_of(folder)["preset"]:
        change_manifest(folder, preset=preset | {"sha256": sha256_of_file(folder / "preset.py")})
    return folder


def resume(folder: Path) -> None:
    rl.resume_experiment(folder, steps=rl.EnvironmentSteps(30), settings=QUIET)


def evaluate(folder: Path) -> None:
    coach_rl.evaluate_run(folder, episodes=rl.EnvironmentEpisodes(1))


def load(folder: Path) -> None:
    coach_rl.load(folder).act([0.0] * 4)


@pytest.mark.drawn(one_of=3, each="name")
@pytest.mark.parametrize("use", [resume, evaluate, load])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_manifest_runs_nothing(original, evil, name, use):
    check_runs_nothing(original, evil, HOSTILE[name], use, is_trained=not name.startswith("eval"))


def check_runs_nothing(
    original: Path,
    evil: Path,
    change: Callable[[Manifest], None],
    use: Any,
    *,
    is_trained: bool = True,
) -> None:
    """Args: is_trained: Whether the change is to the training of the run."""
    folder = hostile_copy(original, evil, change)
    before = list(sys.path)
    try:
        use(folder)
    except rl.CoachError as error:
        assert "\n" not in str(error)  # noqa: PT017 - evaluating leaves out what is not needed
    else:
        assert use is load or (use is evaluate and is_trained)
    assert not evil.exists()
    assert not [module for module in sys.modules if "evil" in module]
    assert sys.path == before


@pytest.mark.parametrize("use", [resume, evaluate, load])
def test_unknown_preset_that_nothing_needs_is_not_run(original, evil, use):
    use(hostile_copy(original, evil, preset()))
    assert not evil.exists()


@pytest.mark.parametrize("use", [resume, evaluate, load])
def test_known_preset_text_does_not_open_the_folder_of_its_manifest(original, evil, use):
    """Python would find the modules beside it before any other of their names."""
    known = rl.load_preset(rl.find_preset("CartPole_PPO"))
    file = str(evil.parent / "modules" / "CartPole_PPO.py")
    folder = hostile_copy(original, evil, preset(file=file, module=known.module_name))
    (folder / "preset.py").write_text(known.source)
    with_checksum(folder)
    sys.path.remove(str(evil.parent / "modules"))
    use(folder)
    assert str(evil.parent / "modules") not in sys.path


WALK = """
import gymnasium
from dataclasses import dataclass
from coach_rl import (
    BasicGraphParameters, BasicRLGraphManager, EnvironmentEpisodes, EnvironmentSteps,
    GymnasiumParameters, PPOAgentParameters, PPOAlgorithmParameters, ScheduleParameters,
)

@dataclass(frozen=True, kw_only=True)
class Mine(PPOAgentParameters):
    pass

def graph_manager():
    algorithm = PPOAlgorithmParameters(rollout=EnvironmentSteps(16), epochs=1, minibatch=8)
    return BasicRLGraphManager(BasicGraphParameters(
        agent=Mine(algorithm=algorithm),
        environment=GymnasiumParameters(level="beside_trust_test:Env"),
        schedule=ScheduleParameters(
            training=EnvironmentSteps(20), evaluation_episodes=EnvironmentEpisodes(1)
        ),
    ))
"""
BESIDE = """
from gymnasium.envs.classic_control import CartPoleEnv

class Env(CartPoleEnv):
    pass
"""


@pytest.fixture
def own_run(tmp_path, monkeypatch):
    """A run of the user's own preset, with a class of its own and an environment beside it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    (home / "walk.py").write_text(WALK)
    (home / "beside_trust_test.py").write_text(BESIDE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if "coach_preset_walk" in name or "beside" in name]:
        monkeypatch.delitem(sys.modules, name)
    loaded = rl.load_preset(rl.find_preset(str(home / "walk.py")))
    return rl.run_experiment(
        loaded.build(),
        rl.Runtime(device="cpu"),
        name="walk",
        root=tmp_path,
        origin=Origin(preset=loaded),
        settings=QUIET,
    ).folder.path


def test_own_run_needs_no_trust(own_run):
    module = manifest_of(own_run)["preset"]["module"]
    del sys.modules[module], sys.modules["beside_trust_test"]
    load(own_run)
    evaluate(own_run)
    resume(own_run)


@pytest.mark.filterwarnings("default::coach_rl.core.errors.CoachWarning")
def test_run_from_elsewhere_error_has_the_flag_to_add(own_run, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    module = manifest_of(own_run)["preset"]["module"]
    words = ["-crd", str(own_run), "--evaluate", "1", "--plain"]
    assert main(words) == 2
    said = capsys.readouterr().err
    asked = f"--trust beside_trust_test,{module}"
    assert asked in said
    assert "(in Python trust=('beside_trust_test', 'coach_preset_walk_" in said
    assert main([*words, *asked.split()]) == 0
    assert f"running {own_run / 'preset.py'}, which is trusted" in capsys.readouterr().err
    with pytest.warns(rl.CoachWarning):
        coach_rl.load(own_run, trust=(module,))
    asks = pytest.raises(rl.ConfigurationError)
    with pytest.warns(rl.CoachWarning), asks:
        rl.resume_experiment(own_run, steps=rl.EnvironmentSteps(30), trust=(module,))


def test_trusted_preset_with_other_text_is_refused(own_run, evil, monkeypatch):
    module = manifest_of(own_run)["preset"]["module"]
    monkeypatch.delitem(sys.modules, module)
    (own_run / "preset.py").write_text(f"open({str(evil)!r}, 'w').close()\n")
    with_checksum(own_run)
    with pytest.raises(rl.CoachError):
        coach_rl.load(own_run)
    with pytest.raises(rl.CoachError):
        coach_rl.load(own_run, trust=(module,))
    assert not evil.exists()


def test_home_that_cannot_be_written_needs_trust(own_run, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(rl.ConfigurationError):
        load(own_run)


def test_untrusted_modules_below_a_trusted_one_are_trusted():
    trust = Trust(modules=frozenset({"mine"}))
    assert trust.untrusted(["mine:A", "mine.deep:B", "mines:C", "coach_rl.core:D"]) == ["mines:C"]


@pytest.mark.parametrize(
    "name",
    ["gymnasium.wrappers:TimeLimit", "gymnasium.envs.classic_control:CartPoleEnv"],
)
def test_untrusted_classes_of_adapted_packages_are_trusted(name):
    assert Trust().untrusted([name]) == []


def test_shipped_preset_that_a_run_used_stays_own_code_when_its_text_changes():
    source, file = rl.find_preset("CartPole_PPO").path.read_text(), "/installed/CartPole_PPO.py"
    assert not is_own_preset(source, file)
    remember_own_code([], (source, file))
    assert is_own_preset(source, file)
