// SPDX-License-Identifier: Apache-2.0
//
// The analyses of a capture, as text. They run without the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>

#include <filesystem>
#include <string>

#include "analyse/receipt.hpp"
#include "analyse/summary.hpp"
#include "analyse/verify.hpp"
#include "capture/reader.hpp"
#include "export/count.hpp"
#include "export/export_file.hpp"
#include "opscope/error.hpp"
#include "python/bindings.hpp"
#include "python/py_object.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace opscope::python {
namespace {

capture::capture open(const std::filesystem::path& path) {
  result<capture::capture> opened = capture::capture::open(path);
  if (!opened) {
    const read_error& why = opened.error();
    const bool whole = why.message.ends_with(')');  // it says what to do
    throw error(whole ? why.message
                      : why.message + " at byte " + std::to_string(why.offset) +
                            " (give a .opscope file)");
  }
  return std::move(opened).value();
}

[[noreturn]] void refuse(const std::string& format, const char* known) {
  throw nb::value_error(("unknown format '" + format + "' (one of " + known + ")").c_str());
}

void refuse_unknown(const std::string& format) {
  if (format != "table" && format != "json" && format != "csv" && format != "markdown") {
    refuse(format, "table, json, csv, markdown");
  }
}

template <typename Report>
std::string formatted(const Report& report, const std::string& format, unsigned width) {
  if (format == "json") return to_json(report);
  if (format == "csv") return to_csv(report);
  if (format == "markdown") return to_markdown(report);
  return to_table(report, width);
}

/// What `analysis` makes, without the GIL, of a capture whose names may hold any bytes.
template <typename Analysis>
nb::str shown(const Analysis& analysis) {
  std::string text;
  {
    const nb::gil_scoped_release released;
    text = analysis();
  }
  owned made = readable(text);
  if (!made) throw nb::python_error();
  return nb::steal<nb::str>(made.release());
}

nb::str summary(const std::filesystem::path& path, const std::string& by, bool group_by_shape,
                std::size_t top, const std::string& sort, bool full, const std::string& format,
                unsigned width) {
  refuse_unknown(format);
  return shown([&] {
    return formatted(analyse::summarise(open(path), {by, group_by_shape, top, sort, full}), format,
                     width);
  });
}

nb::str verify(const std::filesystem::path& path, const std::string& format) {
  if (format != "table" && format != "json") refuse(format, "table, json");
  return shown([&] {
    const analyse::verification report = exporter::verify(open(path));
    return format == "json" ? to_json(report) : to_table(report);
  });
}

nb::str receipt(const std::filesystem::path& path, const std::string& format, unsigned width,
                bool full) {
  refuse_unknown(format);
  return shown([&] {
    const analyse::receipt made = analyse::make_receipt(open(path));
    return format == "table" && !full ? to_brief(made, width) : formatted(made, format, width);
  });
}

void export_capture(const std::filesystem::path& path, const std::filesystem::path& out,
                    bool force) {
  const nb::gil_scoped_release released;
  exporter::export_file(open(path), out, force);
}

}  // namespace

void bind_analysis(nb::module_& module) {
  module.def("summary", &summary, "path"_a, "by"_a = "op", "group_by_shape"_a = false, "top"_a = 0,
             "sort"_a = "", "full"_a = false, "format"_a = "table", "width"_a = 80,
             "A capture's summary: table, json, csv or markdown.");
  module.def("verify", &verify, "path"_a, "format"_a = "table",
             "What a capture delivered and lost: table or json.");
  module.def("receipt", &receipt, "path"_a, "format"_a = "table", "width"_a = 80, "full"_a = false,
             "The receipt of a comparison's capture: table, json, csv or markdown.");
  module.def("export", &export_capture, "path"_a, "out"_a, "force"_a = false,
             "Writes a capture as a Chrome trace, by the suffix of `out`.");
}

}  // namespace opscope::python
