#include "operator/kube/http_exchange.h"

#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace pliant::kube {
namespace {

Result<HttpResponse> Follow(HttpExchange& exchange) {
  const HttpRequest request{};
  return exchange.Follow(
      {.request = request,
       .server = "https://s",
       .cancel = [] {},
       .explain =
           [](std::string failure) { return Error{ErrorCode::kUnavailable, std::move(failure)}; }});
}

TEST(HttpExchangeTest, AnAnswerIsItsHeadAndAllThatCameBeforeItsEnd) {
  HttpExchange exchange;
  exchange.SetHead(201, {{"X-Reason", "because"}});
  EXPECT_TRUE(exchange.Write("ma"));
  EXPECT_TRUE(exchange.Write("de"));
  exchange.SetEnd(std::nullopt);
  const auto response = Follow(exchange);
  ASSERT_TRUE(response) << response.error();
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->headers.at("x-reason"), "because");
  EXPECT_EQ(response->body, "made");
}

TEST(HttpExchangeTest, AnEndBeforeThereWasAHeadIsNoAnswer) {
  HttpExchange exchange;
  exchange.SetEnd(std::nullopt);
  const auto response = Follow(exchange);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(response.error().message, "the answer ended within its head");
}

}  // namespace
}  // namespace pliant::kube
