"""Commands run in a folder of their own."""

from tests.cli.conftest import somewhere_else

__all__ = ["somewhere_else"]
