"""Texts that are no kernels: each mistake is named in words, at the line and column where the
reader made it.
"""

from __future__ import annotations

import pickle

import pytest
from microscope.corpus import RIGHT
from microscope.harness import kernel, run

from clscope.text import Preprocessor, TextError

BODY = """
    float acc = 0.0f;
    for (int k = 0; k < K; k++) {
        acc += A[k*M + m] * B[n*K + k];
    }
    C[n*M + m] = acc;"""


def refused(source: str) -> TextError:
    with pytest.raises(TextError) as caught:
        run(source)
    error = caught.value
    assert 0 < error.line <= source.count("\n") + 1 and error.column > 0
    return error


@pytest.mark.parametrize("old, new, at", [
    ("0.0f;", "0.0f", "float acc = 0.0f|"),
    ("float acc", "flaot acc", "|flaot"),
    ("get_local_id(0)", "get_locl_id(0)", "|get_locl"),
])  # fmt: skip
def test_the_column_is_where_the_mistake_begins(old, new, at):
    source = kernel(BODY).replace(old, new, 1)
    error = refused(source)
    assert f"{error.line}:{error.column} {error.message}" in str(error)
    before, _, after = at.partition("|")
    line, column = source.split("\n")[error.line - 1], error.column - 1
    assert line[:column].endswith(before) and line[column:].startswith(after)


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("typedef int of;\nifndef TS\n#endif\n", 2, "expected a type, found 'ifndef'"),
        ("__kernel void f() {\n  x = 1;\n#error no\n}\n", 2, "'x' is not declared"),
        ("__kernel void f() {\n#error no\n  x = 1;\n}\n", 2, "#error: no"),
        ("typedef int of;\n#if 1\nint y\n", 2, "this #if has no #endif"),
    ],
)
def test_the_first_mistake_is_named_also_before_a_wrong_line_with_a_number_sign(
    text, line, message
):
    error = refused(text)
    assert (error.line, error.message) == (line, message)


def test_an_error_travels_to_another_process():
    error = refused("x")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.line) == (str(error), error.line)


def test_a_mistake_in_a_macro_names_the_macro():
    source = kernel(BODY.replace("acc;", "LAST(acc);"), before="#define LAST(x) (x + y)")
    error = refused(source)
    assert error.message.startswith("'y' is not declared")
    assert source.split("\n")[error.line - 1][error.column - 1 :].startswith("LAST(acc)")
    assert "in the macro LAST, defined in line 1" in str(error)


def test_a_text_that_is_nested_too_deeply():
    for one, other in (("(", ")"), ("{ for (int i = 0; i < 1; i++) {", "}}")):
        middle = "1" if one == "(" else "C[0] = 1.0f;"
        nested = one * 400 + middle + other * 400
        error = refused(kernel(f"C[0] = {nested};" if one == "(" else nested))
        assert error.message == "a text that is nested so deeply: not known to this simulator"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("#define A 2\n#define B A*A\nB", "2 * 2"),
        ("#define F(x, y) x##y + #x\nF(a, 1)", 'a1 + "a"'),
        ("#define F(x) (x)\n#define G F\nG(F(1))", "( ( 1 ) )"),
        ("#define F(x) x\nF\n(2)", "2"),
        ("#ifdef A\n1\n#elif defined(B) || !defined C\n2\n#else\n3\n#endif", "2"),
        ("#if 0\n#error never\n#if 1\n#endif\n#endif\nend", "end"),
        ("#define LONG a + \\\n b\nLONG // comment\n/* another\n one */ c", "a + b c"),
        ("_Pragma(\"unroll\") x", "x"),
        ("#if 7/2*2 == 6 && -7/2 == -3 && -7%3 == -1\n1\n#endif", "1"),
        ("#if (1 << 4 | 3) == 19 && 0x10 + 010 == 24\n1\n#endif", "1"),
        ("#if (5 > 3 ? 2 : 1/0) == 2 && (~0 & 6) == 6 && !3 == 0 && !(0 && 1/0)\n1\n#endif", "1"),
    ],
)  # fmt: skip
def test_preprocessor(text, expected):
    assert " ".join(t.text for t in Preprocessor().run(text)) == expected


def test_a_byte_order_mark_and_names_that_go_on_in_the_next_line():
    case = RIGHT[0]
    text = "\ufeff" + case.text.replace("__local float", "__local flo\\\nat", 1)
    assert text.count("\n") == case.text.count("\n") + 1
    assert case._replace(text=text).run().ok
