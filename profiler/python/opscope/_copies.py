# SPDX-License-Identifier: Apache-2.0
"""Copies of a user's arguments: what is measured may write to them, and then it shows."""

from typing import Any

import torch

# Compared a slice at a time: a large storage needs no further copy of itself.
_SLICE = 1 << 26


class Copies:
    """Arguments laid out as the originals are: strides, offsets, and which of them share storage.

    `arguments` is what to call with. With `gradients`, its floating tensors at the top require one.
    """

    def __init__(self, arguments: tuple[Any, ...], gradients: bool) -> None:
        self._storages: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        # Each copy, and another view of its storage by which a changed layout shows.
        self._layouts: list[tuple[torch.Tensor, torch.Tensor]] = []
        copies = tuple(self._copy(each) for each in arguments)
        if gradients:
            copies = tuple(_with_gradient(each) for each in copies)
        self.arguments = copies

    def restore(self) -> bool:
        """Makes the copies what the originals are.

        Returns:
            whether any byte of them was another, or any lay in memory otherwise.
        """
        changed = False
        for copy, view in self._layouts:
            if not _same_layout(copy, view):
                copy.data = view
                changed = True
        for original, copy in self._storages.values():
            for at in range(0, original.numel(), _SLICE):
                left, right = original[at : at + _SLICE], copy[at : at + _SLICE]
                if not torch.equal(left, right):
                    right.copy_(left)
                    changed = True
        return changed

    def _copy(self, value: Any) -> Any:
        if type(value) in (tuple, list):
            return type(value)(self._copy(each) for each in value)
        if not isinstance(value, torch.Tensor):
            return value
        plain = type(value) in (torch.Tensor, torch.nn.Parameter)
        if not plain or value.is_conj() or value.is_neg():  # more than a storage and its layout
            return value.detach().clone().requires_grad_(value.requires_grad)
        storage = value.untyped_storage()
        if storage.data_ptr() not in self._storages:
            original = _bytes_of(storage, value.device)
            self._storages[storage.data_ptr()] = original, original.clone()
        _, copy = self._storages[storage.data_ptr()]
        made = torch.empty(0, dtype=value.dtype, device=value.device)
        made.set_(copy.untyped_storage(), value.storage_offset(), value.shape, value.stride())
        self._layouts.append((made, made.detach()))
        return made.requires_grad_(value.requires_grad)


def _with_gradient(value: Any) -> Any:
    """A copy, which is a leaf, as one that requires a gradient."""
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.requires_grad_()
    return value


def _same_layout(left: torch.Tensor, right: torch.Tensor) -> bool:
    return (
        left.dtype == right.dtype
        and left.shape == right.shape
        and left.stride() == right.stride()
        and left.data_ptr() == right.data_ptr()
    )


def _bytes_of(storage: torch.UntypedStorage, device: torch.device) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=device).set_(storage)
