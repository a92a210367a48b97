# SPDX-License-Identifier: Apache-2.0
"""The rule of dropout masks, in integers, apart from the library's own implementation.

Element i of a tensor, in logical order, is dropped when its draw lies below the threshold. Its draw
is the 16-bit lane i mod 8 of Philox4x32-10, low halves first, at subsequence i/8.
"""

import opscope.ops  # noqa: F401  (registers the operators)
import torch
from torch import Tensor

WORD = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
operator = torch.ops.opscope.bias_gelu_dropout
from_state = torch.ops.opscope.bias_gelu_dropout_from_state
backward = torch.ops.opscope.bias_gelu_dropout_backward
# Here gelu is the identity and its derivative 1, in every type and form.
SATURATED = 40.0


def philox(seed: int, subsequence: Tensor, counter: int) -> list[Tensor]:
    """The four words of Philox4x32-10 for each subsequence, as int64.

    Products wrap around in int64, which leaves their bits right.
    """
    low, high = subsequence & WORD, (subsequence >> 32) & WORD
    words = [torch.full_like(low, counter & WORD), torch.full_like(low, counter >> 32), low, high]
    keys = [seed & WORD, (seed >> 32) & WORD]
    for _ in range(10):
        first, second = MULTIPLIERS[0] * words[0], MULTIPLIERS[1] * words[2]
        words = [
            ((second >> 32) & WORD) ^ words[1] ^ keys[0],
            second & WORD,
            ((first >> 32) & WORD) ^ words[3] ^ keys[1],
            first & WORD,
        ]
        keys = [(key + step) & WORD for key, step in zip(keys, KEY_STEPS, strict=True)]
    return words


def kept(state: Tensor, count: int, p: float, first: int = 0) -> Tensor:
    """Which of the elements first … first + count - 1 are kept, on the CPU."""
    seed, offset = (int(number) for number in state.tolist())
    i = torch.arange(first, first + count)
    q = round(65536 * p)
    if 0 < q < 65536:
        words = torch.stack(philox(seed, i // 8, offset // 4))
        word = words.gather(0, (i // 2 % 4).unsqueeze(0))[0]
        return (word >> (16 * (i % 2))) & 0xFFFF >= q
    words = torch.stack(philox(seed, i // 4, offset // 4))
    return words.gather(0, (i % 4).unsqueeze(0))[0] >= min(round(2**32 * p), 2**32 - 1)


def scale(p: float) -> float:
    """What kept elements are multiplied by."""
    return 65536 / (65536 - round(65536 * p))


def drawn(shape: tuple[int, ...], p: float, **options: object) -> tuple[Tensor, Tensor]:
    """The mask that the library draws for a tensor, and the state it has drawn from."""
    x = torch.full(shape, SATURATED, **options)  # type: ignore[call-overload]
    out, state = operator(x, None, p, True)
    return out != 0, state


def mask_of(x: Tensor, state: Tensor, p: float) -> Tensor:
    """The mask that the library makes from a state for a tensor laid out as ``x``."""
    return torch.as_tensor(from_state(torch.full_like(x, SATURATED), None, state, p) != 0)


def fused(x: Tensor, bias: Tensor | None, p: float, approximate: str) -> tuple[Tensor, Tensor]:
    """The operator in training, with its state."""
    torch.manual_seed(17)
    out, state = operator(x, bias, p, True, approximate=approximate)
    return out, state
