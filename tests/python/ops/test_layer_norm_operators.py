# SPDX-License-Identifier: Apache-2.0
"""The layer norm operators as PyTorch's dispatcher sees them: schemas, layouts, errors, modules."""

from collections.abc import Callable

import layer_norm_reference as reference
import pytest
import torch
from opscope import ops

F = torch.nn.functional
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1),
    "strided": lambda x: x[:, ::2],
    "offset": lambda x: x.flatten()[1:].unsqueeze(0),
    "expanded": lambda x: x[:, :1].expand_as(x),
    "channels_last": lambda x: x.unsqueeze(0).to(memory_format=torch.channels_last),
    "permuted": lambda x: x.permute(2, 0, 1),
    "no rows": lambda x: x[:0],
    "empty rows": lambda x: x[..., :0],
    "one row": lambda x: x[0, 0],
    "chunk": lambda x: x.chunk(3, dim=-1)[1],
    "five dimensions": lambda x: x[None, :, None],
}


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> Callable[[torch.Tensor], torch.Tensor]:
    """Ways for elements to lie in memory."""
    return LAYOUTS[request.param]


def sample(device: torch.device, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator("cpu").manual_seed(seed)
    return torch.randn(6, 8, 9, generator=generator).to(dtype).to(device)


def parameters(hidden: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.linspace(0.5, 2, hidden, device=device), torch.linspace(
        -1, 1, hidden, device=device
    )


def test_layouts(device: torch.device, layout: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x, y = layout(sample(device, 1)), layout(sample(device, 2))
    weight, bias = parameters(x.shape[-1], device)
    out, total = ops.add_layer_norm(x, y, x.shape[-1:], weight, bias)
    assert torch.equal(total, x + y)
    torch.testing.assert_close(out, F.layer_norm(x + y, x.shape[-1:], weight, bias))
    assert out.is_contiguous() and total.is_contiguous()
    plain = ops.layer_norm(x, x.shape[-1:], weight, bias)
    torch.testing.assert_close(plain, F.layer_norm(x, x.shape[-1:], weight, bias))
    strided = torch.stack([weight, weight], -1)[:, 0]
    torch.testing.assert_close(ops.layer_norm(x, x.shape[-1:], strided, bias), plain)


def test_meta_tensors_are_laid_out_the_same(
    layout: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    results = []
    for kind in ("meta", "cpu"):
        x = layout(sample(torch.device(kind), 1, torch.bfloat16))
        weight, bias = parameters(x.shape[-1], x.device)
        forward = torch.ops.opscope.add_layer_norm_forward(x, x, x.shape[-1:], weight, bias, 1e-5)
        out, total, mean, rstd = forward
        for grad_sum, mask in ((None, [True] * 3), (out, [True, False, True])):
            forward += torch.ops.opscope.layer_norm_backward(
                out, grad_sum, total, 1, mean, rstd, weight, bias, mask
            )
        results.append([(r.shape, r.stride(), r.dtype) for r in forward])
    assert results[0] == results[1]


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_several_normalised_dimensions(device: torch.device, dims: int) -> None:
    x, y = sample(device, 1).requires_grad_(), sample(device, 2)
    shape = x.shape[-dims:]
    weight = torch.rand(shape, device=device, requires_grad=True)
    bias = torch.rand(shape, device=device, requires_grad=True)
    leaves = [x, weight, bias]
    grad = torch.randn_like(x)
    own, total = ops.add_layer_norm(x, y, list(shape), weight, bias)
    builtin = F.layer_norm(x + y, list(shape), weight, bias)
    torch.testing.assert_close(own, builtin)
    torch.testing.assert_close(
        torch.autograd.grad([own, total], leaves, [grad, grad]),
        torch.autograd.grad([builtin, x + y], leaves, [grad, grad]),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize("kind", ["expanded", "stride 0", "permuted"])
@pytest.mark.parametrize("hidden", [9, 64])
def test_gradients_of_any_strides(device: torch.device, kind: str, hidden: int) -> None:
    rows = reference.problem((4, 5, hidden), torch.float32, device)
    grad = {
        "expanded": torch.randn(1, 1, hidden, device=device).expand_as(rows.input),
        "stride 0": torch.ones((), device=device).expand_as(rows.input),
        "permuted": torch.randn(hidden, 5, 4, device=device).permute(2, 1, 0),
    }[kind]
    leaves = [rows.input.requires_grad_(), rows.weight.requires_grad_()]
    out, total = ops.add_layer_norm(leaves[0], rows.residual, [hidden], leaves[1])
    got = torch.autograd.grad([out, total], leaves, [grad, grad])
    rows.grad_out = rows.grad_sum = grad
    want = reference.gradients(total.detach(), rows)
    torch.testing.assert_close(got[0].double(), want.rows, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(got[1].double(), want.weight, rtol=1e-4, atol=1e-5)


def test_one_output_may_be_unused(device: torch.device) -> None:
    rows = reference.problem((4, 33), torch.float32, device)
    leaves = [t.requires_grad_() for t in (rows.input, rows.residual, rows.weight, rows.bias)]
    for used in (0, 1):
        own = ops.add_layer_norm(leaves[0], leaves[1], [33], leaves[2], leaves[3])[used]
        total = leaves[0] + leaves[1]
        builtin = (F.layer_norm(total, [33], leaves[2], leaves[3]), total)[used]
        got = torch.autograd.grad(own, leaves, rows.grad_out, allow_unused=True)
        want = torch.autograd.grad(builtin, leaves, rows.grad_out, allow_unused=True)
        torch.testing.assert_close(got[:2], want[:2], rtol=1e-4, atol=1e-5)
        if used == 0:
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
        else:
            assert got[2] is None and got[3] is None


@pytest.mark.parametrize("wanted", range(1, 16))
def test_only_what_is_wanted_is_differentiated(device: torch.device, wanted: int) -> None:
    rows = reference.problem((70, 64), torch.float32, device)
    leaves = [rows.input, rows.residual, rows.weight, rows.bias]
    for k, leaf in enumerate(leaves):
        leaf.requires_grad_(bool(wanted >> k & 1))
    chosen = [leaf for leaf in leaves if leaf.requires_grad]
    out, _ = ops.add_layer_norm(*leaves[:2], [64], *leaves[2:])
    got = torch.autograd.grad(out, chosen, rows.grad_out)
    want = torch.autograd.grad(
        F.layer_norm(leaves[0] + leaves[1], [64], *leaves[2:]), chosen, rows.grad_out
    )
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_a_residual_of_another_shape_or_type_is_added_as_add_does(device: torch.device) -> None:
    x = sample(device, 1).requires_grad_()
    residual = torch.randn(9, device=device, dtype=torch.bfloat16, requires_grad=True)
    out, total = ops.add_layer_norm(x, residual, [9])
    assert torch.equal(total, x + residual)
    torch.testing.assert_close(out, F.layer_norm(x + residual, [9]))
    (out * x.detach()).sum().backward()
    assert residual.grad is not None and residual.grad.shape == (9,)
    assert residual.grad.dtype == torch.bfloat16
    with pytest.raises(RuntimeError, match="must match"):
        ops.add_layer_norm(x, torch.ones(4, device=device), [9])


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.complex64])
def test_other_element_types_are_not_implemented(device: torch.device, dtype: torch.dtype) -> None:
    x = torch.ones(3, 4, device=device).to(dtype)
    for call in (
        lambda: F.layer_norm(x, [4]),
        lambda: ops.layer_norm(x, [4]),
        lambda: ops.add_layer_norm(x, x, [4]),
        lambda: ops.layer_norm(x.to("meta"), [4]),
    ):
        with pytest.raises(NotImplementedError, match="not implemented for"):
            call()


@pytest.mark.parametrize(
    "case",
    ["last size", "no dimension", "too many dimensions", "weight size", "bias size", "weight type"],
)
@pytest.mark.parametrize("meta", [False, True])
def test_bad_arguments_are_the_builtins_errors(case: str, meta: bool) -> None:
    def call(norm: Callable[..., object], kind: str) -> object:
        x = torch.ones(3, 4, device=kind)
        parameter = torch.ones(4, device=kind)
        return {
            "last size": lambda: norm(x, [5]),
            "no dimension": lambda: norm(x, []),
            "too many dimensions": lambda: norm(x, [2, 3, 4]),
            "weight size": lambda: norm(x, [4], parameter[1:]),
            "bias size": lambda: norm(x, [4], parameter, parameter[1:]),
            "weight type": lambda: norm(x, [4], parameter.double()),
        }[case]()

    with pytest.raises(RuntimeError) as builtin:
        call(F.layer_norm, "cpu")
    with pytest.raises(RuntimeError) as own:
        call(ops.layer_norm, "meta" if meta else "cpu")
    first = [str(error.value).splitlines()[0] for error in (builtin, own)]
    if case == "weight type":
        first = [message[: len("mixed dtype")] for message in first]
    assert first[0] == first[1]


def test_tensors_of_two_devices_are_refused() -> None:
    x, other = torch.ones(3, 4), torch.ones(4, device="meta")
    with pytest.raises(RuntimeError, match="device"):
        F.layer_norm(x, [4], other)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        ops.layer_norm(x, [4], other)


def test_the_backward_operator_checks_its_arguments(device: torch.device) -> None:
    x = torch.ones(3, 4, device=device)
    mean = torch.ones(3, 1, device=device)
    backward = torch.ops.opscope.layer_norm_backward
    with pytest.raises(RuntimeError, match="one shape and type"):
        backward(x[:2], None, x, 1, mean, mean, None, None, [True] * 3)
    with pytest.raises(RuntimeError, match="one shape and type"):
        backward(x, x.double(), x, 1, mean, mean, None, None, [True] * 3)
    with pytest.raises(RuntimeError, match="for each of the 3 rows"):
        backward(x, None, x, 1, mean[:2], mean, None, None, [True] * 3)
    with pytest.raises(RuntimeError, match="normalised dimensions"):
        backward(x, None, x, 3, mean, mean, None, None, [True] * 3)


def test_modules_take_the_state_of_the_builtin(device: torch.device) -> None:
    builtin = torch.nn.LayerNorm([8, 9], eps=1e-3, device=device)
    torch.nn.init.normal_(builtin.weight)
    torch.nn.init.normal_(builtin.bias)
    x, y = sample(device, 1), sample(device, 2)
    for kind in (ops.LayerNorm, ops.AddLayerNorm):
        own = kind([8, 9], eps=1e-3, device=device)
        own.load_state_dict(builtin.state_dict())
        assert repr(own) == repr(builtin).replace("LayerNorm", kind.__name__)
        if kind is ops.LayerNorm:
            torch.testing.assert_close(own(x), builtin(x))
        else:
            out, total = own(x, y)
            torch.testing.assert_close(out, builtin(x + y))
            torch.testing.assert_close(total, x + y)
    bare = ops.LayerNorm(9, elementwise_affine=False)
    torch.testing.assert_close(bare(x.cpu()), F.layer_norm(x.cpu(), [9]))
    without_bias = ops.LayerNorm(9, bias=False, device=device)
    torch.testing.assert_close(without_bias(x), F.layer_norm(x, [9], without_bias.weight))


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_autocast_treats_it_as_the_builtin(kind: str) -> None:
    x = torch.randn(4, 8, device=kind, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.rand(8, device=kind, requires_grad=True)
    with torch.autocast(kind, dtype=torch.bfloat16):
        own, builtin = ops.layer_norm(x, [8], weight), F.layer_norm(x, [8], weight)
        out, _ = ops.add_layer_norm(x, x, [8], weight)
    assert own.dtype == builtin.dtype == out.dtype
    torch.testing.assert_close(own, builtin)
    torch.testing.assert_close(out, F.layer_norm((x + x).to(out.dtype), [8], weight))
    own.sum().backward()
    assert x.grad is not None and x.grad.dtype == x.dtype
    assert weight.grad is not None and weight.grad.dtype == weight.dtype


def test_many_threads_agree_with_one() -> None:
    rows = reference.problem((700, 1000), torch.float32, torch.device("cpu"))
    out, _ = ops.add_layer_norm(rows.input, rows.residual, [1000], rows.weight, rows.bias)
    parts = [
        ops.add_layer_norm(x, y, [1000], rows.weight, rows.bias)[0]
        for x, y in zip(rows.input.split(7), rows.residual.split(7), strict=True)
    ]
    assert torch.equal(out, torch.cat(parts))


def test_gradients_are_the_same_bits_every_time(device: torch.device) -> None:
    rows = reference.problem((1000, 256), torch.bfloat16, device)
    forward = torch.ops.opscope.layer_norm_forward(rows.input, [256], rows.weight, rows.bias, 1e-5)
    arguments = (rows.grad_out, None, rows.input, 1, *forward[1:], rows.weight, rows.bias)
    first = torch.ops.opscope.layer_norm_backward(*arguments, [True] * 3)
    for _ in range(10):
        again = torch.ops.opscope.layer_norm_backward(*arguments, [True] * 3)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
