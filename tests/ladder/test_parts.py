"""A production kernel is assembled from parts; what a setting does not need is not in its text."""

import re

import pytest

from clscope.text import Preprocessor
from gemmlab.ladder import NARROW, find, sources

PRODUCTION = [find("warp_tiling"), find("tensor_cores"), find("warpgroups"), NARROW]
FOLDER = sources.folder() / "production"


def tokens(text, values):
    """What a compiler sees of a text: its tokens, with macros replaced."""
    return [token.text for token in Preprocessor(values).run(text)]


@pytest.mark.parametrize("spec", PRODUCTION, ids=lambda spec: spec.number)
@pytest.mark.parametrize("nvidia", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_the_parts_of_a_setting_are_what_the_whole_text_says(spec, nvidia, turned):
    whole = sources.read(spec.file)
    features = frozenset({"nvidia"} if nvidia else ())
    for params in [spec.defaults, *spec.sample(count=3, seed=3)]:
        text = spec.text(params, features, turned and spec.turns)
        assert sources.code_lines(text) < sources.code_lines(whole)
        values = dict(params)
        if nvidia:
            values["__NV_CL_C_VERSION"] = 1
        assert tokens(text, values) == tokens(whole, {**values, "TURNED": int(turned)}), params


def test_every_part_is_included_and_every_file_is_short():
    included = set()
    for file in FOLDER.rglob("*.cl"):
        text = file.read_text(encoding="utf-8")
        assert text.count("\n") <= 250, file
        for part in re.findall(r'^#include "(.+)"$', text, re.MULTILINE):
            included.add((file.parent / part).resolve())
    assert {path.resolve() for path in FOLDER.glob("*/*.cl")} <= included
    assert not re.search("#include", "".join(sources.read(spec.file) for spec in PRODUCTION))


def test_a_text_has_the_values_of_its_parameters_and_no_rules():
    spec = find("warp_tiling")
    text = spec.text(spec.complete({"GROUPS": 7, "TSM": 64}))
    assert "\n#define GROUPS 7 // work-groups" in text and "\n#define TSM 64 // rows" in text
    assert "#error" not in text and "depth%TSK" not in text
    assert "depth%TSK" in spec.text(spec.complete({"TAIL": 1}))
