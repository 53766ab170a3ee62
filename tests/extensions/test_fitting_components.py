"""Agents of extensions are found by `-cp`."""

from coach_rl.configuration.overrides import fitting
from coach_rl.core.agents import AgentParameters


def test_agents_of_extensions_are_fitting_components() -> None:
    names = {each.__name__ for each in fitting(AgentParameters)}
    assert {"HACAgentParameters", "AgentGroupParameters"} <= names
