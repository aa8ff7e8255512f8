"""XComs that are data frames of pandas: they are stored as Parquet, as in Airflow. This needs the package pyarrow.

Parquet contains only data, so reading it runs no code of the person who wrote it. pandas and pyarrow are imported only in processes
that have a data frame: a task that returns one has imported pandas, and a task that pulls one needs it.
"""

from __future__ import annotations

import base64
import io
import sys
from typing import Any

from tradewind.sdk.exceptions import XComNotSerializable

_PYARROW_MIN = 15
"""Older releases of pyarrow run code that a Parquet file contains."""


def is_frame(value: object) -> bool:
    """Whether a value is a data frame. Without pandas in `sys.modules` no value can be one."""
    frame_class = getattr(sys.modules.get("pandas"), "DataFrame", None)
    return frame_class is not None and isinstance(value, frame_class)


def encode_frame(value: Any, path: str) -> str:
    """Return a data frame as Parquet in base64. `path` is the name of the value in messages.

    Raises:
        XComNotSerializable: pyarrow is not installed, or the frame has a column that Parquet cannot store.
    """
    pyarrow, parquet = _library(path)
    buffer = io.BytesIO()
    try:
        parquet.write_table(pyarrow.Table.from_pandas(value), buffer, compression="snappy")
    except (ValueError, TypeError, NotImplementedError) as error:  # pyarrow's own errors are subclasses
        raise XComNotSerializable(
            f"{path}: the DataFrame cannot be stored as an XCom, because Parquet cannot hold it: {' '.join(str(error).split())}. "
            "Give each column values of one type, or return .to_dict('records')"
        ) from None
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def decode_frame(data: str) -> Any:
    """Return the data frame of `encode_frame`.

    Raises:
        XComNotSerializable: pyarrow is not installed.
    """
    _, parquet = _library("a stored XCom")
    return parquet.read_table(io.BytesIO(base64.b64decode(data))).to_pandas()


def _library(path: str) -> tuple[Any, Any]:
    advice = (
        f"{path} is a pandas DataFrame; to store it as an XCom, Tradewind needs pyarrow: pip install 'pyarrow>={_PYARROW_MIN}'"
    )
    try:
        import pyarrow  # lazy import: few tasks have data frames
        from pyarrow import parquet
    except ImportError:
        raise XComNotSerializable(advice) from None
    if int(pyarrow.__version__.partition(".")[0]) < _PYARROW_MIN:
        raise XComNotSerializable(f"{advice} (installed: {pyarrow.__version__})")
    return pyarrow, parquet
