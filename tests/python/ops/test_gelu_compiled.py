# SPDX-License-Identifier: Apache-2.0
"""gelu in compiled and exported programs."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from opscope import ops
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend, EagerAndRecordGraphs

own = torch.ops.opscope.gelu


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    ops.compile_gelu_as("own")


def neighbours(x: Tensor, approximate: str) -> Tensor:
    return ops.gelu(x * 2, approximate=approximate) + 1


def in_place(x: Tensor, approximate: str) -> Tensor:
    y = x * 2
    ops.gelu_(y.t(), approximate=approximate)
    return y.sin()


def into_out(x: Tensor, approximate: str) -> Tensor:
    with torch.no_grad():
        y = ops.gelu(x.detach(), approximate=approximate, out=torch.empty_like(x))
    return y * x


def module(x: Tensor, approximate: str) -> Tensor:
    return ops.GELU(approximate)(x)


PROGRAMS = [neighbours, in_place, into_out, module]


def value_and_gradient(f: Callable[..., Tensor], x: Tensor, approximate: str) -> list[Tensor]:
    x = x.detach().clone().requires_grad_()
    y = f(x, approximate)
    y.square().sum().backward()
    assert x.grad is not None
    return [y.detach(), x.grad]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_whole_program_is_one_graph(
    device: torch.device, approximate: str, dtype: torch.dtype, program: Callable[..., Tensor]
) -> None:
    compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
    x = torch.randn(5, 8, device=device, dtype=dtype)
    got = value_and_gradient(compiled, x, approximate)
    want = value_and_gradient(program, x, approximate)
    for pair in zip(got, want, strict=True):
        torch.testing.assert_close(*pair)


@pytest.mark.parametrize("program", [neighbours, in_place])
def test_inductor_compiles_a_whole_program(
    device: torch.device, program: Callable[..., Tensor]
) -> None:
    compiled = torch.compile(program, backend="inductor", fullgraph=True)
    x = torch.randn(5, 8, device=device)
    got = value_and_gradient(compiled, x, "none")
    want = value_and_gradient(program, x, "none")
    for pair in zip(got, want, strict=True):
        torch.testing.assert_close(*pair)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_sizes_may_vary(device: torch.device, backend: str) -> None:
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(neighbours, backend=counter, fullgraph=True, dynamic=True)
    for rows in (4, 7, 19):
        x = torch.randn(rows, 6, device=device)
        got = value_and_gradient(compiled, x, "tanh")
        want = value_and_gradient(neighbours, x, "tanh")
        for pair in zip(got, want, strict=True):
            torch.testing.assert_close(*pair)
    assert counter.frame_count == 1


@pytest.mark.parametrize("layout", ["channels_last", "expanded", "step"])
def test_strides_of_results_are_those_of_eager_mode(device: torch.device, layout: str) -> None:
    x = torch.randn(2, 4, 6, 8, device=device)
    x = {
        "channels_last": x.to(memory_format=torch.channels_last),
        "expanded": x[:, :1].expand_as(x),
        "step": x[..., ::2],
    }[layout]
    compiled = torch.compile(ops.gelu, backend="aot_eager", fullgraph=True)
    assert compiled(x).stride() == ops.gelu(x).stride()


def test_changes_of_an_input_reach_the_caller(device: torch.device) -> None:
    def change(x: Tensor) -> Tensor:
        ops.gelu_(x[1:])
        return x + 1

    compiled = torch.compile(change, backend="aot_eager", fullgraph=True)
    one, other = torch.randn(4, device=device), torch.empty(4, device=device)
    other.copy_(one)
    torch.testing.assert_close(compiled(one), change(other))
    torch.testing.assert_close(one, other)


def test_function_transforms_inside(device: torch.device, approximate: str) -> None:
    def program(x: Tensor) -> Tensor:
        f = torch.func.grad(lambda row: ops.gelu(row, approximate=approximate).sum())
        return torch.func.vmap(f)(x)

    x = torch.randn(3, 4, device=device)
    compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), program(x))


def test_bad_arguments_are_refused_inside() -> None:
    compiled = torch.compile(ops.gelu, backend="eager", fullgraph=True)
    with pytest.raises(Exception, match="none or tanh"):
        compiled(torch.ones(3), approximate="erf")


def test_activation_checkpointing(device: torch.device) -> None:
    def program(x: Tensor, approximate: str) -> Tensor:
        return torch.utils.checkpoint.checkpoint(
            neighbours, x, approximate, use_reentrant=False, preserve_rng_state=False
        )

    x = torch.randn(5, 8, device=device)
    compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
    want = value_and_gradient(neighbours, x, "none")
    for f in (program, compiled):
        for pair in zip(value_and_gradient(f, x, "none"), want, strict=True):
            torch.testing.assert_close(*pair)


def targets(f: Callable[..., Any], x: Tensor) -> set[object]:
    """What a compiled program calls, before autograd."""
    recorder = EagerAndRecordGraphs()
    torch.compile(f, backend=recorder, fullgraph=True)(x)
    return {node.target for graph in recorder.graphs for node in graph.graph.nodes}


def test_a_graph_holds_the_operator_or_the_builtin_as_chosen() -> None:
    x = torch.randn(4)
    builtin = torch.nn.functional.gelu
    assert own in targets(ops.gelu, x)
    ops.compile_gelu_as("builtin")
    assert builtin in targets(ops.gelu, x) and own not in targets(ops.gelu, x)
    assert builtin in targets(ops.GELU(), x)
    ops.compile_gelu_as("own")
    assert own in targets(ops.gelu, x)
    with pytest.raises(ValueError, match=r"own.*builtin"):
        ops.compile_gelu_as("best")  # type: ignore[arg-type]


def test_the_choice_reaches_programs_compiled_before() -> None:
    compiled = torch.compile(neighbours, backend="inductor", fullgraph=True)
    x = torch.full((64,), -6.0)
    with torch.no_grad():
        kept = compiled(x, "none") - 1
        assert torch.equal(kept, neighbours(x, "none") - 1)
        ops.compile_gelu_as("builtin")
        torch.testing.assert_close(
            compiled(x, "none"), torch.nn.functional.gelu(x * 2) + 1, rtol=1e-6, atol=1e-6
        )


@pytest.mark.parametrize("strict", [False, True])
def test_export(approximate: str, strict: bool) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), ops.GELU(approximate))
    x = torch.randn(3, 4)
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: rows},), strict=strict)
    assert own.default in [node.target for node in program.graph.nodes]
    lowered = program.run_decompositions()
    assert own.default in [node.target for node in lowered.graph.nodes]
    y = torch.randn(9, 4)
    for module in (program.module(), lowered.module()):
        torch.testing.assert_close(module(y), model(y))


def test_export_of_a_change_in_place() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return ops.gelu_(x + 1)

    x = torch.randn(5)
    program = torch.export.export(Model(), (x,)).run_decompositions()
    assert own.default in [node.target for node in program.graph.nodes]
    torch.testing.assert_close(program.module()(x), ops.gelu(x + 1))


def test_ahead_of_time_inductor(device: torch.device, package_path: str) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), ops.GELU("tanh")).to(device)
    x = torch.randn(3, 4, device=device)
    program = torch.export.export(model, (x,))
    package = torch._inductor.aoti_compile_and_package(program, package_path=package_path)
    loaded = torch._inductor.aoti_load_package(package)
    torch.testing.assert_close(loaded(x), model(x))


def test_compiled_autograd_of_the_form_in_place(device: torch.device, approximate: str) -> None:
    def gradient() -> Tensor:
        x = torch.linspace(-2, 2, 9, device=device, requires_grad=True)
        ops.gelu_(x * 1, approximate=approximate).sum().backward()
        assert x.grad is not None
        return x.grad

    def compiler(graph: torch.fx.GraphModule) -> Callable[..., object]:
        return torch.compile(graph, backend="eager", fullgraph=True)

    want = gradient()
    with torch._dynamo.compiled_autograd._enable(compiler):
        torch.testing.assert_close(gradient(), want)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["own", "builtin"])
def test_reduce_overhead_replays_a_graph(approximate: str, kind: Any) -> None:
    ops.compile_gelu_as(kind)
    compiled = torch.compile(neighbours, mode="reduce-overhead", fullgraph=True)
    for _ in range(4):
        x = torch.randn(64, 64, device="cuda")
        got = [t.clone() for t in value_and_gradient(compiled, x, approximate)]
        want = value_and_gradient(neighbours, x, approximate)
        for pair in zip(got, want, strict=True):
            torch.testing.assert_close(*pair)
