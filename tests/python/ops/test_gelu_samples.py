# SPDX-License-Identifier: Apache-2.0
"""gelu over sample inputs, in the form of the tests that torch runs over its own (OpInfo)."""

from collections.abc import Callable, Iterator

import gelu_reference as reference
import pytest
import torch
from opscope import ops
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
SIZES = [
    (), (0,), *[(n,) for n in range(1, 18)], (1023,), (1025,), (3, 0), (20, 20),
    (2, 3, 5), (2, 3, 4, 5), (2, 1, 3, 2, 3),
]  # fmt: skip
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, -1),
    "permuted": lambda x: x.permute(2, 0, 3, 1),
    "step": lambda x: x[..., ::2],
    "step over rows": lambda x: x[::2, 1:],
    "chunk": lambda x: x.chunk(3, dim=-1)[1],
    "expanded": lambda x: x[:, :1].expand_as(x),
    "expanded in front": lambda x: x[0].expand(7, *x.shape[1:]),
    "channels_last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "channels_last, sliced": lambda x: x.contiguous(memory_format=torch.channels_last)[:, 1:3],
    "offset 1": lambda x: x.flatten()[1:],
    "offset 3": lambda x: x.flatten()[3:],
    "overlapping": lambda x: x.as_strided((5, 6), (2, 1)),
    "one element": lambda x: x[:1, :1, :1, :1],
    "size 1 with an odd stride": lambda x: x.as_strided((4, 1, 6), (6, 17, 1)),
}


def samples(device: torch.device, dtype: torch.dtype) -> Iterator[Tensor]:
    """One tensor of every size and layout."""
    for size in SIZES:
        yield torch.randn(size, device=device).to(dtype) * 3
    for layout in LAYOUTS.values():
        yield layout(torch.randn(4, 6, 8, 6, device=device).to(dtype) * 3)


def formed(function: Callable[..., Tensor], x: Tensor, approximate: str) -> list[Tensor]:
    """The value, and the gradient of an expanded, a permuted and a plain cotangent."""
    y = function(x, approximate=approximate)
    found = [y.detach()]
    cotangents = [torch.ones_like(y), torch.ones((), device=y.device, dtype=y.dtype).expand_as(y)]
    values = torch.linspace(-1, 2, y.numel(), device=y.device).to(y.dtype)
    if y.dim() > 1:
        cotangents.append(values.view(y.transpose(0, -1).shape).transpose(0, -1))
    for cotangent in cotangents:
        found += torch.autograd.grad(y, x, cotangent, retain_graph=True)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_gradients_and_strides_are_the_builtins(
    device: torch.device, dtype: torch.dtype, approximate: str
) -> None:
    for sample in samples(device, dtype):
        x = sample.detach().requires_grad_()
        own = formed(ops.gelu, x, approximate)
        builtin = formed(torch.nn.functional.gelu, x, approximate)
        for got, want in zip(own, builtin, strict=True):
            assert got.stride() == want.stride() and got.dtype == want.dtype
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_strided_samples_give_what_contiguous_ones_give(
    device: torch.device, dtype: torch.dtype, approximate: str
) -> None:
    for x in samples(device, dtype):
        plain = x.contiguous()
        assert torch.equal(
            ops.gelu(x, approximate=approximate), ops.gelu(plain, approximate=approximate)
        )
        grad = torch.randn_like(plain).to(dtype)
        got = ops.gelu_backward(grad, x, approximate=approximate)
        assert torch.equal(got, ops.gelu_backward(grad, plain, approximate=approximate))


def test_every_form_gives_the_same(device: torch.device, approximate: str) -> None:
    for x in samples(device, torch.float32):
        want = ops.gelu(x, approximate=approximate)
        out = torch.empty_like(want)
        torch.ops.opscope.gelu.out(x, approximate=approximate, out=out)
        forms = {
            "out": out,
            "module": ops.GELU(approximate)(x),
            "operator": torch.ops.opscope.gelu.default(x, approximate=approximate),
            "in place": ops.gelu_(x.clone(), approximate=approximate),
        }
        for name, got in forms.items():
            assert torch.equal(got, want), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_fake_tensors_are_laid_out_as_real_ones(device: torch.device, dtype: torch.dtype) -> None:
    with FakeTensorMode() as mode:
        pass
    for x in samples(device, dtype):
        real = ops.gelu(x)
        with mode:
            fake = ops.gelu(mode.from_tensor(x))
        assert (fake.shape, fake.stride(), fake.dtype) == (real.shape, real.stride(), real.dtype)
        assert fake.device.type == real.device.type


def test_values_are_those_of_the_reference(device: torch.device, approximate: str) -> None:
    for x in samples(device, torch.float64):
        want = reference.gelu(x.cpu(), approximate)
        torch.testing.assert_close(ops.gelu(x, approximate=approximate).cpu(), want)


@pytest.mark.parametrize("overload", ["default", "out", "in place", "backward"])
@pytest.mark.parametrize("case", ["plain", "requires grad", "strided", "empty", "bfloat16"])
def test_opcheck(device: torch.device, approximate: str, overload: str, case: str) -> None:
    x = torch.randn(4, 6, device=device)
    x = {"strided": x[:, ::2], "empty": x[:0], "bfloat16": x.bfloat16()}.get(case, x)
    wants_grad = case == "requires grad" and overload != "out"
    x = x.detach().requires_grad_(wants_grad)
    options = {"approximate": approximate}
    packet = torch.ops.opscope.gelu
    if overload == "default":
        torch.library.opcheck(packet.default, (x,), options)
    elif overload == "out":
        torch.library.opcheck(packet.out, (x,), {**options, "out": torch.empty_like(x)})
    elif overload == "in place":
        argument = x * 1 if wants_grad else x
        torch.library.opcheck(torch.ops.opscope.gelu_.default, (argument,), options)
    else:
        grad = torch.randn_like(x).requires_grad_(wants_grad)
        torch.library.opcheck(torch.ops.opscope.gelu_backward.default, (grad, x), options)


def test_a_zero_tensor_is_taken(device: torch.device) -> None:
    zero = torch._efficientzerotensor((3,), device=device)
    torch.testing.assert_close(ops.gelu(zero), torch.zeros(3, device=device))
    x = torch.ones(3, device=device)
    torch.testing.assert_close(ops.gelu_backward(zero, x), torch.zeros(3, device=device))
