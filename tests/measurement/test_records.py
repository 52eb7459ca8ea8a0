"""What was recorded: each row says what it is, and none contradicts another."""

import json
import re
from itertools import groupby

import pytest

from gemmlab import catalog, files
from gemmlab.ladder import sources
from gemmlab.measurement import records
from gemmlab.measurement.landscape import chip_of

ROWS = records.rows()
CHOICE = "choice.json"  # of choices, by kinds of devices
SCRIPTS = ("python -m gemmlab ", "python tools/", "python docs/", "python tests/")
#: Metrics with their units; a counter of the chip and an instruction of PTX are without one.
UNITS = re.compile(
    r"(peak |pipeline )?GFLOPS|(peak )?GB/s(, \w+)?|(compile )?m?s|.*, s|MHz|W|(cache )?bytes|"
    r"(relative )?error|error bound|launches|devices|block|sum|registers( in OpenCL)?|"
    r"10\^9 accesses of a warp per second and multiprocessor|\S+ instructions|refused|reason"
)
WITHOUT = ("nvidia_h200_counters", "kernel 3 in OpenCL", "through CUDA", "instructions")
#: GFLOPS of an H200's tensor cores in TF32, by NVIDIA's data sheet; chips have those in float32.
TF32 = 494_700


def key(row: records.Row) -> tuple:
    """What a row is about."""
    params = tuple(sorted(row.params.items()))
    what = row.metric, row.kernel, params, row.variant, row.precision, row.m, row.n, row.k
    return (row.record, row.series, row.title, row.device, row.driver, row.date, *what)


def test_each_row_says_what_was_measured_where_when_and_how():
    for row in ROWS:
        head = row.head
        assert row.device and re.fullmatch(r"20\d\d(-\d\d-\d\d)?", row.date), row
        assert head["title"] and ("source" in head or head["command"].startswith(SCRIPTS)), row
        assert "source" in head or (row.driver and head["platform"]), row
        assert UNITS.fullmatch(row.metric) or {row.record, row.series} & {*WITHOUT}, row.metric
        assert row.note if row.metric in ("refused", "reason") else row.median >= 0, row
        assert isinstance(row.kernel, str) or row.kernel in catalog, row
        assert not row.runs or not row.low > row.median and not row.high < row.median, row


def test_no_two_rows_are_about_the_same():
    seen = {key(row) for row in ROWS if row.metric != "reason"}
    assert len(seen) == sum(row.metric != "reason" for row in ROWS)


def test_rates_of_the_same_day_agree():
    """Of large products; within a tenth."""
    rates = [row for row in ROWS if row.metric == "GFLOPS" and row.kernel in catalog]
    same = [(key(row)[2:], row.median) for row in rates if row.m * row.n * row.k >= 2**30]
    for what, group in groupby(sorted(same, key=repr), key=lambda pair: pair[0]):
        medians = [median for _, median in group]
        assert max(medians) < 1.1 * min(medians), (what, medians)


def test_no_rate_is_above_the_peak_of_its_device():
    measured = {row.device: row.median for row in ROWS if row.metric == "peak GFLOPS"}
    for row in ROWS:
        if row.metric not in ("GFLOPS", "pipeline GFLOPS"):
            continue
        chip = chip_of(row.device)
        peak = chip.gflops if chip else measured.get(row.device, 5070)  # 5070: an S9150
        tensor = row.kernel in catalog and catalog[row.kernel].tensor
        if tensor or row.precision.startswith("tf32") or "mma" in row.variant:
            peak = TF32
        assert 0 < row.median <= peak, row


def test_the_table_of_choices_names_devices_commands_and_dates():
    table = files.load_json(sources.folder("results") / CHOICE, dict)
    for entry in (each for kind in table.values() for each in kind.values()):
        assert entry["device"] and re.fullmatch(r"20\d\d-\d\d-\d\d", entry["date"])
        assert entry["commands"]
        assert all(command.startswith(SCRIPTS) for command in entry["commands"])


HEAD = {"title": "a card", "device": "a card", "driver": "1", "date": "2026-11-28"}
ROW = {"kernel": 3, "TS": 32, "WPT": 8, "m": 64, "n": 64, "k": 64, "metric": "GFLOPS", "median": 9}


