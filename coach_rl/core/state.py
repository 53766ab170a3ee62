"""What a saved state is made of."""

from typing import Any

State = dict[str, Any]
"""A tree of dicts with str keys whose leaves are arrays, tensors, numbers, strings, booleans, None or lists."""
