"""Agents: observe, act, train.

`agent` holds what all of them share (filters, row state, heat-up, transitions); each algorithm is
one file. May import core, functional, architectures, memories and exploration_policies. Start with
`agent`, then `ppo_agent`.
"""
