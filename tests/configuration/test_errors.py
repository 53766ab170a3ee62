"""Settings, presets and documents that are refused: a call, the kind of error, and its message."""

import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.configuration.overrides import apply_overrides, component_type, parse_overrides
from coach_rl.configuration.parameters_json import encode, spaces_from_json
from coach_rl.configuration.strict_json import from_json, read_json, write_json
from coach_rl.configuration.trust import users_trust
from coach_rl.core.errors import CheckpointError
from coach_rl.core.parameter_classes import parameter_class
from tests.configuration.test_components import resolved
from tests.configuration.test_overrides import Level, Parameters
from tests.configuration.test_parameters_json import Changeable, Leaf, Tree, decode, make_local
from tests.configuration.test_presets import FAKE, PANEL, PARTS, load
from tests.configuration.test_user_modules import ElsewhereParameters, run_of_script
from tests.refusals import check_refused

C, D, P, U = rl.ConfigurationError, CheckpointError, rl.ParameterError, rl.UnknownNameError
Case = tuple[Callable[[], object], type[Exception], str]


@parameter_class
class Named(Level):
    """A level with a name."""

    name: str


class Pair(NamedTuple):
    a: int


def preset(source: str | bytes, values: dict[str, object] | None = None) -> object:
    """The experiment of a preset file with this text."""
    Path("mine.py").write_bytes(source if isinstance(source, bytes) else source.encode())
    return load("mine.py").build(values)


def parts(**changed: str) -> str:
    return PARTS.format(**{"line": "", "schedule": "", "algorithm": "", **changed})


def configure(name: str | Path, **values: object) -> Callable[[], object]:
    return lambda: load(name).configure(values)


def without_count() -> None:
    document = encode(rl.EnvironmentSteps(5))
    del document["count"]
    decode(document)


def override(path: str, value: object = 1) -> Callable[[], object]:
    return lambda: apply_overrides(Parameters(), {path: value}, panel=["learning_rate"])


