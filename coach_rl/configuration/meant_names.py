"""Answers to `from coach_rl import NAME` with an unknown name. Light: it is loaded at once."""

from collections.abc import Callable, Mapping, Sequence

from coach_rl.core.lazy_names import unknown_name


class MeantNames:
    """Finder of modules that are none: it answers `from PACKAGE import NAME` with what was meant.

    The statement takes a name that a package lacks for a module of it, and tries finders last.

    Args:
        package: The package.
        familiar: Returns the names that an unknown one may stand for.
    """

    def __init__(self, package: str, familiar: Callable[[], Mapping[str, Sequence[str]]]) -> None:
        self._package = package
        self._familiar = familiar

    def find_spec(self, name: str, *_: object) -> None:
        """Raise an `ImportError` where an unknown name of a class may stand for others."""
        package, last = name.rpartition(".")[::2]
        if package != self._package or (last.islower() and last not in self._familiar()):
            return
        meant = str(unknown_name(package, last, self._familiar())).partition(";")[2]
        if meant:
            raise ImportError(f"cannot import name {last!r} from {package!r};{meant}", name=last)
