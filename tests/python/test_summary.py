"""summary(): the table of a model's parameters; what dir() of the module lists."""

from __future__ import annotations

import pytest

import dynet_lite as dy


def a_model() -> dy.ParameterCollection:
    model = dy.ParameterCollection()
    model.add_parameters((3, 4), name="W")
    model.add_parameters(5, name="b<")
    model.add_lookup_parameters((10, 2), name="words").set_updated(False)
    return model


def test_rows_and_totals() -> None:
    found = dy.summary(a_model())
    assert found.rows == [("/W", (3, 4), 12, True), ("/b<", (5,), 5, True), ("/words", (10, 2), 20, False)]
    assert (found.numbers, found.trained) == (37, 17)
    lines = str(found).splitlines()
    assert [line.split() for line in lines[1:3]] == [["/W", "3", "x", "4", "12"], ["/b<", "5", "5"]]
    assert "20 (not trained)" in lines[3]
    assert lines[-1] == "37 numbers in 3 parameters, 20 of them not trained; 148 B"


def test_in_a_notebook() -> None:
    page = dy.summary(a_model())._repr_html_()
    assert page.count("<tr>") == 4 and "/b&lt;" in page and ">3 x 4</td>" in page


def test_builders_and_what_has_a_model() -> None:
    model = dy.ParameterCollection()
    builder = dy.LSTMBuilder(1, 3, 4, model)
    assert dy.summary(builder).numbers == model.parameter_count() == 16 * 3 + 16 * 4 + 16
    assert dy.summary(type("Mine", (), {"model": model})()).numbers == model.parameter_count()
    for wrong in (None, 3, dy):
        with pytest.raises(TypeError, match=r"\[summary\] expected a ParameterCollection"):
            dy.summary(wrong)
