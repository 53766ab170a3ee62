"""A preset that is loaded: its control panel, and the experiment that comes out of it.

preset = load_preset(find_preset("CartPole_PPO"))
graph_manager = preset.build({"learning_rate": 1e-3})
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from coach_rl.configuration.components import made, owners_advice
from coach_rl.configuration.familiar_names import familiar_settings
from coach_rl.configuration.module_folders import let_import_named
from coach_rl.configuration.overrides import apply_overrides
from coach_rl.configuration.panel import REQUIRED, PanelArgument, panel_arguments, panel_type
from coach_rl.configuration.preset_module import file_error, load_module, preset_module
from coach_rl.configuration.presets import DEFAULT_FUNCTION, PresetReference
from coach_rl.configuration.trust import code_in_parameters
from coach_rl.core.errors import (
    CoachError,
    ConfigurationError,
    UnknownNameError,
    require_no_problems,
)
from coach_rl.core.steps import StepUnit
from coach_rl.core.typed_values import fit
from coach_rl.graph_managers.graph_manager import GraphManager

_ON_PANEL = {"environment.level": "level", "schedule.training": "steps"}
"""Names on a panel that stand for a path."""


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
        if isinstance(self.definition, GraphManager):
            return type(self.definition)(self.definition.parameters)
        result = self._call(self.definition, self._fitted(values))
        if not isinstance(result, GraphManager):
            raise ConfigurationError(
                f"preset {self.reference.path}: {self.reference.function}() must return a "
                "GraphManager, "
                f"got {type(result).__name__}"
            )
        return result

    def configure(self, overrides: Mapping[str, object]) -> GraphManager:
        """The experiment with overrides of the panel and of the resolved parameters.

        The modules that it names are found in the working directory as well.

        Args:
            overrides: Values by panel name or dotted path.

        Raises:
            ConfigurationError: As in `build` and `apply_overrides`.
        """
        to_panel = {name: value for name, value in overrides.items() if name in self.panel}
        to_parameters = {name: overrides[name] for name in overrides if name not in self.panel}
        graph_manager = self.build(to_panel)
        self._check_steps(to_panel, graph_manager)
        if to_parameters:
            parameters = graph_manager.parameters
            changed = apply_overrides(parameters, to_parameters, panel=self.panel)
            graph_manager = type(graph_manager)(changed)
        let_import_named(code_in_parameters(graph_manager.parameters), Path.cwd())
        return graph_manager

    def _check_steps(self, values: Mapping[str, object], built: GraphManager) -> None:
        """Refuse steps to train for that are on the panel and that nothing depends on."""
        if "steps" not in values or self.panel["steps"].default in (REQUIRED, values["steps"]):
            return
        usual = self.build({name: values[name] for name in values if name != "steps"})
        if usual.parameters.schedule == built.parameters.schedule:
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
            raise ConfigurationError(
                f"preset {self.reference.name} needs {', '.join(missing)}; "
                f'give it with -cp "{missing[0]}=..."'
            )
        fitted, problems = {}, []
        for name, value in values.items():
            annotation, default = self.panel[name].annotation, self.panel[name].default
            try:
                fitted[name] = fit(made(value, annotation, name), annotation, default, name)
            except ConfigurationError as error:
                problems.append(error)
        require_no_problems(problems)
        return fitted

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
        except CoachError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise file_error(self.reference.path, error) from error


def load_preset(reference: PresetReference) -> Preset:
    """Run a preset file and look at what it defines.

    Raises:
        ConfigurationError: The file cannot be read or run; says the line.
        UnknownNameError: It does not define the name asked for.
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


def _undefined(reference: PresetReference, module: ModuleType) -> ConfigurationError:
    """The error about a file that lacks what was asked for."""
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
        return ConfigurationError(
            f"preset {reference.path} defines no {DEFAULT_FUNCTION}: a function that returns a "
            f"GraphManager, or a GraphManager of that name{others}"
        )
    return UnknownNameError(
        "preset function", reference.function, names, where=f"in {reference.path}"
    )
