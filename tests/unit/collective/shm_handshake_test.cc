#include "trainer/collective/shm_handshake.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/collective/transport_world.h"

namespace pliant {
namespace {

using testing::HasSubstr;

ShmChallenge ChallengeOf(int value) {
  ShmChallenge challenge{};
  challenge.fill(static_cast<std::byte>(value));
  return challenge;
}

const PeerHello kDiallersHello{.from = Learner(2), .to = Learner(1)};
const PeerHello kAcceptorsHello{.from = Learner(1), .to = Learner(2)};

struct ShmEnds {
  explicit ShmEnds(const std::string& acceptors_key = "a key")
      : dialler(ShmKeyOf("a key"), ShmSide::kDials, ChallengeOf(1)),
        acceptor(ShmKeyOf(acceptors_key), ShmSide::kAccepts, ChallengeOf(2)) {
    dialler.Say(kDiallersHello);
    EXPECT_TRUE(dialler.OnChallenge(acceptor.challenge()));
    EXPECT_TRUE(acceptor.OnChallenge(dialler.challenge()));
  }
  ShmHandshake dialler;
  ShmHandshake acceptor;
};

TEST(ShmHandshake, EachSideHearsTheOthersHello) {
  ShmEnds ends;
  const auto first = ends.dialler.TakeHello();
  ASSERT_TRUE(first);
  const auto heard = ends.acceptor.OnHello(*first);
  ASSERT_TRUE(heard);
  EXPECT_EQ(*heard, kDiallersHello);
  ends.acceptor.Say(kAcceptorsHello);
  const auto answer = ends.acceptor.TakeHello();
  ASSERT_TRUE(answer);
  const auto answered = ends.dialler.OnHello(*answer);
  ASSERT_TRUE(answered);
  EXPECT_EQ(*answered, kAcceptorsHello);
}

TEST(ShmHandshake, AHelloIsSaidOnceAndOnlyAfterThePeersChallenge) {
  ShmHandshake dialler(ShmKeyOf("a key"), ShmSide::kDials, ChallengeOf(1));
  dialler.Say(kDiallersHello);
  EXPECT_FALSE(dialler.TakeHello()) << "there is no challenge yet to prove the key with";
  ASSERT_TRUE(dialler.OnChallenge(ChallengeOf(2)));
  EXPECT_TRUE(dialler.TakeHello());
  EXPECT_FALSE(dialler.TakeHello());

  ShmEnds ends;
  EXPECT_FALSE(ends.acceptor.TakeHello()) << "its hello is not set";
}

TEST(ShmHandshake, AHelloWithoutAProofIsRefused) {
  ShmEnds ends;
  const std::vector<std::byte> hello = *ends.dialler.TakeHello();
  auto other_proof = hello;
  other_proof[0] ^= std::byte{1};
  auto other_hello = hello;
  other_hello.back() ^= std::byte{1};
  // A peer that reads the acceptor's hello must not be able to send it back as its own.
  ends.acceptor.Say(kAcceptorsHello);
  const std::vector<std::byte> mirrored = *ends.acceptor.TakeHello();
  // A hello of an earlier connection, which had other challenges.
  ShmHandshake earlier(ShmKeyOf("a key"), ShmSide::kDials, ChallengeOf(1));
  earlier.Say(kDiallersHello);
  ASSERT_TRUE(earlier.OnChallenge(ChallengeOf(3)));
  const std::vector<std::byte> replayed = *earlier.TakeHello();
  const std::vector<std::byte> short_one(hello.begin(), hello.begin() + sizeof(ShmProof) - 1);

  struct Case {
    const char* name;
    std::vector<std::byte> payload;
    const char* reason;
  };
  const Case cases[] = {{"another proof", other_proof, "did not prove"},
                        {"another hello", other_hello, "did not prove"},
                        {"its own hello", mirrored, "did not prove"},
                        {"of another connection", replayed, "did not prove"},
                        {"no room for a proof", short_one, "malformed"},
                        {"nothing", {}, "malformed"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto heard = ends.acceptor.OnHello(c.payload);
    ASSERT_FALSE(heard);
    EXPECT_THAT(heard.error().message, HasSubstr(c.reason));
  }
  EXPECT_TRUE(ends.acceptor.OnHello(hello));
}

TEST(ShmHandshake, AnotherKeyProvesNothing) {
  ShmEnds ends("another key");
  EXPECT_FALSE(ends.acceptor.OnHello(*ends.dialler.TakeHello()));
}

TEST(ShmHandshake, ADifferentSizeIsNoChallenge) {
  for (const std::size_t size : {0U, 31U, 33U}) {
    ShmHandshake handshake(ShmKeyOf("a key"), ShmSide::kAccepts, ChallengeOf(1));
    EXPECT_FALSE(handshake.OnChallenge(std::vector<std::byte>(size))) << size;
    EXPECT_TRUE(handshake.Expects(ShmRecordType::kChallenge));
  }
}

TEST(ShmHandshake, EachRecordHasItsTurn) {
  const ShmRecordType frames[] = {ShmRecordType::kBlock, ShmRecordType::kForget,
                                  ShmRecordType::kFrame, ShmRecordType::kReturn};
  ShmHandshake handshake(ShmKeyOf("a key"), ShmSide::kAccepts, ChallengeOf(1));
  const auto expects = [&](bool challenge, bool hello, bool frame) {
    EXPECT_EQ(handshake.Expects(ShmRecordType::kChallenge), challenge);
    EXPECT_EQ(handshake.Expects(ShmRecordType::kHello), hello);
    for (const ShmRecordType type : frames) EXPECT_EQ(handshake.Expects(type), frame);
    EXPECT_FALSE(handshake.Expects(ShmRecordType{7}));
    EXPECT_EQ(handshake.open(), frame);
  };
  expects(true, false, false);
  ASSERT_TRUE(handshake.OnChallenge(ChallengeOf(2)));
  expects(false, true, false);
  handshake.Open();
  expects(false, false, true);
}

}  // namespace
}  // namespace pliant
