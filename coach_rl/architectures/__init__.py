"""Networks and how they are updated.

Torch modules (torsos that read observations, heads, actor-critics), the `NetworkWrapper` that keeps
a module's parameters flat with an optional target copy, and the `UpdateEngine` that turns a pure
loss into gradient steps. May import core and functional. Start with `actor_critic`, then
`update_engine`.
"""
