# SPDX-License-Identifier: Apache-2.0
"""The fused operators as PyTorch sees them: schemas, errors, autocast, vmap, the module."""

import math
from collections.abc import Callable

import dropout_reference as dropout
import pytest
import torch
from opscope import ops

P = 0.4
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1),
    "strided": lambda x: x[..., ::2],
    "expanded": lambda x: x[:, :1].expand_as(x),
    "empty": lambda x: x[:0],
}


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> Callable[[torch.Tensor], torch.Tensor]:
    """Ways for elements to lie in memory."""
    return LAYOUTS[request.param]


@pytest.fixture
def state(device: torch.device) -> torch.Tensor:
    """Some state of the generator."""
    return torch.tensor([123, 8], device=device)


def samples(
    device: torch.device, layout: Callable[[torch.Tensor], torch.Tensor], requires_grad: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    x = layout(torch.randn(6, 8, 16, device=device)).detach().requires_grad_(requires_grad)
    return x, torch.randn(x.shape[-1], device=device, requires_grad=requires_grad)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_opcheck_of_the_deterministic_operators(
    device: torch.device,
    state: torch.Tensor,
    layout: Callable[[torch.Tensor], torch.Tensor],
    requires_grad: bool,
) -> None:
    x, bias = samples(device, layout, requires_grad)
    torch.library.opcheck(dropout.from_state.default, (x, bias, state, P))
    torch.library.opcheck(dropout.from_state.default, (x, None, state, P))
    grad = torch.randn_like(x).requires_grad_(requires_grad)
    torch.library.opcheck(dropout.backward.default, (grad, x, bias, state, P))
    torch.library.opcheck(dropout.backward.default, (grad, x, None, state, P))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_opcheck_of_the_drawing_operator(
    device: torch.device, layout: Callable[[torch.Tensor], torch.Tensor], requires_grad: bool
) -> None:
    x, bias = samples(device, layout, requires_grad)
    torch.library.opcheck(dropout.operator.default, (x, bias, P, True))
    torch.library.opcheck(dropout.operator.default, (x, bias, P, False))


def test_the_schema_says_that_it_draws() -> None:
    assert torch.Tag.nondeterministic_seeded in dropout.operator.default.tags
    assert torch.Tag.nondeterministic_seeded not in dropout.from_state.default.tags
    assert torch.Tag.nondeterministic_seeded not in dropout.backward.default.tags


def test_results_are_contiguous_on_meta_tensors_too(
    layout: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    x, bias = samples(torch.device("cpu"), layout, False)
    for device in ("cpu", "meta"):
        out, state = dropout.operator(x.to(device), bias.to(device), P, True)
        assert out.is_contiguous()
        assert out.shape == x.shape
        assert state.shape == (2,)
        assert state.dtype == torch.int64
        grads = dropout.backward(x.to(device), x.to(device), bias.to(device), state, P)
        assert [grad.shape for grad in grads] == [x.shape, bias.shape]
        assert all(grad.is_contiguous() and grad.device.type == device for grad in grads)


def test_an_empty_tensor_is_no_reason_to_draw(device: torch.device) -> None:
    for shape in ((0,), (0, 8), (8, 0), (3, 0, 5)):
        x = torch.empty(shape, device=device, requires_grad=True)
        bias = torch.ones(shape[-1], device=device, requires_grad=True)
        torch.manual_seed(3)
        out = ops.bias_gelu_dropout(x, bias, P)
        assert out.shape == shape
        after = torch.rand(1, device=device)
        torch.manual_seed(3)
        assert torch.equal(after, torch.rand(1, device=device))
        grads = torch.autograd.grad(out.sum(), (x, bias))
        assert torch.equal(grads[1], torch.zeros_like(bias))


def test_a_number_has_no_bias(device: torch.device) -> None:
    x = torch.tensor(1.5, device=device)
    got = ops.bias_gelu_dropout(x, training=False)
    torch.testing.assert_close(got, torch.nn.functional.gelu(x))
    with pytest.raises(RuntimeError, match="a vector over the input's last dimension"):
        ops.bias_gelu_dropout(x, torch.ones(1, device=device))


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, math.inf])
def test_a_probability_outside_of_0_and_1_is_a_value_error(device: torch.device, p: float) -> None:
    x = torch.ones(3, device=device)
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        ops.bias_gelu_dropout(x, p=p)
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        ops.bias_gelu_dropout(x.to("meta"), p=p, training=False)
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
        ops.BiasGELUDropout(3, p)


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.complex64])
def test_other_element_types_are_not_implemented(device: torch.device, dtype: torch.dtype) -> None:
    with pytest.raises(NotImplementedError, match="not implemented for"):
        ops.bias_gelu_dropout(torch.ones(3, device=device).to(dtype))


