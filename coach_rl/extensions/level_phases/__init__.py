"""Levels that warm up, freeze, thaw and take turns, and values that take steps by success.

Begin with `level_phases.py`: `LevelTimes`, what a preset gives a level, and the phases that follow.
"""
