"""A group of agents once more: one row, decision by decision in plain Python."""

from dataclasses import dataclass, field

from coach_rl.core.records import End
from coach_rl.extensions.groups.agent_group import AgentGroupParameters
from coach_rl.extensions.groups.arbiters import EnvironmentTurns, Turns
from coach_rl.extensions.members.requests import SWITCHED

CHOICES = 1_000
"""Number of actions of a member that acts by a script."""


@dataclass
class PlainGroup:
    """One row of a group; `decided` makes the decisions."""

    params: AgentGroupParameters
    playing: set = field(default_factory=set)
    open: dict = field(default_factory=dict)
    kept: dict = field(default_factory=dict)
    """The transitions of each member, and of the selector."""
    counts: dict = field(default_factory=dict)
    latest: str | None = None
    place: int = 0
    choice: str | None = None
    since: int = 0

    @property
    def names(self):
        return [member.agent.name for member in self.params.members]

    def decided(self, name, request, choices, starts, first):
        """An action: a number below `choices` where it is the selector's."""
        raise NotImplementedError

    def begin(self, name, request, choices, starts, first):
        """A decision, and whether what follows may be learned from."""
        self.counts[name] = self.counts.get(name, 0) + 1
        action = self.decided(name, request, choices, starts, first)
        self.open[name] = {
            "decided": (request["x"], action, starts, first),
            "reward": 0.0,
            "duration": 0,
            "below": None,
            "learns": request["learns"],
        }
        return action

    def close(self, name, event, terminated, truncated, end=0):
        own = self.open.pop(name)
        learns = event["learns"] and (self.params.arbiter is None or own["learns"])
        led_to = (event["x"], own["reward"], terminated, truncated, own["duration"], end)
        self.kept.setdefault(name, []).append((*own["decided"], *led_to, *own["below"], learns))

    def chosen(self, request, arbiter):
        """The name of the member that acts."""
        if isinstance(arbiter, EnvironmentTurns):
            return request["turn"]
        if isinstance(arbiter, Turns):
            order = arbiter.order or self.names
            for step in range(len(order)):
                name = order[(self.place + step) % len(order)]
                if name in self.playing:
                    self.place = (self.place + step + 1) % len(order)
                    return name
            return None
        due = request["starts"] or self.since >= arbiter.every or self.choice not in self.playing
        if due:
            name = arbiter.agent.name
            again = name in self.open
            if again:
                self.close(name, request, False, False)
            begins = request["episode_start"] and not again
            number = self.begin(name, request, len(self.names), not again, begins)
            self.choice, self.since = self.names[number], 0
        self.since += 1
        return self.choice

    def act(self, request):
        """The members' actions by name."""
        arbiter = self.params.arbiter
        if request["real_start"]:
            self.playing, self.place = set(self.names), 0
        if arbiter is None:
            return {
                name: self.begin(
                    name, request, CHOICES, request["starts"], request["episode_start"]
                )
                for name in self.names
                if name in self.playing
            }
        name = self.chosen(request, arbiter)
        if name not in self.playing:
            self.latest = None
            return {}
        again = name in self.open
        if again:
            self.close(name, request, False, False)
        is_new = request["episode_start"] or self.latest != name
        self.latest = name
        return {name: self.begin(name, request, CHOICES, not again, is_new and not again)}

    def observe(self, outcome):
        for member in (*self.params.members, None):
            reward, end = outcome["reward"], outcome["end"]
            terminated, truncated = outcome["terminated"], outcome["truncated"]
            if member is None:
                name = getattr(getattr(self.params.arbiter, "agent", None), "name", None)
            else:
                name, own = member.agent.name, outcome["own"][member.agent.name]
                if member.reward:
                    reward = own["reward"]
                if member.terminated and (own["terminated"] or own["truncated"]):
                    terminated = own["terminated"]
                    truncated = own["truncated"] and not terminated
                    end |= int(End.TERMINATED) * own["terminated"]
                    end |= int(End.TRUNCATED) * own["truncated"]
                    self.playing.discard(name)
            if name not in self.open:
                continue
            kept = self.open[name]
            if kept["below"] is None:
                kept["below"] = (outcome["below"], outcome["tested"])
            kept["reward"] += self.params.discount ** kept["duration"] * reward
            kept["duration"] += outcome["duration"]
            if self.params.arbiter is None or terminated or truncated:
                self.close(name, outcome, terminated, truncated, end)

    def switch(self, event):
        """Truncate all that is open."""
        for name in list(self.open):
            self.close(name, event, False, True, int(SWITCHED))

    def cut_off(self):
        self.open.clear()