def test_a_bias_of_the_wrong_size_is_the_sums_error(device: torch.device) -> None:
    x, bias = torch.ones(2, 5, device=device), torch.ones(4, device=device)
    with pytest.raises(RuntimeError) as builtin:
        x + bias
    with pytest.raises(RuntimeError) as own:
        ops.bias_gelu_dropout(x, bias)
    assert str(own.value).splitlines()[0] == str(builtin.value).splitlines()[0]
    with pytest.raises(RuntimeError, match="a vector over the input's last dimension"):
        ops.bias_gelu_dropout(x, torch.ones(2, 5, device=device))


def test_other_bad_arguments_are_runtime_errors(device: torch.device, state: torch.Tensor) -> None:
    x, bias = torch.ones(2, 4, device=device), torch.ones(4, device=device)
    with pytest.raises(RuntimeError, match="bias of the input's element type"):
        ops.bias_gelu_dropout(x, bias.double())
    with pytest.raises(RuntimeError, match="none or tanh"):
        ops.bias_gelu_dropout(x, bias, approximate="erf")
    with pytest.raises(RuntimeError, match="element or aten"):
        ops.bias_gelu_dropout(x, bias, rng="curand")
    with pytest.raises(RuntimeError, match="seed and offset"):
        dropout.from_state(x, bias, state.float(), P)
    with pytest.raises(RuntimeError, match="seed and offset"):
        dropout.from_state(x, bias, state[:1], P)
    with pytest.raises(RuntimeError, match="gradient of the input's sizes"):
        dropout.backward(x[:1], x, bias, state, P)
    with pytest.raises(RuntimeError, match="gradient of the input's element type"):
        dropout.backward(x.double(), x, bias, state, P)


def test_the_layout_of_aten_needs_cuda() -> None:
    with pytest.raises(RuntimeError, match="needs a CUDA tensor"):
        ops.bias_gelu_dropout(torch.ones(4), rng="aten")


def test_a_generator_cannot_be_compiled(device: torch.device) -> None:
    generator = torch.Generator(device)

    def program(x: torch.Tensor) -> torch.Tensor:
        return ops.bias_gelu_dropout(x, generator=generator)

    with pytest.raises(Exception, match="generator"):
        torch.compile(program, backend="eager", fullgraph=True)(torch.ones(3, device=device))


def test_autocast_takes_the_inputs_type_for_a_bias_of_another(device: torch.device) -> None:
    x, bias = torch.randn(4, 8, device=device), torch.randn(8, device=device, requires_grad=True)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        assert ops.bias_gelu_dropout(x, bias).dtype == torch.float32
        assert ops.bias_gelu_dropout(x.bfloat16()).dtype == torch.bfloat16
        assert ops.bias_gelu_dropout(x.bfloat16(), bias.detach().bfloat16()).dtype == torch.bfloat16
        mixed = ops.bias_gelu_dropout(x.bfloat16(), bias, training=False)
    assert mixed.dtype == torch.bfloat16
    total = x.bfloat16().float() + bias.bfloat16().float()
    torch.testing.assert_close(mixed, torch.nn.functional.gelu(total).bfloat16())
    mixed.sum().backward()
    assert bias.grad is not None
    assert bias.grad.dtype == torch.float32


def saturated(device: torch.device) -> torch.Tensor:
    return torch.full((6, 64), dropout.SATURATED, device=device)


def test_vmap_may_forbid_to_draw(device: torch.device) -> None:
    rows = saturated(device)
    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.func.vmap(ops.bias_gelu_dropout)(rows)
    got = torch.func.vmap(lambda row: ops.bias_gelu_dropout(row, training=False))(rows)
    torch.testing.assert_close(got, rows)


