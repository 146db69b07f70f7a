"""The repositories: each small, each with a test that fails, and what mends it."""

# ruff: noqa: E501  (other files' texts)

from typing import NamedTuple

TEST = "python3 -m unittest -q"


class Task(NamedTuple):
    """A repository, what is asked, and the way of the scripted model through it.

    `looks` are what it searches for; `changes` are (file, old text, new text), a new file when the
    old text is empty; `misses` is an edit with the wrong indentation that it tries first.
    """

    name: str
    asked: str
    files: dict[str, str]
    changes: tuple[tuple[str, str, str], ...]
    looks: tuple[str, ...]
    misses: tuple[str, str, str] | None = None


def tested(module: str, *checks: str) -> str:
    """A test file for one module."""
    lines = ["import unittest", "", f"import {module}", "", "", "class Test(unittest.TestCase):"]
    for number, check in enumerate(checks):
        lines += [
            f"    def test_{number}(self):",
            *(f"        {one}" for one in check.split("\n")),
            "",
        ]
    return "\n".join(lines)


def _one(
    name: str,
    asked: str,
    code: str,
    old: str,
    new: str,
    look: str,
    *checks: str,
    miss: bool = False,
) -> Task:
    files = {f"{name}.py": code, f"test_{name}.py": tested(name, *checks)}
    wrong = (f"{name}.py", old.replace("    ", "\t"), new) if miss else None
    return Task(name, asked, files, ((f"{name}.py", old, new),), (look,), wrong)


