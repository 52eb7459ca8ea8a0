"""`tools/record.py`: the sweeps that chapters show."""

import json

import pytest
import record


@pytest.mark.system
def test_what_chapters_show_is_recorded(tmp_path, any_device, monkeypatch):
    some = {"03 WPT": (3, "WPT", (2, 4), {"TS": 32}), "10 size": (10, "size", (40, 64), {})}
    monkeypatch.setattr(record, "CURVES", some)
    file = tmp_path / "chapters.json"
    command = ["chapters", str(file), "--size", "64", "--device", str(any_device.index)]
    with monkeypatch.context() as patched:
        patched.setattr(record, "SWITCHES", None)  # what follows the sweeps fails
        with pytest.raises(AttributeError):
            record.main(command)
    assert list(json.loads(file.read_text())["curves"]) == list(some), "they are kept"
    record.main(command)
    recorded = json.loads(file.read_text())
    assert list(recorded["curves"]["03 WPT"]) == ["2", "4"]
    assert set(recorded["passes"]) == {"40", "64"} and set(recorded["switches"]) == {
        *record.SWITCHES
    }
    assert recorded["size"] == 64 and {"device", "date", "command"} <= set(recorded)
