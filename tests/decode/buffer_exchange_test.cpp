// SPDX-License-Identifier: Apache-2.0
//
// The way of a buffer, with a stand-in for CUPTI that keeps the callbacks it was given.
#include "cupti/buffer_exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace opscope::cupti {
namespace {

CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;

class buffer_exchange_test : public testing::Test {
 protected:
  void SetUp() override {
    api fake;
    fake.activity_register_callbacks = [](CUpti_BuffersCallbackRequestFunc on_request,
                                          CUpti_BuffersCallbackCompleteFunc on_completed) {
      request = on_request;
      complete = on_completed;
      return CUPTI_SUCCESS;
    };
    exchange_.register_with(fake);
  }
  void TearDown() override { exchange_.close(); }

  static std::uint8_t* ask() {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
    std::size_t records = 1;
    request(&data, &size, &records);
    EXPECT_EQ(records, 0U) << "as many records as fit";
    EXPECT_EQ(size, data == nullptr ? 0U : buffer_exchange::buffer_bytes);
    return data;
  }

  static void fill(std::uint8_t* data, std::size_t bytes) {
    std::fill_n(data, bytes, std::uint8_t{0xAB});
    complete(nullptr, 0, data, buffer_exchange::buffer_bytes, bytes);
  }

  buffer_exchange& exchange_ = buffer_exchange::instance();
};

TEST_F(buffer_exchange_test, buffers_are_lent_zeroed_and_aligned_every_time) {
  exchange_.open(4 * buffer_exchange::buffer_bytes);
  for (int round = 0; round < 20; ++round) {
    std::uint8_t* data = ask();
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 8, 0U);
    EXPECT_TRUE(std::all_of(data, data + buffer_exchange::buffer_bytes,
                            [](std::uint8_t byte) { return byte == 0; }));
    fill(data, 1000);
    const auto filled = exchange_.take();
    ASSERT_TRUE(filled.has_value());
    EXPECT_EQ(filled->data, data);
    EXPECT_EQ(filled->valid_bytes, 1000U);
    exchange_.recycle(filled->data);
  }
}

TEST_F(buffer_exchange_test, no_more_is_lent_than_the_limit) {
  exchange_.open(3 * buffer_exchange::buffer_bytes);
  std::vector<std::uint8_t*> lent{ask(), ask(), ask()};
  EXPECT_EQ(ask(), nullptr);
  fill(lent.back(), 8);
  EXPECT_EQ(ask(), nullptr) << "a filled buffer that nobody has read counts too";
  exchange_.recycle(exchange_.take()->data);
  lent.back() = ask();
  EXPECT_NE(lent.back(), nullptr);
  for (auto* data : lent) {
    complete(nullptr, 0, data, buffer_exchange::buffer_bytes, 0);
  }
}

TEST_F(buffer_exchange_test, filled_buffers_come_in_the_order_of_their_completion) {
  exchange_.open(8 * buffer_exchange::buffer_bytes);
  std::vector<std::uint8_t*> lent{ask(), ask(), ask()};
  for (std::size_t i = 0; i < lent.size(); ++i) {
    fill(lent[i], i + 1);
  }
  for (std::size_t i = 0; i < lent.size(); ++i) {
    const auto filled = exchange_.take();
    EXPECT_EQ(filled->valid_bytes, i + 1);
    exchange_.recycle(filled->data);
  }
}

TEST_F(buffer_exchange_test, closing_gives_what_is_queued_and_then_nothing) {
  exchange_.open(8 * buffer_exchange::buffer_bytes);
  fill(ask(), 8);
  exchange_.close();
  const auto last = exchange_.take();
  ASSERT_TRUE(last.has_value());
  exchange_.recycle(last->data);
  EXPECT_FALSE(exchange_.take().has_value());
  EXPECT_EQ(ask(), nullptr) << "no session, no buffer";
}

TEST_F(buffer_exchange_test, a_buffer_that_comes_after_the_session_is_not_the_next_ones) {
  exchange_.open(8 * buffer_exchange::buffer_bytes);
  std::uint8_t* late = ask();
  exchange_.close();
  fill(late, 8);
  exchange_.open(8 * buffer_exchange::buffer_bytes);
  std::uint8_t* fresh = ask();
  fill(fresh, 16);
  const auto first = exchange_.take();
  EXPECT_EQ(first->valid_bytes, 16U);
  exchange_.recycle(first->data);
}

TEST_F(buffer_exchange_test, a_reader_sleeps_until_a_buffer_or_the_end_comes) {
  exchange_.open(8 * buffer_exchange::buffer_bytes);
  std::size_t read = 0;
  std::thread reader{[&] {
    while (const auto filled = exchange_.take()) {
      read += filled->valid_bytes;
      exchange_.recycle(filled->data);
    }
  }};
  for (int i = 0; i < 100; ++i) {
    if (std::uint8_t* data = ask(); data != nullptr) {
      fill(data, 1);
    }
    exchange_.wait_until_read(std::chrono::milliseconds{1000});
  }
  exchange_.close();
  reader.join();
  EXPECT_EQ(read, 100U);
}

}  // namespace
}  // namespace opscope::cupti
