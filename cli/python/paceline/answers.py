"""What Paceline answers: tables and documents of predictions, tunings, costs, comparisons and proofs."""

import csv
import functools
import html
import io
import json
from dataclasses import dataclass, field
from typing import Any, Iterator

from . import _core
from .arrays import StructuredArray, structured
from .pickled import FoundTuning, kept_of, point_of
from .values import Plan, Timeline


class _Table:
    """What has a table: a notebook shows it, and pandas takes it."""

    @property
    def table(self) -> StructuredArray:
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame; pandas must be installed."""
        import pandas

        return pandas.DataFrame(self.table)

    def _repr_html_(self) -> str:
        names = self.table.dtype.names or ()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = ("".join(f"<td>{html.escape(_shown(value))}</td>" for value in row) for row in self.table)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Row:
    """The prediction of one strategy and wire type. Seconds, bytes and shares, as its document has
    them (schema paceline.prediction/1)."""

    document: dict[str, Any] = field(repr=False)
    _prediction: _core.Prediction = field(repr=False)
    _index: int = field(repr=False)
    name: str = field(init=False)
    wire_type: str = field(init=False)
    iteration_s: float = field(init=False)
    iteration_low_s: float = field(init=False)
    iteration_high_s: float = field(init=False)
    throughput_per_s: float = field(init=False)
    efficiency: float = field(init=False)
    exposed_communication_s: float = field(init=False)

    def __post_init__(self) -> None:
        for name in ("name", "wire_type", "iteration_s", "iteration_low_s", "iteration_high_s",
                     "throughput_per_s", "efficiency", "exposed_communication_s"):
            object.__setattr__(self, name, self.document[name])

    @property
    def critical_path_s(self) -> dict[str, float]:
        """The time that each kind of task has on the critical path."""
        return {name.removesuffix("_s"): value
                for name, value in self.document["critical_path"].items()}

    @property
    def memory_bytes(self) -> dict[str, float]:
        return {name.removesuffix("_bytes"): value for name, value in self.document["memory"].items()}

    @property
    def plan(self) -> Plan:
        return Plan(self._prediction.plan(self._index))

    def timeline(self) -> Timeline:
        """Every task of two iterations of the steady state."""
        return Timeline(self._prediction.timeline(self._index))


_ROW = {"name": "U", "wire_type": "U", "iteration_s": "f8", "iteration_low_s": "f8",
        "iteration_high_s": "f8", "throughput_per_s": "f8", "efficiency": "f8", "compute_s": "f8",
        "update_s": "f8", "exposed_communication_s": "f8", "input_wait_s": "f8",
        "communication_s": "f8", "buckets": "i8", "memory_bytes": "f8", "fits_memory": "?",
        "largest_batch_per_rank": "i8"}


@dataclass(frozen=True, eq=False)
class Prediction(_Table):
    """The iteration time of every strategy on one number of ranks."""

    _value: _core.Prediction = field(repr=False)
    _again: tuple[Any, ...] = field(repr=False)  # a function that makes the value, and its arguments
    document: dict[str, Any] = field(init=False, repr=False)  # paceline.prediction/1
    network: str = field(init=False)
    cluster: str = field(init=False)
    ranks: int = field(init=False)
    warnings: list[str] = field(init=False)

    def __post_init__(self) -> None:
        document = json.loads(self._value.to_json())
        for name, value in (("document", document), ("network", document["model"]),
                            ("cluster", document["cluster"]), ("ranks", document["ranks"]),
                            ("warnings", document["warnings"])):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Prediction, (kept_of(self._value, *self._again), self._again)

    def __iter__(self) -> Iterator[Row]:
        for index, row in enumerate(self.document["strategies"]):
            yield Row(row, self._value, index)

    def __len__(self) -> int:
        return len(self.document["strategies"])

    def __contains__(self, strategy: object) -> bool:
        """Whether the table has a row of the strategy."""
        return any(row["name"] == strategy for row in self.document["strategies"])

    def row(self, strategy: str, wire_type: str | None = None) -> Row:
        """The row of a strategy. Raises KeyError if the table has none."""
        for row in self:
            if row.name == strategy and wire_type in (None, row.wire_type):
                return row
        raise KeyError(strategy if wire_type is None else f"{strategy} {wire_type}")

    def __getitem__(self, strategy: str) -> Row:
        return self.row(strategy)

    @property
    def best(self) -> Row:
        """The row of the shortest iteration, which the command marks with a star."""
        best = self.document["best"]
        return self.row(best["name"], best["wire_type"])

    @property
    def tied(self) -> list[Row]:
        """The rows that no prediction tells from the best one."""
        return [self.row(row["name"], row["wire_type"]) for row in self.document["best"]["tied"]]

    @property
    def left_out(self) -> dict[str, str]:
        """The strategies that are not timed, and why."""
        return {row["name"]: row["why"] for row in self.document["left_out"]}

    @property
    def table(self) -> StructuredArray:
        """A row for each strategy: name, wire_type, iteration_s and its interval (iteration_low_s,
        iteration_high_s), throughput_per_s, efficiency, compute_s, update_s,
        exposed_communication_s, input_wait_s, communication_s, buckets, memory_bytes, fits_memory,
        largest_batch_per_rank."""
        return structured([row | {"memory_bytes": row["memory"]["total_bytes"]}
                           for row in self.document["strategies"]], _ROW)

    def text(self, width: int = 100) -> str:
        """What ``paceline predict`` prints in so many columns."""
        return self._value.to_text(width)

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, eq=False)
class Scaling(_Table):
    """Predictions over a range of ranks, against one baseline."""

    _value: _core.Scaling = field(repr=False)
    _again: tuple[Any, ...] = field(repr=False)  # as in Prediction
    document: dict[str, Any] = field(init=False, repr=False)  # paceline.scaling/1

    def __post_init__(self) -> None:
        object.__setattr__(self, "document", json.loads(self._value.to_json()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Scaling, (kept_of(self._value, *self._again), self._again)

    @functools.cached_property
    def points(self) -> list[Prediction]:
        """The prediction at each number of ranks."""
        return [Prediction(point, (point_of, (self._again, index)))
                for index, point in enumerate(self._value.points())]

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.document["points"])

    @property
    def measured(self) -> StructuredArray:
        """ranks, throughput_per_s: what was given as ``measured``."""
        return structured(self.document["measured"], {"ranks": "i8", "throughput_per_s": "f8"})

    def text(self, width: int = 100) -> str:
        """What ``paceline scale`` prints in so many columns."""
        return self._value.to_text(width)

    def __str__(self) -> str:
        return self.text()

    @property
    def table(self) -> StructuredArray:
        """The rows of all points: ranks, and what Prediction.table has."""
        return structured([row | {"memory_bytes": row["memory"]["total_bytes"], "ranks": point["ranks"]}
                           for point in self.document["points"] for row in point["strategies"]],
                          {"ranks": "i8"} | _ROW)

    @property
    def ranks(self) -> list[int]:
        return [point.ranks for point in self.points]

    @property
    def strategies(self) -> list[str]:
        """The names of all rows, in the order in which they appear."""
        return list(dict.fromkeys(row.name for point in self.points for row in point))

    def curve(self, strategy: str, wire_type: str | None = None) -> StructuredArray:
        """A row for each number of ranks on which the strategy was timed: ranks, iteration_s,
        iteration_low_s, iteration_high_s, throughput_per_s, efficiency, exposed_communication_s.
        Raises KeyError if it was timed on none."""
        rows: list[dict[str, Any]] = []
        for point in self.points:
            try:
                rows.append(point.row(strategy, wire_type).document | {"ranks": point.ranks})
            except KeyError:
                continue
        if not rows:
            raise KeyError(strategy)
        return structured(rows, {"ranks": "i8", "iteration_s": "f8", "iteration_low_s": "f8",
                                 "iteration_high_s": "f8", "throughput_per_s": "f8",
                                 "efficiency": "f8", "exposed_communication_s": "f8"})

    @property
    def best(self) -> list[Row]:
        """The best row of each number of ranks."""
        return [point.best for point in self.points]

    @property
    def warnings(self) -> list[str]:
        return list(self.document["warnings"])


@dataclass(frozen=True)
class Cost(_Table):
    """What a training run takes with every strategy: time, GPU-hours, dollars and energy."""

    document: dict[str, Any] = field(repr=False)  # paceline.cost/1
    _text: str = field(repr=False)

    @property
    def table(self) -> StructuredArray:
        """A row for each strategy: name, wire_type, and what the document has of it as numbers."""
        rows = self.document["strategies"]
        numbers = [key for key, value in rows[0].items() if type(value) in (int, float)]
        return structured(rows, {"name": "U", "wire_type": "U"} | dict.fromkeys(numbers, "f8"))

    @property
    def warnings(self) -> list[str]:
        return list(self.document["warnings"])

    def text(self) -> str:
        """What ``paceline cost`` prints."""
        return self._text

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, eq=False)
class Capacity(_Table):
    """Clusters that train in time or within a budget, beside those that do not."""

    document: dict[str, Any] = field(repr=False)  # paceline.capacity/1
    _text: str = field(repr=False)

    @property
    def table(self) -> StructuredArray:
        """A row for each candidate: cluster, device, strategy, and what the document has of it as numbers."""
        rows = self.document["candidates"]
        numbers = [key for key, value in rows[0].items() if type(value) in (int, float)]
        return structured(rows, {"cluster": "U", "device": "U", "strategy": "U"} | dict.fromkeys(numbers, "f8"))

    @property
    def answer(self) -> dict[str, Any] | None:
        """The candidate that does what is asked; None where nothing is asked, or no candidate does it."""
        index = self.document["answer"]
        return None if index is None else dict(self.document["candidates"][index])

    @property
    def front(self) -> list[dict[str, Any]]:
        """The candidates that no other beats in both time and cost, by time."""
        return [dict(self.document["candidates"][index]) for index in self.document["front"]]

    @property
    def warnings(self) -> list[str]:
        return list(self.document["warnings"])

    def text(self) -> str:
        """What ``paceline plan-capacity`` prints."""
        return self._text

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True, eq=False)
class Sweep(_Table):
    """The cells of a sweep."""

    csv: str = field(repr=False)  # what ``paceline sweep`` writes

    @property
    def rows(self) -> list[dict[str, str]]:
        """A mapping of texts for each cell, by the columns of the file."""
        return list(csv.DictReader(io.StringIO(self.csv)))

    @property
    def table(self) -> StructuredArray:
        """A row for each cell. A column is of numbers where all its cells are, or are empty (NaN)."""
        rows = self.rows
        kinds = {name: "f8" if all(_is_number(row[name]) for row in rows) else "U" for name in rows[0]}
        return structured([{name: (float(row[name] or "nan") if kinds[name] == "f8" else row[name]) for name in row}
                           for row in rows], kinds)


def _is_number(text: str) -> bool:
    try:
        float(text or "nan")
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class RobustTuning:
    """The plan that is best in bad states of the world, beside the best as stated and the runtime's own.

    Times of a plan are the stated iteration and its 95th percentile over the samples."""

    document: dict[str, Any] = field(repr=False)  # "robust" of paceline.tuning/1
    name: str  # of the robust plan
    iteration_s: float
    p95_s: float
    default: str  # the runtime's own strategy, or the file of its plan
    default_iteration_s: float
    default_p95_s: float
    gain: float  # of the robust plan over the default, as a share
    gain_low: float
    gain_high: float
    keeps_default: bool  # the gain is not certain, and the plan is the default's
    complete: bool  # the search was not stopped


@dataclass(frozen=True, eq=False)
class Tuning:
    """The best plan that was found, and what it gains."""

    _value: _core.Tuning = field(repr=False)
    document: dict[str, Any] = field(init=False, repr=False)  # paceline.tuning/1
    iteration_s: float = field(init=False)
    least_iteration_s: float = field(init=False)  # a bound that no plan is below
    optimal: bool = field(init=False)
    why_not_optimal: str | None = field(init=False)
    complete: bool = field(init=False)  # the search was not stopped
    warnings: list[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "document", json.loads(self._value.to_json()))
        for name in ("iteration_s", "least_iteration_s", "optimal", "why_not_optimal", "complete",
                     "warnings"):
            object.__setattr__(self, name, self.document[name])

    def __reduce__(self) -> tuple[Any, ...]:
        value = self._value
        kept = value if isinstance(value, FoundTuning) else FoundTuning(value.to_json(), value.plan().to_json(), self.text())
        return Tuning, (kept,)

    @property
    def plan(self) -> Plan:
        """The best plan; with ``robust``, the one that --plan-out writes: the robust one, or the runtime's
        default where that stays."""
        return Plan(self._value.plan())

    @property
    def robust(self) -> RobustTuning | None:
        """None unless ``robust`` was asked for."""
        of = self.document["robust"]
        if of is None:
            return None
        chosen, default, gain = of["robust"], of["default"], of["gain"]
        return RobustTuning(of, chosen["name"], chosen["iteration_s"], chosen["p95_s"], default["name"],
                            default["iteration_s"], default["p95_s"], gain["value"], gain["low"],
                            gain["high"], of["keeps_default"], of["complete"])

    @property
    def alternatives(self) -> StructuredArray:
        """What each bucket would lose by every other choice that was tried: bucket, change, all_reduce (of
        the buckets that the change makes, by commas), iteration_s, loss (as a share). The least loss of a
        bucket is its first row."""
        rows = [{"bucket": number, "change": other["change"],
                 "all_reduce": ", ".join(part["all_reduce"] for part in other["buckets"]),
                 "iteration_s": other["iteration_s"], "loss": other["loss"]}
                for number, bucket in enumerate(self.document["buckets"])
                for other in bucket["alternatives"]]
        return structured(rows, {"bucket": "i8", "change": "U", "all_reduce": "U", "iteration_s": "f8",
                                 "loss": "f8"})

    def text(self, width: int = 100) -> str:
        """What ``paceline tune`` prints in so many columns."""
        return self._value.to_text(width)

    def __str__(self) -> str:
        return self.text()

    @property
    def buckets(self) -> StructuredArray:
        """first, last (gradients), gradients, bytes, all_reduce, ready_s, start_s, end_s, exposed_s."""
        return structured(self.document["buckets"],
                          {"first": "U", "last": "U", "gradients": "i8", "bytes": "f8",
                           "all_reduce": "U", "ready_s": "f8", "start_s": "f8", "end_s": "f8",
                           "exposed_s": "f8"})

    @property
    def strategies(self) -> StructuredArray:
        """name, wire_type, iteration_s, gain: by what share the strategy's iteration is longer."""
        return structured(self.document["strategies"],
                          {"name": "U", "wire_type": "U", "iteration_s": "f8", "gain": "f8"})


