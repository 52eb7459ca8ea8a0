"""The pages of the site: complete, without dead links, and from no other host."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from conftest import lacking

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "site"))
#: What a browser fetches by itself.
FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """The links of a page, what it fetches, its anchors, and its pictures without a description."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.undescribed: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        address = given.get(FETCHED.get(tag, ""), "#")
        if address != "#":  # a link that a script fills in
            self.fetched.append(address)
        if tag == "img" and not given.get("alt", "").strip():
            self.undescribed.append(given["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for name in ("sphinx", "myst_nb", "furo", "mermaidx"):
        try:
            __import__(name)
        except ImportError:
            lacking(f"no {name}")
    from build import build, pages

    folder = tmp_path_factory.mktemp("site")
    build(folder, None)
    return folder, pages(folder / "pages")


@pytest.fixture(scope="module")
def parsed(site):
    return {path.resolve(): Page(path) for path in site[0].rglob("*.html")}


def dead(page: Path, link: str, parsed: dict[Path, Page]) -> bool:
    """Whether a link within the site leads nowhere."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_file():
        return True
    found = parsed.get(target)
    return bool(parts.fragment and found) and unquote(parts.fragment) not in found.anchors


def test_no_link_is_dead(site, parsed):
    found = [
        f"{page.relative_to(site[0])}: {link}"
        for page, content in parsed.items()
        for link in content.links
        if dead(page, link, parsed)
    ]
    assert not found, "\n".join(found)
    assert len(parsed) > 35


def test_a_dead_link_is_noticed(tmp_path):
    page = tmp_path / "a.html"
    page.write_text("<a href='#here' id='here'></a>")
    parsed = {page: Page(page)}
    assert not dead(page, "#here", parsed) and not dead(page, "a.html#here", parsed)
    assert dead(page, "#there", parsed) and dead(page, "b.html", parsed)


def test_pages_fetch_from_their_own_folder(site, parsed):
    for page, content in parsed.items():
        for address in content.fetched:
            parts = urlsplit(address)
            assert parts.scheme in ("", "data") and not parts.netloc, f"{page}: {address}"
            assert parts.scheme or (page.parent / unquote(parts.path)).is_file(), (page, address)


def test_every_notebook_page_and_picture_is_there(site, parsed):
    for path in [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "docs").glob("*.md")]:
        page = site[0] / "pages" / path.relative_to(ROOT).with_suffix(".html")
        assert parsed[page.resolve()].undescribed == [], path
    api = parsed[(site[0] / "pages" / "site" / "api.html").resolve()]
    assert {"gemmlab.matmul", "gemmlab.simulate", "gemmlab.distributed.cluster"} <= api.anchors


def test_a_page_describes_itself_and_a_chapter_can_be_taken_away(site):
    pages = site[0] / "pages"
    for path in [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "docs").glob("*.md")]:
        text = (pages / path.relative_to(ROOT).with_suffix(".html")).read_text(encoding="utf-8")
        assert len(re.findall('<meta name="description" content="[^"]{30,}', text)) == 1, path
        assert path.suffix == ".md" or f'href="{path.name}"' in text
    assert (pages / "objects.inv").exists() and (pages / "index.html").exists()


def test_a_diagram_is_drawn_in_the_colours_of_the_page(site):
    text = (site[0] / "pages" / "docs" / "architecture.html").read_text(encoding="utf-8")
    source = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    diagrams = source.count("```mermaid")
    assert "flowchart TD" not in text and "flowchart LR" not in text
    assert text.count('role="img" aria-label="A diagram of') == diagrams > 0
    assert "#ECECFF" not in text and "var(--color-background-secondary)" in text


def test_other_hosts_run_a_chapter_once_the_repository_has_an_owner():
    pytest.importorskip("mermaidx")
    from conf import launch_links

    own = launch_links("00_a", "https://github.com/OWNER/gemmlab", True).values()
    assert [*own] == ["../../lite/lab/index.html?path=notebooks/00_a.ipynb", "00_a.ipynb"]
    links = launch_links("00_a", "https://github.com/me/gemmlab", False).values()
    assert sum("me/gemmlab" in link and "notebooks/00_a.ipynb" in link for link in links) == 1


def test_sphinx_has_no_complaint(site):
    assert site[1] == ""
