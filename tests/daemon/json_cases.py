"""Lines of JSON as parsers fear them: `y_` must be read, `n_` must not, `i_` may be either."""


def cases():
    """(name, line) pairs; no line has a newline in it."""
    yield from _yes()
    yield from _no()
    yield from _either()


def _named(kind, rows):
    seen = set()
    for number, row in enumerate(rows):
        line = row if isinstance(row, bytes) else row.encode()
        assert b"\n" not in line, line
        if line in seen:
            continue
        seen.add(line)
        yield f"{kind}_{number:03d}", line


def _yes():
    numbers = (
        "0 -0 1 -1 10 123456789 0.5 -0.5 1.25 1e5 1E5 1e+5 1e-5 1E+2 1E-2 0e1 0E0 0e+1 -0.0 -1e-9 "
        "123.456e78 -123123123123 0.000000000000000000000001 9007199254740993 -9223372036854775808 "
        "18446744073709551615 1.7976931348623157e308 1e400 -1e400 1e999 1e-10000 123.456e-789 "
        "123123e100000"
    ).split()
    numbers += ["1" * 1000, "-" + "9" * 1000, "0." + "1" * 1000, "1" * 10_000]
    texts = (
        r'""', r'"a"', r'" "', r'"\""', r'"\\"', r'"\/"', r'"\b\f\n\r\t"', r'"\u0041"', r'"\u00e9"',
        r'"\u0000"', r'"\uD834\uDD1E"', r'"\u2028\u2029"', r'"\ufffd"', r'"\u0022"', r'"\u005C"',
        '"é"', '"€"', '"𝄞"', '"\x7f"', '"  "', '"\U0010ffff"', '"a/*b*/c"', r'"\\a"', r'"\\n"',
        r'"\uDBFF\uDFFE"', '"new\\u00A0line"', '"asd "', '"﻿"',
    )  # fmt: skip
    values = ("true", "false", "null", *numbers, *texts)
    arrays = (
        "[]", "[ ]", "[[]]", "[[],[[]]]", "[null]", "[1,null,null,2]", "[1 , 2]", "[\t]", "[\r]",
        '["",""]', "[true,false]", "[{}]", "[[[[[[[[[[]]]]]]]]]]", "[1,2,3,4,5,6,7,8,9]",
    )  # fmt: skip
    objects = (
        "{}", "{ }", '{"":0}', '{"a":{}}', '{"a":[]}', '{"a":1,"a":2}', '{"a":"b","c":"d"}',
        '{"a":{"b":{"c":{"d":1}}}}', r'{"foo\u0000bar":42}', '{"min":-1e+28,"max":1e+28}',
        '{ "a" : [ ] }', '{"x":[{"id":"a"}],"id":"b"}', '{"title":"\\u041f"}', '{"\\"":1}',
    )  # fmt: skip
    around = (" [1] ", "\t{}", "[] \r", " 1", '"a" ')
    wrapped = [f"[{value}]" for value in values]
    yield from _named("y", [*values, *wrapped, *arrays, *objects, *around])


def _no():
    numbers = (
        "+1 -01 01 1. .1 -.1 1.e1 1e 1e+ 1e- 1eE2 0x1 0x 1_000 NaN -NaN Infinity -Infinity nan inf "
        "1+2 --1 - -foo 1.2a 1ea 0.3e 0.3e+ 0e 0e+ -1x -2. 2.e3 2.e+3 9.e+ 1e1.5 012 -012 +Inf ++1"
    ).split()
    texts = (
        '"', '"a', "'a'", r'"\"', r'"\x00"', r'"\u00A"', r'"\uD83"', r'"\u"', r'"\uqqqq"', r'"\a"',
        '"\t"', '"\x01"', '"\x1f"', r'"\\\"', "a", '"a"x', '"\\', r'"\0"', '"\x00"', r"\u0020",
        "“a”", '"\\ "', '"\\🌀"', '"\\u{41}"',
    )  # fmt: skip
    arrays = (
        "[", "[1", "[1,", "[1,]", "[,1]", "[1,,2]", "[,]", "[1 2]", "[1]]", "[]]", "]", "[1:2]",
        "[1}", "[{]", "[*]", '["a', "[true", "[\x0b]", "[a]", "[1]x", "[-]", "[- 1]", "[,",
        "[\x0c]", "[1,\x00]", "[[[[", "[\u2060]", "[1;2]", "[(1)]", "[<null>]", "[1]//x", "[/*1*/]",
    )  # fmt: skip
    objects = (
        "{", "}", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', '{,"a":1}', "{a:1}", "{'a':1}",
        "{1:1}", '{"a" 1}', '{"a"::1}', '{"a":1 "b":2}', '{"a":1}}', '{"a":1}#', '{"a":/**/1}',
        '{null:1}', '{"a":1,,"b":2}', '{"a"}', '{:1}', '{"a":}', '{[]:1}', '{"a":1}{"b":2}',
        '{"a",1}', '{"a":"b",c:"d"}', '{"a":tru}', '{"a":1;}', '{9999E9999:1}', "{🇨🇭}", '{"a":a}',
    )  # fmt: skip
    words = ("tru", "fals", "nul", "True", "NULL", "truee", "nulll", "undefined", "1 2", "{} []")
    marks = (
        b"\xef\xbb\xbf{}", b"\xe9", b"\xff\xfe", b'"\xff"', b'["\xe5"]', b'["\xc0\xaf"]',
        b'["\xed\xa0\x80"]', b'["\xf4\xbf\xbf\xbf"]', b'{"\xb9":"0"}', b"[1\xe5]", b"\x00",
        b"[\x00]", b"\x1a",
        b"#!json", b"<.>", b"//", b"/**/", b"{}/**//", b"\x80", b"\xf8\x88\x80\x80\x80",
    )  # fmt: skip
    yield from _named("n", [*numbers, *texts, *arrays, *objects, *words, *marks])


def _either():
    deep = 500
    rows = [
        "[" * deep + "]" * deep,
        "[" * 100_000,
        '{"a":' * deep + "1" + "}" * deep,
        r'"\uD800"',
        r'"\uDFAA"',
        r'"\uD800\uD800"',
        r'"\uD888\u1234"',
        r'["\uDADA"]',
        r'{"\uD800":1}',
        r'"\uDd1e\uD834"',
        '"' + "x" * 200_000 + '"',
        "[" + ",".join("1" * 50_000) + "]",
        '{"' + "k" * 10_000 + '":1}',
        "{" + ",".join(f'"k{n}":{n}' for n in range(5_000)) + "}",
        '{"method":' * 300 + "1" + "}" * 300,
        " " * 100_000 + "1",
        "[1]" + " " * 1_000,
    ]
    yield from _named("i", rows)
