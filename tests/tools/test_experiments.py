"""Experiments: their changes still fit the kernels' texts, and a small one runs."""

import json

import ceilings
import experiments
import pytest

from gemmlab import catalog
from gemmlab.catalog import sources

SMALL = {"TS": 16, "WPT": 4}
VARIANTS = [
    variant
    for variants in (experiments.WATERFALL, experiments.TENSORS, *experiments.BEYOND.values())
    for variant in variants.values()
]


def test_changes_fit_the_texts_and_parameters_are_legal():
    for variant in VARIANTS:
        spec = catalog[variant.kernel]
        assert not spec.problems(spec.complete(dict(variant.params))), variant
        text = sources.read(spec.file)
        assert variant.source != text if variant.changes else variant.source is None
    with pytest.raises(ValueError, match="has no 'nothing'"):
        _ = experiments.Variant(3, {}, changes=(("nothing", ""),)).source
    assert len(set(ceilings.variants().values())) == len(ceilings.variants())
    for number in (3, 4, 6, 7):
        assert len(set(ceilings.parts_of(sources.read(catalog[number].file)).values())) == 3


def test_variants_are_checked_and_timed(any_device, monkeypatch, capsys):
    monkeypatch.setattr(experiments, "CHECKED", 64)
    wrong = (("acc[j] +=", "acc[j] -="),)
    variants = {
        "plain": experiments.Variant(3, SMALL, 64),
        "larger": experiments.Variant(3, SMALL, 128),
        "wrong": experiments.Variant(3, SMALL, 64, wrong),
        "broken": experiments.Variant(3, SMALL, 64, (("acc[j] +=", "acc[j] ++ +="),)),
    }
    found = experiments.run(variants, 1, any_device, with_errors=True)
    assert found["plain"]["ok"] and found["larger"]["ok"] and not found["wrong"]["ok"]
    assert "gflops" not in found["broken"] and found["broken"]["problem"]
    for one in (found["plain"], found["larger"]):
        assert 0 < one["least"] <= one["gflops"] <= one["most"]
        assert all(error < 1e-5 for error in one["errors"].values())
    assert found["wrong"]["errors"]["512"] > 1
    assert "plain" in capsys.readouterr().out


@pytest.mark.system
def test_forms_are_recorded(any_device, tmp_path):
    file, device = tmp_path / "forms.json", ["--device", str(any_device.index)]
    experiments.main(["forms", str(file), "--size", "24", *device])
    found = json.loads(file.read_text())
    assert [row["dtype"] for row in found["forms"]] == ["float32", "complex64"]
    assert all(row["wrong"] == [] for row in found["forms"])
    assert len(found["forms"][1]["beside_plain"]) == 7


@pytest.mark.system
def test_ceilings_are_recorded(any_device, tmp_path, monkeypatch):
    monkeypatch.setattr(ceilings, "ROUNDS", 8)
    file, device = tmp_path / "ceilings.json", ["--device", str(any_device.index)]
    ceilings.main([str(file), "--only", "lines", "--size", "128", *device])
    found = json.loads(file.read_text())
    part, _ = ceilings.EXPERIMENTS["lines"]
    assert found["command"] and min(found[part].values()) > 0
    with pytest.raises(ValueError, match="'line'"):
        ceilings.main([str(file), "--only", "line"])
