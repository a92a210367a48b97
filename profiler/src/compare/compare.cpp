// SPDX-License-Identifier: Apache-2.0
//
// The C++ front: tensors and functions in, the document and the opaque callables of the engine out.
#include "opscope/compare.hpp"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "analyse/receipt.hpp"
#include "capture/reader.hpp"
#include "collect/runtime_client.hpp"
#include "compare/agreement.hpp"
#include "compare/engine.hpp"
#include "compare/observer.hpp"
#include "opscope/error.hpp"

namespace opscope {
namespace {

using tensors = std::vector<at::Tensor>;
using nlohmann::json;

std::uint64_t bytes_of(const tensors& values) {
  std::uint64_t total = 0;
  for (const at::Tensor& each : values) {
    total += static_cast<std::uint64_t>(each.numel()) * each.element_size();
  }
  return total;
}

/// The output and, with backward, the gradients of the inputs that can have one.
tensors evaluate(const contender& what, const tensors& inputs, bool backward) {
  tensors results{what.call(inputs)};
  if (!backward) {
    return results;
  }
  tensors wanted;
  for (const at::Tensor& each : inputs) {
    if (each.requires_grad()) {
      wanted.push_back(each);
    }
  }
  tensors gradients =
      torch::autograd::grad({results.front()}, wanted, {at::ones_like(results.front())});
  results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

tensors prepared(const tensors& inputs, bool backward, bool as_double) {
  tensors values;
  for (const at::Tensor& each : inputs) {
    const bool floating = at::isFloatingType(each.scalar_type());
    at::Tensor value = each.detach();
    if (as_double && floating) {
      value = value.to(at::kDouble);
    }
    if (backward && floating) {
      value = value.alias().requires_grad_(true);
    }
    values.push_back(std::move(value));
  }
  return values;
}

/// What a contender must return: values on float64 inputs, types on the inputs themselves.
struct expectation {
  tensors values;
  std::vector<at::ScalarType> types;
  std::uint64_t output_bytes = 0;
};

at::Tensor storage_of(const at::Tensor& value) {
  return at::empty({0}, value.detach().options().dtype(at::kByte)).set_(value.storage());
}

/// Laid out as the originals are.
tensors copies_of(const tensors& inputs) {
  tensors copies;
  for (const at::Tensor& each : inputs) {
    const at::Tensor storage = storage_of(each).clone();
    copies.push_back(
        at::empty({0}, each.detach().options())
            .set_(storage.storage(), each.storage_offset(), each.sizes(), each.strides()));
  }
  return copies;
}

/// Makes copies what the originals are.
/// @return whether any byte of them was another.
bool restore(const tensors& copies, const tensors& originals) {
  bool changed = false;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const at::Tensor original = storage_of(originals[i]);
    at::Tensor copy = storage_of(copies[i]);
    if (!at::equal(original, copy)) {
      copy.copy_(original);
      changed = true;
    }
  }
  return changed;
}

expectation expect(const contender& baseline, const tensors& inputs, const tensors& copies,
                   bool backward) {
  expectation made;
  for (const at::Tensor& each : evaluate(baseline, prepared(copies, backward, false), backward)) {
    made.types.push_back(each.scalar_type());
    if (made.types.size() == 1) {
      made.output_bytes = bytes_of({each});
    }
  }
  restore(copies, inputs);
  made.values = evaluate(baseline, prepared(copies, backward, true), backward);
  restore(copies, inputs);
  return made;
}

json check(const contender& what, const tensors& inputs, const tensors& copies,
           const expectation& expected, bool backward) {
  const tensors actual = evaluate(what, prepared(copies, backward, false), backward);
  json result;
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    json each = comparison::agreement(actual[i], expected.values.at(i), expected.types.at(i));
    compared += actual[i].numel();
    const auto farther = [&] {
      return each.value("max_abs_error", 0.0) > result.value("max_abs_error", 0.0);
    };
    if (result.is_null() || !each.at("correct").get<bool>() ||
        (result.at("correct").get<bool>() && farther())) {
      result = std::move(each);
    }
  }
  if (result.contains("compared")) {
    result["compared"] = compared;
  }
  if (restore(copies, inputs)) {
    result["correct"] = false;
    result["why"] = "it changes its input";
  }
  return result;
}

comparison::callable bind(const contender& what, const tensors& inputs, bool backward) {
  auto kept = std::make_shared<tensors>();
  auto bound = std::make_shared<const tensors>(prepared(inputs, backward, false));
  return {[what, kept, bound, backward] { *kept = evaluate(what, *bound, backward); },
          [kept] { kept->clear(); },
          {}};
}

std::string label_of(const compare_input& input) {
  if (!input.label.empty()) {
    return input.label;
  }
  std::string label;
  for (const std::int64_t size : input.tensors.front().sizes()) {
    label += (label.empty() ? "" : "x") + std::to_string(size);
  }
  return label + " " + at::toString(input.tensors.front().scalar_type());
}

json describe(const compare_input& input, std::size_t index, std::uint64_t output_bytes,
              bool backward) {
  const at::Tensor& first = input.tensors.front();
  const std::uint64_t in = bytes_of(input.tensors);
  return {{"cell", index},
          {"label", label_of(input)},
          {"shape", first.sizes().vec()},
          {"dtype", at::toString(first.scalar_type())},
          {"elements", first.numel()},
          // backward reads the inputs again and the output's gradient, and writes theirs
          {"read_bytes_ideal", backward ? 2 * in + output_bytes : in},
          {"write_bytes_ideal", backward ? output_bytes + in : output_bytes},
          {"backward", backward},
          {"skipped", nullptr},
          {"contenders", json::array()}};
}

void validate(const contender& candidate, const contender& baseline,
              const compare_options& options) {
  if (!candidate.call || !baseline.call) {
    throw error("compare: a contender has no function (set contender::call)");
  }
  if (options.inputs.empty()) {
    throw error("compare: there is nothing to call with (add to compare_options::inputs)");
  }
  for (const compare_input& each : options.inputs) {
    if (each.tensors.empty()) {
      throw error("compare: an input has no tensor (add to compare_input::tensors)");
    }
    if (each.tensors.front().device() != options.inputs.front().tensors.front().device()) {
      throw error("compare: the inputs are on different devices (move them to one)");
    }
  }
}

compare_receipt read_receipt(const std::filesystem::path& path) {
  auto source = capture::capture::open(path);
  if (!source) {
    throw error("compare: cannot read " + path.string() + ": " + source.error().message);
  }
  const analyse::receipt receipt = analyse::make_receipt(source.value());
  return {path, analyse::to_table(receipt), analyse::to_json(receipt), receipt.any_wrong()};
}

}  // namespace

