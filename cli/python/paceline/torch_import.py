"""Networks from PyTorch: a module computes a sample without numbers, and what it calls becomes layers."""

import copy
import functools
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Callable, Iterator

from .errors import InputError, UnavailableError
from .layers import LayerList, input_of
from .operands import Constant, Parameter, Refused, Scores, Statistic, is_causal_mask
from .operators import Operators
from .torch_functions import COMPARISONS, FUNCTIONS, NEW_TENSORS
from .torch_modules import MODULES
from .values import Network
from .views import NoLayer, ReadsRefused, Shape, View

if TYPE_CHECKING:
    import torch

__all__ = ["from_torch"]


def from_torch(module: "torch.nn.Module", sample: "torch.Tensor", *, name: str | None = None,
               stored_sample: str | None = None, loss: bool = True) -> Network:
    """The network that a module computes for a batch like ``sample``, whose first dimension counts
    samples.

    The module is not changed: a copy of it runs once in evaluation on tensors that have shapes and no
    numbers (PyTorch's "meta" device), and what it calls is recorded. Branches on shapes are taken as the
    sample says; one on numbers is refused. Where PyTorch has an operator for numbers only, the copy runs on
    the sample itself. The layers have the module's own names, and as many parameters as it has, all told; a
    module with parameters that no layer has is refused. ``stored_sample`` is the size of a sample on storage
    ("112 kB"). With ``loss``, a cross-entropy of a softmax is put behind a vector or a sequence.

    Raises InputError, which lists all operators that have no layer (docs/python.md), and
    UnavailableError without PyTorch.
    """
    try:
        import torch
    except ImportError as error:
        raise UnavailableError(f"PyTorch is not installed: {error}") from error
    title = name or type(module).__name__
    if not isinstance(sample, torch.Tensor) or sample.dim() < 2:
        raise InputError("the sample is no batch; give a tensor whose first dimension counts samples")
    is_tokens = not sample.dtype.is_floating_point
    document = input_of(tuple(sample.shape[1:]), is_tokens)
    for device in ("meta", "cpu"):
        recorder = _Recorder(LayerList(title, title, document), sample)
        try:
            recorder.run(_copied(module, device), sample.detach().to(device), module)
            break
        except _NeedsNumbers:
            continue
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{title}: it cannot compute the sample: {_first_line(error)}", title) from error
    recorder.finish(loss)
    return recorder.layers.network({key: value.numel() for key, value in module.named_parameters()}, stored_sample)


_READS_NUMBERS = ("bool", "item", "int", "float", "index", "tolist", "numpy", "array", "nonzero")


class _NeedsNumbers(Exception):
    """An operator of the module is not defined without numbers."""


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _copied(module: Any, device: str) -> Any:
    """A copy of a module in evaluation. Its tensors have no numbers on the device "meta"."""
    import torch
    memo: dict[int, Any] = {}
    if device == "meta":
        for value in module.parameters():
            memo[id(value)] = torch.nn.Parameter(value.detach().to("meta"), requires_grad=False)
        for value in module.buffers():
            memo[id(value)] = value.detach().to("meta")
    return copy.deepcopy(module, memo).eval()


def _tensors(value: Any) -> "Iterator[torch.Tensor]":
    """The tensors in what a function takes or gives."""
    import torch
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for inner in value:
            yield from _tensors(inner)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