def test_rows_are_read_as_they_were_written_a_line_for_each(tmp_path):
    path, note = tmp_path / "x.json", 'refused "in quotes" and [brackets]'
    rows = [ROW | {"WPT": wpt, "median": 100.5 + wpt} for wpt in (1, 2, 4)]
    rows += [{**ROW, "metric": "s", "values": [3.0, 1.0, 2.0]}, {"metric": "reason", "note": note}]
    del rows[3]["median"]
    records.append(path, HEAD, rows)
    found = records.read(path)
    assert [row.median for row in found[:3]] == [101.5, 102.5, 104.5]
    assert [row.params for row in found[:2]] == [{"TS": 32, "WPT": 1}, {"TS": 32, "WPT": 2}]
    assert (found[3].low, found[3].median, found[3].high, found[3].runs) == (1.0, 2.0, 3.0, 3)
    assert found[4].note == note and found[4].title == "a card" and found[4].record == "x"
    assert all(row.device == "a card" and row.date == "2026-11-28" for row in found)
    assert sum(line.strip().startswith("[1") for line in path.read_text().splitlines()) == 1
    with pytest.raises(ValueError, match="reason"):
        _ = found[4].gflops


def test_a_session_goes_on_and_its_repeated_rows_are_replaced(tmp_path):
    path = tmp_path / "x.json"
    records.append(path, HEAD, [ROW, ROW | {"WPT": 4}])
    records.append(path, HEAD, [ROW | {"median": 10}])
    assert [row.median for row in records.read(path)] == [10, 9]
    records.append(path, HEAD | {"date": "2026-11-29"}, [ROW])
    assert [row.median for row in records.read(path)] == [10, 9, 9]
    assert len(json.loads(path.read_text())) == 2


@pytest.mark.parametrize(
    "wrong", [{"median": "<img>"}, {"registers": -1}, {"note": 3}, {"TS": "a"}, {"colour": "red"}]
)
def test_a_row_of_other_types_is_neither_written_nor_read(wrong, tmp_path):
    path = tmp_path / "x.json"
    with pytest.raises(ValueError, match=next(iter(wrong))):
        records.append(path, HEAD, [ROW | wrong])
    assert not path.exists()
    records.append(path, HEAD, [ROW])
    sessions = json.loads(path.read_text())
    sessions[0]["tables"] = [{**ROW, **wrong, "columns": [], "rows": [[]]}]
    path.write_text(json.dumps(sessions))
    with pytest.raises(ValueError, match=next(iter(wrong))):
        records.read(path)


@pytest.mark.parametrize("text", ["{}", "[1]", '[{"title": "x"}]', "half a f"])
def test_what_is_not_a_record_is_refused(text, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"."):
        records.read(path)


def test_a_query_names_what_it_wants():
    rows = records.rows(record="nvidia_h200", kernel=6, size=4096, metric="GFLOPS")
    assert len(rows) == 1 and rows[0].params == catalog[6].defaults and rows[0].low < rows[0].gflops
    assert records.rows(kernel=6, device="nobody's") == ()
    parts = records.variants(series="parts", kernel=7)
    assert parts["loaded once"].gflops > parts["as it is"].gflops


def timed(median: float, least: float, most: float) -> records.Result:
    given = {"kernel": 1, "params": {}, "m": 64, "n": 64, "k": 64, "device": {}, "path": "plain"}
    passed = {"ok": True, "verdict": "right", "error": 0.0, "bound": 0.0}
    times = {"kernel_ms": (median, least, most), "pipeline_ms": (1.0, 1.0, 1.0), "passes_ms": {}}
    return records.Result(**given, **passed, **times, repeats=3, build_seconds=0.0)


def test_rates_are_told_apart_only_beyond_their_spread():
    slow = timed(2.0, 1.9, 2.1)
    # one slow run says little
    assert "2.00 times" in records.distinguish({"slow": slow, "fast": timed(1.0, 0.9, 3.0)})
    overlapping = {"slow": timed(2.0, 0.9, 2.1), "fast": timed(1.0, 0.9, 1.1)}
    assert "no difference" in records.distinguish(overlapping)
    assert len(records.distinguish({"alone": slow}).splitlines()) == 1
    assert "nothing" in records.distinguish({})  # the device refused every setting
