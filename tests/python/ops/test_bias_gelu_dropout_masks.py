# SPDX-License-Identifier: Apache-2.0
"""Which elements are dropped: the rule, element by element, and what it must not depend on."""

import math

import dropout_reference as reference
import pytest
import torch
from opscope import ops

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
STATES = [(0, 0), (1, 4), (-3, 8), (2**62 + 12345, 2**40), (0x123456789ABCDEF, 2**33 + 4)]


def as_state(numbers: tuple[int, int], device: torch.device) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int64, device=device)


def test_philox_gives_the_published_words() -> None:
    zero = torch.zeros(1, dtype=torch.int64)
    words = [int(word) for word in reference.philox(0, zero, 0)]
    assert words == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    ones = torch.full((1,), -1, dtype=torch.int64)
    words = [int(word) for word in reference.philox(2**64 - 1, ones, 2**64 - 1)]
    assert words == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize("numbers", STATES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(64, 64), (3, 1000), (17,), (5, 7, 9)])
def test_every_element_of_the_mask_follows_the_rule(
    device: torch.device, dtype: torch.dtype, numbers: tuple[int, int], shape: tuple[int, ...]
) -> None:
    x = torch.empty(shape, dtype=dtype, device=device)
    state = as_state(numbers, device)
    for p in (0.1, 0.5, 0.75, 1 / 65536, 1 - 1 / 65536):
        want = reference.kept(state, x.numel(), p).view(shape)
        assert torch.equal(reference.mask_of(x, state, p).cpu(), want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_backward_pass_draws_the_same_mask(device: torch.device, dtype: torch.dtype) -> None:
    for shape in ((96, 256), (31, 33)):
        x = torch.full(shape, reference.SATURATED, dtype=dtype, device=device)
        bias = torch.zeros(shape[-1], dtype=dtype, device=device)
        out, state = reference.operator(x, bias, 0.3, True)
        grad, grad_bias = reference.backward(torch.ones_like(x), x, bias, state, 0.3)
        assert torch.equal(grad != 0, out != 0)
        kept = reference.kept(state, x.numel(), 0.3).view(shape)
        want = kept.sum(0).double() * reference.scale(0.3)
        torch.testing.assert_close(grad_bias.cpu().double(), want, rtol=8e-3, atol=0)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_share_kept_is_binomial_and_the_scale_exact(device: torch.device, p: float) -> None:
    count = 1 << 20
    x = torch.full((1024, 1024), reference.SATURATED, device=device)
    out, _ = reference.operator(x, None, p, True)
    share = float((out != 0).double().mean())
    probability = 1 - round(65536 * p) / 65536
    assert abs(share - probability) < 5 * math.sqrt(p * (1 - p) / count)
    want = torch.tensor(reference.SATURATED * reference.scale(p), dtype=torch.float32)
    torch.testing.assert_close(out[out != 0].unique().cpu(), want.view(1), rtol=1e-6, atol=0)


@pytest.mark.parametrize("p", [2.0**-20, 1 - 2.0**-20, 1e-12, 1 - 1e-12])
def test_extreme_probabilities_are_drawn_with_32_bits(device: torch.device, p: float) -> None:
    x = torch.empty(4096, 64, device=device)
    state = as_state((99, 12), device)
    mask = reference.mask_of(x, state, p).cpu()
    assert torch.equal(mask, reference.kept(state, x.numel(), p).view(x.shape))
    assert 0.999 < float((mask if p < 0.5 else ~mask).double().mean()) <= 1


def test_probability_0_and_evaluation_drop_and_draw_nothing(device: torch.device) -> None:
    x = torch.randn(33, 40, device=device)
    bias = torch.randn(40, device=device)
    torch.manual_seed(3)
    plain, state = reference.operator(x, bias, 0.0, True)
    evaluated, other = reference.operator(x, bias, 0.7, False)
    assert state.tolist() == other.tolist() == [0, 0]
    assert torch.equal(plain, evaluated)
    torch.testing.assert_close(plain, torch.nn.functional.gelu(x + bias))
    after = torch.rand(1, device=device)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(1, device=device))


