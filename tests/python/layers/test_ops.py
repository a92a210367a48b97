# SPDX-License-Identifier: Apache-2.0
"""The op observer: dispatcher ops as the collector gets them, on the CPU."""

from pathlib import Path

import pytest
from layer_events import (
    BACKWARD,
    C_CALL,
    COUNTED,
    HAS_BYTES,
    LIBRARY,
    MODULE_CALL,
    OUTERMOST,
    SKIPPED,
    Run,
)

pytest.importorskip("torch")

SETUP = """
import torch
import torch.nn.functional as F
torch.set_num_threads(1)
"""


def test_ops_nest_and_know_their_python_frame(run: Run) -> None:
    events = run(
        SETUP
        + """
def work(x): return F.linear(x, weight)
x, weight = torch.ones(2, 3), torch.ones(4, 3)
start(python=ENTRY); work(x); stop()
"""
    )
    linear, inner = events.one("op", "aten::linear"), events.one("op", "aten::mm")
    assert linear["flags"] & OUTERMOST and not inner["flags"] & OUTERMOST
    assert linear["start"] <= inner["start"] <= inner["end"] <= linear["end"]
    assert events.by_id(linear["frame"])["name"] == "work"
    assert linear["thread"] == events.one("frame", "work")["thread"]


def test_without_shapes_no_argument_is_read(run: Run) -> None:
    events = run(SETUP + "x = torch.ones(3)\nstart(); F.gelu(x); stop()\n")
    gelu = events.one("op", "aten::gelu")
    assert gelu["arguments"] is None and not gelu["flags"] & HAS_BYTES


def test_shapes_types_and_ideal_bytes(run: Run) -> None:
    events = run(
        SETUP
        + """
x = torch.ones(2, 3, dtype=torch.bfloat16)
start(shapes=True); F.gelu(x); torch.cat([x, x[:1]]); torch.add(x, x); stop()
"""
    )
    gelu = events.one("op", "aten::gelu")
    assert gelu["arguments"] == [
        {"sizes": [2, 3], "item": 0, "type": "c10::BFloat16"},
        {"sizes": None, "item": 0, "type": ""},
    ]
    assert gelu["flags"] & HAS_BYTES
    assert (gelu["input_bytes"], gelu["output_bytes"]) == (12, 12)
    cat = events.one("op", "aten::cat")
    assert [(a["sizes"], a["item"], a["type"]) for a in cat["arguments"]] == [
        (None, 0, "TensorList"),
        ([2, 3], 1, "c10::BFloat16"),
        ([1, 3], 1, "c10::BFloat16"),
        (None, 0, "Scalar"),
    ]
    assert (cat["input_bytes"], cat["output_bytes"]) == (18, 18)
    add = events.one("op", "aten::add")
    assert (add["input_bytes"], add["output_bytes"]) == (12, 12)  # x + x reads x once


def test_shapes_and_types_are_those_of_torchs_own_profiler(run: Run) -> None:
    events = run(
        SETUP
        + """
import json
def work():
    x = torch.ones(2, 3)
    torch.cat([x, x]); F.gelu(x); F.linear(x, torch.ones(4, 3), torch.ones(4))
    x.index_select(0, torch.tensor([1]))
start(shapes=True); work(); stop()
from torch.profiler import profile
with profile(record_shapes=True) as p: work()
p.export_chrome_trace(os.environ["EVENTS"] + ".json")
events = json.load(open(os.environ["EVENTS"] + ".json"))["traceEvents"]
ops = [e for e in events if e.get("cat") == "cpu_op"]
ops.sort(key=lambda e: (e["ts"], -e["dur"]))
args = lambda e: (e["args"].get("Input Dims"), e["args"].get("Input type"))
print(json.dumps([(e["name"], *args(e)) for e in ops]))
"""
    )
    import json

    def dims(op: dict) -> tuple:  # type: ignore[type-arg]
        sizes: list = []  # type: ignore[type-arg]
        types = []
        for argument in op["arguments"] or []:
            if argument["item"]:
                sizes[-1].append(argument["sizes"])
            else:
                sizes.append(argument["sizes"] or [])
                types.append(argument["type"])
        return op["name"], sizes, types

    ours = [dims(op) for op in sorted(events.of("op"), key=lambda e: (e["start"], -e["end"]))]
    theirs = [(name, sizes or [], types or []) for name, sizes, types in json.loads(events.output)]
    assert ours == theirs


