// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "analyse/receipt.hpp"

namespace opscope::analyse {
namespace {

using json = nlohmann::ordered_json;

template <typename Value>
json value_or_null(const std::optional<Value>& value) {
  return value ? json(*value) : json(nullptr);
}

/// Adds the method, or why there is no value, to the fields of one.
template <typename Value>
json with_method(json fields, const measured<Value>& what) {
  if (what) {
    fields["method"] = what.method;
  } else {
    for (const auto& field : fields.items()) field.value() = nullptr;
    fields["not_measured"] = what.why;
  }
  return fields;
}

json json_of(const measured<timing>& what) {
  const auto value = what.value.value_or(timing{});
  return with_method({{"median_ns", value.median}, {"p95_ns", value.p95}, {"count", value.count}},
                     what);
}

json json_of(const measured<ratio_estimate>& what, std::size_t fewest) {
  const auto value = what.value.value_or(ratio_estimate{});
  json fields{{"ratio", value.middle}, {"low", nullptr}, {"high", nullptr}, {"count", value.count}};
  if (value.within) {
    fields["low"] = value.within->low;
    fields["high"] = value.within->high;
  }
  auto out = with_method(std::move(fields), what);
  if (what && !value.within) out["no_interval"] = no_interval(value, fewest);
  return out;
}

/// A ratio of two contenders' times, with what it shows.
json judged(const measured<ratio_estimate>& what) {
  auto out = json_of(what, fewest_pairs);
  out["swung"] = what ? json(what->swung) : json(nullptr);
  out["turned"] = what ? value_or_null(what->turned) : json(nullptr);
  out["finding"] = what ? json(name(judge(*what))) : json(nullptr);
  return out;
}

json json_of(const measured<traffic>& what) {
  const auto value = what.value.value_or(traffic{});
  return with_method({{"read_bytes", value.read_bytes},
                      {"write_bytes", value.write_bytes},
                      {"l2_bytes", value.l2_bytes},
                      {"duration_ns", value.duration_ns},
                      {"count", value.count}},
                     what);
}

json json_of(const measured<bandwidth>& what) {
  const auto value = what.value.value_or(bandwidth{});
  return with_method({{"bytes_per_second", value.bytes_per_second},
                      {"share_of_copy", value_or_null(value.share_of_copy)}},
                     what);
}

json stages_of(const contender_receipt& contender) {
  json out = json::object();
  for (const auto& stage : contender.stages) {
    json entry{{"median_ns", stage.raw.median},
               {"p95_ns", stage.raw.p95},
               {"count", stage.raw.count},
               {"method", stage.name == "kernel" ? "cupti-record" : "timeline"}};
    if (stage.corrected) {
      entry["corrected_median_ns"] = stage.corrected->median;
      entry["corrected_p95_ns"] = stage.corrected->p95;
    }
    out[std::string(stage.name)] = std::move(entry);
  }
  if (!contender.stages_why.empty()) out["not_measured"] = contender.stages_why;
  return out;
}

json links_of(const chain& links) {
  return {{"calls", links.calls},
          {"without_op", links.without_op},
          {"launches", links.launches},
          {"gpu_activities", links.gpu_activities},
          {"kernels", links.kernels},
          {"unlinked", links.unlinked},
          {"out_of_order", links.out_of_order},
          {"sums_broken", links.sums_broken}};
}

json json_of(const contender_receipt& contender) {
  return {{"contender", contender.index},
          {"name", contender.name},
          {"baseline", contender.baseline},
          {"verdict", contender.verdict},
          {"reasons", contender.reasons},
          {"correct", value_or_null(contender.correct)},
          {"max_abs_error", value_or_null(contender.max_abs_error)},
          {"max_rel_error", value_or_null(contender.max_rel_error)},
          {"atol", value_or_null(contender.absolute_tolerance)},
          {"rtol", value_or_null(contender.relative_tolerance)},
          {"compared", value_or_null(contender.compared)},
          {"correctness", contender.correctness},
          {"host_call", json_of(contender.host_call)},
          {"host_call_sync", json_of(contender.host_call_sync)},
          {"host_ratio", judged(contender.host_ratio)},
          {"device_warm", json_of(contender.device_warm)},
          {"device_cold", json_of(contender.device_cold)},
          {"device_ratio", judged(contender.device_ratio)},
          {"graph_replay", json_of(contender.graph_replay)},
          {"kernel_record", json_of(contender.kernel_record)},
          {"record_over_events", json_of(contender.record_ratio, fewest_of_a_kind)},
          {"stages", stages_of(contender)},
          {"dram", {{"warm", json_of(contender.warm)}, {"cold", json_of(contender.cold)}}},
          {"bandwidth", json_of(contender.achieved)},
          {"links", links_of(contender.links)}};
}

json json_of(const cell_receipt& cell) {
  json out{
      {"cell", cell.cell},
      {"label", cell.label},
      {"dtype", cell.dtype},
      {"shape", cell.shape},
      {"elements", cell.elements},
      {"read_bytes_ideal", cell.read_bytes_ideal},
      {"write_bytes_ideal", cell.write_bytes_ideal},
      {"backward", cell.backward},
      {"skipped", value_or_null(cell.skipped)},
      {"copy", with_method({{"bytes_per_second", cell.copy_bytes_per_second.value.value_or(0.0)}},
                           cell.copy_bytes_per_second)},
      {"contenders", json::array()}};
  for (const auto& contender : cell.contenders) out["contenders"].push_back(json_of(contender));
  return out;
}

}  // namespace

std::string to_json(const receipt& what) {
  json out{{"schema", "opscope.receipt/1"},
           {"title", what.title},
           {"device", what.device},
           {"approximate", what.approximate},
           {"contenders", what.contenders},
           {"cells", json::array()},
           {"notes", what.notes}};
  for (const auto& cell : what.cells) out["cells"].push_back(json_of(cell));
  out["ledger"] = json::parse(to_json(what.ledger));
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace opscope::analyse
