# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges of the user's own: the same names stand in Nsight Systems."""

import functools
import inspect
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

from opscope import _core

Function = TypeVar("Function", bound=Callable[..., Any])

_COLORS = {
    "black": 0xFF000000,
    "blue": 0xFF0000FF,
    "cyan": 0xFF00FFFF,
    "gray": 0xFF808080,
    "green": 0xFF008000,
    "magenta": 0xFFFF00FF,
    "orange": 0xFFFFA500,
    "purple": 0xFF800080,
    "red": 0xFFFF0000,
    "white": 0xFFFFFFFF,
    "yellow": 0xFFFFFF00,
}


def _argb(color: str | int | None) -> int:
    if color is None:
        return 0
    if isinstance(color, int):
        if not 0 <= color <= 0xFFFFFFFF:
            raise ValueError(f"color must fit ARGB (32 bits), got {color:#x}")
        return color
    if not isinstance(color, str):
        raise TypeError(f"color must be a name, '#rrggbb' or an int, not {type(color).__name__}")
    if color in _COLORS:
        return _COLORS[color]
    try:
        if len(color) == 7 and color[0] == "#":
            return 0xFF000000 | int(color[1:], 16)
    except ValueError:
        pass
    raise ValueError(f"unknown color {color!r} (one of {', '.join(_COLORS)}, or '#rrggbb')")


class range:  # noqa: N801, as torch.cuda.nvtx.range
    """A named stretch of the program, as a context manager.

    Args:
        name: shown in the trace and in Nsight.
        payload: a number shown with the range.
        color: a name, "#rrggbb", or ARGB as an int.
        domain: NVTX domain.
        category: NVTX category within the domain.
    """

    def __init__(
        self,
        name: str,
        *,
        payload: int | float | None = None,
        color: str | int | None = None,
        domain: str = "opscope",
        category: str = "",
    ) -> None:
        for key, value in (("name", name), ("domain", domain), ("category", category)):
            if not isinstance(value, str):
                raise TypeError(f"{key} must be a str, not {type(value).__name__}")
        if payload is not None and not isinstance(payload, (int, float)):
            raise TypeError(f"payload must be a number, not {type(payload).__name__}")
        if isinstance(payload, int) and not -(2**63) <= payload < 2**64:
            raise ValueError(f"payload must fit 64 bits, got {payload}")
        self.name = name
        self._domain = domain
        self._values = (domain, category, _argb(color), payload)

    def __enter__(self) -> "range":
        _core.range_push(self.name, *self._values)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _core.range_pop(self._domain)

    def _start(self) -> int:
        """A range of the process: it may cross others, and end on another thread."""
        return _core.range_start(self.name, *self._values)

    def _end(self, handle: int) -> None:
        _core.range_end(handle, self._domain)


class annotate(range):  # noqa: N801, a decorator
    """`range` as a decorator too, of functions, coroutine functions and generators.

    Calls of a plain function nest on its thread. A coroutine or generator gives up the thread
    halfway, so its range is one of the process, from its first step to its end.
    """

    def __call__(self, function: Function) -> Function:
        if not callable(function):
            raise TypeError(f"annotate decorates functions, not {type(function).__name__}")
        if inspect.iscoroutinefunction(function):
            return cast(Function, self._coroutine(function))
        if inspect.isasyncgenfunction(function):
            return cast(Function, self._async_generator(function))
        if inspect.isgeneratorfunction(function):
            return cast(Function, self._generator(function))

        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return cast(Function, annotated)

    def _coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def annotated(*args: Any, **kwargs: Any) -> Any:
            handle = self._start()
            try:
                return await function(*args, **kwargs)
            finally:
                self._end(handle)

        return annotated

    def _generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            handle = self._start()
            try:
                return (yield from function(*args, **kwargs))
            finally:
                self._end(handle)

        return annotated

    def _async_generator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def annotated(*args: Any, **kwargs: Any) -> Any:
            handle = self._start()
            inner = function(*args, **kwargs)
            try:
                try:
                    item = await anext(inner)
                    while True:
                        try:
                            sent = yield item
                        except GeneratorExit:  # noqa: PERF203, each step has its own
                            raise
                        except BaseException as thrown:
                            item = await inner.athrow(thrown)
                        else:
                            item = await inner.asend(sent)
                except StopAsyncIteration:
                    return
                finally:
                    await inner.aclose()
            finally:
                self._end(handle)

        return annotated
