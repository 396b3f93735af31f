"""Structured arrays from the rows of documents.

A field has the name that the document gives it, with its unit: "iteration_s" is in seconds. A number
that a document does not have is NaN.
"""

from typing import Any, Mapping, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["StructuredArray"]

StructuredArray = npt.NDArray[np.void]


def structured(rows: Sequence[Mapping[str, Any]], fields: Mapping[str, str]) -> StructuredArray:
    """Returns an array of the fields of rows. A field's type is "f8", "i8", "?" or "U", whose width is
    that of the longest text."""
    types = []
    for name, kind in fields.items():
        if kind == "U":
            kind = f"U{max((len(str(row.get(name, ''))) for row in rows), default=0) or 1}"
        types.append((name, kind))
    values = [tuple(np.nan if row.get(name) is None and kind == "f8" else row[name]
                    for name, kind in fields.items()) for row in rows]
    return np.array(values, dtype=types)
