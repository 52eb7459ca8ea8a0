"""The options of a product, checked where the caller passes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..catalog import KernelSpec, Key, catalog, find
from ..generate import table, tiles
from ..generate.precision import check_double, letter_of
from ..opencl.devices import Device

#: Values of `kernel` that do not name a kernel of the catalog.
AUTO, GENERATED, PACKED = "auto", "family", "packed"
#: Values of `edges`: those of kernels of the catalog, and "split", for generated kernels.
EDGES = (*table.EDGES, "auto", "split")

Pairs = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Request:
    """The options of a product, valid and hashable.

    Attributes:
        kernel: "auto", "family" (a generated kernel), "packed", or the number or name of a kernel
            of the catalog.
        params: the kernel's parameters as pairs, all of them; None for its defaults.
        edges: "auto", "pad", "guard", "shift" or "split".
        precision: "float32", "tf32" or "tf32x3".
    """

    kernel: Key = AUTO
    params: Pairs | None = None
    edges: str = "auto"
    precision: str = "float32"

    @classmethod
    def of(
        cls, kernel: Any = AUTO, params: Any = None, edges: Any = "auto", precision: Any = "float32"
    ) -> Request:
        """The request for what a caller passed.

        Raises:
            TypeError: if `params` is not a mapping.
            ValueError: for a value that is not listed above, or values that contradict each other.
            ParameterError: for parameters that the kernel does not have.
        """
        words = params is None and type(kernel) is type(edges) is type(precision) is str
        if words and (kernel, edges, precision) == (AUTO, "auto", "float32"):
            return PLAIN
        _check_word("edges", edges, EDGES)
        _check_word("precision", precision, tuple(table.IMPLIED))
        if params is not None and not isinstance(params, Mapping):
            raise TypeError(
                f"params must be a dictionary of parameters, not {type(params).__name__}: "
                f"{params!r}"
            )
        if isinstance(kernel, str) and kernel in (AUTO, GENERATED, PACKED):
            return cls(
                kernel, _not_of_the_catalog(kernel, params, edges, precision), edges, precision
            )
        if isinstance(kernel, bool) or not isinstance(kernel, (str, int, np.integer)):
            raise ValueError(
                f"kernel must be 'auto', 'family', 'packed', a number or a name, not {kernel!r}"
            )
        spec = find(kernel if isinstance(kernel, str) else int(kernel))
        return cls(spec.number, _of_the_catalog(spec, params, edges, precision), edges, precision)

    def check_for(self, dtype: np.dtype, device: Device) -> None:
        """Reject what this type of elements or this device does not support, by name.

        Raises:
            ValueError: with the argument, and what would be possible.
        """
        if self.precision != "float32":
            check_precision(self.precision, device)
        if dtype != np.float32:
            if self.precision != "float32":
                raise ValueError(f"precision={self.precision!r} is for float32, not for {dtype}")
            if self.kernel not in (AUTO, GENERATED, PACKED):
                raise ValueError(
                    f"kernel {self.kernel} multiplies float32, not {dtype}; kernel='auto' and "
                    "'family' support every type"
                )
            if self.edges not in ("auto", "guard", "split"):
                raise ValueError(
                    f"edges={self.edges!r} is for float32, not for {dtype}; 'auto' is for all types"
                )
        if self.kernel == PACKED and dtype.kind != "f":
            raise ValueError(
                f"kernel='packed' multiplies real numbers, not {dtype}; 'family' is for every type"
            )
        if self.kernel == PACKED and device.kind != "CPU":
            raise ValueError(
                f"kernel='packed' is for CPUs, not for {device}; kernel='auto' is for all"
            )
        check_double(letter_of(dtype), device)


def _check_word(name: str, value: Any, words: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, not {value!r}")


def _not_of_the_catalog(kernel: str, params: Any, edges: str, precision: str) -> Pairs | None:
    """The parameters for "auto", "family" or "packed"."""
    if precision != "float32" and (kernel != AUTO or edges not in ("auto", "guard")):
        raise ValueError(
            f"precision={precision!r} is for kernel='auto' or a number, and edges='auto' or "
            f"'guard', not for kernel={kernel!r}, edges={edges!r}"
        )
    if kernel == AUTO and params is not None:
        raise ValueError("params needs a kernel as well, such as kernel=3 or kernel='family'")
    if kernel == PACKED and (params is not None or edges != "auto"):
        raise ValueError(
            f"kernel='packed' has no params or edges, but got params={params!r}, edges={edges!r}"
        )
    if kernel == GENERATED and edges not in ("auto", "guard", "split"):
        raise ValueError(f"edges={edges!r}, but kernel='family' has 'auto', 'guard' and 'split'")
    return None if params is None else tuple(tiles.complete_tile(dict(params)).items())


def _of_the_catalog(spec: KernelSpec, params: Any, edges: str, precision: str) -> Pairs | None:
    """All parameters of a kernel of the catalog, or None for those that fit the device."""
    if edges not in ("auto", spec.edges):
        others = " or ".join(repr(n) for n, s in catalog.items() if s.edges == edges) or "'family'"
        raise ValueError(
            f"edges={edges!r}, but kernel {spec.number} is for edges={spec.edges!r}; "
            f"kernel={others} fits"
        )
    if spec.tensor and precision == "float32":
        raise ValueError(
            f"kernel {spec.number} multiplies in TF32: it needs precision='tf32' or "
            "precision='tf32x3'"
        )
    if not spec.tensor and precision != "float32":
        able = " or ".join(repr(n) for n, s in catalog.items() if s.tensor)
        raise ValueError(
            f"precision={precision!r}, but kernel {spec.number} multiplies in float32; "
            f"kernel={able} fits"
        )
    if params is not None:
        # rejects names and values before they are combined with those of the precision
        spec.complete(params)
    if precision != "float32":
        params = _with_precision(spec, params, precision)
    return None if params is None else tuple(spec.complete(params).items())


def _with_precision(
    spec: KernelSpec, params: Mapping[str, int] | None, precision: str
) -> dict[str, int]:
    """The caller's parameters and those that a precision implies; ValueError where they contradict
    each other.
    """
    implied = table.implied(precision, spec.number)
    # that one is free
    required = {name: value for name, value in implied.items() if name != "EVERY"}
    given = {**implied, **(params or {})}
    for name, value in required.items():
        if given[name] != value:
            words = ", ".join(f"{n}={v}" for n, v in required.items())
            raise ValueError(
                f"params has {name}={given[name]}, but precision={precision!r} means {words}"
            )
    return given


def check_precision(precision: Any, device: Device) -> None:
    """Reject what is no precision of float32 products, and TF32 on a device without tensor
    cores.
    """
    _check_word("precision", precision, tuple(table.IMPLIED))
    if precision != "float32" and "tensor" not in device.features:
        raise ValueError(
            f"precision={precision!r} needs tensor cores for TF32 (NVIDIA's, compute "
            f"capability 8.0 or later); {device} has none: precision='float32' runs everywhere"
        )


#: No option is set.
PLAIN = Request()
