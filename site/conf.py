"""Sphinx's settings for the pages of the site: README, docs, chapters and the API.

The sources are where they are on a forge, so the links in them work in both. `site/build.py` runs
Sphinx. Links to kernels lead to a page that has all of them, and links to whole folders, which a
static site cannot show, become plain words.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from docutils import nodes

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gemmlab.version import __version__  # noqa: E402

project, author, copyright = "gemmlab", "gemmlab developers", "gemmlab developers"
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/*.md",
    "notebooks/*.md",
    "notebooks/*.ipynb",
    "tools/README.md",
    "clscope/README.md",
    "site/*.md",
]
exclude_patterns = ["**/.*", "site/dist"]

#: The pages in the order of the sidebar; README ends with them, out of sight.
CONTENTS = """

```{toctree}
:hidden:
:caption: Start
docs/install
docs/drivers
docs/colab
docs/programs
```

```{toctree}
:hidden:
:caption: Chapters
:glob:
notebooks/README
notebooks/the_*
notebooks/[0-9]*
notebooks/puzzles
```

```{toctree}
:hidden:
:caption: Look up
docs/glossary
site/kernels
site/api
docs/clscope
docs/speed
docs/model
docs/whys
```

```{toctree}
:hidden:
:caption: How it is made
:glob:
docs/architecture
docs/choice
docs/generate
docs/webgpu
CONTRIBUTING
CODE_OF_CONDUCT
SECURITY
CHANGELOG
docs/*
clscope/README
tools/README
```
"""

myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath", "html_image"]
nb_execution_mode = "off"  # the stored outputs are the record
nb_merge_streams = True
#: Widgets need a kernel; below each one the notebook stores what it showed.
nb_mime_priority_overrides = [("*", "application/vnd.jupyter.widget-view+json", None)]
autodoc_member_order = "bysource"
default_role = "code"  # docstrings have names in single backticks
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

html_theme = "furo"
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "browser.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_title = "gemmlab"
html_static_path = ["pages.css"]
html_css_files = ["pages.css"]
html_copy_source = html_show_sourcelink = False
html_show_search_summary = False  # a page in a folder cannot fetch another
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#b3470f", "color-brand-content": "#b3470f"},
    "dark_css_variables": {"color-brand-primary": "#ff9d5c", "color-brand-content": "#ff9d5c"},
    "top_of_page_buttons": [],
}


def anchor(kernel: str) -> str:
    """Where the page of kernels has a file, given without its ending: "production/packed"."""
    return "kernel-" + re.sub(r"[/_]", "-", kernel)


def kernels() -> str:
    """A section for each kernel."""
    folder = ROOT / "kernels"
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.cl")]
    sections = (
        f"({anchor(name)})=\n## {name.replace('_', ' ')}\n\n"
        f"```c\n{(folder / f'{name}.cl').read_text(encoding='utf-8')}```\n"
        for name in sorted(names, key=lambda name: ("/" in name, name))
    )
    return "\n" + "\n".join(sections)


def relinked(text: str, folder: Path) -> str:
    """Markdown whose links lead to the page of kernels, and in which folders are plain words."""

    def plain(link: re.Match[str]) -> str:
        return link["words"] if (folder / link["target"]).is_dir() else link[0]

    text = re.sub(r"\]\([./]*kernels/([\w/]+)\.cl\)", lambda m: f"](#{anchor(m[1])})", text)
    return re.sub(r"(?<!!)\[(?P<words>[^\]\n]+)\]\((?P<target>[\w./-]+)\)", plain, text)


def prepare_output(data: dict) -> None:
    """HTML links to pages, not files."""
    if "text/html" in data:
        text = re.sub(r"""(href=["']\w+)\.ipynb""", r"\1.html", "".join(data["text/html"]))
        data["text/html"] = re.sub(
            r"""(href=["'][./]*)kernels/([\w/]+)\.cl""",
            lambda link: f"{link[1]}site/kernels.html#{anchor(link[2])}",
            text,
        )


def prepare(app, docname: str, source: list[str]) -> None:
    """A page's text before Sphinx reads it."""
    path = Path(app.env.doc2path(docname))
    if path.suffix == ".md":
        added = {root_doc: CONTENTS, "site/kernels": kernels()}
        source[0] = relinked(source[0], path.parent) + added.get(docname, "")
        return
    book = json.loads(source[0])
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = relinked("".join(cell["source"]), path.parent)
        elif cell["metadata"].get("jupyter", {}).get("source_hidden"):
            cell["metadata"].setdefault("tags", []).append("hide-input")
        for output in cell.get("outputs", []):
            prepare_output(output.get("data", {}))
            words = output.get("metadata", {}).get("image/png", {}).get("alt")
            if words:  # MyST-NB takes the description of a picture from its cell
                cell["metadata"]["mystnb"] = {"image": {"alt": words}}
    source[0] = json.dumps(book)


def finish(app, doctree) -> None:
    """Add what MyST-NB leaves out: the language of kernels."""
    for block in doctree.findall(nodes.literal_block):
        if block.astext().startswith("%%gemm"):
            block["language"] = "c"


def mark_code(app, what, name, obj, options, lines: list[str]) -> None:
    """In a module's docstring, an indented block after an empty line is code."""
    if what == "module":
        text = re.sub(r"^(\S.*)\n\n(?=    )", r"\1\n\n::\n\n", "\n".join(lines), flags=re.M)
        lines[:] = text.splitlines()


def setup(app) -> None:
    app.connect("source-read", prepare)
    app.connect("doctree-read", finish)
    app.connect("autodoc-process-docstring", mark_code)
