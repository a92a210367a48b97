# SPDX-License-Identifier: Apache-2.0
"""opscope.ops.gelu as a C function: what it serves itself, and what it leaves to torch.ops."""

import inspect
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from opscope import ops
from opscope.ops import _general, _ops
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

PACKET = torch.ops.opscope.gelu


class Subclass(torch.Tensor):
    """Without behaviour of its own."""


class Wrapper(torch.Tensor):
    """A subclass that says which functions it was asked about."""

    asked: ClassVar[list[object]] = []

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        cls.asked.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


class Functions(TorchFunctionMode):
    """Notes every function."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


class Operators(TorchDispatchMode):
    """Notes every operator."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


@pytest.fixture
def general_calls() -> Iterator[list[tuple[object, ...]]]:
    """The arguments of every call that the C function does not serve."""
    calls: list[tuple[object, ...]] = []

    def watched(*args: Any, **kwargs: Any) -> torch.Tensor:
        calls.append((args, kwargs))
        return _general.gelu(*args, **kwargs)

    _ops.bind(watched)
    yield calls
    _ops.bind(_general.gelu)


SERVED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "tensor": ops.gelu,
    "parameter": lambda x: ops.gelu(torch.nn.Parameter(x)),
    "tanh": lambda x: ops.gelu(x, approximate="tanh"),
    "autocast": lambda x: under(torch.autocast(x.device.type, torch.bfloat16), x),
    "inference mode": lambda x: under(torch.inference_mode(), x),
    "no grad": lambda x: under(torch.no_grad(), x),
}
LEFT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "named": lambda x: ops.gelu(input=x),
    "out": lambda x: ops.gelu(x, out=torch.empty_like(x)),
    "subclass": lambda x: ops.gelu(x.as_subclass(Subclass)),
    "function mode": lambda x: under(Functions(), x),
    "dispatch mode": lambda x: under(Operators(), x),
    "vmap": lambda x: torch.func.vmap(ops.gelu)(x),
    "functional grad": lambda x: torch.func.grad(lambda x: ops.gelu(x).sum())(x),
    "make_fx": lambda x: make_fx(ops.gelu)(x)(x),
    "trace": lambda x: torch.jit.trace(ops.gelu, x, check_trace=False)(x),
}


def under(manager: Any, x: torch.Tensor) -> torch.Tensor:
    with manager:
        return ops.gelu(x)


@pytest.mark.parametrize("case", SERVED)
def test_usual_calls_do_not_go_through_python(
    device: torch.device, general_calls: list[object], case: str
) -> None:
    SERVED[case](torch.randn(3, device=device))
    assert general_calls == []


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
@pytest.mark.parametrize("case", LEFT)
def test_unusual_calls_go_through_torch_ops(
    device: torch.device, general_calls: list[object], case: str
) -> None:
    LEFT[case](torch.randn(3, device=device))
    assert len(general_calls) == 1


def test_modes_and_subclasses_see_the_operator(device: torch.device) -> None:
    x = torch.randn(3, device=device)
    with Functions() as functions:
        ops.gelu(x, approximate="tanh")
    assert functions.seen == [PACKET]
    with Operators() as operators:
        ops.gelu(x)
    assert operators.seen == [PACKET.default]
    Wrapper.asked.clear()
    assert isinstance(ops.gelu(x.as_subclass(Wrapper)), Wrapper)
    assert Wrapper.asked == [PACKET]
    assert isinstance(ops.gelu(x.as_subclass(Subclass)), Subclass)


def test_graphs_hold_the_operator() -> None:
    x = torch.randn(3)
    symbolic = torch.fx.symbolic_trace(ops.GELU("tanh"))
    assert PACKET in [node.target for node in symbolic.graph.nodes]
    torch.testing.assert_close(symbolic(x), ops.gelu(x, approximate="tanh"))
    proxied = make_fx(ops.gelu)(x)
    assert PACKET.default in [node.target for node in proxied.graph.nodes]


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_trace_holds_the_operator() -> None:
    traced = torch.jit.trace(ops.gelu, torch.randn(3))
    assert "opscope::gelu" in str(traced.graph)
    x = torch.randn(7)
    assert torch.equal(traced(x), ops.gelu(x))


def test_the_function_says_what_it_is() -> None:
    want = inspect.signature(_general.gelu)
    got = inspect.signature(ops.gelu)
    assert list(got.parameters) == list(want.parameters)
    for name, parameter in got.parameters.items():
        assert parameter.kind == want.parameters[name].kind
        assert parameter.default == want.parameters[name].default
    assert (ops.gelu.__name__, ops.gelu.__module__) == ("gelu", "opscope.ops")
    assert ops.gelu.__doc__ is not None and "Raises:" in ops.gelu.__doc__
    assert pickle.loads(pickle.dumps(ops.gelu)) is ops.gelu


def test_the_type_stub_tells_the_same() -> None:
    stub = Path(ops.__file__).with_name("_ops.pyi").read_text()
    names: dict[str, Any] = {}
    exec(compile("from __future__ import annotations\n" + stub, "_ops.pyi", "exec"), names)
    told = inspect.signature(names["gelu"])
    assert told == inspect.signature(_general.gelu)
    assert {n for n in vars(_ops) if not n.startswith("_")} <= names.keys()
    assert Path(ops.__file__).with_name("py.typed").is_file()


def test_autocast_leaves_the_element_type(device: torch.device) -> None:
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x = torch.randn(8, device=device, dtype=dtype, requires_grad=True)
        with torch.autocast(device.type, torch.bfloat16):
            y = ops.gelu(x)
            assert y.dtype == torch.nn.functional.gelu(x).dtype == dtype
            assert ops.gelu_(x.detach().clone()).dtype == dtype
        y.sum().backward()
        assert x.grad is not None and x.grad.dtype == dtype


def test_autocast_around_a_block(device: torch.device) -> None:
    block = torch.nn.Sequential(torch.nn.Linear(8, 16), ops.GELU(), torch.nn.Linear(16, 8))
    block.to(device)
    with torch.autocast(device.type, torch.bfloat16):
        y = block(torch.randn(4, 8, device=device))
    assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in block.parameters())


def test_other_threads_run_during_a_call() -> None:
    x = torch.randn(1 << 24)
    turns: list[None] = []
    done = threading.Event()

    def count() -> None:
        while not done.is_set():
            turns.append(None)
            time.sleep(1e-4)  # gives the lock up

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    thread.start()
    sys.setswitchinterval(1000)  # nobody gives the lock up unasked
    try:
        before = len(turns)
        ops.gelu(x)
        during = len(turns) - before
    finally:
        done.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert during > 2


def test_the_result_and_the_argument_are_released() -> None:
    x = torch.randn(16)
    count = sys.getrefcount(x)
    for _ in range(100):
        ops.gelu(x)
        ops.gelu(x, approximate="tanh")
    with pytest.raises(RuntimeError):
        ops.gelu(x, approximate="erf")
    assert sys.getrefcount(x) == count


LAZY = """
import sys, torch
from opscope import ops
assert "torch._dynamo" not in sys.modules
assert torch.compile(ops.gelu, backend="eager", fullgraph=True)(torch.zeros(1)) == 0
assert "torch._dynamo" in sys.modules
"""
EAGER = """
import torch, torch._dynamo
from opscope import ops
assert torch.compile(ops.gelu, backend="eager", fullgraph=True)(torch.zeros(1)) == 0
"""


@pytest.mark.parametrize("program", [LAZY, EAGER])
def test_the_compiler_may_be_imported_before_or_after(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
