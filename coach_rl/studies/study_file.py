"""A study's file: a Python file that defines `study`, a function that returns a Study."""

import hashlib
import inspect
import re
from dataclasses import replace
from pathlib import Path

from coach_rl.configuration.user_modules import file_error, load_module
from coach_rl.core.errors import CoachError, ConfigurationError, UnknownNameError
from coach_rl.studies.study import Study, Variant

DEFAULT_FUNCTION = "study"
"""The function that a study's file defines."""


def load_study(text: str) -> Study:
    """The study in `FILE.py` or, where a file has several, `FILE.py:FUNCTION`.

    The preset files and pages that it names are looked for from its folder.

    Raises:
        ConfigurationError: There is no such file, it fails, or what it returns is no Study.
        UnknownNameError: It has no function of that name.
    """
    split = re.fullmatch(r"(.+\.py):(\w+)", text)
    location, name = (split[1], split[2]) if split else (text, DEFAULT_FUNCTION)
    path = Path(location).expanduser().resolve()
    if path.suffix != ".py" or not path.is_file():
        raise ConfigurationError(
            f"there is no study file '{location}'; give a .py file with {DEFAULT_FUNCTION}()"
        )
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the study {path}: {error}") from error
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    module_name = "_".join(("coach_study", re.sub(r"\W", "_", path.stem), digest))
    module = load_module(module_name, source, path=path, file=path, kind="study")
    function = getattr(module, name, None)
    if not callable(function):
        functions = [
            each
            for each, thing in vars(module).items()
            if callable(thing) and getattr(thing, "__annotations__", {}).get("return") in _RETURNS
        ]
        if name == DEFAULT_FUNCTION and not functions:
            raise ConfigurationError(
                f"{location} defines no {DEFAULT_FUNCTION}: a function that returns a Study"
            )
        raise UnknownNameError(
            "study", name, functions, _advice(location, functions), where=f"in {location}"
        )
    try:
        study = function()
    except CoachError as error:
        raise ConfigurationError(f"study {path}: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise file_error(path, error, "study") from error
    if not isinstance(study, Study):
        raise ConfigurationError(
            f"study {path}: {name}() must return a Study, got {type(study).__name__}"
        )
    question, _, about = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
    return replace(
        study,
        question=study.question or " ".join(question.split()),
        about=study.about or about.strip(),
        variants=tuple(_beside(path.parent, variant) for variant in study.variants),
        pages=tuple(str((path.parent / page).resolve()) for page in study.pages),
    )


_RETURNS = (Study, "Study")


def _advice(location: str, functions: list[str]) -> str:
    if functions:
        return f"name one of its studies: {location}:{functions[0]}"
    return f"define `def {DEFAULT_FUNCTION}() -> Study` in it"


def _beside(folder: Path, variant: Variant) -> Variant:
    """The variant, whose preset file is found from everywhere."""
    file, colon, function = variant.preset.partition(":")
    found = folder / Path(file).expanduser()
    if not file.endswith(".py") or not found.is_file():
        return variant
    return replace(variant, preset=f"{found.resolve()}{colon}{function}")
