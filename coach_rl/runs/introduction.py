"""The introduction of a run in TensorBoard, beside its records: texts and hyper-parameters.

All of it comes from the run's folder, so a run that is resumed or forked has it as well.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping

from coach_rl.configuration.parameters_json import ITEMS_TAG, LIST_TAG, TYPE_TAG
from coach_rl.configuration.strict_json import Json, read_text
from coach_rl.runs.folder import RunFolder, read_manifest
from coach_rl.telemetry.tables import markdown, written
from coach_rl.telemetry.tensorboard import Introduction

_COUNT = "count"
"""The only value of a step unit."""


def introduction(folder: RunFolder, levels: str) -> Introduction:
    """Texts and hyper-parameters of a run.

    Args:
        folder: The run's; its manifest is written.
        levels: The levels and their agents, for people.
    """
    manifest = read_manifest(folder)
    changed = manifest.get("differences", {})
    texts = {
        "command": _command(manifest),
        "differences": _differences(manifest),
        "levels": _code(levels),
        "parameters": _table(("parameter", "value"), flat(manifest["parameters"]).items()),
    }
    if manifest["preset"] is not None:
        texts["preset"] = _code(read_text(folder.preset), "python")
    parameters = manifest["parameters"]
    settings = {
        "task": manifest["level"],
        "num_envs": parameters.get("num_envs"),
        **{name: value for name, value in manifest["panel"].items() if name != "level"},
        **{name: now for name, (_, now) in changed.items()},
        "seed": manifest["task"]["seed"],
    }
    return Introduction(
        texts=texts,
        settings={name: _setting(value) for name, value in settings.items() if value is not None},
    )


def differences(default: Json, now: Json) -> dict[str, list[Json]]:
    """The differences of two documents of parameters: both values by path, None where missing."""
    before, after = flat(default), flat(now)
    return {
        path: [before.get(path), after.get(path)]
        for path in {**before, **after}
        if before.get(path) != after.get(path)
    }


def flat(document: Json, path: str = "") -> dict[str, Json]:
    """The values of a document of parameters by path, as `-cp` takes them."""
    return dict(_leaves(document, path))


def _leaves(document: Json, path: str) -> Iterator[tuple[str, Json]]:
    parts = document
    if isinstance(document, dict):
        parts = document.get(ITEMS_TAG, document.get(LIST_TAG, document))
    if isinstance(parts, list):
        is_plain = not any(isinstance(part, dict | list) for part in parts)
        parts = {} if is_plain else {str(index): part for index, part in enumerate(parts)}
    if not isinstance(parts, dict) or not parts:
        yield path, document
        return
    kind = str(parts.get(TYPE_TAG, "")).rpartition(":")[2]
    inner = {name: part for name, part in parts.items() if name != TYPE_TAG}
    if set(inner) == {_COUNT}:
        yield path, inner[_COUNT]
        return
    if kind and path:
        yield path, f"({kind})"
    for name, part in inner.items():
        yield from _leaves(part, f"{path}.{name}" if path else name)


def _command(manifest: Json) -> str:
    lines = [
        f"**{manifest['name']}** on task **{manifest['level']}**, seed {manifest['task']['seed']},"
        f" begun {manifest['created']}",
        _code(shlex.join(manifest["command"]) or "(run from a program)"),
    ]
    if manifest["preset"] is not None:
        lines.append(f"Preset: `{manifest['preset']['name']}`")
    lines += [
        f"Forked from `{each['run']}` at {each['checkpoint']}, with the changes "
        f"`{each['changes'] or 'none'}`"
        for each in manifest.get("ancestry", ())
    ]
    parts = {**manifest["versions"], **manifest["hardware"]}
    lines.append(_table(("made with", ""), parts.items()))
    return "\n\n".join(lines)


def _differences(manifest: Json) -> str:
    changed: Mapping[str, list[Json]] = manifest.get("differences", {})
    if manifest["preset"] is None:
        return "This run was made by a program, without a preset."
    if not changed:
        return "All settings are the preset's defaults."
    rows = ((name, default, now) for name, (default, now) in changed.items())
    return _table(("setting", "default of the preset", "this run"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    return markdown(written(head, (tuple(map(_cell, row)) for row in rows), texts=len(head)))


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f"`{text}`".replace("|", "\\|").replace("\n", " ") if text else "-"


def _code(text: str, language: str = "") -> str:
    return f"~~~~{language}\n{text.rstrip()}\n~~~~"


def _setting(value: Json) -> bool | float | str:
    return value if isinstance(value, bool | int | float | str) else str(value)