def test_backward_nodes_are_backward_ops_of_their_forward(run: Run) -> None:
    events = run(
        SETUP
        + """
x = torch.ones(4, requires_grad=True)
start(); F.gelu(x).sum().backward(); stop()
"""
    )
    gelu, backward = events.one("op", "aten::gelu"), events.one("op", "GeluBackward0")
    assert backward["flags"] & BACKWARD and not gelu["flags"] & BACKWARD
    assert backward["sequence"] == gelu["sequence"] >= 0
    assert backward["forward_thread"] == gelu["logical_thread"] != 0
    around = events.one("op", "autograd::engine::evaluate_function: GeluBackward0")
    assert around["flags"] & OUTERMOST
    kernel = events.one("op", "aten::gelu_backward")
    assert backward["start"] <= kernel["start"] <= kernel["end"] <= backward["end"]


def test_an_op_that_raises_is_closed(run: Run) -> None:
    events = run(
        SETUP
        + """
start(python=CALLS)
try: torch.mm(torch.ones(2, 3), torch.ones(2, 3))
except RuntimeError: pass
F.gelu(torch.ones(2)); stop()
"""
    )
    assert events.one("op", "aten::mm")["end"] <= events.one("op", "aten::gelu")["start"]
    assert events.one("op", "aten::gelu")["flags"] & OUTERMOST


def test_each_outermost_op_is_counted_even_when_it_raises(run: Run) -> None:
    events = run(
        SETUP
        + """
x = torch.ones(2, 3)
start(dram=_core.DRAM_OPS)
F.linear(x, x)
try: torch.mm(x, x)
except RuntimeError: pass
F.gelu(x); stop()
"""
    )
    begun = [e["name"] for e in events.of("counter_begin")]
    assert begun == ["aten::linear", "aten::mm", "aten::gelu"]
    order = [e["kind"] for e in events.lines if e["kind"].startswith("counter")]
    assert order == ["counter_begin", "counter_end"] * 3
    outermost = [op for op in events.of("op") if op["flags"] & OUTERMOST]
    assert all(op["flags"] & COUNTED for op in outermost)
    assert not any(op["flags"] & COUNTED for op in events.of("op") if op not in outermost)
    gelu = events.one("op", "aten::gelu")
    assert gelu["flags"] & HAS_BYTES and gelu["arguments"] is None


def test_custom_python_ops_and_autograd_functions(run: Run) -> None:
    events = run(
        SETUP
        + """
@torch.library.custom_op("layers::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor: return x * 2
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): ctx.save_for_backward(x); return x * x
    @staticmethod
    def backward(ctx, g): return 2 * g * ctx.saved_tensors[0]
x = torch.ones(3, requires_grad=True)
twice(x.detach())  # torch imports its compiler at the first call
start(python=CALLS); twice(x.detach()); Square.apply(x).sum().backward(); stop()
"""
    )
    assert events.one("op", "layers::twice")["flags"] & OUTERMOST
    assert events.one("op", "SquareBackward")["flags"] & BACKWARD
    assert events.of("frame", "Square.backward")


def test_ops_of_several_threads_stay_apart(run: Run) -> None:
    events = run(
        SETUP
        + """
import threading
def work():
    for _ in range(50): F.gelu(torch.ones(2))
start()
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
stop()
"""
    )
    gelus = events.of("op", "aten::gelu")
    assert len(gelus) == 150 and len({op["thread"] for op in gelus}) == 3
    assert all(op["flags"] & OUTERMOST for op in gelus)
    assert len({op["id"] for op in events.of("op")}) == len(events.of("op"))


