"""What the goal worlds offer to other extensions; the worlds are in `coach_rl.environments`."""

__all__: list[str] = []
