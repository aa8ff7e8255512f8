"""Encoding and decoding an XCom gives an equal value; a value that cannot be stored is an error with its position."""

from __future__ import annotations

import json
import math
import sys
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pendulum
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.execution.world import carry_out, pushed
from tradewind.execution.asset_events import AssetEvent, Metadata
from tradewind.execution.xcom_codec import DEPTH_MAX, decode_xcom, encode_xcom
from tradewind.operators.python import PythonOperator
from tradewind.sdk.assets import Asset, AssetAlias, Dataset, Model
from tradewind.sdk.dag import DAG
from tradewind.sdk.exceptions import XComNotSerializable


def _there_and_back(value: Any) -> Any:
    return decode_xcom(encode_xcom(value))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**63),
        2**64 - 1,
        2**64,
        -(10**40),
        1.5,
        "grüße",
        [1, "a", None, [2.5]],
        {"a": {"b": [1]}},
        (1, (2, 3)),
        [(1, 2), {"x": (3,)}],
        {1, 2, 3},
        frozenset({"a"}),
        {1: "a", None: "b", (1, 2): "c"},
        {"__type": "set", "__var": [1]},
        {"a": {"__type": "nonsense"}},
        b"\x00\xff",
        Decimal("1.10"),
        date(2024, 2, 29),
        time(12, 30, 1, 5),
        timedelta(days=-1, microseconds=3),
        datetime(2024, 1, 1, 5),  # noqa: DTZ001 (one without a zone)
        datetime(2024, 1, 1, 5, tzinfo=UTC),
        datetime(2024, 1, 1, 5, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        ZoneInfo("Europe/Paris"),
        timezone(timedelta(hours=-3)),
        UUID(int=5),
        Path("/tmp/x"),
        math.inf,
        [1.0, -math.inf],
    ],
    ids=repr,
)
def test_decoding_gives_an_equal_value(value: Any) -> None:
    back = _there_and_back(value)
    assert back == value
    assert type(back) is type(value)


def test_keys_of_xcoms_are_text() -> None:
    """As in Airflow 2 and 3. Airflow 1 pickled values."""
    value = {1: {2.5: (3,)}, "__type": 1}

    def pushed_for(generation: int) -> Any:
        with DAG("d", schedule=None) as dag:
            task = PythonOperator(task_id="t", python_callable=lambda: value)
        dag.generation = generation
        return pushed(carry_out(task))["return_value"]

    assert pushed_for(3) == pushed_for(2) == {"1": {"2.5": (3,)}, "__type": 1}
    assert pushed_for(1) == value


def test_nan_is_kept() -> None:
    assert math.isnan(_there_and_back({"a": [math.nan]})["a"][0])


@pytest.mark.parametrize("fold", [0, 1])
def test_a_named_time_zone_keeps_its_name_and_the_point_in_time(fold: int) -> None:
    """Also in the hour that occurs twice when the clock goes back."""
    moment = datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Paris"), fold=fold)
    back = _there_and_back(moment)
    assert back.tzinfo == ZoneInfo("Europe/Paris")
    assert back.timestamp() == moment.timestamp()
    assert back.utcoffset() == moment.utcoffset()


def test_pendulum_values_stay_pendulum_values() -> None:
    moment = pendulum.datetime(2024, 10, 27, 1, tz="Europe/Paris")
    back = _there_and_back([moment])[0]
    assert isinstance(back, pendulum.DateTime)
    assert back == moment
    assert back.timezone_name == "Europe/Paris"


class _Color(Enum):
    RED = "red"


class _Word(StrEnum):
    HI = "hi"


class _Number(IntEnum):
    ONE = 1


class _Text(str):
    pass


_Point = namedtuple("_Point", "x y")


@dataclass
class _Row:
    name: str
    at: date
    more: Any = None


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (_Color.RED, "red"),
        (_Word.HI, "hi"),
        (_Number.ONE, 1),
        ({_Word.HI: 1}, {"hi": 1}),
        (_Text("x"), "x"),
        (_Point(1, 2), (1, 2)),
        (OrderedDict(a=1), {"a": 1}),
        (defaultdict(int, a=1), {"a": 1}),
        (bytearray(b"x"), b"x"),
        (
            _Row("a", date(2024, 1, 1), [_Row("b", date(2024, 1, 2))]),
            {"name": "a", "at": date(2024, 1, 1), "more": [{"name": "b", "at": date(2024, 1, 2), "more": None}]},
        ),
    ],
    ids=repr,
)
def test_subclasses_become_plain_values(value: Any, plain: Any) -> None:
    back = _there_and_back(value)
    assert back == plain
    assert type(back) is type(plain)


def test_numpy_scalars_become_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    value = {"i": numpy.int64(3), "f": numpy.float64(1.5), "f32": numpy.float32(0.5), "b": numpy.bool_(True)}
    assert _there_and_back(value) == {"i": 3, "f": 1.5, "f32": 0.5, "b": True}


def test_simple_values_are_plain_json() -> None:
    """Any program can read it, and large lists are encoded without a step for each element."""
    value = {"rows": [1, 2, 3], "name": "x", "none": None}
    assert json.loads(encode_xcom(value)) == value


def _cycle() -> Any:
    value: dict[str, Any] = {"rows": [{}]}
    value["rows"][0]["up"] = value
    return value


