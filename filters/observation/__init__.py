"""Filters for observations, one per file: descriptions whose `build` returns an `InputStage`.

Imports `coach_rl.core` and the shared files of `coach_rl.filters`. Start with `clipping` for a
filter that is only a function, `normalization` for one with statistics, `stacking` for one that
remembers something per row.
"""