OVERRIDES: list[Case] = [
    *(
        (partial(parse_overrides, text), C, "")
        for text in (
            *("a=b==c", "a", "=1", "a..b=1", "a=", "a=(1", "a=__import__('os')", "a=1; a=2"),
            *("a b=1", "x=open('file')", "x=A(1)", "x=A(**{'a': 1})", "x=A(a=1, a=2)", "x=a.B()"),
            *("x=A()()", "x=A(b=lambda: 0)", "x=A(b=[c for c in d])", "x=A(b=1 + c)"),
            "x=A(b=f'{c}')",
        )
    ),
    *(
        (partial(component_type, wrong), U, f"unknown component '{wrong}'")
        for wrong in ("Adm", "GraphManager", "run_experiment", "AgentParameters", "__version__")
    ),
    (override("nam"), U, "unknown parameter 'nam'; did you mean 'name'"),
    (override("zzz"), U, "unknown parameter 'zzz'"),
    (override("learning_rat"), U, "'learning_rat'; did you mean 'learning_rate'"),
    (override("levels.0.algorthm.discount"), U, "'algorthm' of 'levels.0'; ... 'algorithm'"),
    (override("levels.0.algorithm.discout"), U, "of 'levels.0.algorithm'; ... 'discount'"),
    (override("levels.2.horizon"), U, "unknown parameter '2' of 'levels'; allowed: 0, 1"),
    (override("levels.-1.horizon"), U, "unknown parameter '-1' of 'levels'"),
    (override("options.frame_skp"), U, "'frame_skp' of 'options'; did you mean 'frame_skip'"),
    (override("name.first"), C, "'name' is 'x' and has no parameter 'first' below it"),
    (override("levels.0.horizon.x"), C, "'levels.0.horizon' is None and has no parameter 'x'"),
    (override("levels.0.algorithm.discount", "high"), C, ".discount must be float, got 'high'"),
    (override("levels.0", 3), C, "must be Level, got 3; ... e.g. levels.0.algorithm"),
    (override("options.frame_skip", "x"), C, "options.frame_skip must be float, got 'x'"),
    (override("levels.0.algorithm.discount", 2), P, "discount must lie in [0, 1], got 2.0"),
    *(
        (partial(apply_overrides, Parameters(), dict.fromkeys(names, 1)), C, "overlaps another one")
        for names in (("levels.0", "levels.0.horizon"), ("levels.0.horizon", "levels.0"))
    ),
    (
        partial(
            apply_overrides,
            Parameters(levels=(Named(name="top"), Named(name="low"))),
            {"levels.low.horizon": 1},
        ),
        U,
        "'low' of 'levels'; did you mean 'levels.1'?",
    ),
]
COMPONENTS: list[Case] = [
    (partial(resolved, "CartPole_DQN", text), C, message)
    for text, message in [
        ("agent.network.head=Prioritised()", "must be ReturnHead, got Prioritised(); fitting:"),
        ("agent.network.head=QuantileHeads()", "component 'QuantileHeads' in 'agent.network"),
        ("agent.exploration=Softmax()", "'agent.exploration' (fitting: Boltzmann, Categorical,"),
        ("agent.network.head=QuantileHead(cuont=3)", "'cuont' of QuantileHead ... did you mean"),
        ("agent.network.head=QuantileHead(count=many)", "count must be int > 0, got 'many'"),
        ("agent.network.head=QuantileHead(count=0)", "count must be int > 0, got 0"),
        (
            "agent.exploration=EpsilonGreedy(epsilon=LinearSchedule(start=1))",
            "LinearSchedule in 'agent.exploration: EpsilonGreedy.epsilon' needs end",
        ),
        ("agent.exploration=GoalSpace()", "GoalSpace in 'agent.exploration' needs low, high"),
        ("schedule.training=EnvironmentStep(5)", "did you mean 'EnvironmentSteps'"),
        ("num_envs=Adam()", "num_envs must be int, got Adam()"),
        ("agent.input_filter=RewardClippingFilter(low=0)", "fitting: InputFilter"),
        ("agent.exploration=gaussian", "e.g. agent.exploration.epsilon; fitting: Boltzmann, "),
        ("agent.memory.prioritised=True", "None, got True; fitting: Prioritised"),
        ("agent.input_filter.reward.0.low=5", '-cp "agent.input_filter=InputFilter(obs'),
        ("agent.memory.relabelling.ratio=5", '-cp "agent.memory.relabelling=Hindsight(goal=...'),
    ]
] + [
    (partial(resolved, "CartPole_PPO", text), C, message)
    for text, message in [
        ("clip=0.1", "'clip'; did you mean 'agent.algorithm.clip'"),
        ("algorithm.clip=0.1", "'algorithm.clip'; did you mean 'agent.algorithm.clip'"),
        ("agent.clip=0.1", "'clip' of 'agent'; did you mean 'agent.algorithm.clip'"),
        ("gae_lamda=0.9", "'gae_lamda'; did you mean 'agent.algorithm.gae_lambda'"),
        ("discont=0.9", "'discont'; did you mean 'discount'"),
        ("lr=1e-3", "did you mean 'learning_rate'"),
        ("agent.algorithm.gamma=0.9", "did you mean 'agent.algorithm.discount'"),
        ("discount=0.9, clip=0.1", "separate changes with ';'"),
        ("agent.optimizer.betas=(0.9, 0.99), discount=0.9", "separate changes with ';'"),
    ]
]
PRESETS: list[Case] = [
    (lambda: load("CartPole_PPx"), U, "did you mean 'CartPole_PPO'"),
    (lambda: load("no/such.py"), C, "no/such.py"),
    (lambda: load(FAKE.parents[1] / "pyproject.toml"), C, "pyproject.toml ... Python"),
    (lambda: load(f"{FAKE}:need"), U, "'need' ... did you mean 'needs'"),
    (lambda: load(f"{FAKE}:needs").build(), C, "give it with -lvl, such as"),
    (lambda: load(FAKE).build({"step": 1}), U, "'step' ... did you mean 'steps'"),
    (configure(FAKE, learning_rat=1), U, "'learning_rat'; did you mean 'learning_rate'"),
    (configure(FAKE, learning_rate="fast"), C, "learning_rate must be float, got 'fast'"),
    (configure(FAKE, signal_at=1.5), C, "signal_at must be int | None, got 1.5"),
    (configure(FAKE, **{"agent.learning_rat": 1}), U, "'learning_rat' of 'agent'"),
    (configure(FAKE, learning_rate=-1), C, "learning_rate must be above 0, got -1.0"),
    (configure(f"{FAKE}:ready_made", **{"agnt.learning_rate": 1}), U, "did you mean 'agent"),
    *(
        (partial(preset, source), kind, message)
        for source, kind, message in [
            (b"\xff\xfe\x00", C, "cannot read the preset"),
            (
                "from coach_rl.core.errors import ParameterError\n"
                "def graph_manager(x: int = 1):\n    raise ParameterError('x must be 2')\n",
                P,
                "x must be 2",
            ),
            (parts(line="environment = 'CartPole-v1'"), C, "write parameters('CartPole-v1')"),
            (
                parts(line="environment = gymnasium.make('CartPole-v1')"),
                C,
                "instead of making it, e.g. GymnasiumParameters(level='CartPole-v1')",
            ),
            (parts(line="environment = GymnasiumParameters(level=Own)"), P, "f'{__name__}:Own'"),
            (parts(line="agent = PPOAgentParameters"), C, "; write PPOAgentParameters(...)"),
            (parts(line="from coach_rl import Adam"), C, "import name 'Adam' from 'coach_rl'; did"),
            (parts(schedule="training=2.5"), C, "training must be EnvironmentSteps"),
            (parts(algorithm="clip='0.1'"), C, "clip must be float > 0, got '0.1'"),
            (parts(algorithm="roll_out=5"), C, "'roll_out' of ... did you mean 'rollout'?"),
            (
                parts(algorithm="learning_rate=0.1"),
                C,
                "(AdamParameters and AdamWParameters and",
            ),
            (PANEL.format(frozen="kw_only=True"), C, "Panel must be frozen; write @dataclass"),
            ("x = 1\ndef graph_manager(:\n    pass\n", C, "mine.py:2: SyntaxError: "),
            ("\nimport no_such\n", C, "mine.py:2: ModuleNotFoundError: No module named 'no_such'"),
            ("def f():\n    return 1 / 0\n\nf()\n", C, "mine.py:2: ZeroDivisionError: division"),
            ("raise SystemExit(3)\n", C, "mine.py:1: SystemExit: 3"),
            ("import json\njson.loads('{')\n", C, "mine.py:2: JSONDecodeError: "),
            ("x = 1\n", C, "mine.py defines no graph_manager: a function that returns a Graph"),
            ("", C, "mine.py defines no graph_manager"),
            ("def ppo(): ...\n", C, "defines no graph_manager: ... did you mean mine.py:ppo?"),
            ("def graph_manager(*steps): ...\n", C, "keyword arguments only, 'steps' is"),
            (
                "def graph_manager():\n    return 5\n",
                C,
                "must return a GraphManager, got int; end it",
            ),
            ("def graph_manager(panel):\n    return 5\n", C, "graph_manager(panel: Panel)"),
            ("def graph_manager():\n    return {}['a']\n", C, "mine.py:2: KeyError: 'a'"),
        ]
    ),
    *(
        (partial(preset, PANEL.format(frozen="frozen=True, kw_only=True"), values), C, message)
        for values, message in [
            ({"level": "moon", "steps": 5e0, "sizes": [8]}, "RuntimeError: moon 5 (8,)"),
            ({}, "needs level; give it with -lvl, such as -lvl CartPole-v1"),
        ]
    ),
]
NO_OTHER = "OfTheScript is defined in the program itself (__main__), ... no other process"
DOCUMENTS: list[Case] = [
    (
        lambda: run_of_script(Path("runs"), parts=(ElsewhereParameters(),)),
        C,
        f"{NO_OTHER} ... or leave out elsewhere",
    ),
    (lambda: run_of_script(Path("runs")), rl.CoachWarning, f"{NO_OTHER} ... `coach` cannot resume"),
    (partial(encode, Tree(anything=object())), C, "parameters.anything is a object"),
    (partial(encode, Tree(anything=lambda: None)), C, "cannot be imported"),
    (partial(encode, make_local()), C, "cannot be imported"),
    (partial(encode, Tree(options={"a": (0, {1, 2})})), C, "parameters.options.a.1 is a set"),
    (partial(encode, Pair(1)), C, "is a Pair, which JSON cannot rebuild"),
    (partial(encode, np.float32(0.1)), C, "is a float32, which JSON cannot rebuild"),
    (without_count, C, "lacks the fields count of EnvironmentSteps"),
    *(
        (partial(decode, encode(Leaf()) | change), C, message)
        for change, message in [
            ({"rat": 1.0}, "unknown field 'rat' of Leaf in parameters; did you mean 'rate'"),
            ({"rate": -1.0}, "Leaf.rate"),
            ({"$type": "subprocess:Popen"}, "Popen', which is not a frozen dataclass"),
            ({"$type": "subprocess:CompletedProcess"}, "which is not a frozen dataclass"),
            ({"$type": f"{Changeable.__module__}:Changeable"}, "is not a frozen dataclass"),
            ({"$type": "subprocess:Popn"}, "unknown name 'Popn' in module 'subprocess'; did you"),
            ({"$type": "no.such.module:X"}, "needs the module 'no.such.module'"),
            ({"$type": "nonsense"}, "expected 'module:QualName'"),
            ({"$type": 5}, "expected 'module:QualName'"),
        ]
    ),
    *(
        (partial(decode, document), C, message)
        for document, message in [
            ({"$enum": "subprocess:Popen", "value": 1}, "not an enum"),
            ({"$enum": "enum:Enum", "value": "x"}, "'enum:Enum', which is not an enum"),
            ({"$enum": "enum:Flag", "value": 1}, "'enum:Flag', which is not an enum"),
            ({"$enum": "coach_rl.core.clock:Phase", "value": "play"}, "is not a valid Phase"),
            ({"$reference": "os:environ"}, "no class and no function"),
        ]
    ),
    *(
        (partial(from_json, text, source="here"), D, "here is not valid JSON")
        for text in ("[NaN]", '{"a": 1, "a": 2}', "[1,", "")
    ),
    (lambda: write_json(Path("a.json"), {"x": math.nan}), ValueError, "not JSON compliant"),
    (lambda: read_json(Path("b.json")), D, "cannot read"),
    *(
        (partial(spaces_from_json, document, source="here"), D, "here describes no spaces")
        for document in (
            None,
            {},
            {"observation": {"kind": "Discrete", "n": 2, "start": 0}},
            {"observation": {"kind": "os:system"}},
            {"observation": {"kind": "Dict", "spaces": {"a": {"kind": "Discrete", "n": "x"}}}},
            {"observation": {"kind": "Dict", "spaces": {"a": {"kind": "Box", "dtype": "O"}}}},
            {"observation": {"kind": "Dict", "spaces": []}, "action": 3},
        )
    ),
    *(
        (partial(users_trust, [word]), C, "takes the names of modules")
        for word in ("", "os:system", "a b", "../evil", "a..b")
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "message"), [*OVERRIDES, *COMPONENTS, *PRESETS, *DOCUMENTS]
)
def test_configuration_invalid_input_error(call, kind, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    modules = set(sys.modules)
    check_refused(call, kind, message)
    if message.startswith("mine.py:") and "KeyError" not in message:  # it failed while loading
        assert not [name for name in set(sys.modules) - modules if name.startswith("coach_preset")]
