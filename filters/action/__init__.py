"""Filters for actions, one per file: frozen descriptions whose `build` returns an `ActionStage`.

Imports `coach_rl.core` and the shared files of `coach_rl.filters`. Every filter here maps both
ways; start with `linear_box_to_box_map`.
"""
