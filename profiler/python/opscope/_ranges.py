# SPDX-License-Identifier: Apache-2.0
"""NVTX ranges of the user's own: the same names stand in Nsight Systems."""

import functools
import inspect
import sys
import threading
import warnings
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


class _Thread(threading.local):
    """The ranges that a thread has pushed and not popped."""

    def __init__(self) -> None:
        self.pushed: list[range] = []


_thread = _Thread()


def _task() -> Any:
    """The asyncio task that runs on this thread, if one does."""
    asyncio = sys.modules.get("asyncio")
    running = getattr(asyncio, "_get_running_loop", None)  # absent while asyncio is imported
    loop = running() if running is not None else None
    return None if asyncio is None or loop is None else asyncio.current_task(loop)


def _text(key: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{key} must be a str, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{key} must not contain a null character, got {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{key} must be text that UTF-8 can hold, got {value!r}") from None


class range:  # noqa: N801, as torch.cuda.nvtx.range
    """A named stretch of the program, as a context manager.

    A thread's ranges nest: the one that was entered last ends first. Tasks of asyncio take turns on
    a thread, so a range that a task enters is one of the process, which may cross others; other
    schedulers of coroutines are not seen, there `annotate` the coroutine function. torch.compile
    leaves a range out of what it compiles, as it does those of torch.profiler. A range that
    exits out of turn, or on another thread, warns once and counts as clamped in the ledger: NVTX
    can end a thread's innermost one only.

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
            _text(key, value)
        if payload is not None and not isinstance(payload, (int, float)):
            raise TypeError(f"payload must be a number, not {type(payload).__name__}")
        if isinstance(payload, int) and not -(2**63) <= payload < 2**64:
            raise ValueError(f"payload must fit 64 bits, got {payload}")
        self.name = name
        self._domain = domain
        self._values = (domain, category, _argb(color), payload)
        self._started: dict[Any, list[int]] = {}  # by task, as one object may serve several

    # torch.compile reads this code instead of running it where is_dynamo_compiling() is true: it
    # folds the answer, and none of the range is left in the graph. Without the compiler's module,
    # nothing is compiled. A function of its own would double what the question costs a range.

    def __enter__(self) -> "range":
        if "torch._dynamo" in sys.modules and sys.modules["torch.compiler"].is_dynamo_compiling():
            return self
        task = _task()
        if task is None:
            self._push()
        else:
            self._started.setdefault(task, []).append(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if "torch._dynamo" in sys.modules and sys.modules["torch.compiler"].is_dynamo_compiling():
            return
        if self._started:
            task = _task()
            handles = self._started.get(task)
            if handles:
                self._end(handles.pop())
                if not handles:
                    del self._started[task]
                return
        self._pop()

    def _push(self) -> None:
        _core.range_push(self.name, *self._values)
        _thread.pushed.append(self)

    def _pop(self) -> None:
        pushed = _thread.pushed
        if pushed and pushed[-1] is self:
            pushed.pop()
        elif not self._pop_beneath(pushed):
            return
        _core.range_pop(self._domain)

    def _pop_beneath(self, pushed: "list[range]") -> bool:
        """Of a range that is not the last: whether the thread has it at all."""
        later: list[range] = []
        for each in reversed(pushed):
            if each is self:
                if any(above._domain == self._domain for above in later):
                    _warn(f"range {self.name!r} ended before one that began after it: their ends")
                del pushed[len(pushed) - 1 - len(later)]
                return True
            later.append(each)
        if self._started:  # another task ends it than began it, or none does
            _, handles = self._started.popitem()
            for handle in handles:
                self._end(handle)
        else:
            _warn(f"range {self.name!r} ended on a thread where it did not begin: its end")
        return False

    def _start(self) -> int:
        """A range of the process: it may cross others, and end on another thread."""
        return _core.range_start(self.name, *self._values)

    def _end(self, handle: int) -> None:
        _core.range_end(handle, self._domain)


_warned = False


def _warn(what: str) -> None:
    global _warned
    _core.range_out_of_turn()
    if not _warned:
        _warned = True
        warnings.warn(
            f"opscope: {what} in the trace is another's (leave ranges in the reverse order)",
            RuntimeWarning,
            stacklevel=5,
        )


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
            if (
                "torch._dynamo" in sys.modules
                and sys.modules["torch.compiler"].is_dynamo_compiling()
            ):
                return function(*args, **kwargs)
            self._push()  # no task gives up the thread inside
            try:
                return function(*args, **kwargs)
            finally:
                self._pop()

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
