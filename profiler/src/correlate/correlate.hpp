// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture/reader.hpp"
#include "correlate/feed.hpp"
#include "correlate/linked.hpp"
#include "model/ledger.hpp"

namespace opscope::correlate {

/// Ties a capture's events together and hands them to `sink` in time order. Pure: reads the
/// capture, keeps open slices, unmatched correlations and the counter ranges, and nothing else.
/// @return the capture's own ledger with `unlinked` and `clamped` counted by this pass added.
ledger link(const capture::capture& source, linked_sink& sink);

/// The same over rows from anywhere; returns only what this pass counted.
ledger link(feed source, linked_sink& sink);

}  // namespace opscope::correlate
