"""What the ant's workshop offers to other extensions; it is in `coach_rl.environments`."""

__all__: list[str] = []