class _Recorder:
    """Runs a module, and makes layers of the functions and modules that it calls."""

    def __init__(self, layers: LayerList, sample: Any) -> None:
        self.layers = layers
        self.operators = Operators(layers, sample.shape[0])
        self.values: dict[int, Any] = {}  # what is known of each tensor, by its id
        self.kept: list[Any] = []  # tensors, so that no other gets their id
        self.scope: list[str] = []  # the modules that run, by their names
        self.is_inside = False  # a module that is one layer
        self.used: set[str] = set()  # such modules that ran and have parameters
        self.output: Any = None

    def run(self, module: Any, sample: Any, original: Any) -> None:
        import torch
        recorder = self

        class Recorded(torch.Tensor):  # type: ignore[misc]
            """A tensor that depends on the samples or on a parameter. All that reads it comes by here."""

            @classmethod
            def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                result = super().__torch_function__(function, types, args, kwargs)
                if not recorder.is_inside:
                    recorder._called(function, args, kwargs or {}, result)
                return result

        self.is_inside = True
        recorded: dict[int, Any] = {}
        for name, parameter in module.named_parameters():
            shape = tuple(parameter.shape)
            recorded[id(parameter)] = parameter.detach().as_subclass(Recorded)
            self._know(recorded[id(parameter)], Parameter((name,), shape, (shape,)))
        for buffer, numbers in zip(module.buffers(), original.buffers()):
            is_small = numbers.dim() >= 2 and numbers.device.type == "cpu" and numbers.shape[-1] ** 2 == numbers.numel()
            recorded[id(buffer)] = buffer.as_subclass(Recorded)
            causal = is_small and is_causal_mask(numbers.detach().numpy())
            self._know(recorded[id(buffer)], Constant(tuple(buffer.shape), causal))
        for inner in module.modules():
            for tensors in (inner._parameters, inner._buffers):
                tensors |= {key: recorded[id(value)] for key, value in tensors.items() if value is not None}
        sample = sample.as_subclass(Recorded)
        self._know(sample, self.operators.input(Shape.of(self.layers.sample), tuple(sample.shape)))
        for name, inner in module.named_modules():
            inner.forward = functools.partial(self._forward, name, inner, inner.forward)
        self.is_inside = False
        try:
            with torch.no_grad():
                self.output = module(sample)
        except (NotImplementedError, RuntimeError) as error:
            if sample.device.type == "meta":
                raise _NeedsNumbers(_first_line(error)) from error
            raise

    def finish(self, loss: bool) -> None:
        """Puts the last layer under the module's output, and the loss behind it."""
        import torch
        output = self.output
        if isinstance(output, (tuple, list)) and len(output) == 1:
            output = output[0]
        value = self._value(output) if isinstance(output, torch.Tensor) else None
        if not isinstance(value, View):
            if not self.layers.unknown:
                self.layers.refuse("several outputs" if value is None else "an output", "output")
            return
        operators, rank = self.operators, len(value.sizes)
        try:
            shape_of = operators.natural_shape if rank == 4 else operators.features_last
            roles, shape = shape_of(operators.settled(value))
            last = operators.as_roles(value, roles, shape)
            if loss and rank in (2, 3) and not self.layers.unknown:
                operators.add("loss", "softmax_cross_entropy", [last])
        except NoLayer as problem:
            self.layers.refuse(f"an output {problem}".strip(), "output")

    # What is known of tensors.

    def _know(self, tensor: Any, value: Any) -> None:
        self.kept.append(tensor)
        self.values[id(tensor)] = value

    def _value(self, thing: Any) -> Any:
        """What is known of an argument: tensors are values, and the rest is as it is."""
        import torch
        if isinstance(thing, torch.Tensor):
            value = self.values.get(id(thing))
            if value is None:
                value = Constant(tuple(thing.shape))
                self._know(thing, value)
            elif isinstance(value, Parameter) and value.after == "":
                value = replace(value, after=self.operators.last)
                self.values[id(thing)] = value
            return value
        if isinstance(thing, (tuple, list)) and any(True for _ in _tensors(thing)):
            return [self._value(inner) for inner in thing]
        return thing

    @staticmethod
    def _is_of_sample(value: Any) -> bool:
        return isinstance(value, (View, Scores, Statistic, Refused)) or getattr(value, "of_sample", False)

    def name(self, operator: str) -> str:
        """The name of a layer for a function: behind that of the module that calls it."""
        return ".".join(filter(None, [self.scope[-1] if self.scope else "", operator]))

    # What the module calls.

    def _forward(self, name: str, module: Any, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        kind = type(module).__name__
        if self.is_inside:
            return forward(*args, **kwargs)
        # A module of the user's own is what it calls, whatever it is called.
        library = type(module).__module__
        is_known = library.startswith(("torch.nn.modules.", "torchvision.ops.")) or kind == "DropPath"
        reader = MODULES.get(kind) if is_known else None
        if reader is None and library.startswith("torch.nn.modules.") and not any(module.children()):
            reader = _unknown
        if reader is None:
            self.scope.append(name)
            try:
                return forward(*args, **kwargs)
            finally:
                self.scope.pop()
        self.is_inside = True
        try:
            result = forward(*args, **kwargs)
        finally:
            self.is_inside = False
        values = [self._value(argument) for argument in args] + [self._value(v) for v in kwargs.values()]
        own = {f"{name}.{key}" if name else key: value for key, value in module.named_parameters()}
        if own and any(isinstance(value, (View, Refused)) for value in values):
            if name in self.used:
                self._refuse(f"{kind} used twice", name, result)
                return result
            self.used.add(name)
        if not any(isinstance(value, (View, Scores, Statistic, Refused)) for value in values):
            if kind == "Embedding" and isinstance(values[0], Constant):
                self._settle(result, self.operators.embedding(values[0], self._value(module.weight), name))
                return result
            own_values = [self._value(value) for value in module.parameters()]
            self._settle(result, self._learned([*values, *own_values], result))
            return result
        layer = name or kind.lower()
        if reader is not _unknown and any(isinstance(value, Refused) for value in values):
            self._settle(result, Refused())
            return result
        self._emit(kind, layer, functools.partial(reader, self, values, layer, module, result), result)
        if name:
            self.operators.taken |= {key: value.numel() for key, value in own.items()}
        return result

    def _called(self, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        operator = getattr(function, "__name__", str(function))
        if operator in ("__get__", "__set__"):
            operator = getattr(getattr(function, "__self__", None), "__name__", operator)
        operator = operator.strip("_")
        if operator in _READS_NUMBERS and self._is_of_sample(self._value(args[0])):
            raise InputError(f"{self.layers.name}: {self.name(operator)} reads a number that depends on the sample, so "
                             "that what it computes may, too; give a module without branches on data",
                             self.layers.source)
        if not any(True for _ in _tensors(result)):
            if operator in ("setitem", "copy") and not isinstance(self._value(args[0]), Constant):
                self._refuse(operator, self.name(operator), args[0])
            return
        values = [self._value(argument) for argument in args]
        named = {key: self._value(value) for key, value in kwargs.items()}
        flat = [inner for value in [*values, *named.values()]
                for inner in (value if isinstance(value, list) else [value])]
        if not any(isinstance(value, (View, Scores, Statistic, Refused)) for value in flat):
            if operator == "embedding" and isinstance(flat[0], Constant) and isinstance(flat[1], Parameter):
                return self._settle(result, self.operators.embedding(flat[0], flat[1], ""))
            return self._settle(result, self._learned(flat, result, operator))
        if operator in NEW_TENSORS:
            return self._settle(result, Constant(tuple(result.shape)))
        if operator in COMPARISONS and not any(isinstance(value, Refused) for value in flat):
            return self._settle(result, Constant(tuple(result.shape), of_sample=True))
        known = FUNCTIONS.get(operator)
        if known is None:
            return self._refuse(operator, self.name(operator), result)
        if any(isinstance(value, Refused) for value in flat):
            return self._settle(result, Refused())
        name = self.name(operator)
        self._emit(operator, name, functools.partial(known, self, values, named, name, result), result)

    def _learned(self, values: list[Any], result: Any, operator: str = "") -> Any:
        """What parameters and constants alone make."""
        parameters = [value for value in values if isinstance(value, Parameter)]
        tensor = next(_tensors(result))
        constants = [value for value in values if isinstance(value, Constant)]
        if not parameters:
            causal = operator in ("tril", "triu") or any(value.causal for value in constants)
            return Constant(tuple(tensor.shape), causal, of_sample=any(value.of_sample for value in constants))
        merged: dict[str, tuple[int, ...]] = {}
        for value in parameters:
            merged |= dict(zip(value.names, value.shapes))
        rows = max([value.rows for value in parameters] + [prod(value.sizes[:-1]) for value in constants])
        return Parameter(tuple(merged), tuple(tensor.shape), tuple(merged.values()), parameters[0].after,
                         parameters[0].picked, rows)

    def _emit(self, operator: str, name: str, make: Callable[[], Any], result: Any) -> None:
        try:
            self._settle(result, make())
        except ReadsRefused:
            self._settle(result, Refused())
        except NoLayer as problem:
            self._refuse(f"{operator} {problem}".strip(), name, result)

    def _refuse(self, operator: str, name: str, result: Any) -> None:
        self.layers.refuse(operator, name)
        self._settle(result, Refused())

    def _settle(self, result: Any, value: Any) -> None:
        """Notes what is known of a function's output: one value, or one for each of its tensors."""
        tensors = list(_tensors(result))
        several = value if isinstance(value, list) else [value] * len(tensors)
        for tensor, one in zip(tensors, several):
            self._know(tensor, one)


def _unknown(recorder: Any, values: Any, name: str, module: Any, result: Any) -> Any:
    """A module of PyTorch's that has no layer."""
    raise NoLayer