@pytest.mark.parametrize("batched", ["rows", "bias", "neither"])
def test_vmap_draws_one_mask_or_one_for_each(device: torch.device, batched: str) -> None:
    rows, bias = saturated(device), torch.zeros(6, 64, device=device)
    calls: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "rows": lambda example: ops.bias_gelu_dropout(example, bias[0], P),
        "bias": lambda example: ops.bias_gelu_dropout(rows[0], example - dropout.SATURATED, P),
        "neither": lambda example: ops.bias_gelu_dropout(rows[0], bias[0], P) + 0 * example,
    }
    same = torch.func.vmap(calls[batched], randomness="same")(rows) != 0
    assert torch.equal(same, same[:1].expand_as(same))
    differ = torch.func.vmap(calls[batched], randomness="different")(rows) != 0
    assert len({tuple(row.tolist()) for row in differ}) == 6
    for masks in (same, differ):
        assert 0.4 < float(masks[0].double().mean()) < 0.8


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_gradients_under_vmap_have_the_mask_of_the_result(
    device: torch.device, randomness: str
) -> None:
    bias = torch.zeros(64, device=device)

    def loss(row: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = ops.bias_gelu_dropout(row, bias, P)
        return out.sum(), out

    function = torch.func.grad(loss, argnums=(0, 1), has_aux=True)
    grads, out = torch.func.vmap(function, in_dims=(0, None), randomness=randomness)(
        saturated(device), bias
    )
    assert torch.equal(grads[0] != 0, out != 0)
    assert torch.equal(grads[1] != 0, out != 0)


def test_vmap_along_another_dimension_and_over_no_examples(
    device: torch.device, state: torch.Tensor
) -> None:
    x, bias = torch.randn(8, 3, 5, device=device), torch.randn(8, device=device)
    got = torch.func.vmap(lambda x: dropout.from_state(x, bias, state, P), in_dims=2, out_dims=2)(
        x.permute(1, 0, 2)
    )
    want = [dropout.from_state(x[..., k].t(), bias, state, P) for k in range(5)]
    torch.testing.assert_close(got, torch.stack(want, 2))
    none = torch.func.vmap(lambda x: ops.bias_gelu_dropout(x, bias, P), randomness="different")(
        torch.empty(0, 3, 8, device=device)
    )
    assert none.shape == (0, 3, 8)


def test_the_module_is_a_linear_layers_second_half(device: torch.device, approximate: str) -> None:
    linear = torch.nn.Linear(12, 32, device=device)
    matrix = torch.nn.Linear(12, 32, bias=False, device=device)
    module = ops.BiasGELUDropout(32, 0.3, approximate, device=device)
    weights = linear.state_dict()
    matrix.load_state_dict({"weight": weights["weight"]})
    module.load_state_dict({"bias": weights["bias"]})
    module.eval()
    x = torch.randn(5, 12, device=device)
    want = torch.nn.functional.gelu(linear(x), approximate=approximate)
    torch.testing.assert_close(module(matrix(x)), want)
    module.train()
    share = float((module(torch.full((64, 32), 40.0, device=device)) != 0).double().mean())
    assert 0.6 < share < 0.8
    assert repr(module) == (
        f"BiasGELUDropout(features=32, p=0.3, approximate={approximate!r}, bias=True)"
    )


def test_the_module_may_have_no_bias(device: torch.device) -> None:
    module = ops.BiasGELUDropout(8, 0.0, bias=False, device=device)
    assert module.state_dict() == {}
    x = torch.randn(3, 8, device=device)
    torch.testing.assert_close(module(x), torch.nn.functional.gelu(x))


@pytest.mark.parametrize("training", [False, True])
def test_a_model_with_the_module_can_be_exported(device: torch.device, training: bool) -> None:
    module = ops.BiasGELUDropout(64, P, device=device).train(training)
    x = saturated(device)
    dynamic = ({0: torch.export.Dim("rows")},)
    exported = torch.export.export(module, (x,), dynamic_shapes=dynamic)
    for rows in (6, 9):
        out = exported.module()(x[:1].expand(rows, 64))
        share = float((out != 0).double().mean())
        assert share < 0.75 if training else share == 1
