# SPDX-License-Identifier: Apache-2.0
"""Attaches the op observer when a program imports torch inside a session."""

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from opscope import _core


class _Attaching(Loader):
    """Torch's own loader, and after it the observer."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # The program finds in torch what it would find there without a session.
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _core.attach_ops()


class _Watch(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch":
            return None
        stop()
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Attaching(spec.loader)
        return spec


_watch = _Watch()


def watch() -> None:
    """Waits for torch, unless it is there."""
    if "torch" not in sys.modules and _watch not in sys.meta_path:
        sys.meta_path.insert(0, _watch)


def stop() -> None:
    """Waits no longer."""
    if _watch in sys.meta_path:
        sys.meta_path.remove(_watch)
