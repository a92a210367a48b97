# SPDX-License-Identifier: Apache-2.0
"""The profiling context.

One session a process, so states are few: closed, open but paused (a schedule's warm-up), recording.
A profile that finds another one on records nothing, says so once, and lets its block run.
"""

import os
import shutil
import sys
import tempfile
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from opscope import _core, _late_torch
from opscope._capture import Capture
from opscope._checks import count, file_path, flag
from opscope._errors import Error
from opscope._schedule import Action, Schedule
from opscope._text import json_of, readable

_PYTHON_MODES = {
    "off": _core.PYTHON_OFF,
    "entry": _core.PYTHON_ENTRY,
    "calls": _core.PYTHON_CALLS,
}
_DRAM_MODES = {"off": _core.DRAM_OFF, "ops": _core.DRAM_OPS}


def _choice(name: str, value: object, choices: dict[str, int]) -> int:
    if not isinstance(value, str):
        raise TypeError(f"profile: {name} must be a str, not {type(value).__name__}")
    if value not in choices:
        raise ValueError(f"profile: {name} must be one of {', '.join(choices)}, got {value!r}")
    return choices[value]


def _warn(line: str, stacklevel: int) -> None:
    """A warning that is none of the block's business, even where warnings are errors."""
    try:
        warnings.warn(line, RuntimeWarning, stacklevel=stacklevel + 1)
    except RuntimeWarning:
        if sys.stderr is not None:
            print(f"opscope: warning: {line}", file=sys.stderr)


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # and not a forked child that ends
        shutil.rmtree(folder, ignore_errors=True)


def _writable(path: Path, force: bool) -> None:
    try:
        there = path.exists()
    except OSError as failure:
        why = failure.strerror
        raise Error(f"profile: cannot write {path}: {why} (choose another path)") from None
    if there and not force:
        raise Error(
            f"profile: cannot write {path}: it exists (remove it, choose another path, or "
            "force=True)"
        )
    if not path.parent.is_dir():
        raise Error(f"profile: cannot write {path}: no folder {path.parent} (create it)")
    if not os.access(path.parent, os.W_OK):
        raise Error(
            f"profile: cannot write {path}: no permission for {path.parent} (choose another)"
        )


