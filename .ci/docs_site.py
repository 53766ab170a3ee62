"""Parts of the site beyond docs/: pages from elsewhere, the API reference, and moved pages."""

import importlib
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

CHECKOUT = Path(__file__).resolve().parent.parent
ELSEWHERE = ("CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/results/*.md")
"""Pages outside of docs/; they keep their paths, below the site's root."""
MOVED = {
    "acting": "run_folder#use-a-trained-agent",
    "agent_metrics": "metrics#learning",
    "algorithms/higl": "algorithms/hrac#higl",
    "algorithms/hits": "algorithms/hac#hits",
    "algorithms/sse": "algorithms/hac#sse-stopping-on-failure",
    "dashboards": "watching#dashboards",
    "data_sets": "data#sources",
    "determinism": "reliability#determinism",
    "how_to_stage": "how_to_filter#a-stage-of-your-own",
    "inspection": "debugging#inspect-the-data",
    "notebook": "watching#in-a-notebook",
    "profiling": "debugging#profile-a-run",
    "remote_collection": "scaling#collect-with-several-processes",
    "signals": "record_stream#signals",
    "sweeps": "studies#search-for-better-settings",
    "which_hierarchy": "algorithms/README#which-hierarchy-for-what",
}
"""Pages of earlier versions, and where their content is now."""


def on_files(files: "Files", config: "MkDocsConfig") -> "Files":
    """Add the pages from elsewhere, and API pages for coach_rl and each room."""
    from mkdocs.structure.files import File  # an extra

    for pattern in ELSEWHERE:
        for path in sorted(CHECKOUT.glob(pattern)):
            place = str(path.relative_to(CHECKOUT))
            files.append(File.generated(config, place, abs_src_path=str(path)))
    for room, modules in sorted(rooms().items()):
        files.append(File.generated(config, f"api/{room}.md", content=api_page(room, modules)))
    files.append(File.generated(config, "api/coach_rl.md", content=public_names_page()))
    return files


def on_post_build(config: "MkDocsConfig") -> None:
    """Write a redirect in the place of each page that has moved."""
    for old, new in MOVED.items():
        page, _, anchor = new.partition("#")
        page = re.sub(r"README$", "index", page)
        address = f"{'../' * old.count('/')}{page}.html#{anchor}"
        file = Path(config.site_dir, f"{old}.html")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'<meta http-equiv="refresh" content="0; url={address}">\n')


def on_config(config: "MkDocsConfig") -> "MkDocsConfig":
    """Replace a folder in the navigation by its pages."""
    pages = {
        "benchmarks/results/": sorted(
            str(path.relative_to(CHECKOUT)) for path in CHECKOUT.glob("benchmarks/results/*.md")
        ),
        "api/": [{room: f"api/{room}.md"} for room in ("coach_rl", *sorted(rooms()))],
    }
    for section in config.nav or ():
        for entries in section.values() if isinstance(section, dict) else ():
            for entry in entries:
                if isinstance(entry, dict):
                    for title, place in entry.items():
                        if isinstance(place, str):  # others are sections of pages
                            entry[title] = pages.get(place, place)
    return config


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
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


def public_names_page() -> str:
    """A page with the docstring of coach_rl, and a line with a link for each of its names."""
    package = importlib.import_module("coach_rl")
    lines = ["# coach_rl", "", "::: coach_rl", "    options:", "      members: false", ""]
    for name in package.__all__:
        thing = getattr(package, name)
        place = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
        first = (thing.__doc__ or "").strip().partition("\n")[0]
        is_ours = place.startswith("coach_rl.") and not place.endswith(".")
        lines.append(f"- [`{name}`][{place}]: {first}" if is_ours else f"- `{name}`")
    return "\n".join(lines) + "\n"