def _deep() -> Any:
    value: Any = 1
    for _ in range(DEPTH_MAX + 5):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"rows": [1, 2, 3, len]}, "return_value['rows'][3]: <function len> cannot be stored as an XCom"),
        ([{"x": object()}], "return_value[0]['x']: <object> cannot be stored"),
        (_Row("a", date(2024, 1, 1), [int]), "return_value.more[0]: the class int cannot"),
        ((i for i in range(3)), "return list(…) of it"),
        (_cycle(), "return_value['rows'][0]['up'] contains itself"),
        (_deep(), "nested more than"),
        ({"a": "\ud800"}, "not valid Unicode"),
        ({object: 1}, "the key <class 'object'> of return_value"),
    ],
    ids=["function", "object", "class", "generator", "cycle", "deep", "surrogate", "key"],
)
def test_the_error_gives_the_position_of_the_value(value: Any, sentence: str) -> None:
    with pytest.raises(XComNotSerializable) as caught:
        encode_xcom(value)
    assert sentence in str(caught.value)


class _Frame:
    """Stands in for pandas.DataFrame: pandas is not a requirement of the tests."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns = columns

    def to_pandas(self) -> _Frame:
        return self

    @staticmethod
    def from_pandas(frame: _Frame) -> _Frame:
        if any(len({type(value) for value in values}) > 1 for values in frame.columns.values()):
            raise ValueError("Conversion failed for column a with type object")
        return frame


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """pandas and pyarrow with what the codec uses of them."""
    parquet = SimpleNamespace(
        write_table=lambda table, file, compression: file.write(json.dumps(table.columns).encode()),
        read_table=lambda file: _Frame(json.loads(file.read())),
    )
    pyarrow = SimpleNamespace(__version__="22.0.0", Table=_Frame, parquet=parquet)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=_Frame))
    monkeypatch.setitem(sys.modules, "pyarrow", pyarrow)
    return pyarrow


def test_a_data_frame_is_stored_as_parquet(frames: SimpleNamespace) -> None:
    stored = _there_and_back({"frame": _Frame({"a": [1, 2]}), "rows": 2})
    assert (stored["frame"].columns, stored["rows"]) == ({"a": [1, 2]}, 2)


def test_a_data_frame_that_cannot_be_stored_says_why(frames: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(XComNotSerializable, match=r"the DataFrame cannot be stored.*column a.*to_dict"):
        encode_xcom(_Frame({"a": [1, "x"]}))
    frames.__version__ = "14.0.1"
    with pytest.raises(XComNotSerializable, match=r"pip install 'pyarrow>=15' \(installed: 14\.0\.1\)"):
        encode_xcom(_Frame({"a": [1]}))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(XComNotSerializable, match="pip install 'pyarrow>=15'"):
        encode_xcom(_Frame({"a": [1]}))


def test_a_genuine_data_frame_keeps_its_index_and_types() -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {"day": pandas.to_datetime(["2026-01-01", "2026-01-02"], utc=True), "n": [1.5, None], "s": ["a", "b"]}, index=["x", "y"]
    )
    pandas.testing.assert_frame_equal(_there_and_back(frame), frame)


def test_shared_values_without_a_cycle_are_accepted() -> None:
    row = {"a": date(2024, 1, 1)}
    assert _there_and_back([row, row]) == [row, row]


def test_decoding_an_unknown_format_is_an_error() -> None:
    with pytest.raises(XComNotSerializable, match="not JSON"):
        decode_xcom(b"\x80\x04")
    with pytest.raises(XComNotSerializable, match="'pickle', which this version of Tradewind does not know"):
        decode_xcom(b'{"__type":"pickle","__var":"x"}')


_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.dates()
    | st.decimals(allow_nan=False)
)
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.just("__type"), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(_values)
def test_every_stored_value_is_restored(value: Any) -> None:
    assert _there_and_back(value) == value


def test_assets_are_restored() -> None:
    asset = Asset("a", "s3://b/a", group="g", extra={"k": [1, (2,)]})
    for value in (
        asset,
        Dataset("s3://b/d"),
        Model("m"),
        AssetAlias("x", group="files"),
        asset & Asset("b"),
        asset | AssetAlias("x"),
    ):
        found = decode_xcom(encode_xcom(value))
        assert (type(found), found) == (type(value), value)
    for reference in (Asset.ref(name="a"), Asset.ref(uri="s3://b/a")):
        assert decode_xcom(encode_xcom(reference)) == reference
    (found, inside) = decode_xcom(encode_xcom([asset, {"a": (asset,)}]))
    assert (found.group, found.extra, inside["a"]) == ("g", {"k": [1, (2,)]}, (asset,))


def test_metadata_and_events_of_assets_are_restored() -> None:
    said = decode_xcom(encode_xcom(Metadata(Asset("a"), {"n": 1}, "x")))
    assert (said.asset, said.extra, said.alias) == (Asset("a"), {"n": 1}, AssetAlias("x"))
    row = {"id": 7, "name": "a", "uri": "a", "group": "g", "asset_extra": {}, "extra": {"n": 1}, "at": 1, "aliases": ["x"]}
    source = {"source_dag_id": "d", "source_task_id": "t", "source_run_id": "r", "source_map_index": -1}
    event = decode_xcom(encode_xcom(AssetEvent({**row, **source}, context=object())))
    assert (event.asset.name, event.extra, event.source_run_id, event.source_aliases) == ("a", {"n": 1}, "r", ["x"])


def test_an_asset_of_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(XComNotSerializable, match="of the kind 'Lake'"):
        decode_xcom(b'{"__type": "asset", "__var": {"kind": "Lake"}}')


def test_a_subclass_of_an_asset_is_stored_as_an_asset() -> None:
    class Table(Asset):
        """As `@asset` makes one."""

    assert type(decode_xcom(encode_xcom(Table("t")))) is Asset
