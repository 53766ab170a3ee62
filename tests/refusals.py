"""The check that tables of errors share."""

import re
from collections.abc import Callable

import pytest


def check_refused(call: Callable[[], object], kind: type[Exception], message: str) -> None:
    """Check the kind of a call's error or warning, and its message of one line.

    Args:
        call: What fails, or warns.
        kind: The class of the error or the warning.
        message: Parts of the message in their order, with " ... " between them.
    """
    if issubclass(kind, Warning):
        with pytest.warns(kind) as warned:
            call()
        lines = [str(each.message) for each in warned]
    else:
        with pytest.raises(kind) as raised:
            call()
        lines = [str(raised.value)]
    pattern = ".*".join(map(re.escape, message.split(" ... ")))
    assert any(re.search(pattern, line) for line in lines), lines
    assert not any("\n" in line for line in lines)
