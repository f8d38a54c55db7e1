"""Build the documentation site from the pages as they stand in the repository: build/site, to be put on any web server.

MkDocs runs in an environment of its own, from requirements-docs.lock, because nothing else needs it. It gets the pages
in the folders where they are, so that the same links work here and there. A page that no link or menu can reach, a link
or an anchor that leads nowhere, and anything that a browser would have to load from elsewhere fail the build.
"""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-docs.lock"
BUILD = ROOT / "build"
VENV, STAGE, SITE = BUILD / "site-venv", BUILD / "site-source", BUILD / "site"
COLOURS = "colours.css"

MENU = {
    "Start": ("README.md", "docs/first-pipeline.md", "docs/coming-from-kafka.md", "docs/testing-kit.md"),
    "Pipelines": ("docs/pipelines.md", "docs/connectors.md", "docs/steps.md", "docs/spark.md"),
    "Running it": (
        "docs/console.md",
        "docs/cluster.md",
        "docs/disks.md",
        "docs/moving-partitions.md",
        "docs/compaction.md",
        "docs/scaling.md",
    ),
    "Reference": ("docs/settings.md", "docs/apis.md", "docs/api.md"),
    "More": (),
    "Inside": ("docs/ARCHITECTURE.md", "docs/reliability.md", "docs/simulation.md"),
    "Decisions": (),
    "Project": ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
}
"""What is read first comes first. Pages that are not named here, new ones among them, are under More or Decisions."""

_ELSEWHERE = re.compile(
    r"""<(?:script|img|iframe|source|link)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//|url\(["']?(?:https?:)?//|@import\s"""
)


def pages(root: Path = ROOT) -> list[str]:
    found = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    return sorted(str(path.relative_to(root)) for path in found)


def menu(root: Path = ROOT) -> list[dict[str, list[dict[str, str]]]]:
    """Every page once, under its first heading."""
    found = pages(root)
    named = {page for section in MENU.values() for page in section}
    left = [page for page in found if page not in named]
    sections = {title: [page for page in section if page in found] for title, section in MENU.items()}
    sections["More"] += [page for page in left if not page.startswith("docs/decisions/")]
    sections["Decisions"] += [page for page in left if page.startswith("docs/decisions/")]
    return [
        {title: [{heading(root / page): page} for page in section]} for title, section in sections.items() if section
    ]


def heading(page: Path) -> str:
    first = re.search(r"^# (.+)$", page.read_text(), re.MULTILINE)
    if first is None:
        raise SystemExit(f"{page} has no heading: its first line should begin with `# `")
    return first[1].replace("`", "")


def settings(root: Path = ROOT) -> dict[str, Any]:
    """mkdocs.yml, of which JSON is a part."""
    return {
        "site_name": "Ottla",
        "docs_dir": str(STAGE),
        "site_dir": str(SITE),
        "use_directory_urls": False,  # so that the site can be read from a folder, too
        "theme": {"name": "readthedocs", "highlightjs": False, "navigation_depth": 3},
        "extra_css": [COLOURS],
        "markdown_extensions": ["tables", "fenced_code", "sane_lists", {"codehilite": {"guess_lang": False}}],
        "nav": menu(root),
        "validation": {
            "nav": {"omitted_files": "warn", "not_found": "warn", "absolute_links": "warn"},
            "links": dict.fromkeys(("not_found", "anchors", "absolute_links", "unrecognized_links"), "warn"),
        },
    }


def stage(root: Path = ROOT, target: Path = STAGE) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(root / "docs", target / "docs")
    for page in root.glob("*.md"):
        shutil.copy(page, target / page.name)
    shutil.copy(root / "LICENSE", target / "LICENSE")
    for path in target.rglob("*.md"):
        # A table right after a comment is part of it for this reader of Markdown.
        path.write_text(re.sub(r"^(<!--.*-->)\n(?=\|)", r"\1\n\n", path.read_text(), flags=re.MULTILINE))


def environment() -> Path:
    """The programs of the locked packages; they are installed when the lock file has changed."""
    mark, wanted = VENV / "installed-from", hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if not mark.exists() or mark.read_text() != wanted:
        print("installing MkDocs into build/site-venv", flush=True)
        venv.create(VENV, with_pip=True, clear=True, symlinks=True)
        pip = [str(VENV / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "-r", str(LOCK)], check=True)
        mark.write_text(wanted)
    return VENV / "bin"


def loaded_from_elsewhere(site: Path = SITE) -> list[str]:
    """Pages and style sheets that make a browser ask another server; a link for readers to follow is no such thing."""
    return [
        f"{path.relative_to(site)}: {match[0]}"
        for path in sorted(site.rglob("*"))
        if path.suffix in (".html", ".css")
        for match in _ELSEWHERE.finditer(path.read_text(errors="replace"))
    ]


def main() -> int:
    programs = environment()
    stage()
    config = BUILD / "mkdocs.yml"
    config.write_text(json.dumps(settings(), indent=1))
    colours = subprocess.run(
        [programs / "pygmentize", "-S", "default", "-f", "html", "-a", ".codehilite"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    (STAGE / COLOURS).write_text(colours.stdout)
    # Not --quiet: what it does not say it does not count, and nothing would fail.
    built = subprocess.run([programs / "mkdocs", "build", "--strict", "--clean", "-f", config], check=False)
    if built.returncode:
        return built.returncode
    elsewhere = loaded_from_elsewhere()
    if elsewhere:
        print("the site must load nothing from other servers:", *elsewhere, sep="\n  ")
        return 1
    print(f"{len(pages())} pages in {(SITE / 'index.html').relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