def test_probability_1_drops_everything_and_draws_nothing(device: torch.device) -> None:
    x = torch.full((5, 16), math.inf, device=device, requires_grad=True)
    bias = torch.zeros(16, device=device, requires_grad=True)
    torch.manual_seed(3)
    out = ops.bias_gelu_dropout(x, bias, 1.0)
    assert torch.equal(out, torch.zeros_like(out))
    out.sum().backward()
    assert x.grad is not None
    assert bias.grad is not None
    assert not x.grad.any()
    assert not bias.grad.any()
    after = torch.rand(1, device=device)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(1, device=device))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("columns", [8, 9])
def test_dropped_elements_are_0_whatever_they_were(
    device: torch.device, dtype: torch.dtype, columns: int
) -> None:
    values = torch.tensor([math.inf, math.nan, -math.inf, 1.0], dtype=dtype)
    x = values.to(device).repeat(64 * columns).view(4 * 64, columns)
    out, state = reference.operator(x, None, 0.5, True)
    dropped = ~reference.kept(state, x.numel(), 0.5).view(x.shape)
    assert not torch.signbit(out).cpu()[dropped].any()
    assert not out.cpu()[dropped].any()
    assert torch.equal(out.isinf().cpu(), (x.cpu() == math.inf) & ~dropped)
    assert torch.equal(out.isnan().cpu(), x.isnan().cpu() & ~dropped)
    grad, _ = reference.backward(torch.full_like(x, math.inf), x, None, state, 0.5)
    assert not grad.cpu()[dropped].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_mask_depends_on_no_layout(device: torch.device, dtype: torch.dtype) -> None:
    state = as_state((7, 4), device)
    shape = (24, 48)
    want = reference.kept(state, 24 * 48, 0.4).view(shape)
    whole = torch.empty(4 * 24 * 48 + 3, dtype=dtype, device=device)
    flat = whole[: 24 * 48]
    layouts = {
        "contiguous": flat.view(shape),
        "offset 1": whole[1 : 1 + 24 * 48].view(shape),
        "offset 3": whole[3 : 3 + 24 * 48].view(shape),
        "transposed": flat.view(48, 24).t(),
        "step": whole[: 2 * 24 * 48].view(24, 96)[:, ::2],
        "chunk": whole[: 3 * 24 * 48].view(24, 144).chunk(3, dim=1)[1],
        "expanded": whole[:48].expand(shape),
    }
    whole.fill_(reference.SATURATED)
    for name, x in layouts.items():
        got = reference.from_state(x, None, state, 0.4) != 0
        assert torch.equal(got.cpu(), want), name


def test_the_mask_depends_on_no_shape_but_on_the_number_of_the_element(
    device: torch.device,
) -> None:
    state = as_state((7, 4), device)
    want = reference.kept(state, 5040, 0.4)
    for shape in ((5040,), (1, 5040), (5040, 1), (630, 8), (72, 70), (3, 1680), (2, 3, 4, 5, 42)):
        x = torch.empty(shape, device=device)
        assert torch.equal(reference.mask_of(x, state, 0.4).cpu().flatten(), want), shape


def test_a_draw_moves_the_generator_by_one_step(device: torch.device) -> None:
    torch.manual_seed(5)
    states = [reference.drawn((4, 8), 0.5, device=device)[1].tolist() for _ in range(3)]
    assert len({tuple(state) for state in states}) == 3
    torch.manual_seed(5)
    assert reference.drawn((400, 80), 0.2, device=device)[1].tolist() == states[0]
    if device.type == "cuda":
        assert [state[1] for state in states] == [0, 4, 8]


def test_an_own_generator_is_drawn_from(device: torch.device) -> None:
    x = torch.full((8, 64), 40.0, device=device)
    first = ops.bias_gelu_dropout(x, generator=torch.Generator(device).manual_seed(11))
    torch.manual_seed(5)
    again = ops.bias_gelu_dropout(x, generator=torch.Generator(device).manual_seed(11))
    assert torch.equal(first, again)
    torch.manual_seed(5)
    want = torch.rand(1, device=device)
    torch.manual_seed(5)
    ops.bias_gelu_dropout(x, generator=torch.Generator(device).manual_seed(11))
    assert torch.equal(torch.rand(1, device=device), want)
