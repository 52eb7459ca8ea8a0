"""Experiments: their changes still fit the kernels' texts, and a small one runs."""

import json

import experiments
import pytest

from gemmlab import catalog
from gemmlab.catalog import sources

GROUPS = (
    *(experiments.WATERFALL, experiments.TENSORS, experiments.MERGING),
    *experiments.BEYOND.values(),
    *experiments.PARTS.values(),
)


def test_changes_fit_the_texts_and_parameters_are_legal():
    for variant in (variant for variants in GROUPS for variant in variants.values()):
        spec = catalog[variant.kernel]
        assert not spec.problems(spec.complete(dict(variant.params))), variant
    for variants in experiments.PARTS.values():
        assert len({variant.source for variant in variants.values()}) == 3
    assert experiments.edited(3, experiments.ROLLED) != sources.read(catalog[3].file)
    with pytest.raises(ValueError, match="has no 'nothing'"):
        experiments.edited(3, ("nothing", ""))


def test_variants_are_checked_timed_and_recorded(any_device, monkeypatch, tmp_path):
    monkeypatch.setattr(experiments, "CHECKED", 64)
    params = {"TS": 16, "WPT": 4}
    wrong = experiments.edited(3, ("acc[j] +=", "acc[j] -="))
    broken = experiments.edited(3, ("acc[j] +=", "acc[j] ++ +="))
    some = {
        "plain": experiments.Variant(3, params, 64),
        "larger": experiments.Variant(3, params, 128),
        "wrong": experiments.Variant(3, params, 64, wrong),
        "broken": experiments.Variant(3, params, 64, broken),
    }
    found = experiments.run(some, 1, any_device)
    assert found["plain"]["ok"] and found["larger"]["ok"] and not found["wrong"]["ok"]
    assert "gflops" not in found["broken"] and found["broken"]["problem"]
    for one in (found["plain"], found["larger"]):
        assert 0 < one["least"] <= one["gflops"] <= one["most"]
    monkeypatch.setattr(experiments, "WATERFALL", some)
    file, device = tmp_path / "waterfall.json", ["--device", str(any_device.index)]
    experiments.main(["waterfall", str(file), "--rounds", "1", "--size", "64", *device])
    record = json.loads(file.read_text())
    assert set(record["ways"]) == set(some) and {"device", "date", "command"} <= set(record)
