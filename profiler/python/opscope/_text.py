# SPDX-License-Identifier: Apache-2.0
"""Text that may name a file whose name is not UTF-8."""

import json
import re
from typing import Any

# In such a name Python keeps a byte as half a surrogate pair, which neither UTF-8 nor JSON holds.
_LONE = re.compile("[\ud800-\udfff]")


def readable(text: str) -> str:
    """The text with U+FFFD for each of those bytes, as the native analyses show them."""
    return _LONE.sub("\ufffd", text)


def json_of(document: Any) -> str:
    """A document that any reader of JSON takes."""
    return readable(json.dumps(document, ensure_ascii=False))
