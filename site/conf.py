"""Sphinx's settings for the pages of the site: README, docs, chapters and the API.

The sources are where they are on a forge, so the links in them work in both. `site/build.py` runs
Sphinx. Links to kernels lead to a page that has all of them, and links to whole folders, which a
static site cannot show, become plain words. Diagrams are drawn while the pages are built.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from html import escape
from pathlib import Path
from urllib.request import urlopen

import mermaidx
from docutils import nodes

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gemmlab.version import __version__  # noqa: E402

project, author, copyright = "gemmlab", "gemmlab developers", "gemmlab developers"
version = release = __version__
with open(ROOT / "pyproject.toml", "rb") as file:
    SETTINGS = tomllib.load(file)["tool"]["hatch"]["metadata"]["hooks"]["custom"]
REPOSITORY = SETTINGS["repository"]
SITE = "https://OWNER.github.io/gemmlab/"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.intersphinx"]
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
docs/teaching
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
#: `gemmlab.distributed` needs them to run, and not to be described.
autodoc_mock_imports = ["dask", "distributed", "zarr"]
default_role = "code"  # docstrings have names in single backticks
suppress_warnings = ["misc.highlighting_failure", "myst.header"]


def inventories() -> dict[str, tuple[str, None]]:
    """The documentation of others to which types link; none without a network."""
    found: dict[str, tuple[str, None]] = {}
    for name, address in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
    }.items():
        try:
            urlopen(f"{address}objects.inv", timeout=5).close()
        except OSError:
            return {}
        found[name] = (address, None)
    return found


intersphinx_mapping = inventories()

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
html_favicon = "favicon.svg"
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


def relinked(text: str, folder: Path, has_lite: bool) -> str:
    """Markdown whose links lead to the page of kernels and to this site, wherever it is served, and
    in which folders are plain words. What is only for readers elsewhere is left out.
    """
    root = "../" * (1 + len(folder.relative_to(ROOT).parts))

    def at_home(link: re.Match[str]) -> str:
        if link[2].startswith("lite/") and not has_lite:
            return link[1]
        return f'<a href="{root}{link[2] or "index.html"}">{link[1]}</a>'

    def plain(link: re.Match[str]) -> str:
        return link["words"] if (folder / link["target"]).is_dir() else link[0]

    text = re.sub(r"<!-- elsewhere -->.*?<!-- / -->", "", text, flags=re.DOTALL)
    own = rf"\[([^\]]+)\]\({re.escape(SITE)}([^)\s]*)\)"
    text = re.sub(own, at_home, text)
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
    path, has_lite = Path(app.env.doc2path(docname)), app.tags.has("lite")
    if path.suffix == ".md":
        added = {root_doc: CONTENTS, "site/kernels": kernels()}
        source[0] = relinked(source[0], path.parent, has_lite) + added.get(docname, "")
        return
    book = json.loads(source[0])
    for cell in book["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = relinked("".join(cell["source"]), path.parent, has_lite)
        elif cell["source"] == ["%reload_ext gemmlab"]:
            cell["metadata"]["tags"] = ["remove-cell"]
        elif cell["metadata"].get("jupyter", {}).get("source_hidden"):
            cell["metadata"].setdefault("tags", []).append("hide-input")
        for output in cell.get("outputs", []):
            prepare_output(output.get("data", {}))
            words = output.get("metadata", {}).get("image/png", {}).get("alt")
            if words:  # MyST-NB takes the description of a picture from its cell
                cell["metadata"]["mystnb"] = {"image": {"alt": words}}
    source[0] = json.dumps(book)


#: The colours of Mermaid's default theme, and those of the page.
COLOURS = {
    "#ECECFF": "var(--color-background-secondary)",
    "#9370DB": "var(--color-brand-primary)",
    "#333333": "var(--color-foreground-primary)",
    "#333": "var(--color-foreground-primary)",
    "rgba(232,232,232, 0.8)": "var(--color-background-primary)",
}


def drawn(block: nodes.literal_block, number: int) -> nodes.raw:
    """A diagram as SVG, in the colours of the page."""
    svg = mermaidx.render(block.astext()).svg()
    for colour, variable in COLOURS.items():
        svg = re.sub(re.escape(colour) + r"(?!\w)", variable, svg, flags=re.I)
    svg = svg.replace("mermaid-svg", f"diagram-{number}")
    boxes = re.findall(r'\[*"(?:<b>)?([^<"]+)', block.astext())
    label = escape(f"A diagram of {', '.join(boxes)}")
    svg = re.sub("<svg ", f'<svg role="img" aria-label="{label}" ', svg, count=1)
    return nodes.raw("", f'<div class="diagram">{svg}</div>', format="html")


def finish(app, doctree) -> None:
    """Draw diagrams, and add what MyST-NB leaves out: the language of kernels."""
    for number, block in enumerate([*doctree.findall(nodes.literal_block)]):
        if block.get("language") == "mermaid":
            block.replace_self(drawn(block, number))
        elif block.astext().startswith("%%gemm"):
            block["language"] = "c"


def description(doctree: nodes.document) -> str:
    """The first sentences of a page, as many as fit into what a search engine shows."""
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) > 40:
            return text if len(text) <= 160 else text[:160].rsplit(" ", 1)[0] + " …"
    return ""


def launch_links(name: str, repository: str, has_lite: bool) -> dict[str, str]:
    """Where a chapter can be run and taken away. As long as nobody has filled in who owns the
    repository, no other host has it.
    """
    place = f"notebooks/{name}.ipynb"
    links = {}
    if has_lite:
        links["Open it in a tab, on your GPU"] = f"../../lite/lab/index.html?path={place}"
    links["Download this notebook"] = f"{name}.ipynb"
    if "/OWNER/" not in repository:
        path = repository.removeprefix("https://github.com/")
        colab = f"https://colab.research.google.com/github/{path}/blob/main/{place}"
        links["Open it in Colab"] = colab
    return links


def complete_page(app, page: str, template: str, context: dict, doctree) -> None:
    """Add the description of a page, and below the title of a chapter its links."""
    if doctree is None:
        return
    if text := description(doctree):
        context["metatags"] += f'<meta name="description" content="{escape(text)}">'
    path = Path(app.env.doc2path(page))
    if path.suffix == ".ipynb":
        links = launch_links(path.stem, REPOSITORY, app.tags.has("lite"))
        items = " · ".join(
            f'<a href="{url}" target="_blank">{words}</a>' for words, url in links.items()
        )
        line = f'</h1>\n<p class="launch">{items}</p>'
        context["body"] = context["body"].replace("</h1>", line, 1)


def mark_code(app, what, name, obj, options, lines: list[str]) -> None:
    """In a module's docstring, an indented block after an empty line is code."""
    if what == "module":
        text = re.sub(r"^(\S.*)\n\n(?=    )", r"\1\n\n::\n\n", "\n".join(lines), flags=re.M)
        lines[:] = text.splitlines()


def setup(app) -> None:
    app.connect("source-read", prepare)
    app.connect("doctree-read", finish)
    app.connect("autodoc-process-docstring", mark_code)
    app.connect("html-page-context", complete_page)
