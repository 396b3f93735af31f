"""The keywords of predictions.py: the options of the command, by their names and with their types."""

from typing import Iterable, Mapping, Sequence, TypedDict

from .values import Cluster, Network, PathOrName, Plan, Profile

__all__ = ["Changes", "CompareSettings", "JobSettings", "PredictSettings", "ScaleSettings", "Texts",
           "TimeSettings", "TuneSettings"]

Texts = str | Iterable[str]
Changes = str | Mapping[str, float | str]


class JobSettings(TypedDict, total=False):
    """The options that predict, scale and tune have in common (``paceline predict --help``)."""

    placement: str | Sequence[int]
    nic: str
    batch: int
    accumulate: int
    sequence: int
    precision: str
    wire: Texts
    strategy: Texts
    others: bool
    theta: str
    eta: str
    group: int
    segments: int
    rings: int
    servers: int
    streams: int
    cycle: str
    horovod: str
    partition: str
    credit: str
    server_machines: int
    server_transport: str
    factors_every: int
    host_copies: bool
    server_placement: str
    overlap: str
    profile: "Profile | PathOrName | None"  # None: no profile, not even the cluster's own
    throughput: str | float
    node_throughput: str | float
    slowdown: float
    beside_traffic: float
    scale_gradients: float
    exact_compute: bool
    ignore_memory: bool
    engine: str
    nccl: str


class _CurveSettings(JobSettings, total=False):
    baseline: int
    what_if: Changes  # "bandwidth=2+latency=0.5+compute=1.5", or a mapping of it


class ScaleSettings(_CurveSettings, total=False):
    measured: str | Mapping[int, float | str]  # samples/s of all ranks, by their number


class PredictSettings(_CurveSettings, total=False):
    """Also stragglers, a plan, and what better parts would gain."""

    plan: "Plan | PathOrName"
    spread: str
    slow_rank: Mapping[int, float]
    slow_node: Mapping[int, float]
    backup: int
    iterations: int
    seed: int
    sensitivity: bool


class TuneSettings(JobSettings, total=False):
    all_reduce: Texts
    time_limit: str
    why: bool  # in the text and in ``Tuning.alternatives``, which is empty without it
    robust: bool
    default: str  # a strategy, or a file of a plan
    spread: str
    slow_rank: Mapping[int, float]
    seed: int


class CompareSettings(TypedDict, total=False):
    """What a model needs for questions of ``paceline compare --what-if``: the job that ran."""

    model: "Network | PathOrName"
    cluster: "Cluster | PathOrName"
    placement: str | Sequence[int]
    profile: "Profile | PathOrName | None"
    precision: str
    sequence: int
    scale_gradients: float
    engine: str


class TimeSettings(TypedDict, total=False):
    """The options of ``paceline time``."""

    size: str | Sequence[str]
    factor: float
    dtype: str
    group: int
    segments: int
    rings: int
    servers: int
    placement: str | Sequence[int]
    profile: "Profile | PathOrName | None"
    engine: str
    nccl: str
    measured: str
    against: PathOrName
