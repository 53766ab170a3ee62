"""Filters for rewards, one per file: frozen descriptions whose `build` returns an `InputStage`.

Imports `coach_rl.core` and the shared files of `coach_rl.filters`. Rewards are float64 [R] in a Box
of shape (). Start with `clipping` for a filter that is only a function, `return_scaling` for one
with statistics and memory per row.
"""
