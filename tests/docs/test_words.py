"""Docstrings are sentences with a subject, and everything is called by the field's own word."""

import ast
import re
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent.parent
PAGES = sorted(
    [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *(CHECKOUT / "docs").rglob("*.md")]
)
SOURCES = sorted(
    path
    for folder in ("coach_rl", "environments", "filters", "presets")
    for path in (CHECKOUT / folder).rglob("*.py")
    if not any(parent.is_symlink() for parent in path.parents)
)
FIELD_WORDS = {
    r"step[ _]sizes?": "learning rate",
    r"(?<!standard[ _])(?<!squared[_ ])deviations?": "standard deviation, or std in names",
    r"inverse_deviation": "inverse_std",
    r"halves of (?:the|each)": "half-ranges",
    r"parts of the box": "normalised actions",
    r"drawn evenly|evenly drawn": "uniformly",
    r"told": "received, reported",
    r"news": "metrics",
    r"loud": "exploring",
    r"quiet": "greedy",
    r"shall": "must, will, or the plain verb",
    r"(?:goes|went|going) on": "continues",
    r"speaks? of": "is about, names",
    r"what it reaches": "results",
}
"""Words that only this project would use, as patterns, each with the word to use instead."""
REGISTER = {
    r"says?|said|saying": "names, lists, shows, returns; a warning is printed",
    r"tells?|telling": "names, shows; distinguishes",
    r"asks?|asked|asking": "requests, reads, evaluates, calls",
    r"looks?|looked|looking": "checks, reads, inspects; searches",
    r"tak(?:e|es|ing) in|took in": "adds, records, updates",
    r"(?:go|goes|went|going) on": "continues",
    r"(?:come|comes|came) of": "the result, the outcome",
    r"head(?:s|ed|ing)? for": "has as its target, moves to",
    r"g(?:ive|ives|ave|iven|iving) out": "assigns, submits, returns",
    r"g(?:ive|ives|ave|iven|iving) up": "stops, abandons, drops",
    r"(?:made|evaluates?|evaluated) aside": "in the background",
    r"anew": "again, restarts, recomputes",
    r"whoever|nobody|somebody|one's own": "the person or part that is meant; no one is; your own",
    r"what there is": "the resources, the names that exist",
    r"mend(?:s|ed)?": "fixes, corrects",
    r"dearer": "more expensive, costs more",
    r"reckon(?:s|ed|ing)?": "computes, counts",
    r"luggage|errands?|parcels?|troubles?": "payload, job, bundle, failure: what it is",
}
"""Everyday verbs for technical acts, and metaphors for types, each with what to write instead."""
IN_PLAIN_WORDS = [*PAGES, *SOURCES]
ALLOWED = {  # messages and names that users' programs may match
    "coach_rl/extensions/data/level_data.py": ("asked",),  # a method of goal spaces
    "coach_rl/extensions/hits/timed_goals.py": ("asked",),  # a method of goal spaces
    "coach_rl/extensions/learned_goals/learned_goals.py": ("asked",),  # a method of goal spaces
    "coach_rl/extensions/planning/graph_rows.py": ("asked",),  # a key of checkpoints
    "coach_rl/extensions/planning/place_space.py": ("asked",),  # a method of goal spaces
    "coach_rl/core/agents.py": ("asked",),
    "coach_rl/core/goals.py": ("asked",),
    "coach_rl/runs/keeper.py": ("asked",),  # a reason stored with checkpoints
    "coach_rl/sessions/live_run.py": ("asked",),
    "docs/architecture.md": ("looking",),  # the name of an extension
    "coach_rl/runs/logs.py": ("tell",),  # of files
    "coach_rl/extensions/studies/sweeps/trials.py": ("tell", "ask"),  # of Optuna
    "coach_rl/graph_managers/evaluations.py": ("asked",),  # keys of checkpoints
    "coach_rl/graph_managers/graph_manager.py": ("tell",),
    "coach_rl/graph_managers/progress.py": ("tell",),
    "coach_rl/levels/goal_rewards.py": ("asked",),  # a method of goal spaces
    "coach_rl/extensions/learned_goals/changing_goals.py": ("asked",),  # a method of goal spaces
    "coach_rl/extensions/hac/hindsight_actions.py": ("asked",),  # a method of goal spaces
    "coach_rl/extensions/workers/collectors.py": ("asked",),
    "coach_rl/extensions/looking/inspector.py": ("looks",),
    "coach_rl/runs/folder.py": ("goes on",),
}
NO_SUBJECT = re.compile(
    r"\W*(what|where|who|whose|whom|how|whether|which|when|why|of|from|in|into|on|at|to|by|with|as"
    r"|has|have|is|are|was|were|shall)\b",
    re.IGNORECASE,
)
"""Beginnings of a docstring whose first sentence lacks its subject."""


def name_of(path):
    return path.relative_to(CHECKOUT).as_posix()


def pattern_of(*words):
    return re.compile(rf"(?<![A-Za-z])(?:{'|'.join(words)})(?![A-Za-z])", re.IGNORECASE)


def private_words(text, words=FIELD_WORDS):
    """(line, word, better) of each of these words; most texts have none, which one search shows."""
    text = re.sub(r"(?<=extensions)[./]looking", "", text)  # the name of an extension
    if not pattern_of(*words).search(text):
        return []
    found = []
    for word, better in words.items():
        for match in pattern_of(word).finditer(text):
            found.append((text.count("\n", 0, match.start()) + 1, match[0], better))
    return found


def words_in(paths, words):
    """(file, line, word, better) of each word that a file may not use."""
    return [
        (name_of(path), *each)
        for path in paths
        for each in private_words(path.read_text(), words)
        if each[1] not in ALLOWED.get(name_of(path), ())
    ]


def docstrings(tree):
    """(line, text) of modules, classes and functions, and of the strings under fields."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for before, statement in zip([None, *body], body, strict=False):
            under = before is None or isinstance(before, ast.AnnAssign | ast.Assign)
            value = getattr(statement, "value", None)
            text = getattr(value, "value", None)
            if under and isinstance(statement, ast.Expr) and isinstance(text, str):
                yield statement.lineno, text


def without_subject(tree):
    return [
        (line, text.strip().splitlines()[0])
        for line, text in docstrings(tree)
        if NO_SUBJECT.match(text)
    ]


def test_terms_of_the_field():
    assert not words_in([*PAGES, *SOURCES], FIELD_WORDS)


def test_plain_words():
    assert not words_in(IN_PLAIN_WORDS, REGISTER)


def test_docstrings_have_a_subject():
    found = {name_of(path): without_subject(ast.parse(path.read_text())) for path in SOURCES}
    assert not {name: each for name, each in found.items() if each}


def test_private_words_are_found():
    assert private_words("Its step size is small.\nA deviation of 1.") == [
        (1, "step size", "learning rate"),
        (2, "deviation", "standard deviation, or std in names"),
    ]
    assert private_words("a standard deviation, squared_deviations, a shallow network") == []
    assert [each[1] for each in private_words("It says so anew, and\nnobody looks.", REGISTER)] == [
        "says",
        "looks",
        "anew",
        "nobody",
    ]
    assert private_words("an essay, a task, seats, header", REGISTER) == []


def test_docstring_without_subject_is_found():
    source = 'x: int = 1\n"""Of the samples."""\ndef f():\n    """Where it is."""\n'
    assert without_subject(ast.parse(source)) == [(2, "Of the samples."), (4, "Where it is.")]
    assert without_subject(ast.parse('def f():\n    """Return where it is."""\n')) == []
