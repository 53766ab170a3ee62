"""Faults of the learning code, drawn once: `mutants.toml` has them as function and expression.

    python tests/mutants.py --draw 60 --seed 0   # write mutants.toml; done once
    python tests/mutants.py 7 -- tests/memories  # is number 7 noticed by these tests?
    python tests/mutants.py all -- -m "not slow" # how many are

A mutant replaces an operator of an expression. The tests run in a copy of the checkout.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = Path(__file__).with_suffix(".toml")
LEARNING = (
    "coach_rl/functional/*.py", "coach_rl/memories/*.py", "coach_rl/agents/*_agent.py",
    "coach_rl/agents/learner.py", "coach_rl/agents/actor_critic_learner.py",
    "coach_rl/extensions/choices/discrete_sac.py", "coach_rl/extensions/choices/branching_dqn.py",
    "coach_rl/extensions/hindsight/*.py", "coach_rl/extensions/prioritised/*.py",
    "coach_rl/extensions/images/*.py", "coach_rl/extensions/mixed_actions/*.py",
    "coach_rl/extensions/hac/*.py", "coach_rl/extensions/hiro/*.py",
    "coach_rl/extensions/hits/*.py", "coach_rl/extensions/learned_goals/*.py",
    "coach_rl/architectures/*.py",
    "coach_rl/core/goals.py",
    "coach_rl/exploration_policies/*.py", "coach_rl/levels/[!c]*.py",
    "coach_rl/core/running_statistics.py", "filters/*.py",
)  # fmt: skip
"""Files that mutants are drawn from."""
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.Lt: ast.LtE,
    ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
"""The operator that replaces each."""
TYPES = {"int", "float", "bool", "str"}


def functions(file: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of a file that no other one contains, each with its qualified name."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from (
                (f"{node.name}.{each.name}", each)
                for each in node.body
                if isinstance(each, ast.FunctionDef)
            )


def mutated(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """The expressions of a function with an operator to replace, each with its replacement."""
    assert isinstance(node, ast.FunctionDef)
    for each in computed(node.body):
        match each:
            case ast.BinOp(left=ast.Name(id=kind)) if kind[0].isupper() or kind in TYPES:
                continue
            case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in SWAPPED:
                before = ast.unparse(each)
                each.op = SWAPPED[type(operator)]()
            case ast.Compare(ops=[operator]) if type(operator) in SWAPPED:
                before = ast.unparse(each)
                each.ops = [SWAPPED[type(operator)]()]
            case _:
                continue
        after = ast.unparse(each)
        if isinstance(each, ast.Compare):
            each.ops = [operator]
        else:
            each.op = operator
        if before != after and before.count(" ") < 12:
            yield each, after


def computed(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of statements without annotations, messages and checks of parameters."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.Constant():
                continue
            case ast.Call(func=ast.Name(id="require" | "isinstance")):
                continue
            case ast.AnnAssign(value=ast.expr() as value):
                waiting.append(value)
                continue
        yield node
        waiting += ast.iter_child_nodes(node)


def draw(count: int, seed: int) -> str:
    """The text of `mutants.toml`: so many faults in as many functions."""
    found = [
        (str(file.relative_to(ROOT)), name, ast.unparse(expression), after)
        for pattern in LEARNING
        for file in sorted(ROOT.glob(pattern))
        for name, function in functions(file)
        for expression, after in mutated(function)
    ]
    random.Random(seed).shuffle(found)
    by_function = {(file, name): (before, after) for file, name, before, after in found}
    lines = ["# Faults of the learning code, see mutants.py. A file may move, its name stays."]
    for (file, name), (before, after) in list(by_function.items())[:count]:
        lines += ["", "[[mutants]]", f"file = {file!r}", f"function = {name!r}"]
        lines += [f"before = {toml(before)}", f"after = {toml(after)}"]
    return "\n".join(lines) + "\n"


def toml(text: str) -> str:
    """A text as TOML."""
    return f"'{text}'" if "'" not in text else f"'''{text}'''"


def mutants() -> list[dict[str, str]]:
    """The faults that are kept."""
    found: list[dict[str, str]] = tomllib.loads(KEPT.read_text())["mutants"]
    return found


def place(mutant: dict[str, str], root: Path = ROOT) -> tuple[Path, ast.expr] | None:
    """The file and the expression of a fault; None where the function or expression is gone."""
    name = Path(mutant["file"]).name
    folders = [root / folder for folder in ("coach_rl", "environments", "filters")]
    for file in sorted(each for folder in folders for each in folder.rglob(name)):
        for function, node in functions(file):
            if function == mutant["function"]:
                for expression, _ in mutated(node):
                    if ast.unparse(expression) == mutant["before"]:
                        return file, expression
    return None


def applied(mutant: dict[str, str], root: Path) -> None:
    """Write a fault into a checkout."""
    found = place(mutant, root)
    if found is None:
        raise SystemExit(f"{mutant['function']} no longer has the expression {mutant['before']}")
    file, node = found
    lines = file.read_text().splitlines(keepends=True)
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head = lines[first].encode()[: node.col_offset].decode()
    tail = lines[last].encode()[node.end_col_offset :].decode()
    lines[first : last + 1] = [f"{head}({mutant['after']}){tail}"]
    file.write_text("".join(lines))


def is_noticed(mutant: dict[str, str], words: list[str]) -> bool:
    """True if the tests fail with a fault."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkout"
        left = shutil.ignore_patterns(".venv", ".git", "experiments", "__pycache__")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=left)
        applied(mutant, copy)
        environment = os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-x", *words]
        return (
            subprocess.run(command, cwd=copy, env=environment, capture_output=True).returncode == 1
        )


def main() -> None:
    """Parse the command line; draw faults, or run tests with them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("which", nargs="?", default="all", help="a number from 0, or all")
    parser.add_argument("words", nargs="*", help="after --: what pytest is given")
    parser.add_argument("--draw", type=int, help="write so many faults into mutants.toml")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    options = parser.parse_args()
    if options.draw:
        KEPT.write_text(draw(options.draw, options.seed))
        return
    chosen = range(len(mutants())) if options.which == "all" else [int(options.which)]
    noticed = 0
    for number in chosen:
        mutant = mutants()[number]
        found = is_noticed(mutant, options.words)
        noticed += found
        where = f"{mutant['function']}: {mutant['before']} -> {mutant['after']}"
        print(f"{number:3} {'noticed' if found else 'NOT noticed'} {where}", flush=True)
    print(f"{noticed} of {len(chosen)} noticed")


if __name__ == "__main__":
    main()
