"""Text from files and names of files on a terminal, which control characters would steer."""


def printable(text: str) -> str:
    """The text in one line: control characters, line ends and invisible marks shown escaped."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def one_line(text: str) -> str:
    """A message in one line: its line ends are spaces, other control characters shown escaped."""
    return printable(" ".join(text.split()))