@dataclass(frozen=True, eq=False)
class AllReduceTimes:
    """The times of single all-reduces, size by size."""

    document: dict[str, Any] = field(repr=False)  # paceline.time/1

    @property
    def names(self) -> list[str]:
        return [column["name"] for column in self.document["columns"]]

    @property
    def best(self) -> list[str]:
        """The name of the shortest time of each size, of those that were asked for."""
        return [row["best"] for row in self.document["sizes"]]

    @property
    def left_out(self) -> dict[str, str]:
        return {row["name"]: row["why"] for row in self.document["left_out"]}

    def times(self, name: str | None = None) -> StructuredArray:
        """A row for each size: bytes, time_s, time_low_s, time_high_s, latency_s,
        algbw_bytes_per_s, busbw_bytes_per_s. By default of the first name. Raises KeyError."""
        names = self.names
        name = names[0] if name is None else name
        if name not in names:
            raise KeyError(name)
        at = names.index(name)
        return structured([row["times"][at] | {"bytes": row["bytes"]}
                           for row in self.document["sizes"]],
                          {"bytes": "f8", "time_s": "f8", "time_low_s": "f8", "time_high_s": "f8",
                           "latency_s": "f8", "algbw_bytes_per_s": "f8",
                           "busbw_bytes_per_s": "f8"})


