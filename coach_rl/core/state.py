"""What a saved state is made of."""

from typing import Any

State = dict[str, Any]
"""Dicts with str keys whose leaves are arrays, tensors, numbers, strings, bools, None or lists."""