ONE_FILE = (
    _one("average", "average([]) fails; it should be 0. Mend it.",
         "def average(numbers):\n    return sum(numbers) / len(numbers)\n",
         "    return sum(numbers) / len(numbers)", "    return sum(numbers) / len(numbers) if numbers else 0",
         "def average", "self.assertEqual(average.average([]), 0)", "self.assertEqual(average.average([2, 4]), 3)"),
    _one("slug", "slug('A  B') gives two dashes. Make it one.",
         "def slug(text):\n    return text.strip().lower().replace(' ', '-')\n",
         "text.strip().lower().replace(' ', '-')", "'-'.join(text.lower().split())",
         "replace", "self.assertEqual(slug.slug(' A  B '), 'a-b')"),
    _one("fib", "The tests of fib fail. Find out why and mend it.",
         "def fib(n):\n    a, b = 0, 1\n    for _ in range(n - 1):\n        a, b = b, a + b\n    return a\n",
         "range(n - 1)", "range(n)", "range", "self.assertEqual([fib.fib(n) for n in range(6)], [0, 1, 1, 2, 3, 5])"),
    _one("bounds", "clamp lets values above the upper bound through.",
         "def clamp(x, low, high):\n    if x < low:\n        return low\n    if x > low and x > high:\n        return x\n    return x\n",
         "    if x > low and x > high:\n        return x", "    if x > high:\n        return high",
         "def clamp", "self.assertEqual(bounds.clamp(9, 0, 5), 5)", "self.assertEqual(bounds.clamp(3, 0, 5), 3)", miss=True),
    _one("counter", "count() keeps what it counted in an earlier call.",
         "def count(words, seen={}):\n    for word in words:\n        seen[word] = seen.get(word, 0) + 1\n    return seen\n",
         "def count(words, seen={}):", "def count(words):\n    seen = {}",
         "seen", "counter.count(['a'])\nself.assertEqual(counter.count(['a']), {'a': 1})"),
    _one("dates", "2000 is a leap year, 1900 is not: mend is_leap.",
         "def is_leap(year):\n    return year % 4 == 0 and year % 100 != 0\n",
         "year % 4 == 0 and year % 100 != 0", "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)",
         "is_leap", "self.assertTrue(dates.is_leap(2000))", "self.assertFalse(dates.is_leap(1900))"),
    _one("roman", "to_roman(4) must be IV.",
         "PAIRS = [(10, 'X'), (5, 'V'), (1, 'I')]\n\n\ndef to_roman(n):\n    out = ''\n    for value, sign in PAIRS:\n        while n >= value:\n            out += sign\n            n -= value\n    return out\n",
         "[(10, 'X'), (5, 'V'), (1, 'I')]", "[(10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]",
         "PAIRS", "self.assertEqual(roman.to_roman(4), 'IV')", "self.assertEqual(roman.to_roman(19), 'XIX')"),
    _one("csvs", "Fields with commas in quotes are cut apart.",
         "def fields(line):\n    return line.split(',')\n",
         "def fields(line):\n    return line.split(',')", "import csv\n\n\ndef fields(line):\n    return next(csv.reader([line]))",
         "def fields", "self.assertEqual(csvs.fields('a,\"b,c\"'), ['a', 'b,c'])"),
    _one("stack", "pop of an empty stack should raise IndexError, not return None.",
         "class Stack:\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n        self.items.append(item)\n\n    def pop(self):\n        if self.items:\n            return self.items.pop()\n",
         "        if self.items:\n            return self.items.pop()", "        return self.items.pop()",
         "def pop", "self.assertRaises(IndexError, stack.Stack().pop)", miss=True),
    _one("money", "total() of 0.1 and 0.2 must be exactly 0.30.",
         "def total(amounts):\n    return sum(float(a) for a in amounts)\n",
         "def total(amounts):\n    return sum(float(a) for a in amounts)", "from decimal import Decimal\n\n\ndef total(amounts):\n    return sum((Decimal(a) for a in amounts), Decimal('0'))",
         "float", "from decimal import Decimal\nself.assertEqual(money.total(['0.10', '0.20']), Decimal('0.30'))"),
    _one("search", "The binary search does not find the last element.",
         "def find(items, wanted):\n    low, high = 0, len(items) - 1\n    while low < high:\n        middle = (low + high) // 2\n        if items[middle] < wanted:\n            low = middle + 1\n        elif items[middle] > wanted:\n            high = middle - 1\n        else:\n            return middle\n    return -1\n",
         "while low < high:", "while low <= high:", "while", "self.assertEqual(search.find([1, 2, 3], 3), 2)", "self.assertEqual(search.find([1], 1), 0)"),
    _one("paths", "join('a', '/b') should stay below a.",
         "import os\n\n\ndef join(root, name):\n    return os.path.join(root, name)\n",
         "os.path.join(root, name)", "os.path.join(root, name.lstrip('/'))",
         "os.path", "self.assertEqual(paths.join('a', '/b'), 'a/b')"),
    _one("retry", "retry gives up one try too early.",
         "def retry(work, times):\n    for n in range(times):\n        try:\n            return work()\n        except ValueError:\n            if n == times - 2:\n                raise\n",
         "if n == times - 2:", "if n == times - 1:", "times",
         "tries = []\ndef work():\n    tries.append(1)\n    if len(tries) < 3:\n        raise ValueError\n    return 'ok'\nself.assertEqual(retry.retry(work, 3), 'ok')"),
    _one("merge", "merge() drops what is left of the longer list.",
         "def merge(a, b):\n    out = []\n    while a and b:\n        out.append(a.pop(0) if a[0] <= b[0] else b.pop(0))\n    return out\n",
         "    return out", "    return out + a + b", "def merge", "self.assertEqual(merge.merge([1, 4], [2, 3, 5]), [1, 2, 3, 4, 5])"),
    _one("caseless", "Names that differ in case only should be equal, the German ones too.",
         "def same(a, b):\n    return a.lower() == b.lower()\n",
         "a.lower() == b.lower()", "a.casefold() == b.casefold()", "lower", "self.assertTrue(caseless.same('Straße', 'STRASSE'))"),
    _one("parse", "parse('a=b=c') should split at the first sign only.",
         "def parse(text):\n    key, value = text.split('=')\n    return key, value\n",
         "text.split('=')", "text.split('=', 1)", "split", "self.assertEqual(parse.parse('a=b=c'), ('a', 'b=c'))"),
    _one("flatten", "flatten() works one level deep only.",
         "def flatten(items):\n    out = []\n    for one in items:\n        if isinstance(one, list):\n            out += one\n        else:\n            out.append(one)\n    return out\n",
         "            out += one", "            out += flatten(one)", "def flatten", "self.assertEqual(flatten.flatten([1, [2, [3, [4]]]]), [1, 2, 3, 4])", miss=True),
    _one("cache", "The cache grows without end; it should keep `size` entries and drop the oldest.",
         "class Cache:\n    def __init__(self, size):\n        self.size = size\n        self.items = {}\n\n    def put(self, key, value):\n        self.items[key] = value\n",
         "        self.items[key] = value", "        self.items.pop(key, None)\n        self.items[key] = value\n        while len(self.items) > self.size:\n            del self.items[next(iter(self.items))]",
         "class Cache", "c = cache.Cache(2)\nfor n in range(5):\n    c.put(n, n)\nself.assertEqual(list(c.items), [3, 4])"),
)  # fmt: skip