def test_modules_are_numbered_by_class(run: Run) -> None:
    events = run(
        SETUP
        + """
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GELU(), torch.nn.Linear(3, 3))
start(python=ENTRY); model(torch.ones(1, 3)); model(torch.ones(1, 3)); stop()
"""
    )
    modules = [f for f in events.of("frame") if f["flags"] & MODULE_CALL]
    assert sorted(f["name"] for f in modules) == sorted(
        [
            "nn.Module: Sequential_0",
            "nn.Module: Linear_0",
            "nn.Module: GELU_0",
            "nn.Module: Linear_1",
        ]
        * 2
    )
    assert all(f["flags"] & LIBRARY for f in modules)
    sequential = [f["id"] for f in modules if f["name"] == "nn.Module: Sequential_0"]
    frames = {f["id"]: f for f in events.of("frame")}

    def ancestors(frame: dict) -> list[int]:  # type: ignore[type-arg]
        found = []
        while frame["parent"] in frames:
            frame = frames[frame["parent"]]
            found.append(frame["id"])
        return found

    assert all(set(ancestors(f)) & set(sequential) for f in modules if f["id"] not in sequential)


OPERATORS = """
import types
package = sys.modules["opscope"] = types.ModuleType("opscope")  # without its own frame tracer
package.__path__ = [os.environ["OPERATORS"]]
from opscope import ops
"""


@pytest.mark.parametrize(
    ("setup", "function", "frame", "op"),
    [
        ("", "F.gelu", "torch._C._nn.gelu", "aten::gelu"),
        (OPERATORS, "ops.gelu", "opscope.ops.gelu", "opscope::gelu"),
    ],
)
def test_a_functional_op_is_one_c_call_of_the_user(
    run: Run, root: Path, setup: str, function: str, frame: str, op: str
) -> None:
    if setup:
        pytest.importorskip("opscope.ops")
    events = run(
        SETUP
        + setup
        + f"""
def work(x): return {function}(x)
start(python=CALLS); work(torch.ones(2)); stop()
""",
        OPERATORS=str(root / "kernels/python/opscope"),
    )
    call, work = events.one("frame", frame), events.one("frame", "work")
    gelu = events.one("op", op)
    assert call["flags"] & C_CALL and call["parent"] == work["id"]
    assert gelu["frame"] == call["id"]
    assert not work["flags"] & LIBRARY and work["line"] == call["line"]


def test_results_are_the_same_bits(run: Run) -> None:
    events = run(
        SETUP
        + """
def train():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad(); model(torch.randn(4, 8)).sum().backward(); optimizer.step()
    return torch.cat([p.flatten() for p in model.parameters()])
before = train()
start(python=CALLS, shapes=True, dram=_core.DRAM_OPS); during = train(); stop()
print(torch.equal(before, during), torch.equal(before, train()))
"""
    )
    assert events.output == "True True\n"


def test_shapes_of_subclasses_run_nobodys_code(run: Run) -> None:
    events = run(
        SETUP
        + """
class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, f, types, args=(), kwargs=None):
        return super().__torch_function__(f, types, args, kwargs or {})
from torch._subclasses.fake_tensor import FakeTensorMode
start(shapes=True)
F.gelu(torch.ones(2).as_subclass(Loud))
with FakeTensorMode(): F.gelu(torch.ones(5))
F.gelu(torch.ones(2).to_sparse().to_dense()); torch.ones(2, 2).to_sparse().sum()
torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]).relu()
stop()
"""
    )
    assert events.of("op", "aten::gelu")
    skipped = [e["record"] for e in events.of("account") if e["outcome"] == SKIPPED]
    assert {"input_shapes", "op_bytes"} <= set(skipped)


def test_more_arguments_than_there_is_room_for_are_counted(run: Run) -> None:
    events = run(
        SETUP
        + """
x = torch.ones(1)
start(shapes=True); torch.cat([x] * 3000); torch.cat([x] * 3); stop()
"""
    )
    many, few = events.of("op", "aten::cat")
    assert many["arguments"] is None and len(few["arguments"]) == 5
    skipped = [e["record"] for e in events.of("account") if e["outcome"] == SKIPPED]
    assert skipped == ["input_shapes"]


def test_a_session_inside_an_op_closes_what_is_open(run: Run) -> None:
    events = run(
        SETUP
        + """
@torch.library.custom_op("layers::stops", mutates_args=())
def stops(x: torch.Tensor) -> torch.Tensor:
    stop()
    return x * 2
start(); stops(torch.ones(2)); F.gelu(torch.ones(2))
"""
    )
    cut = events.one("op", "layers::stops")
    assert cut["flags"] & 2 and events.of("op", "aten::gelu") == []
