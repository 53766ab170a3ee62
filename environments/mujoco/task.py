"""The protocol of a MuJoCo task: a model, the start of an episode, observations and rewards."""

from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from coach_rl.core.errors import ParameterError, UnknownNameError, require
from coach_rl.core.interfaces import Place
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive, Rising
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.mujoco.engine import mujoco

Number = float | int
"""A number that stays an integer if given as one, as in Gymnasium, whose results depend on it."""
_NO_ISLANDS = int(getattr(mujoco.mjtDisableBit, "mjDSBL_ISLAND", 0))
"""Flag of MuJoCo; versions without it search for islands only on request."""
Range = Annotated[tuple[float, float], Rising(strictly=False)]
"""Lower and upper bound."""
Judgement = tuple[FloatArray, BoolArray, dict[str, Array]]
"""Rewards [R], whether each episode has terminated [R], and further information [R, ...] each."""


class Scene:
    """The scene shared by all simulators of a batch: the model, and the helpers tasks use.

    Attributes:
        model: The compiled model.
        dt: Seconds of simulated time per step of the environment.
        init_qpos: Joint positions of the model's rest pose, [nq].
        init_qvel: Joint velocities of the rest pose, [nv].
    """

    def __init__(self, model: mujoco.MjModel, frame_skip: int) -> None:
        if model.ntree == 1:
            # There is one island then. MuJoCo's search for others at each step takes up to a tenth
            # of its time and changes no bit.
            model.opt.disableflags |= _NO_ISLANDS
        self.model = model
        self.dt: float = model.opt.timestep * frame_skip
        rest = mujoco.MjData(model)
        self.init_qpos: FloatArray = rest.qpos.copy()
        self.init_qvel: FloatArray = rest.qvel.copy()
        self._bodies = {model.body(index).name: index for index in range(model.nbody)}

    def body(self, name: str | int) -> int:
        """The index of a body, e.g. for `state.xpos[:, index]`; an index is returned unchanged."""
        if isinstance(name, int):
            count = len(self._bodies)
            require(0 <= name < count, f"the MuJoCo model has bodies 0 to {count - 1}, got {name}")
            return name
        if name not in self._bodies:
            raise UnknownNameError("body in the MuJoCo model", name, self._bodies)
        return self._bodies[name]


class MujocoState:
    """R simulators at one moment: an array [R, ...] per name in the task's `reads`.

    `state.qpos` is [R, nq] and holds what `MjData.qpos` held in each simulator. The arrays are
    never written to.
    """

    def __init__(self, scene: Scene, arrays: dict[str, Array]) -> None:
        self.__dict__.update(arrays)
        self.scene = scene
        self.arrays = arrays

    def __getattr__(self, name: str) -> Array:
        raise AttributeError(
            f"the task does not read MjData.{name}; add '{name}' to its `reads`, "
            f"now {tuple(self.arrays)}"
        )

    def take(self, rows: Array) -> "MujocoState":
        """The state of some rows."""
        return MujocoState(self.scene, {name: a[rows] for name, a in self.arrays.items()})

    def replaced(self, rows: Array, other: "MujocoState") -> "MujocoState":
        """A new state in which some rows are those of `other`."""
        arrays: dict[str, Array] = {}
        for name, array in self.arrays.items():
            arrays[name] = array.copy()
            arrays[name][rows] = other.arrays[name]
        return MujocoState(self.scene, arrays)


