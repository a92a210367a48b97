// SPDX-License-Identifier: Apache-2.0
#include "collect/chunk_pool.hpp"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace opscope::collect {
namespace {

std::vector<chunk*> take_all(chunk_pool& pool) {
  std::vector<chunk*> taken;
  while (chunk* each = pool.take()) taken.push_back(each);
  return taken;
}

TEST(chunk_pool, hands_out_each_chunk_once_and_stops_at_the_limit) {
  chunk_pool pool;
  EXPECT_EQ(pool.limit(20 * chunk::size), 20 * chunk::size);
  const auto taken = take_all(pool);
  EXPECT_EQ(taken.size(), 20U);
  EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), 20U);
  EXPECT_EQ(pool.in_use(), 20U);
}

TEST(chunk_pool, follows_a_changed_limit) {
  chunk_pool pool;
  pool.limit(300 * chunk::size);
  pool.limit(16 * chunk::size);
  const auto few = take_all(pool);
  EXPECT_EQ(few.size(), 16U);
  for (chunk* each : few) pool.give(each);
  pool.limit(400 * chunk::size);
  EXPECT_EQ(take_all(pool).size(), 400U);
}

TEST(chunk_pool, has_at_least_one_mebibyte) {
  chunk_pool pool;
  EXPECT_EQ(pool.limit(1), 16 * chunk::size);
}

TEST(chunk_pool, gives_a_chunk_back_empty) {
  chunk_pool pool;
  pool.limit(1);
  chunk* used = pool.take();
  used->committed = 100;
  used->next = used;
  pool.give(used);
  chunk* again = pool.take();
  EXPECT_EQ(again, used);
  EXPECT_EQ(again->committed, 0U);
  EXPECT_EQ(again->next, nullptr);
}

TEST(chunk_pool, is_shared_by_threads_without_loss) {
  chunk_pool pool;
  pool.limit(64 * chunk::size);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&pool] {
      for (int i = 0; i < 20'000; ++i) {
        if (chunk* each = pool.take()) pool.give(each);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool.in_use(), 0U);
  EXPECT_EQ(take_all(pool).size(), 64U);
}

}  // namespace
}  // namespace opscope::collect
