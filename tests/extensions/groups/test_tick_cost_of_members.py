"""Bytecodes of a tick of members in turn, which are the same on every machine."""

import coach_rl as rl
from coach_rl.core.clock import Phase
from tests.graph_managers.test_tick_cost import cost

__all__ = ["cost"]


def test_tick_of_members_in_turn_costs_at_most_three_fifths_more(cost):
    """Than a level of one agent where one acts, and than all of them alone where all do."""
    one, third, nothing = (
        cost.tick_bytecodes(cost.stack(params, num_envs=rows, phase=Phase.TRAIN))
        for params, rows in (
            (cost.agent("ppo", "a"), 6),
            (cost.agent("ppo", "a"), 2),
            (cost.Nothing(), 6),
        )
    )
    group = cost.group("ppo", rl.Turns())
    in_step, out_of_step = (
        cost.tick_bytecodes(cost.stack(group, num_envs=6, phase=Phase.TRAIN, in_step=is_in_step))
        for is_in_step in (True, False)
    )
    assert in_step < 1.6 * one
    assert 2 * in_step < out_of_step < 1.6 * cost.alone((one, third, nothing))