@parameter_class
class MujocoTask:
    """A task on an MJCF model; subclass it for a task of your own.

    A subclass is a frozen dataclass: its fields are the task's parameters, its methods are
    vectorised over simulators. `observation` and `reward` are needed; `terminated`, `info` and
    `reset` where they differ from never, nothing and the model's rest pose.
    """

    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel")
    """The `MjData` arrays that the methods read; `cfrc_ext`, `cfrc_int` and `cacc` cost extra."""
    max_episode_steps: ClassVar[int | None] = 1000
    """Steps after which an episode is truncated, unless the parameters set another limit."""

    xml_file: str = ""
    """Path of the MJCF file, or the MJCF text itself (it starts with `<`).

    Empty only for a task that overrides `load` and builds its model itself.
    """
    frame_skip: Positive[int] = 1
    """Simulator steps per step of the environment."""
    default_camera_config: FrozenMapping[str] | None = None
    """`mujoco.MjvCamera` attributes for rendering, e.g. distance, elevation, trackbodyid."""
    camera_id: int | None = None
    """Render from this camera of the model; None: see `camera_name`."""
    camera_name: str | None = None
    """Render from this camera of the model; None: a free camera that follows the robot."""
    width: Positive[int] = 480
    """Frame width in pixels."""
    height: Positive[int] = 480
    """Frame height in pixels."""
    max_geom: Positive[int] = 1000
    """Most geometries drawn in a frame."""
    visual_options: FrozenMapping[int] | None = None
    """`mujoco.mjtVisFlag` switches for rendering; None: MuJoCo's own."""

    def __post_init__(self) -> None:
        require(len(self.reads) > 0, f"{type(self).__name__}.reads must name an MjData array")
        require(
            self.camera_id is None or self.camera_name is None,
            f"{type(self).__name__} takes camera_id or camera_name, got both",
        )

    @property
    def level(self) -> str:
        """The task's name in runs."""
        return type(self).__name__

    @property
    def has_own_advance(self) -> bool:
        """Return whether `advance` is called for each step; otherwise a step costs less."""
        return type(self).advance is not MujocoTask.advance

    def load(self) -> mujoco.MjModel:
        """Compile the model.

        Raises:
            ParameterError: The file is missing or is no valid MJCF.
        """
        try:
            if self.xml_file.lstrip().startswith("<"):
                return mujoco.MjModel.from_xml_string(self.xml_file)
            return mujoco.MjModel.from_xml_path(str(self._path()))
        except ValueError as error:
            is_text = self.xml_file.lstrip().startswith("<")
            which = "given as text" if is_text else f"'{self.xml_file}'"
            reason = " ".join(str(error).split())
            raise ParameterError(
                f"{type(self).__name__}.xml_file, {which}, is no model: {reason}; correct it"
            ) from error

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """Set one simulator, at rest in its initial pose, to the start of an episode.

        Args:
            scene: The model and its rest pose.
            data: The simulator; write to `qpos`, `qvel`, `mocap_pos` and the like. `mj_forward`
                follows.
            rng: The row's own random stream.
        """

    def advance(
        self,
        scene: Scene,
        data: mujoco.MjData,
        action: FloatArray,
        rng: np.random.Generator,  # noqa: ARG002 (for subclasses)
    ) -> None:
        """Simulate one step; override it for motors, noise or rules that MuJoCo does not have.

        Threads call it for different rows at once, so it must write to nothing but `data`. Further
        state of a row belongs into `data.userdata` (reserve `nuserdata` in the model): it is saved
        and restored with the simulator.

        Args:
            scene: The model and its rest pose.
            data: The row's simulator.
            action: [A], float64.
            rng: The row's own random stream.
        """
        data.ctrl[:] = action
        mujoco.mj_step(scene.model, data, self.frame_skip)

    def observation(self, state: MujocoState) -> Array | dict[str, Array]:
        """The agent's observation: [R, ...], or such an array per observation key."""
        raise NotImplementedError(f"{type(self).__name__} needs a method `observation`")

    def reward(self, before: MujocoState, action: FloatArray, after: MujocoState) -> FloatArray:
        """Rewards of a step, [R].

        Args:
            before: The simulators before the step.
            action: [R, A] as it was sent.
            after: The simulators after the step.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method `reward` or `judge`")

    def terminated(self, state: MujocoState) -> BoolArray:
        """Return whether each episode has terminated, [R]."""
        return np.zeros(len(state.arrays[self.reads[0]]), np.bool_)

    def info(
        self,
        before: MujocoState,  # noqa: ARG002 (for subclasses)
        action: FloatArray,  # noqa: ARG002
        after: MujocoState,  # noqa: ARG002
    ) -> dict[str, Array]:
        """Further information on a step, [R, ...] each."""
        return {}

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
        """Reward, termination and info of a step at once; override it where they share work."""
        return (
            self.reward(before, action, after),
            self.terminated(after),
            self.info(before, action, after),
        )

    def reset_info(self, state: MujocoState) -> dict[str, Array]:  # noqa: ARG002 (for subclasses)
        """Information on the start of an episode, [R, ...] each."""
        return {}

    def goal_place(
        self,
        key: str,  # noqa: ARG002 (for subclasses)
        elements: tuple[int, ...],  # noqa: ARG002
        goal: FloatArray,  # noqa: ARG002
    ) -> Place | None:
        """The position of a goal in the scene; None draws nothing.

        Args:
            key: The observation key of what is achieved.
            elements: [G] elements of that key that are the goal.
            goal: [G].
        """
        return None

    def _path(self) -> Path:
        path = Path(self.xml_file).expanduser()
        require(path.is_file(), f"{type(self).__name__}.xml_file '{self.xml_file}' does not exist")
        return path
