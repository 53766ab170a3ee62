"""Filming one episode of an evaluation, with the sub-goals of every level drawn in the scene.

recorder = EpisodeRecorder(VideoParameters())
graph_manager.watch_evaluations(recorder)       # before create_graph
for record in graph_manager.improve():
    if record.kind == "evaluation":
        write_video(recorder.shots, folder / f"step_{record.environment_steps}", parameters)
"""

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.interfaces import MarkRenderable, Renderable
from coach_rl.core.marks import Mark
from coach_rl.core.records import Array, EnvResponse
from coach_rl.graph_managers.episode_tracker import EpisodeTracker, FinishedEpisodes
from coach_rl.graph_managers.stack import Stack
from coach_rl.telemetry.video import RGB, CaptionLine, Film, Shot, VideoParameters, require_writable

LEVEL_COLOURS: tuple[RGB, ...] = (
    (230, 60, 50),
    (60, 200, 80),
    (200, 90, 230),
    (255, 150, 40),
    (60, 210, 220),
)
"""Colours of the goals of the levels below the top, the highest first; they repeat."""

_ROW = 0


class EpisodeRecorder:
    """Films the first episode of the first row of each evaluation.

    Nothing it does changes an evaluation's numbers: it looks at levels and draws frames.

    Args:
        parameters: How many frames are kept, and in what format they will be written.

    Raises:
        ConfigurationError: A format needs a package that is not installed.
    """

    def __init__(self, parameters: VideoParameters) -> None:
        require_writable(parameters)
        self._parameters = parameters
        self._take: _Take | None = None

    @property
    def shots(self) -> list[Shot]:
        """The film of the last evaluation; empty before the first."""
        return [] if self._take is None else self._take.film.shots

    def prepare(self, stack: Stack, seed: int) -> None:
        """Make sure that the stack's environment can be drawn, by drawing a frame.

        Args:
            stack: The evaluation's.
            seed: What to reset the stack with first; an evaluation resets it once more.

        Raises:
            ConfigurationError: It has no pictures.
            RunError: It cannot be drawn on this machine.
        """
        camera = _Camera(stack)
        stack.reset(seed)
        camera.frame()

    def begin(self, stack: Stack) -> None:
        """An evaluation begins; its stack was just reset."""
        film = Film(frame_skip=self._parameters.frame_skip, max_frames=self._parameters.max_frames)
        self._take = _Take(film, stack)

    def note_tick(self, answer: EnvResponse) -> None:
        """The stack has done a tick, in which the simulators answered this."""
        assert self._take is not None
        self._take.note_tick(answer)


class _Camera:
    """Draws row 0 of a stack's environment, with the goals of its levels where it can.

    Args:
        stack: Whose.

    Raises:
        ConfigurationError: The environment has no pictures.
    """

    def __init__(self, stack: Stack) -> None:
        environment = stack.simulators
        if not isinstance(environment, Renderable):
            raise ConfigurationError(
                f"evaluations cannot be filmed: a {type(environment).__name__} has no pictures; "
                "ask for no videos (-dg, -dm)"
            )
        self._plain: Renderable = environment
        self._marking = environment if isinstance(environment, MarkRenderable) else None
        self._levels = stack.levels[1:]

    def frame(self) -> Array:
        """Render the current state."""
        if self._marking is None:
            return self._plain.render(_ROW)
        return self._marking.render(_ROW, self._marks(self._marking))

    def ended_frame(self) -> Array | None:
        """The end of the episode that the last tick ended; None where it can't be seen any more."""
        if self._marking is None:
            return None
        return self._marking.render_ended(_ROW, self._marks(self._marking))

    def _marks(self, environment: MarkRenderable) -> list[Mark]:
        marks = []
        for index, level in enumerate(self._levels):
            goals = level.goals
            if goals is None or not goals.given[_ROW]:
                continue
            space = goals.goal_space
            place = environment.goal_place(space.key, space.elements, goals.goal[_ROW])
            if place is not None:
                red, green, blue = (part / 255 for part in level_colour(index))
                # Names are written on top of everything: seen where a goal lies inside a wall.
                colour = (red, green, blue, 1.0)
                marks.append(Mark(place=place, colour=colour, label=level.name))
        return marks


class _Take:
    """One episode being filmed.

    Args:
        film: Takes the frames.
        stack: Just reset.
    """

    def __init__(self, film: Film, stack: Stack) -> None:
        self.film = film
        self._camera, self._levels = _Camera(stack), stack.levels[1:]
        self._tracker = EpisodeTracker(stack.num_envs)
        self._step = 0
        self._reward = 0.0
        self._is_over = False
        self._numbers = [0] * len(self._levels)
        """Number of goals that each level below the top has received."""
        self._has_goal = [False] * len(self._levels)
        """True for each of these levels that keeps its goal in the next tick."""
        self.film.add(self._camera.frame(), self._caption())

    def note_tick(self, answer: EnvResponse) -> None:
        """Film what a tick led to, until the episode is over."""
        if self._is_over or not (mine := answer.rows == _ROW).any():
            return
        self._step += int(answer.duration[mine][0])
        self._reward += float(answer.reward[mine][0])
        for index, level in enumerate(self._levels):
            self._numbers[index] += not self._has_goal[index]
            self._has_goal[index] = level.goals is not None and bool(level.goals.open[_ROW])
        ended = self._tracker.note(answer)
        if answer.faults and answer.lost[mine][0]:
            self._is_over = True
            self.film.end(self.film.shots[-1].frame, self._caption())
        elif ended is not None and (ended.rows == _ROW).any():
            self._is_over = True
            frame = self._camera.ended_frame()
            shown = self.film.shots[-1].frame if frame is None else frame
            self.film.end(shown, self._caption(ended))
        elif self.film.wants(self._step):
            self.film.add(self._camera.frame(), self._caption())

    def _caption(self, ended: FinishedEpisodes | None = None) -> list[CaptionLine]:
        """Step and reward; the number of its goal for each level that has one."""
        words = [f"step {self._step}", f"reward {self._reward:.5g}"]
        if ended is not None:
            words.append(self._ending(ended))
        lines = [CaptionLine(", ".join(words))]
        for index, level in enumerate(self._levels):
            if level.goals is None:
                continue
            text = f"{level.name}: goal {self._numbers[index]}"
            lines.append(CaptionLine(text, level_colour(index), has_dot=True))
        return lines

    def _ending(self, ended: FinishedEpisodes) -> str:
        if not self._tracker.reports_success:
            return "the end"
        return "success" if ended.success[ended.rows == _ROW][0] else "no success"


def level_colour(index: int) -> RGB:
    """The colour of the goals of a level below the top; 0 is the one right below."""
    return LEVEL_COLOURS[index % len(LEVEL_COLOURS)]
