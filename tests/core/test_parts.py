"""The tree of parts, and the services that walk it."""

from types import SimpleNamespace

from coach_rl.core.agents import explores
from coach_rl.core.parts import TimedCall, description_of, timed_calls, trajectories_of, walk
from coach_rl.core.runtime import update_modes
from coach_rl.core.signals import SILENT, note_signals
from coach_rl.sessions.trained_agent import modules_of


class Network:
    def __init__(self, name):
        self.module = f"module {name}"

    def summary(self):
        return "3 parameters"


class Engine:
    TIMED = {"step": "update"}  # noqa: RUF012 (as users write it)
    updates = "eager"

    def step(self, look):
        """Nothing."""


class Idle:
    def act(self):
        """Nothing."""

    observe = train = act


class Plain(Idle):
    """An agent without anything but its parts."""

    TIMED = {"network.summary": ""}  # noqa: RUF012 (as users write it)

    def __init__(self, name, *, explores=False):
        self.name, self.explores = name, explores
        self.network, self.engine, self.other = Network(name), Engine(), Engine()

    def parts(self):
        more = {"engine": self.engine, "guide_engine": self.other, "guide": None}
        return {"network": self.network, **more, "again": self.network}


class Group(Idle):
    def __init__(self, **members):
        self.members = members

    def parts(self):
        return self.members


def test_walk_yields_each_object_once_with_its_agent():
    agent = Plain("one")
    group = Group(left=agent)
    found = [(part.name, part.members, part.agent is agent) for part in walk(group)]
    assert found[0] == ("", (), False)
    assert [name for name, *_ in found[1:]] == ["left", "network", "engine", "guide_engine"]
    assert all(members == ("left",) and is_own for _, members, is_own in found[1:])


def test_timed_calls_name_methods_of_attributes_and_members():
    agent = Plain("one")
    assert TimedCall(agent.network, "summary", "") in timed_calls(agent)
    calls = list(timed_calls(Group(left=agent)))
    assert calls[:3] == [TimedCall(agent, each, "left") for each in ("act", "observe", "train")]
    assert TimedCall(agent.engine, "step", "update") in calls


def test_derived_properties_of_an_agent():
    group = Group(left=Plain("one"), right=Plain("two", explores=True))
    assert modules_of(group) == {
        "left": {"network": "module one"},
        "right": {"network": "module two"},
    }
    modes = {"one": "eager", "one/guide": "eager"}
    assert update_modes(group.members["left"]) == modes
    assert description_of(Plain("one")).splitlines() == [
        "network: 3 parameters",
        "updates: eager",
        "updates: eager",
    ]
    assert (explores(group), explores(group.members["left"])) == (True, False)
    assert trajectories_of(group) == {}


def test_note_signals_reaches_parts():
    heard = []
    source = SimpleNamespace(note_to=heard.append)
    note_signals(SimpleNamespace(parts=lambda: {"stage": source}), SILENT)
    assert heard == [SILENT]
