"""What was recorded: every file says where its figures come from."""

import json
import re
from pathlib import Path

import pytest

from gemmlab.measurement import records

ROOT = Path(__file__).resolve().parents[2]

RESULTS = sorted((ROOT / "results").glob("*.json"))
TABLE = "choice.json"  # of choices, by kinds of devices
SCRIPTS = ("python -m gemmlab ", "python tools/", "python docs/", "python tests/")


def says_its_origin(found: dict) -> bool:
    """Whether a record names device, command and date; a published one its device and source."""
    if "source" in found:  # published by others
        return bool(found["device"] and found["source"])
    results = found.get("results", []) + found.get("auto", [])
    devices = [found["device"]] if "device" in found else [r["device"] for r in results]
    named = [len(d["device"]) > 3 and d["platform"] and d["driver"] for d in devices]
    dated = re.fullmatch(r"20\d\d-\d\d-\d\d", found["date"])
    return bool(
        named and all(named) and dated and found["command"].startswith(SCRIPTS) and found["title"]
    )


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_a_record_names_device_command_and_date(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    if path.name == TABLE:
        for entry in (each for kind in found.values() for each in kind.values()):
            assert entry["commands"]
            for command in entry["commands"]:
                given = {"date": entry["date"], "command": command, "title": TABLE}
                device = {"device": entry["device"], "platform": "any", "driver": "any"}
                assert says_its_origin(given | {"device": device}), entry
        return
    assert says_its_origin(found)
    for result in found.get("results", []) + found.get("auto", []) if "source" not in found else []:
        assert result["ok"] and result["gflops"] > 0 and result["when"]
    for name in ("source", "device") if "source" in found else ("command", "date", "title"):
        assert not says_its_origin(found | {name: ""}), "the check would pass without it"


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
