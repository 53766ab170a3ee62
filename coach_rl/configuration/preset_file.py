"""A loaded preset: its control panel, and the experiment that it builds.

    preset = load_preset(find_preset("CartPole_PPO"))
    graph_manager = preset.build({"learning_rate": 1e-3})

The panel holds the few settings that are changed most often. A preset's function takes one frozen
dataclass, whose fields are the panel, or keyword arguments; their meanings are read from the
docstrings beside them:

    def graph_manager(panel: Panel) -> GraphManager: ...
    def graph_manager(steps: int = 100_000, learning_rate: float = 1e-3) -> GraphManager: ...
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, is_dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from coach_rl.configuration.familiar_names import familiar_settings
from coach_rl.configuration.overrides import (
    apply_overrides,
    fitted,
    owners_advice,
    parameter_paths,
)
from coach_rl.configuration.own_classes import environment_classes
from coach_rl.configuration.parameters_json import constructor_fields, is_frozen_dataclass
from coach_rl.configuration.presets import DEFAULT_FUNCTION, PresetReference
from coach_rl.configuration.trust import code_in_parameters
from coach_rl.configuration.user_modules import (
    file_error,
    let_import_named,
    load_module,
    preset_module,
)
from coach_rl.core.errors import (
    CoachError,
    ConfigurationError,
    UnknownNameError,
    require_no_problems,
)
from coach_rl.core.steps import StepUnit
from coach_rl.core.typed_values import declared_types
from coach_rl.graph_managers.graph_manager import GraphManager

_ON_PANEL = {"environment.level": "level", "schedule.training": "steps"}
"""Names on a panel that stand for a path."""
_FEWEST_AND_MOST = (10**9, 1)
"""Steps with which a preset that uses them has another schedule."""
REQUIRED = inspect.Parameter.empty
"""The default of a panel argument that has none."""


@dataclass(frozen=True, kw_only=True)
class PanelArgument:
    """One setting of a preset's control panel."""

    name: str
    """The argument's name."""
    annotation: object
    """Its type; its default's where the preset declares none."""
    default: object
    """Its default, `REQUIRED` when there is none."""
    meaning: str
    """Meaning from its docstring; empty if there is none."""


def panel_type(function: Callable[..., object]) -> Callable[..., object] | None:
    """The dataclass of a function's only argument, `panel`; None where it takes others.

    Raises:
        ConfigurationError: The dataclass is not frozen.
    """
    annotation = declared_types(function).get("panel")
    is_alone = list(inspect.signature(function).parameters) == ["panel"]
    if not (is_alone and isinstance(annotation, type) and is_dataclass(annotation)):
        return None
    if not is_frozen_dataclass(annotation):
        raise ConfigurationError(
            f"{annotation.__name__} must be frozen; write @dataclass(frozen=True, kw_only=True) "
            "above it"
        )
    return annotation