SEVERAL = (
    Task(
        "renamed", "The tests fail since `area` was renamed to `surface`. Mend the callers.",
        {"shapes/__init__.py": "", "shapes/square.py": "def surface(a):\n    return a * a\n",
         "shapes/room.py": "from shapes.square import area\n\n\ndef floor(a):\n    return area(a)\n",
         "test_room.py": tested("shapes.room", "self.assertEqual(shapes.room.floor(3), 9)")},
        (("shapes/room.py", "from shapes.square import area\n\n\ndef floor(a):\n    return area(a)", "from shapes.square import surface\n\n\ndef floor(a):\n    return surface(a)"),),
        ("area", "surface"),
    ),
    Task(
        "missing", "test_greet fails: the module is not there. Write it.",
        {"test_greet.py": tested("greet", "self.assertEqual(greet.greet('Ada'), 'Hello, Ada!')"), "README": "greet says hello.\n"},
        (("greet.py", "", "def greet(name):\n    return f'Hello, {name}!'\n"),),
        ("greet",),
    ),
    Task(
        "two_places", "Prices are shown without currency in both reports.",
        {"daily.py": "def line(price):\n    return f'{price}'\n", "weekly.py": "def line(price):\n    return f'total {price}'\n",
         "test_both.py": tested("daily", "import weekly\nself.assertEqual(daily.line(5), '5 EUR')\nself.assertEqual(weekly.line(5), 'total 5 EUR')")},
        (("daily.py", "f'{price}'", "f'{price} EUR'"), ("weekly.py", "f'total {price}'", "f'total {price} EUR'")),
        ("price",),
    ),
    Task(
        "settings", "The default port should be 8080, as the test says.",
        {"conf/defaults.json": '{"host": "localhost", "port": 80}\n',
         "conf/__init__.py": "import json\nimport os\n\nHERE = os.path.dirname(__file__)\n\n\ndef load():\n    with open(os.path.join(HERE, 'defaults.json')) as file:\n        return json.load(file)\n",
         "test_conf.py": tested("conf", "self.assertEqual(conf.load()['port'], 8080)")},
        (("conf/defaults.json", '"port": 80', '"port": 8080'),),
        ("port",),
    ),
    Task(
        "ignored", "The build folder has an old copy; mend the source of shout().",
        {".gitignore": "build/\n", "src/shout.py": "def shout(text):\n    return text\n",
         **{f"build/copy{n}/shout.py": "def shout(text):\n    return text.upper()\n" for n in range(20)},
         "test_shout.py": "import sys\nimport unittest\n\nsys.path.insert(0, 'src')\nimport shout\n\n\nclass Test(unittest.TestCase):\n    def test(self):\n        self.assertEqual(shout.shout('a'), 'A!')\n"},
        (("src/shout.py", "return text", "return text.upper() + '!'"),),
        ("def shout",),
    ),
    Task(
        "circle", "Importing `a` fails. Break the circle.",
        {"a.py": "from b import half\n\n\ndef double(x):\n    return 2 * x\n", "b.py": "from a import double\n\n\ndef half(x):\n    return x / 2\n\n\ndef same(x):\n    return half(double(x))\n",
         "test_a.py": tested("a", "import b\nself.assertEqual(b.same(3), 3)")},
        (("b.py", "from a import double\n\n\ndef half(x):\n    return x / 2\n\n\ndef same(x):\n    return half(double(x))", "def half(x):\n    return x / 2\n\n\ndef same(x):\n    from a import double\n\n    return half(double(x))"),),
        ("import",),
    ),
    Task(
        "long_file", "One of the 400 handlers returns the wrong number: the test says which.",
        {"handlers.py": "".join(f"def handler_{n}():\n    return {n if n != 317 else 0}\n\n\n" for n in range(400)),
         "test_handlers.py": tested("handlers", "for n in range(400):\n    self.assertEqual(getattr(handlers, f'handler_{n}')(), n)")},
        (("handlers.py", "def handler_317():\n    return 0", "def handler_317():\n    return 317"),),
        ("def handler_317",),
    ),
    Task(
        "windows_lines", "The parser keeps the carriage return of Windows files.",
        {"rows.py": "def rows(text):\n    return text.split('\\n')\n", "test_rows.py": tested("rows", "self.assertEqual(rows.rows('a\\r\\nb'), ['a', 'b'])")},
        (("rows.py", "text.split('\\n')", "text.splitlines()"),),
        ("def rows",),
    ),
)  # fmt: skip
TASKS = (*ONE_FILE, *SEVERAL)
