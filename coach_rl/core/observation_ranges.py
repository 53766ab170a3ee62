"""Ranges of what agents observe, as signals: `signals/<level>/observations/<key>/min` and `max`."""

from coach_rl.core.agents import AnyAgent
from coach_rl.core.inspection_points import stand_before
from coach_rl.core.parts import walk
from coach_rl.core.records import Action, ActionRequest
from coach_rl.core.signals import Signals

OBSERVATIONS = "observations"
"""The part of the names behind the agent's."""


def note_observations(agent: AnyAgent, signals: Signals) -> None:
    """Let an agent, and each member of a group, note all it observes whenever it acts.

    Args:
        agent: The agent; its `act` is replaced on this object.
        signals: The signals of its level.
    """
    for part in walk(agent):
        if part.is_agent:
            own = signals
            for member in part.members:
                own = own.of(member)
            _note(part.value, own)


def _note(agent: AnyAgent, signals: Signals) -> None:
    act = agent.act

    def noted(row_state: object, request: ActionRequest, clock: object) -> Action:
        for key, values in request.observation.items():
            signals.note(f"{OBSERVATIONS}/{key}", values)
        action: Action = act(row_state, request, clock)  # type: ignore[arg-type]  # only handed on
        return action

    stand_before(agent, "act", noted)