class profile(Capture):  # noqa: N801, as torch.profiler.profile
    """Records what happens inside a `with` block.

    Args:
        path: of the capture; None for a temporary one that lives as long as this object. With a
            schedule, window 2 goes to `<stem>.2.opscope`, and so on.
        python: "off", "entry" (frames that lead to an op or a range) or "calls" (every call). Only
            "calls" sees builtins called: with "entry" an op that the program calls through one
            (`torch.nn.functional.gelu`, `torch.cos`) has no t0. Coroutines and generators are a
            frame each time they run, under whoever resumes them, whatever the scheduler; who
            awaits them is not told apart. Stacks that C code swaps (greenlet) are not followed: a
            frame that is swapped out ends where one below it returns, and counts as clamped.
        shapes: input shapes and types of every op.
        dram: "ops" reads the DRAM bytes of every outermost op from hardware counters, at about
            40 µs each: a pass for bytes, not for times.
        strict: raise `Error` where something cannot be recorded, or the capture not be completed at
            the block's end, instead of one warning.
        schedule: which steps are recorded (see `opscope.schedule`); call `step()` after each.
        on_trace_ready: called with this object when a window is finished, or at the block's end
            without a schedule. Not called when the block raised.
        force: replace an existing capture.
        memory: bytes that the buffers may take.
        wait: wait for the writer when they are full, instead of dropping and counting.
        counter_capacity: counter ranges held before they are read out and renewed.

    One profile is on at a time in a process; all of its threads are recorded. A profile that is
    entered again after its block begins one more window.

    Raises:
        TypeError, ValueError: at the call, for wrong arguments.
        Error: at the call, where the capture could not be written; with `strict`, what is missing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        python: str = "entry",
        shapes: bool = False,
        dram: str = "off",
        strict: bool = False,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[["profile"], object] | None = None,
        force: bool = False,
        memory: int = 256 << 20,
        wait: bool = False,
        counter_capacity: int = 256,
    ) -> None:
        if schedule is not None and not callable(schedule):
            raise TypeError("profile: schedule must be a function of the step (opscope.schedule)")
        if on_trace_ready is not None and not callable(on_trace_ready):
            raise TypeError("profile: on_trace_ready must be a function of the profile")
        self._options: dict[str, Any] = {
            "python": _choice("python", python, _PYTHON_MODES),
            "dram": _choice("dram", dram, _DRAM_MODES),
            "shapes": flag("profile", "shapes", shapes),
            "strict": flag("profile", "strict", strict),
            "memory_bytes": count("profile", "memory", memory, bits=64),
            "wait_when_full": flag("profile", "wait", wait),
            "counter_capacity": count("profile", "counter_capacity", counter_capacity),
        }
        flag("profile", "force", force)
        if path is None:
            folder = tempfile.mkdtemp(prefix="opscope-")
            weakref.finalize(self, _remove, folder, os.getpid())
            self._output = Path(folder) / "profile.opscope"
        else:
            self._output = file_path("profile", path).absolute()
            _writable(self._output, force)
        self._path = None
        self._owner = os.getpid()
        self._force = force
        self._strict = strict
        self._schedule = schedule
        self._on_trace_ready = on_trace_ready
        self._windows = 0
        self._entered = False
        self._open = False
        self._recorded = False
        self._refused = ""  # why there is nothing to read
        self._step_start: int | None = None
        self._action = Action.NONE
        self.step_num = 0

    def __enter__(self) -> "profile":
        if self._entered:
            raise Error("profile: cannot enter: it is on already (make one for each block)")
        self._path = None
        self.step_num = 0
        self._refused = ""
        self._action = self._planned(0)
        self._apply(self._action)
        self._entered = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._entered = False
        if self._schedule is not None and not self._recorded and not self._refused:
            self._refused = (
                "nothing was recorded: the schedule came to no step that records (step() after "
                "each step)"
            )
        if not self._open:
            return
        if kind is None:
            self._finish_window()
        else:
            self._close(quietly=True)  # the block's own exception goes on

    def step(self) -> None:
        """Ends a step and begins the next: the steps are ranges `ProfilerStep#N` in the trace.

        Raises:
            Error: outside of the block, where no step is on.
        """
        if not self._entered:
            raise Error("profile: cannot step: its block is not running (call step() inside it)")
        self._end_step()
        self.step_num += 1
        if self._schedule is None:
            self._begin_step()
            return
        before, self._action = self._action, self._planned(self.step_num)
        ended = before is Action.RECORD and self._action in (Action.NONE, Action.WARMUP)
        try:
            if self._open and (before is Action.RECORD_AND_SAVE or ended):
                self._finish_window()
        finally:  # a callback that raised must not cost the next window its first step
            self._apply(self._action)

    @property
    def path(self) -> Path:
        """The capture's file; of a schedule's windows the last one's."""
        if self._path is None:
            if not self._entered and os.getpid() != self._owner:
                self._refused = (
                    "nothing was recorded: the process was forked, and its parent records "
                    "(profile in each)"
                )
            if self._refused:
                raise Error(f"profile: {self._refused}")
        return super().path

    def __repr__(self) -> str:
        path = self._path or self._output
        state = ", recording" if self._open else ", nothing recorded" if self._path is None else ""
        return f"<{type(self).__name__} {readable(str(path))}{state}>"

    def _planned(self, step: int) -> Action:
        if self._schedule is None:
            return Action.RECORD
        action = self._schedule(step)
        if not isinstance(action, Action):
            raise TypeError(
                f"profile: schedule must give an opscope.Action, not {type(action).__name__} "
                "(make it with opscope.schedule)"
            )
        return action

    def _apply(self, action: Action) -> None:
        if action is Action.NONE:
            self._close()
            return
        if not self._open:
            self._start()
            if not self._open:
                return
            if action is Action.WARMUP:
                _core.session_pause()
        elif action is not Action.WARMUP and not self._recorded:
            _core.session_resume()
        if action is not Action.WARMUP:
            self._recorded = True
            self._begin_step()

    def _start(self) -> None:
        if os.getpid() != self._owner:  # a forked child does not write its parent's windows
            return
        output = self._output
        if self._windows:
            output = output.with_name(f"{output.stem}.{self._windows + 1}{output.suffix}")
        try:
            _core.session_start(output, force=self._force, metadata=_metadata(), **self._options)
        except Error as failure:
            if self._strict:
                raise
            self._refused = f"nothing was recorded: {failure}"
            _warn(f"{failure}; the block runs unprofiled", stacklevel=4)
            return
        self._open = True
        self._recorded = False
        _late_torch.watch()

    def _begin_step(self) -> None:
        self._step_start = _core.now() if self._open else None

    def _end_step(self) -> None:
        if self._step_start is not None and self._open:
            _core.step_range(f"ProfilerStep#{self.step_num}", self._step_start, _core.now())
        self._step_start = None

    def _close(self, *, quietly: bool = False) -> bool:
        """Ends the session, if it is this profile's.

        Args:
            quietly: a failure is a warning, with `strict` too.

        Returns:
            Whether there is a new capture.
        """
        if not self._open:
            return False
        self._open = False
        self._step_start = None
        _late_torch.stop()
        if not _core.recording():  # in a forked child, or after the interpreter's end
            return False
        self._windows += self._recorded  # a failed one keeps its name, which its partial file has
        try:
            _core.session_stop()
        except Error as failure:
            self._path = None
            self._refused = str(failure)
            if self._strict and not quietly:
                raise
            _warn(self._refused, stacklevel=3)
            return False
        path = _core.session_path()
        if self._recorded:
            self._path = path
        else:  # a warm-up that no recorded step followed
            with suppress(OSError):
                path.unlink()
        return self._recorded

    def _finish_window(self) -> None:
        if self._close() and self._on_trace_ready is not None:
            self._on_trace_ready(self)


def _metadata() -> str:
    """What the capture's header says about the program."""
    facts: dict[str, Any] = {
        "argv": sys.argv,
        "python": ".".join(map(str, sys.version_info[:3])),
        "opscope": _core.__version__,
    }
    torch = sys.modules.get("torch")
    if torch is not None:
        facts["torch"] = str(getattr(torch, "__version__", "unknown"))
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        value = os.environ.get(name, "")
        if value.isdecimal():
            facts[name.lower()] = int(value)
    return json_of(facts)


def detach() -> None:
    """Take CUPTI out of the process again.

    After a first profile with GPU records every launch is slower by some microseconds, without this
    until the process ends (as after any CUPTI tool); a later profile brings CUPTI back. Other
    threads may launch meanwhile. Does nothing where CUPTI was never used.

    Raises:
        Error: while a profile is on, or when another tool holds CUPTI.
    """
    _core.detach()
