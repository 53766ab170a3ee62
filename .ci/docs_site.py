"""What the site has beyond docs/: pages from elsewhere in the checkout, and the API reference."""

import re
from collections import defaultdict
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

CHECKOUT = Path(__file__).resolve().parent.parent
ELSEWHERE = ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/results/*.md")
"""Pages that stand outside of docs/; they keep their paths, below the site's root."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere, and a page of the API for each room."""
    for pattern in ELSEWHERE:
        for path in sorted(CHECKOUT.glob(pattern)):
            place = str(path.relative_to(CHECKOUT))
            files.append(File.generated(config, place, abs_src_path=str(path)))
    for room, modules in sorted(rooms().items()):
        files.append(File.generated(config, f"api/{room}.md", content=api_page(room, modules)))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace a folder in the navigation by its pages."""
    pages = {
        "benchmarks/results/": sorted(
            str(path.relative_to(CHECKOUT)) for path in CHECKOUT.glob("benchmarks/results/*.md")
        ),
        "api/": [{room: f"api/{room}.md"} for room in sorted(rooms())],
    }
    for section in config.nav or ():
        for entries in section.values() if isinstance(section, dict) else ():
            for entry in entries:
                if isinstance(entry, dict):
                    for title, place in entry.items():
                        entry[title] = pages.get(place, place)
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links where their targets lie on the site; to what isn't there, keep the words alone."""
    source = Path(page.file.src_uri)
    root = CHECKOUT / "docs" if (CHECKOUT / "docs" / source).exists() else CHECKOUT

    def on_site(match: re.Match[str]) -> str:
        words, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if not path or re.match(r"\w+:", target):
            return match[0]
        place = ((root / source).parent / path).resolve().relative_to(CHECKOUT)
        place = place.relative_to("docs") if place.parts[0] == "docs" else place
        if files.get_file_from_path(place.as_posix()) is None:
            return words
        up = "../" * len(source.parent.parts)
        return f"[{words}]({up}{place.as_posix()}{hash_}{anchor})"

    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", on_site, markdown)


def rooms() -> dict[str, list[str]]:
    """The public modules of each room, by the room's name."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for folder in sorted((CHECKOUT / "coach_rl").iterdir()):
        if folder.name in ("cli", "presets") or not (folder / "__init__.py").exists():
            continue
        for file in sorted(folder.rglob("*.py")):
            parts = file.relative_to(CHECKOUT).with_suffix("").parts
            name = ".".join(part for part in parts if part != "__init__")
            if not file.stem.startswith("_") or file.stem == "__init__":
                found[folder.name].append(name)
    return found


def api_page(room: str, modules: list[str]) -> str:
    """A page with the docstrings of a room's modules."""
    return "\n\n".join([f"# coach_rl.{room}", *(f"::: {module}" for module in modules)]) + "\n"
