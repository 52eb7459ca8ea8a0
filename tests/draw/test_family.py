"""Pictures of the family say in words what they show."""

from gemmlab import model
from gemmlab.draw import family


def test_the_criteria_with_their_answers():
    found = model.criteria((64, 64, 8), (64, 64), (4, 4), model.Peaks(1000, 100), 8)
    alt = family.criteria(found, "a device").alt
    assert "a device" in alt and "too little" in alt and "enough" in alt
    assert family.criteria(found).png()


def test_the_map_names_what_is_taken():
    picture = family.choices((8, 16), (8, 16, 24), [["x", "x", "y"], ["y", "y", "y"]], "here")
    assert "x: 2 sizes" in picture.alt and "y: 4 sizes" in picture.alt and picture.png()


def test_launches_with_and_without_times():
    parts = [(0, 0, 64, 64, "none"), (64, 0, 3, 64, "rows"), (0, 64, 64, 5, "columns"), (64, 64, 3, 5, "both")]
    assert "4 parts" in family.launches(parts).alt
    times = {"none": 1.0, "rows": 0.5, "columns": 0.25, "both": 0.125}
    assert "3 x 5, guards both, 0.125 ms" in family.launches(parts, times).alt
    assert "1 part:" in family.launches([(0, 0, 5, 3, "both")]).alt and family.launches(parts, times).svg()