compare_receipt compare(const contender& candidate, const contender& baseline,
                        const compare_options& options) {
  validate(candidate, baseline, options);
  const client::lookup found = client::find_runtime();
  if (found.runtime == nullptr) {
    throw error("compare: " + found.why);
  }
  const at::Device device = options.inputs.front().tensors.front().device();
  const auto clock = device.is_cuda() ? comparison::make_cuda_device(device.index())
                                      : comparison::make_cpu_device();
  json document{{"schema", "opscope.comparison/1"},
                {"title", options.title.empty() ? candidate.name : options.title},
                {"contenders", {baseline.name, candidate.name}},
                {"cells", json::array()}};
  comparison::plan plan;
  plan.output = options.output;
  plan.force = options.force;
  plan.strict = options.strict;
  plan.limits.warmup = options.warmup;
  plan.limits.pairs = options.pairs;
  plan.limits.budget = options.budget;
  for (const compare_input& input : options.inputs) {
    const tensors copies = copies_of(input.tensors);  // what is measured may write to them
    const expectation expected = expect(baseline, input.tensors, copies, options.backward);
    json cell = describe(input, document["cells"].size(), expected.output_bytes, options.backward);
    std::vector<comparison::callable> callables;
    for (const contender* each : {&baseline, &candidate}) {
      json result = check(*each, input.tensors, copies, expected, options.backward);
      result["contender"] = callables.size();
      cell["contenders"].push_back(std::move(result));
      callables.push_back(bind(*each, copies, options.backward));
    }
    document["cells"].push_back(std::move(cell));
    plan.cells.push_back(std::move(callables));
  }
  plan.attach = [&found] { comparison::load_observer(*found.runtime); };
  comparison::run(plan, document, *clock, *found.runtime);
  return read_receipt(options.output);
}

}  // namespace opscope
