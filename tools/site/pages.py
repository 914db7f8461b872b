"""What the site has beside docs/, a hook of MkDocs: the README as the first page, the pages of the root, tutorials with what they
print and draw, the API. Links between files of the repository become links between pages.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import reference
import tutorials

ROOT = Path(__file__).resolve().parents[2]
# Files of the repository and the pages that they are.
MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.md",
    "ARCHITECTURE.md": "engine/architecture.md",
    "CONTRIBUTING.md": "engine/contributing.md",
    "benchmarks/README.md": "engine/benchmarks.md",
    "benchmarks/HISTORY.md": "engine/history.md",
    "data/treebank/README.md": "treebank.md",
}
# Pages with long lines of code or wide tables have no table of contents beside them.
WIDE = ("README.md", "benchmarks/README.md")
FULL_WIDTH = "---\nhide: [toc]\n---\n\n"
CSS = ".md-grid { max-width: 80rem; }\n.md-typeset pre > code { font-size: 0.7rem; }\n.md-typeset td code { word-break: normal; }\n"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def site_path(file: str) -> str | None:
    """The page of a file of the repository, or None."""
    if file in MOVED:
        return MOVED[file]
    if file.startswith("docs/tutorials/") and file.endswith((".py", ".ipynb")):
        return file[5:].rpartition(".")[0] + ".md"
    if file.startswith("docs/") and (ROOT / file).is_file():
        return file[5:]
    return None


def relinked(text: str, source: str, target: str, made: Collection[str] = ()) -> str:
    """`text` of the file `source` with its links as they must be on the page `target`. Links to what is `made` beside it stay,
    and those to files that are no pages become plain words.
    """

    def link(found: re.Match[str]) -> str:
        bang, words, where = found.groups()
        path, hash_, anchor = where.partition("#")
        if "://" in where or not path or path.startswith("mailto:") or path in made:
            return found[0]
        page = site_path(os.path.normpath(PurePosixPath(source).parent / path).replace(os.sep, "/"))
        if page is None:
            return words
        return f"{bang}[{words}]({os.path.relpath(page, PurePosixPath(target).parent).replace(os.sep, '/')}{hash_}{anchor})"

    parts = re.split(r"(^```.*?^```[^\n]*$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def on_config(config: Any) -> Any:
    """The tutorials, the API and pages that nobody has named come into the menu."""
    menu = {title: pages for section in config.nav for title, pages in section.items()}
    listed = (ROOT / "docs" / "tutorials" / "README.md").read_text(encoding="utf-8")
    menu["Tutorials"] += [
        f"tutorials/{name}.md" for name in dict.fromkeys(re.findall(r"\]\((\w+)\.(?:py|ipynb)\)", listed))
    ]
    menu["API"] += [f"api/{name}.md" for name in reference.GROUPS]
    named = str(config.nav)
    menu["How to"] += [p.name for p in sorted((ROOT / "docs").glob("*.md")) if p.name not in named]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made here."""

    def add(path: str, content: str | bytes) -> None:
        files.append(File.generated(config, path, content=content))

    add("assets/wide.css", CSS)
    for source, target in MOVED.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        page = f"# Licence\n\n```text\n{text}\n```\n" if source == "LICENSE" else relinked(text, source, target)
        add(target, FULL_WIDTH + page if source in WIDE else page)
    for script in sorted((ROOT / "docs" / "tutorials").glob("*.[pi]*")):
        page, target = tutorials.rendered_apart(script), f"tutorials/{script.stem}.md"
        add(target, relinked(page.text, f"docs/tutorials/{script.name}", target, page.pictures))
        for name, content in page.pictures.items():
            add(f"tutorials/{name}", content)
    for path, text in reference.pages().items():
        add(path, text)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links of the pages in docs/."""
    path = page.file.src_uri
    return markdown if page.file.generated_by else relinked(markdown, f"docs/{path}", path)
