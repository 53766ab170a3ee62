"""Members of a group with mixed actions."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.runtime import Runtime
from coach_rl.environments.pettingzoo import PettingZooParameters
from coach_rl.extensions.groups.agent_group import AgentGroupParameters, GroupMember
from coach_rl.extensions.members.action_parts import ActionPart
from tests.extensions.groups.test_pettingzoo import needs_pettingzoo
from tests.small_runs import experiment, ppo


@needs_pettingzoo
@pytest.mark.parametrize("shares", [None, "bird"])
def test_members_of_a_group_have_mixed_actions(shares):
    """Two birds with wings as arguments of their cry; each has an agent, or they share one."""
    agent = replace(ppo(), arguments={"wings": ("cry", 1)})
    members = [
        replace(GroupMember.of(replace(agent, name=name)), shares=shares)
        for name in ("hawk", "kite")
    ]
    manager = experiment(
        AgentGroupParameters(members=tuple(members)),
        PettingZooParameters(level="tests.environments.little_parallel:Birds"),
        training=100,
    )
    manager.create_graph(Runtime(seed=0, device="cpu"))
    with manager:
        records = list(manager.improve())
    learned = {record.agent for record in records if record.kind == "train"}
    assert learned == ({"hawk", "kite"} if shares is None else {shares})


def test_parts_of_a_member_have_names_without_their_shared_prefix():
    whole = spaces.Dict(
        {"a/b/kind": spaces.Discrete(2), "a/b/far": spaces.Box(0, 1, (1,)), "c": spaces.Discrete(3)}
    )
    part = ActionPart(("a/b/kind", "a/b/far"), whole)
    assert part.space == spaces.Dict({"kind": whole["a/b/kind"], "far": whole["a/b/far"]})
    action = {"kind": np.array([1]), "far": np.array([[0.5]])}
    assert part.split(action) == {"a/b/kind": action["kind"], "a/b/far": action["far"]}
    part = ActionPart(("c", "a/b/far"), whole)
    assert set(part.space.spaces) == {"c", "a/b/far"}