@dataclass(frozen=True, kw_only=True)
class Preset:
    """A loaded preset file."""

    reference: PresetReference
    """Reference that finds the preset again."""
    module_name: str
    """Name under which its module, and so the classes defined in it, can be found."""
    source: str
    """The file's text."""
    definition: Callable[..., GraphManager] | GraphManager
    """The object that the file defines."""
    panel: Mapping[str, PanelArgument]
    """Its arguments; empty for a ready-made GraphManager."""
    panel_type: Callable[..., object] | None
    """The dataclass of the panel; None where the arguments are the function's own."""
    levels: tuple[str, ...]
    """The tasks it is made for (`-lvl`), from `LEVELS` of its panel; empty where that has none."""
    search: str
    """The search space of sweeps, from `SEARCH` of its panel; empty where that has none."""

    def build(self, panel: Mapping[str, object] | None = None) -> GraphManager:
        """The experiment with these panel values and the defaults for the others.

        Raises:
            UnknownNameError: A value's name is no argument of the preset.
            ConfigurationError: A value does not fit its argument's type, a required one is
                missing, or the preset fails or returns something else than a GraphManager.
        """
        values = dict(panel or {})
        for name in values:
            if name not in self.panel:
                raise UnknownNameError(
                    "panel argument",
                    name,
                    self.panel,
                    near=familiar_settings(name, self.panel) or (),
                    where=f"of {self.reference.name}",
                )
        return self._built(self._fitted(values))

    def _built(self, values: dict[str, object]) -> GraphManager:
        """The experiment with panel values that fit."""
        if isinstance(self.definition, GraphManager):
            return type(self.definition)(self.definition.parameters)
        result = self._call(self.definition, values)
        if not isinstance(result, GraphManager):
            raise ConfigurationError(
                f"preset {self.reference.path}: {self.reference.function}() must return a "
                f"GraphManager, got {type(result).__name__}; end it with "
                "`return BasicRLGraphManager(BasicGraphParameters(...))`"
            )
        return result

    def configure(self, overrides: Mapping[str, object]) -> GraphManager:
        """The experiment with overrides of the panel and of the resolved parameters.

        The modules that it names are found in the working directory as well. On another task than
        the preset's it has no target, unless the overrides have one.

        Args:
            overrides: Values by panel name or dotted path.

        Raises:
            ConfigurationError: As in `build` and `apply_overrides`.
        """
        to_panel = {name: value for name, value in overrides.items() if name in self.panel}
        to_parameters = {name: overrides[name] for name in overrides if name not in self.panel}
        for name in to_panel:
            require_given_once(name, to_parameters, self.panel)
        values = self._fitted(to_panel)
        # A preset may build an environment that its panel names, to see what it observes.
        named = [value for value in values.values() if isinstance(value, str) and ":" in value]
        let_import_named(named, Path.cwd())
        graph_manager = self._built(values)
        self._check_steps(values, graph_manager)
        if to_parameters:
            parameters = graph_manager.parameters
            _require_set_once(values, to_parameters, parameters)
            changed = apply_overrides(parameters, to_parameters, panel=self.panel)
            is_same_task = changed.environment.level == parameters.environment.level
            if not is_same_task and changed.validation == parameters.validation:
                changed = replace(changed, validation=None)
            graph_manager = type(graph_manager)(changed)
        let_import_named(code_in_parameters(graph_manager.parameters), Path.cwd())
        return graph_manager

    def _check_steps(self, values: Mapping[str, object], built: GraphManager) -> None:
        """Refuse steps to train for that are on the panel and that nothing depends on."""
        steps = values.get("steps")
        if not isinstance(steps, int) or steps == self.panel["steps"].default:
            return
        for other in _FEWEST_AND_MOST:  # steps may be rounded, or bounded on one side
            try:
                changed = self._built({**values, **self._fitted({"steps": other})})
            except CoachError:
                return  # it depends on them: not every number will do
            if changed.parameters.schedule != built.parameters.schedule:
                return
        raise ConfigurationError(
            f"preset {self.reference.path} does not use its argument 'steps': the schedule is "
            "the same with any; write training=EnvironmentSteps(steps) into its schedule"
        )

    def _fitted(self, values: Mapping[str, object]) -> dict[str, object]:
        missing = [
            argument.name
            for argument in self.panel.values()
            if argument.default is REQUIRED and argument.name not in values
        ]
        if missing:
            advice = f'give it with -cp "{missing[0]}=..."'
            if missing[0] == "level":
                advice = "give it with -lvl, such as -lvl CartPole-v1, or -lvl my_env:MyEnv"
            if "panel" in missing:
                advice = "a panel is annotated with its class: graph_manager(panel: Panel)"
            raise ConfigurationError(
                f"preset {self.reference.name} needs {', '.join(missing)}; {advice}"
            )
        values_that_fit = {}
        problems = []
        for name, value in values.items():
            annotation = self.panel[name].annotation
            default = self.panel[name].default
            try:
                values_that_fit[name] = fitted(value, annotation, default, name)
            except ConfigurationError as error:
                problems.append(error)
        require_no_problems(problems)
        return values_that_fit

    def setting(self, path: str, value: object) -> tuple[str, object]:
        """A setting that all presets have, as this one takes it: on its panel, or by its path.

        Args:
            path: Its path in the resolved parameters, such as `schedule.training`.
            value: Its value.
        """
        name = _ON_PANEL.get(path)
        if name is None or name not in self.panel:
            return path, value
        return name, value.count if isinstance(value, StepUnit) else value

    def panel_values(self, given: Mapping[str, object]) -> dict[str, object]:
        """The value of every panel argument: the given ones, and the defaults of the others."""
        defaults = {argument.name: argument.default for argument in self.panel.values()}
        return {**defaults, **self._fitted(given)}

    def _call(self, function: Callable[..., GraphManager], values: dict[str, object]) -> object:
        try:
            if self.panel_type is not None:
                return function(self.panel_type(**values))
            return function(**values)
        except UnknownNameError as error:
            raise ConfigurationError(f"{error}{owners_advice(error.name)}") from error
        except (CoachError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise file_error(self.reference.path, error) from error


def is_part_of(name: str, whole: str, panel: Collection[str] = ()) -> bool:
    """True if a name sets the same parameter as another one, or a part of its value.

    A panel name that stands for no path is a setting of its own.

    Args:
        name: A panel name or a path.
        whole: Another one.
        panel: The names on the panel.
    """
    paths = {name: path for path, name in _ON_PANEL.items()}
    own = {each: paths.get(each, f"({each})") for each in panel}
    return f"{own.get(name, name)}.".startswith(f"{own.get(whole, whole)}.")


def is_same_setting(first: str, second: str, panel: Collection[str] = ()) -> bool:
    """True if two names set the same parameter, or one of them a part of the other's value."""
    return is_part_of(first, second, panel) or is_part_of(second, first, panel)


def require_given_once(
    name: str, others: Iterable[str], panel: Collection[str] = (), by: str = ""
) -> None:
    """Raise `ConfigurationError` where one of the other names sets the same parameter.

    Args:
        name: A panel name or a path.
        others: Other names that are given.
        panel: The names on the panel.
        by: Where both are given, for the message.
    """
    for other in others:
        if is_same_setting(name, other, panel):
            both = f"{name} and {other} set the same parameter, which"
            what = name if name == other else both
            raise ConfigurationError(f"{what} is given twice{by}; give one")


def _require_set_once(
    panel: Mapping[str, object], paths: Mapping[str, object], parameters: object
) -> None:
    """Raise `ConfigurationError` where a path gives the only parameter of a panel name otherwise.

    Args:
        panel: Values by panel name.
        paths: Values by path that are set, too.
        parameters: What the preset makes of the panel.
    """
    for name in panel:
        ends = [
            path
            for path, value, _ in parameter_paths(parameters)
            if path.endswith(f".{name}") and value == panel[name]
        ]
        if len(ends) == 1 and paths.get(ends[0], panel[name]) != panel[name]:
            raise ConfigurationError(
                f"{name} and {ends[0]} set the same parameter, which is given twice; give one"
            )


def load_preset(reference: PresetReference) -> Preset:
    """The preset that a file defines; the file is executed.

    Raises:
        ConfigurationError: The file cannot be read or run; the message has the line.
        UnknownNameError: It does not define the requested name.
    """
    try:
        source = reference.path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the preset {reference.path}: {error}") from error
    module_name = preset_module(reference.path, source)
    module = load_module(module_name, source, path=reference.path, file=reference.path)
    definition = getattr(module, reference.function, None)
    if not callable(definition) and not isinstance(definition, GraphManager):
        raise _undefined(reference, module)
    is_function = not isinstance(definition, GraphManager)
    try:
        type_of_panel = panel_type(definition) if is_function else None
        panel = panel_arguments(type_of_panel or definition) if is_function else {}
    except ConfigurationError as error:
        raise ConfigurationError(f"preset {reference.path}: {error}") from error
    return Preset(
        reference=reference,
        module_name=module_name,
        source=source,
        definition=definition,
        panel=panel,
        panel_type=type_of_panel,
        levels=tuple(getattr(type_of_panel, "LEVELS", ())),
        search=str(getattr(type_of_panel, "SEARCH", "")),
    )


def panel_arguments(definition: Callable[..., object]) -> dict[str, PanelArgument]:
    """The fields of a panel's dataclass, or the keyword arguments of a function, by name.

    Raises:
        ConfigurationError: The function takes positional arguments, or a type does not exist.
    """
    annotations, meanings = declared_types(definition), documented(definition)
    if is_dataclass(definition):
        defaults = {field.name: _default(field) for field in constructor_fields(definition)}
    else:
        defaults = _defaults(definition)
    return {
        name: PanelArgument(
            name=name,
            annotation=annotations.get(name, _type_of(default)),
            default=default,
            meaning=meanings.get(name, ""),
        )
        for name, default in defaults.items()
    }


def documented(thing: Callable[..., object]) -> dict[str, str]:
    """The meaning of a dataclass's fields or a function's arguments, by name, each in one line.

    Of a class, the string under each field counts, and that of a base class where a field has none
    of its own; of a function, the `Args:` of its docstring. What is not documented is left out.
    """
    if not inspect.isclass(thing):
        return _documented_arguments(inspect.getdoc(thing) or "")
    meanings: dict[str, str] = {}
    for each in reversed(thing.__mro__):
        meanings |= _field_docstrings(each.__module__).get(each.__qualname__, {})
    return meanings


def _undefined(reference: PresetReference, module: ModuleType) -> ConfigurationError:
    """The error about a file that lacks the requested name."""
    names = [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(thing, GraphManager)
            or (inspect.isfunction(thing) and thing.__module__ == module.__name__)
        )
    ]
    if reference.function == DEFAULT_FUNCTION:
        others = "".join(f"; did you mean {reference.path.name}:{name}?" for name in names[:1])
        for name in environment_classes(reference.path)[:1]:
            task = f"{reference.path.stem}:{name}"
            others = f"; train an algorithm on its {name} with `coach train PPO -lvl {task}`"
        return ConfigurationError(
            f"preset {reference.path} defines no {DEFAULT_FUNCTION}: a function that returns a "
            f"GraphManager, or a GraphManager of that name{others}"
        )
    return UnknownNameError(
        "preset function", reference.function, names, where=f"in {reference.path}"
    )


