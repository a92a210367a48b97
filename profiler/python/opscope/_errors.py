# SPDX-License-Identifier: Apache-2.0
"""What opscope raises. Apart from the native modules, which raise it too."""


class Error(RuntimeError):
    """Something could not be done: one line with what failed, why, and what to do about it."""