@dataclass(frozen=True)
class Counterexample:
    """Where a schedule does not do what its collective promises."""

    fault: str
    step: int  # from 0
    rank: int
    chunk: int
    chunks: int
    why: str


@dataclass(frozen=True)
class Proof:
    """What was proven of a schedule. It is true where the schedule does what it promises."""

    schedule: str
    collective: str
    ranks: int
    steps: int
    proved: bool
    chunk_counts: list[int]
    transfers: int | None
    counterexample: Counterexample | None

    def __bool__(self) -> bool:
        return self.proved


_COMPARED = {"measured_s": "f8", "measured_low_s": "f8", "measured_high_s": "f8",
             "predicted_s": "f8", "difference_s": "f8", "relative_difference": "f8"}


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run beside its prediction. Times that a side does not have are NaN."""

    document: dict[str, Any] = field(repr=False)  # paceline.comparison/1
    _text: str = field(repr=False)

    @property
    def iteration(self) -> dict[str, float]:
        return dict(self.document["iteration"])

    @property
    def parts(self) -> StructuredArray:
        """part, measured_s, measured_low_s, measured_high_s, predicted_s, difference_s,
        relative_difference; the largest difference first."""
        return structured(self.document["parts"], {"part": "U"} | _COMPARED)

    @property
    def layers(self) -> StructuredArray:
        """layer, kind, direction ("forward" or "backward"), and the times as in ``parts``."""
        rows = [{"layer": row["layer"], "kind": row["kind"], "direction": direction} | row[direction]
                for row in self.document["layers"] for direction in ("forward", "backward")]
        return structured(rows, {"layer": "U", "kind": "U", "direction": "U"} | _COMPARED)

    @property
    def buckets(self) -> StructuredArray:
        """bucket, first_gradient, bytes, part ("ready" to "exposed"), and the times as in ``parts``."""
        parts = ("ready", "wait", "cast", "pack", "transfer", "unpack", "exposed")
        rows = [{"bucket": row["bucket"], "first_gradient": row["first_gradient"],
                 "bytes": row["bytes"], "part": part} | row[part]
                for row in self.document["buckets"] for part in parts]
        return structured(rows, {"bucket": "i8", "first_gradient": "U", "bytes": "f8",
                                 "part": "U"} | _COMPARED)

    @property
    def notes(self) -> list[str]:
        return list(self.document["notes"])

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True, eq=False)
class WhatIf:
    """How long an iteration of a measured run would take if something were different."""

    document: dict[str, Any] = field(repr=False)  # paceline.what_if/1
    _text: str = field(repr=False)

    @property
    def iteration_s(self) -> float:
        """The measured iteration."""
        return float(self.document["measured_iteration_s"])

    @property
    def residual(self) -> float:
        """By what share the model with the run's own durations is longer than the run."""
        return float(self.document["residual"])

    @property
    def is_doubtful(self) -> bool:
        """Whether the residual is too large to trust the answers."""
        return bool(self.document["is_doubtful"])

    @property
    def slowest_rank(self) -> int | None:
        slowest = self.document["slowest_rank"]
        return None if slowest is None else int(slowest)

    @property
    def answers(self) -> StructuredArray:
        """name (the question), iteration_s, dag_iteration_s, gain: by what share the run is longer. All are
        predicted."""
        return structured(self.document["answers"], {"name": "U", "iteration_s": "f8",
                                                     "dag_iteration_s": "f8", "gain": "f8"})

    @property
    def ranks(self) -> StructuredArray:
        """rank, passes_s, update_s, rest_s: what each rank measured."""
        return structured(self.document["measured_ranks"], {"rank": "i8", "passes_s": "f8",
                                                            "update_s": "f8", "rest_s": "f8"})

    def __str__(self) -> str:
        return self._text
