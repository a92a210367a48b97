# SPDX-License-Identifier: Apache-2.0
"""What runs under compute-sanitizer: every operator in every way that its kernels differ.

    python tests/gpu/sanitize_subjects.py [DEVICE]

Nothing is checked here. No tensor has more than 2^20 elements but the ones of more than 4 MiB that
gelu has a launch shape for, and none is in a CUDA graph.
"""

import sys
from collections.abc import Iterator

import torch
from opscope import ops

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
FORMS = ("none", "tanh")
COUNTS = (1, 7, 255, 2049, 100_003, 1 << 20)
# Rows and columns: odd ones, rows of every power of two that layer norm has a shape for, fewer and
# more rows than there are multiprocessors, more than a grid has blocks along y.
MATRICES = ((3, 1), (5, 31), (9, 64), (600, 256), (5, 512), (7, 1000), (4, 1025), (257, 1024),
            (3, 2048), (16, 4096), (3, 4097), (9, 8192), (5, 16384), (3, 32_768), (65_537, 8),
            (1, 65_537), (2, 131_072))  # fmt: skip
MISALIGNED = 1


def filled(shape: tuple[int, ...], dtype: torch.dtype, offset: int = 0) -> torch.Tensor:
    """Ones, `offset` elements behind an aligned address, at the end of their allocation."""
    count = torch.Size(shape).numel()
    return torch.ones(offset + count, dtype=dtype)[offset:].view(shape)


def gelu(dtype: torch.dtype) -> None:
    """One element a thread, vectors, both ends of a misaligned row, strided, empty."""

    def run(x: torch.Tensor, grad: torch.Tensor) -> None:
        for form in FORMS:
            ops.gelu(x, approximate=form)
            ops.gelu_backward(grad, x, approximate=form)
        if dtype is torch.float32 and x.is_cuda:
            ops.gelu_naive(x)

    beyond_4_mib = (4 << 20) // dtype.itemsize + 9
    for count in (*COUNTS, beyond_4_mib):
        for offset in (0, MISALIGNED):
            run(filled((count,), dtype, offset), filled((count,), dtype))
    square = filled((96, 130), dtype)
    for view in (square.t(), square[:, ::2], square[:0]):
        run(view, view)


def matrices(dtype: torch.dtype) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """A matrix and a vector of its columns, aligned and not."""
    for rows, columns in MATRICES:
        for offset in (0, MISALIGNED):
            yield filled((rows, columns), dtype, offset), filled((columns,), dtype, offset)


def bias_gelu_dropout(dtype: torch.dtype) -> None:
    """With and without a bias, a draw, a gradient of the bias."""
    for matrix, vector in matrices(dtype):
        x = matrix.requires_grad_()
        for bias in (vector.detach().requires_grad_(), None):
            for p in (0.0, 0.1, 1e-7, 1.0):
                for form in FORMS:
                    ops.bias_gelu_dropout(x, bias, p, approximate=form).sum().backward()
    if x.is_cuda:
        flat = filled((2049,), dtype).requires_grad_()
        ops.bias_gelu_dropout(flat, p=0.1, rng="aten").sum().backward()


def layer_norm(dtype: torch.dtype) -> None:
    """Rows held in registers and rows streamed, with and without a residual, weight and bias."""
    for matrix, vector in matrices(dtype):
        x, shape = matrix.requires_grad_(), vector.shape
        weight, bias = vector.detach().requires_grad_(), vector.detach().clone().requires_grad_()
        wide = (weight.detach().float().requires_grad_(), bias.detach().float().requires_grad_())
        pairs = [(weight, bias), (weight, None), (None, bias), (None, None)]
        for parameters in pairs if dtype is torch.float64 else [*pairs, wide]:
            ops.layer_norm(x, shape, *parameters).sum().backward()
            out, total = ops.add_layer_norm(x, filled(x.shape, dtype), shape, *parameters)
            (out.sum() + total.sum()).backward()
        frozen = matrix.detach()
        ops.layer_norm(frozen, shape, weight, bias).sum().backward()


def exercise(device: str) -> None:
    """Runs all on one device."""
    with torch.device(device):
        for dtype in DTYPES:
            gelu(dtype)
            bias_gelu_dropout(dtype)
            layer_norm(dtype)
    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    exercise(sys.argv[1] if len(sys.argv) > 1 else "cuda")
    print("exercised")