def _default(field: Field[object]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return REQUIRED if field.default is MISSING else field.default


def _defaults(function: Callable[..., object]) -> dict[str, object]:
    defaults = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise ConfigurationError(
                f"{function.__name__}() must take keyword arguments only, '{parameter.name}' is "
                "positional"
            )
        if parameter.kind is not parameter.VAR_KEYWORD:
            defaults[parameter.name] = parameter.default
    return defaults


def _type_of(default: object) -> object:
    return Any if default is REQUIRED or default is None else type(default)


@cache
def _field_docstrings(module_name: str) -> dict[str, dict[str, str]]:
    """The strings under the fields of every class in a module, by qualified name."""
    try:
        source = inspect.getsource(sys.modules[module_name])
    except (KeyError, OSError, TypeError):
        return {}  # made at run time, so there is nothing to read
    found: dict[str, dict[str, str]] = {}
    _collect(ast.parse(source).body, "", found)
    return found


def _collect(body: list[ast.stmt], prefix: str, found: dict[str, dict[str, str]]) -> None:
    for node in body:
        if isinstance(node, ast.ClassDef):
            name = f"{prefix}{node.name}"
            found[name] = dict(
                (field.target.id, _in_one_line(below.value.value))
                for field, below in zip(node.body, node.body[1:], strict=False)
                if isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            )
            _collect(node.body, f"{name}.", found)


def _documented_arguments(docstring: str) -> dict[str, str]:
    """The entries of a docstring's `Args:`, whose continued lines are indented further."""
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", docstring, re.MULTILINE)
    if section is None:
        return {}
    entries = re.split(r"^ {4}(\w+)(?: \([^)]*\))?:", section[1], flags=re.MULTILINE)
    return {
        name: _in_one_line(text) for name, text in zip(entries[1::2], entries[2::2], strict=True)
    }


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
