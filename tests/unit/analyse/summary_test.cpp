// SPDX-License-Identifier: Apache-2.0
#include "analyse/summary.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analyse/text_layout.hpp"
#include "opscope/error.hpp"
#include "support/scene.hpp"

namespace opscope::analyse {
namespace {

using nlohmann::json;
using test::scene;

json rows_by(const capture::capture& capture, const summary_options& options) {
  const auto document = json::parse(to_json(summarise(capture, options)));
  EXPECT_EQ(document.at("schema"), "opscope.summary/1");
  EXPECT_EQ(document.at("by"), options.by);
  return document.at("rows");
}

/// A linear op of two inner ops, one of which launches; then a lonely view; then a backward op.
void tell_a_step(scene& scene) {
  scene.range("ProfilerStep#0", 0, 2'000, range::step);
  scene.range("mine", 50, 500);
  scene.op("aten::linear", 100, 400, 0, scene::main_thread, "[[8,4]]");
  scene.op("aten::t", 110, 140);
  scene.op("aten::addmm", 150, 380, 0, scene::main_thread, "[[8,4]]");
  scene.launch(1, 200, 250, 300, 900);
  scene.op("aten::t", 600, 650);
  scene.op("GeluBackward0", 700, 800, op::backward, scene::other_thread);
  scene.launch(2, 720, 740, 950, 1'050, scene::other_thread);
}

TEST(summary_by_op, has_self_and_total_times_of_host_and_device) {
  scene scene;
  tell_a_step(scene);
  const auto capture = scene.open();
  const auto rows = rows_by(capture, {.by = "op"});
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].at("name"), "aten::linear");
  EXPECT_EQ(rows[0].at("total_host_ns"), 300);
  EXPECT_EQ(rows[0].at("self_host_ns"), 300 - 30 - 230);
  EXPECT_EQ(rows[0].at("self_device_ns"), 0);
  EXPECT_EQ(rows[0].at("total_device_ns"), 600);
  EXPECT_EQ(rows[0].at("kernels"), 1);
  EXPECT_EQ(rows[0].at("input_shapes"), "[[8,4]]");
  EXPECT_EQ(rows[1].at("name"), "aten::addmm");
  EXPECT_EQ(rows[1].at("self_device_ns"), 600);
  EXPECT_EQ(rows[3].at("name"), "aten::t");
  EXPECT_EQ(rows[3].at("calls"), 2);
  EXPECT_TRUE(rows[3].at("total_device_ns").is_null());
  EXPECT_TRUE(rows[3].at("dram_read_bytes").is_null());
}

TEST(summary_by_op, counts_an_op_inside_itself_once) {
  scene scene;
  scene.op("aten::to", 100, 300);
  scene.op("aten::to", 110, 200);
  scene.launch(1, 120, 130, 140, 240);
  const auto capture = scene.open();
  const auto rows = rows_by(capture, {.by = "op"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("total_host_ns"), 200);
  EXPECT_EQ(rows[0].at("self_host_ns"), 200);
  EXPECT_EQ(rows[0].at("total_device_ns"), 100);
  EXPECT_EQ(rows[0].at("kernels"), 1);
}

TEST(summary_by_op, separates_shapes_on_request) {
  scene scene;
  scene.op("a", 100, 110, 0, scene::main_thread, "[[1]]");
  scene.op("a", 120, 130, 0, scene::main_thread, "[[2]]");
  const auto capture = scene.open();
  EXPECT_EQ(rows_by(capture, {.by = "op"}).size(), 1U);
  EXPECT_EQ(rows_by(capture, {.by = "op", .group_by_shape = true}).size(), 2U);
}

TEST(summary_by_kernel, has_the_statistics_and_methods_of_the_contract) {
  scene scene;
  for (std::uint32_t i = 1; i <= 4; ++i) {
    scene.launch(i, i * 100, i * 100 + 10, i * 100 + 20, i * 100 + 20 + i * 10);
  }
  const auto capture = scene.open();
  const auto rows = rows_by(capture, {.by = "kernel"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].at("count"), 4);
  EXPECT_EQ(rows[0].at("total_ns"), 100);
  EXPECT_EQ(rows[0].at("mean_ns"), 25);
  EXPECT_EQ(rows[0].at("median_ns"), 25);
  EXPECT_EQ(rows[0].at("p95_ns"), 40);
  EXPECT_EQ(rows[0].at("min_ns"), 10);
  EXPECT_EQ(rows[0].at("max_ns"), 40);
  EXPECT_EQ(rows[0].at("method"), "cupti-record");
  EXPECT_TRUE(rows[0].at("dram_read_bytes").is_null());
}

TEST(summary_by_op, has_the_time_of_a_call) {
  scene scene;
  for (const int length : {100, 200, 400, 900})
    scene.op("a", 1'000 * length, 1'000 * length + length);
  const auto capture = scene.open();
  const auto row = rows_by(capture, {.by = "op"})[0];
  EXPECT_EQ(row.at("host_median_ns"), 300);
  EXPECT_EQ(row.at("host_mean_ns"), 400);
  EXPECT_EQ(row.at("host_p95_ns"), 900);
  EXPECT_NE(to_table(summarise(capture, {.by = "op"})).find("host median"), std::string::npos);
}

TEST(summary_by_op, says_of_which_calls_and_how_the_ideal_bytes_are) {
  scene scene;
  scene.op("none", 100, 200);
  scene.op("some", 300, 400, op::has_bytes | op::bytes_at_least);
  scene.op("some", 500, 600);
  scene.op("whole", 700, 800, op::has_bytes);
  const auto capture = scene.open();
  const auto rows = rows_by(capture, {.by = "op", .sort = "name"});
  EXPECT_TRUE(rows[0].at("ideal_bytes").is_null());
  EXPECT_EQ(rows[1].at("ideal_method"), "ideal, lower bound, of 1 of 2 calls");
  EXPECT_EQ(rows[2].at("ideal_method"), "ideal");
}

TEST(summary_by_shape, keeps_its_numbers_in_80_columns) {
  const std::string shapes = "[[4096,4096,64,64],[4096,4096,64,64],[4096,4096],[],[],[]]";
  scene scene;
  scene.op("aten::scaled_dot_product_attention", 100, 400, 0, scene::main_thread, shapes);
  scene.launch(1, 150, 170, 200, 250);
  const auto capture = scene.open();
  for (const auto* by : {"op", "boundary"}) {
    const auto text = to_table(summarise(capture, {.by = by, .group_by_shape = true}));
    const auto titles = text.substr(0, text.find('\n'));
    for (const auto* title : {"input shapes", "calls", by == std::string("op") ? "GPU" : "queue"})
      EXPECT_NE(titles.find(title), std::string::npos) << text;
    EXPECT_NE(text.find("[[4096"), std::string::npos) << text;
  }
}

TEST(summary_by_kernel, has_bytes_where_counters_were_joined) {
  scene scene;
  scene.counters("a", 0, 90, 310, 4096, 2048);
  scene.op("a", 100, 300, op::counted);
  scene.launch(1, 150, 170, 200, 250);
  const auto capture = scene.open();
  const auto kernels = rows_by(capture, {.by = "kernel"});
  EXPECT_EQ(kernels[0].at("dram_read_bytes"), 4096);
  EXPECT_EQ(kernels[0].at("dram_method"), "counter:user-range");
  EXPECT_EQ(rows_by(capture, {.by = "op"})[0].at("dram_write_bytes"), 2048);
}

/// A comparison's call and what its counter pass read of it.
void tell_a_counted_call(scene& scene, double read) {
  scene.mark(0, 0, 0, 90, 310);
  scene.op("a", 100, 300);
  scene.launch(1, 150, 170, 200, 250);
  scene.op("a", 400, 500);
  for (std::uint64_t i = 0; i < 3; ++i) {
    auto& row = scene.counters("warm", i, 1'000, 1'050, read, read);
    row.cell = row.contender = 0;
  }
}

TEST(summary_by_op, has_the_bytes_of_a_comparison_and_says_of_which_calls) {
  scene scene;
  tell_a_counted_call(scene, 4096);
  const auto capture = scene.open();
  const auto table = summarise(capture, {.by = "op"});
  const auto row = json::parse(to_json(table)).at("rows")[0];
  EXPECT_EQ(row.at("calls"), 2);
  EXPECT_EQ(row.at("dram_count"), 1);
  EXPECT_EQ(row.at("dram_read_bytes"), 4096);
  EXPECT_EQ(row.at("dram_method"), "counter:user-range");
  EXPECT_EQ(row.at("dram_of"), "median of 3 warm calls in a pass of their own");
  EXPECT_NE(to_table(table, 200)
                .find("DRAM: counter:user-range, median of 3 warm calls in a pass of their own; "
                      "summed over the calls that were counted\n"),
            std::string::npos);
  EXPECT_EQ(rows_by(capture, {.by = "kernel"})[0].at("dram_write_bytes"), 4096);
}

TEST(summary, counts_no_gpu_work_where_none_could_be_recorded) {
  for (const bool recorded : {false, true}) {
    scene scene;
    scene.op("a", 100, 300);
    scene.range("mine", 50, 500);
    if (recorded) scene.document("cupti", R"({"version":"13.0.1"})");
    if (!recorded) scene.document("warning", R"({"text":"open the NVIDIA driver: no such file"})");
    const auto capture = scene.open();
    const json count = recorded ? json(0) : json(nullptr);
    EXPECT_EQ(rows_by(capture, {.by = "op"})[0].at("kernels"), count);
    EXPECT_EQ(rows_by(capture, {.by = "range"})[0].at("kernels"), count);
    EXPECT_EQ(rows_by(capture, {.by = "thread"})[0].at("launches"), count);
    EXPECT_EQ(rows_by(capture, {.by = "thread"})[0].at("api_ns"), count);
    const auto table = summarise(capture, {.by = "op"});
    const std::vector<std::string> reason{
        "GPU work: not recorded: open the NVIDIA driver: no such file"};
    EXPECT_EQ(table.notes, recorded ? std::vector<std::string>{} : reason);
    EXPECT_EQ(to_table(table).find(reason[0]) != std::string::npos, !recorded);
  }
}

TEST(summary_by_category, counts_a_moment_once_a_thread) {
  scene scene;
  scene.frame("outer", 0, 1'000);
  scene.frame("inner", 100, 900);
  scene.frame("innermost", 200, 300);
  scene.frame("elsewhere", 500, 700, 0, scene::other_thread);
  scene.frame("later", 2'000, 2'100);
  const auto capture = scene.open();
  const auto row = rows_by(capture, {.by = "category"}).at(0);
  EXPECT_EQ(row.at("name"), "python_function");
  EXPECT_EQ(row.at("count"), 5);
  EXPECT_EQ(row.at("total_ns"), 1'000 + 200 + 100);
  EXPECT_EQ(row.at("max_ns"), 1'000);
}

TEST(summary_by_range, projects_launches_on_the_gpu) {
  scene scene;
  tell_a_step(scene);
  const auto capture = scene.open();
  const auto ranges = rows_by(capture, {.by = "range", .sort = "name"});
  ASSERT_EQ(ranges.size(), 2U);
  EXPECT_EQ(ranges[1].at("name"), "mine");
  EXPECT_EQ(ranges[1].at("host_ns"), 450);
  EXPECT_EQ(ranges[1].at("gpu_projected_ns"), 600);
  EXPECT_EQ(ranges[1].at("kernels"), 1);
  const auto steps = rows_by(capture, {.by = "step"});
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].at("gpu_projected_ns"), 750);
  EXPECT_EQ(steps[0].at("kernels"), 2);
}

TEST(summary_by_boundary, has_a_stage_a_column) {
  scene scene;
  tell_a_step(scene);
  const auto capture = scene.open();
  const auto rows = rows_by(capture, {.by = "boundary", .sort = "name"});
  ASSERT_EQ(rows.size(), 3U);
  const auto& linear = rows[1];
  EXPECT_EQ(linear.at("name"), "aten::linear");
  EXPECT_EQ(linear.at("python_ns"), (json{{"median", 50}, {"p95", 50}, {"count", 1}}));
  EXPECT_EQ(linear.at("dispatch_ns").at("median"), 100);
  EXPECT_EQ(linear.at("launch_ns").at("median"), 50);
  EXPECT_EQ(linear.at("between_ns").at("median"), 0);
  EXPECT_EQ(linear.at("return_ns").at("median"), 150);
  EXPECT_EQ(linear.at("queue_ns").at("median"), 50);
  EXPECT_EQ(linear.at("kernel_ns").at("median"), 600);
  EXPECT_TRUE(rows[0].at("python_ns").is_null());
  EXPECT_TRUE(rows[2].at("launch_ns").is_null());
}

TEST(summary_by_boundary, shows_which_medians_are_of_fewer_calls) {
  scene scene;
  scene.op("a", 100, 300);
  scene.launch(1, 150, 170, 200, 250);
  scene.op("a", 400, 500);
  const auto capture = scene.open();
  const auto text = to_table(summarise(capture, {.by = "boundary"}));
  EXPECT_NE(text.find("0.05*"), std::string::npos) << text;
  EXPECT_NE(text.find("*: of fewer calls"), std::string::npos) << text;
  const auto full = to_table(summarise(capture, {.by = "boundary", .full = true}));
  EXPECT_NE(full.find("50 ns (p95 50 ns, of 1)"), std::string::npos) << full;
}

TEST(summary_by_boundary, says_that_medians_do_not_sum) {
  scene scene;
  tell_a_step(scene);
  const auto capture = scene.open();
  const auto text = to_table(summarise(capture, {.by = "boundary"}));
  EXPECT_NE(text.find("medians need not sum"), std::string::npos) << text;
}

TEST(summary_by_kernel, keeps_functors_in_the_table_and_whole_names_in_json) {
  const std::string kernel = "void at::native::elementwise_kernel<4, at::native::";
  const std::string list = ", std::array<char*, 2ul> >(int, std::array<char*, 2ul>)";
  scene scene;
  scene.kernel(kernel + "FirstFunctor<float>" + list, 1, 100, 200);
  scene.kernel(kernel + "SecondFunctor<float>" + list, 2, 300, 350);
  const auto capture = scene.open();
  const auto text = to_table(summarise(capture, {.by = "kernel"}));
  EXPECT_NE(text.find("elementwise_kernel<FirstFunctor<float>>"), std::string::npos) << text;
  EXPECT_NE(text.find("elementwise_kernel<SecondFunctor<float>>"), std::string::npos) << text;
  EXPECT_EQ(rows_by(capture, {.by = "kernel"})[1].at("name"),
            kernel + "SecondFunctor<float>" + list);
}

TEST(summary, groups_by_everything_it_names) {
  scene scene;
  tell_a_step(scene);
  const auto capture = scene.open();
  for (const auto by : groupings) {
    summary_options options;
    options.by = by;
    const auto table = summarise(capture, options);
    EXPECT_FALSE(table.rows.empty()) << by;
    EXPECT_EQ(table.columns.front().key, "name");
    EXPECT_FALSE(to_csv(table).empty());
    EXPECT_FALSE(to_markdown(table).empty());
    const auto text = to_table(table, 80);
    std::size_t begin = 0;
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      EXPECT_LE(display_width(text.substr(begin, end - begin)), 80U) << by << '\n' << text;
      begin = end + 1;
    }
  }
}

TEST(summary, sorts_by_the_title_of_a_column_too) {
  scene scene;
  tell_a_step(scene);
  const auto capture = scene.open();
  EXPECT_EQ(rows_by(capture, {.by = "op", .sort = "self host"}),
            rows_by(capture, {.by = "op", .sort = "self_host_ns"}));
}

TEST(summary_by_range, says_what_it_leaves_out) {
  scene scene;
  scene.range("mine", 50, 500);
  scene.range("instant", 60, 60, range::mark);
  scene.mark(0, 0, 0, 90, 310);
  const auto capture = scene.open();
  const auto text = to_table(summarise(capture, {.by = "range"}));
  EXPECT_NE(text.find("left out: 1 calls that"), std::string::npos) << text;
  EXPECT_NE(text.find("left out: 1 NVTX marks"), std::string::npos) << text;
}

TEST(summary, keeps_the_top_rows_and_says_how_many_are_left) {
  scene scene;
  tell_a_step(scene);
  const auto capture = scene.open();
  const auto table = summarise(capture, {.by = "op", .top = 1});
  EXPECT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows_left_out, 3U);
}

TEST(summary, refuses_what_it_does_not_know_and_names_what_it_does) {
  scene scene;
  tell_a_step(scene);
  const auto capture = scene.open();
  EXPECT_THROW((void)summarise(capture, {.by = "module"}), error);
  try {
    (void)summarise(capture, {.by = "op", .sort = "colour"});
    FAIL();
  } catch (const error& problem) {
    EXPECT_NE(std::string_view(problem.what()).find("self_host_ns"), std::string_view::npos);
  }
}

TEST(summary, as_csv_quotes_and_keeps_raw_units) {
  scene scene;
  scene.launch(1, 100, 110, 120, 150);
  scene.call("cudaMemcpy, \"async\"", 0, 200, 210);
  const auto capture = scene.open();
  const auto csv = to_csv(summarise(capture, {.by = "api", .sort = "name"}));
  EXPECT_TRUE(csv.starts_with("name,count,total_ns,")) << csv;
  EXPECT_NE(csv.find("\ncudaLaunchKernel,1,10,"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\"cudaMemcpy, \"\"async\"\"\",1,10"), std::string::npos) << csv;
}

}  // namespace
}  // namespace opscope::analyse
