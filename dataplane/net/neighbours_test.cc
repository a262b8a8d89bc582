// Frames byte for byte: what is learned, what is answered and with what, and what is left alone.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/neighbours.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace sluice::net {
namespace {

using Frame = std::vector<uint8_t>;

constexpr uint64_t kNow = 1'000'000'000;

constexpr uint8_t kPeerMac[6] = {0x02, 0xaa, 0, 0, 0, 0x02};

// "0a4d 0001" -> bytes.
Frame hex(const std::string& text) {
  Frame bytes;
  std::string digits;
  for (const char c : text) {
    if (isxdigit(static_cast<unsigned char>(c)) != 0) digits += c;
  }
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

struct AddressOf {
  explicit AddressOf(const char* text) {
    const std::string mapped = std::string("::ffff:") + text;
    const bool ip6 = std::string(text).find(':') != std::string::npos;
    inet_pton(AF_INET6, ip6 ? text : mapped.c_str(), bytes);
  }
  uint8_t bytes[16] = {};
};

HostAddresses host() {
  HostAddresses host;
  const uint8_t mac[6] = {0x02, 0xbb, 0, 0, 0, 0x01};
  memcpy(host.mac, mac, 6);
  memcpy(host.ip4, AddressOf("10.77.0.1").bytes, 16);
  memcpy(host.ip6, AddressOf("fd77::1").bytes, 16);
  memcpy(host.gateway4, AddressOf("10.77.0.254").bytes, 16);
  host.prefix4 = 24;
  host.prefix6 = 64;
  return host;
}

class NeighboursTest : public ::testing::Test {
 protected:
  Frame answer_to(const Frame& frame) {
    reply_.assign(9014, 0xee);
    const auto handled = neighbours_.handle(frame, kNow, reply_);
    handled_ = handled.ours;
    contested_ = handled.contested;
    own_link_ = handled.own_link;
    return {reply_.begin(), reply_.begin() + handled.reply_bytes};
  }
  bool knows(const char* ip, const uint8_t* mac = kPeerMac) {
    Frame question(128);
    const AddressOf address(ip);  // the next hop may point into it
    const uint8_t* const hop = neighbours_.next_hop(address.bytes);
    if (hop == nullptr) return false;
    const auto way = neighbours_.resolve(hop, 0, kNow, question).way;
    return way.known && memcmp(way.link.bytes, mac, 6) == 0;
  }
  // What is asked, at this time, when a packet is to be sent there.
  Frame solicitation_of(const char* ip, uint64_t now_ns = kNow) {
    const AddressOf address(ip);  // the next hop may point into it
    const uint8_t* const hop = neighbours_.next_hop(address.bytes);
    if (hop == nullptr) return {};
    Frame frame(128, 0xee);
    frame.resize(neighbours_.resolve(hop, 0, now_ns, frame).frame_bytes);
    return frame;
  }

  Neighbours neighbours_{host()};
  Frame reply_;
  bool handled_ = false;
  bool contested_ = false;
  bool own_link_ = false;
};

const std::string kPad18(36, '0');
// 10.77.0.2 at 02:aa:..:02 asks for 10.77.0.1.
const std::string kArpRequest =
    "ffffffffffff 02aa00000002 0806 0001 0800 06 04 0001 02aa00000002 0a4d0002 000000000000 0a4d0001";
const std::string kArpReply =
    "02bb00000001 02aa00000002 0806 0001 0800 06 04 0002 02aa00000002 0a4d0002 02bb00000001 0a4d0001";

TEST_F(NeighboursTest, AnswersArpRequestsForItsAddressAndLearnsWhoAsked) {
  EXPECT_EQ(
      answer_to(hex(kArpRequest)),
      hex("02aa00000002 02bb00000001 0806 0001 0800 06 04 0002 02bb00000001 0a4d0001 02aa00000002 0a4d0002" +
          kPad18));
  EXPECT_TRUE(handled_);
  EXPECT_TRUE(knows("10.77.0.2"));
}

TEST_F(NeighboursTest, LearnsFromArpRepliesThatItAskedFor) {
  answer_to(hex(kArpReply));
  EXPECT_FALSE(knows("10.77.0.2")) << "which asked";
  EXPECT_TRUE(answer_to(hex(kArpReply)).empty());
  EXPECT_TRUE(handled_);
  EXPECT_TRUE(knows("10.77.0.2"));
}

TEST_F(NeighboursTest, LearnsNothingFromAnnouncementsAndForgeries) {
  const auto with = [](Frame changed, size_t at, const std::string& bytes) {
    const Frame patch = hex(bytes);
    std::copy(patch.begin(), patch.end(), changed.begin() + static_cast<ptrdiff_t>(at));
    return changed;
  };
  // A gratuitous announcement: a reply to everybody, about itself.
  answer_to(with(with(hex(kArpReply), 0, "ffffffffffff"), 32, "ffffffffffff 0a4d0002"));
  // A request for somebody else's address.
  EXPECT_TRUE(answer_to(with(hex(kArpRequest), 38, "0a4d0009")).empty());
  // The sender in the frame is not the one in the message.
  EXPECT_TRUE(answer_to(with(hex(kArpRequest), 6, "02aa00000003")).empty());
  // A multicast link address.
  EXPECT_TRUE(answer_to(with(with(hex(kArpRequest), 6, "03aa00000002"), 22, "03aa00000002")).empty());
  EXPECT_FALSE(knows("10.77.0.2"));
  solicitation_of("10.77.0.2");
  // An answer to another, while we wait for ours.
  answer_to(with(hex(kArpReply), 32, "02bb00000009"));
  answer_to(with(hex(kArpReply), 0, "ffffffffffff"));
  EXPECT_FALSE(knows("10.77.0.2"));
  // Our own address, taken by another.
  answer_to(with(hex(kArpReply), 28, "0a4d0001"));
  // An address that is not on this link, and is no gateway.
  answer_to(with(hex(kArpReply), 28, "0a4e0002"));
  EXPECT_FALSE(knows("10.77.0.1"));
  EXPECT_FALSE(knows("10.78.0.2"));
}

TEST_F(NeighboursTest, AnswersArpProbesWithoutLearning) {
  Frame probe = hex(kArpRequest);
  memset(&probe[28], 0, 4);
  EXPECT_EQ(answer_to(probe).size(), 60U);
  EXPECT_FALSE(knows("0.0.0.0"));
}

// One frame of a stranger, whatever it says it is.
TEST_F(NeighboursTest, AForgedAddressDoesNotTakeTheOthersPlace) {
  solicitation_of("10.77.0.2");
  answer_to(hex(kArpReply));
  ASSERT_TRUE(knows("10.77.0.2"));
  Frame announcement = hex(kArpRequest);
  memcpy(&announcement[38], &announcement[28], 4);
  for (Frame forged : {hex(kArpReply), hex(kArpRequest), announcement}) {
    forged[11] = forged[27] = 7;
    answer_to(forged);
    EXPECT_TRUE(contested_);
    EXPECT_TRUE(knows("10.77.0.2"));
  }
}

TEST_F(NeighboursTest, AnotherHostWithTheLinkAddressOfThisPortIsNoticed) {
  Frame twin = hex(kArpRequest);
  memcpy(&twin[6], host().mac, 6);
  memcpy(&twin[22], host().mac, 6);
  answer_to(twin);
  EXPECT_TRUE(own_link_);
  EXPECT_FALSE(knows("10.77.0.2"));
  memcpy(&twin[28], host().ip4 + 12, 4);  // its own, which comes back to it
  answer_to(twin);
  EXPECT_FALSE(own_link_);
}

TEST_F(NeighboursTest, ProbesTheOneThatItKnowsAlone) {
  answer_to(hex(kArpRequest));
  EXPECT_EQ(solicitation_of("10.77.0.2"),
            hex("02aa00000002 02bb00000001 0806 0001 0800 06 04 0001 02bb00000001 0a4d0001 000000000000 "
                "0a4d0002" +
                kPad18));
  answer_to(hex(kArpReply));
  EXPECT_TRUE(solicitation_of("10.77.0.2", kNow + NeighbourTable::kProbeNs).empty()) << "it answered";
}

TEST_F(NeighboursTest, AFixedNeighbourIsKnownFromTheStart) {
  HostAddresses with_fixed = host();
  with_fixed.fixed.push_back({net::Address::of(AddressOf("10.77.0.9").bytes), LinkAddress::of(kPeerMac)});
  Neighbours neighbours(with_fixed);
  Frame question(128);
  const auto found = neighbours.resolve(AddressOf("10.77.0.9").bytes, 0, kNow, question);
  EXPECT_TRUE(found.way.known);
  EXPECT_EQ(found.frame_bytes, 0U);
}

TEST_F(NeighboursTest, SolicitsTheNextHop) {
  const Frame on_link =
      hex("ffffffffffff 02bb00000001 0806 0001 0800 06 04 0001 02bb00000001 0a4d0001 000000000000 0a4d0002" +
          kPad18);
  EXPECT_EQ(solicitation_of("10.77.0.2"), on_link);
  const Frame gateway = solicitation_of("192.0.2.1");
  ASSERT_EQ(gateway.size(), 60U);
  EXPECT_EQ(Frame(gateway.begin() + 38, gateway.begin() + 42), hex("0a4d00fe"));
  EXPECT_TRUE(solicitation_of("fd88::1").empty());    // no IPv6 gateway
  EXPECT_TRUE(solicitation_of("224.0.0.1").empty());  // no neighbour
  EXPECT_TRUE(solicitation_of("0.0.0.0").empty());
}

TEST_F(NeighboursTest, SendsOffLinkPacketsToTheGateway) {
  solicitation_of("192.0.2.1");
  Frame reply = hex(kArpReply);
  reply[31] = 0xfe;  // 10.77.0.254
  answer_to(reply);
  EXPECT_TRUE(knows("192.0.2.1"));
  EXPECT_FALSE(knows("10.77.0.9"));
}

TEST_F(NeighboursTest, SolicitsInIp6) {
  EXPECT_EQ(solicitation_of("fd77::2"),
            hex("3333ff000002 02bb00000001 86dd 60000000 0020 3a ff"
                "fd770000000000000000000000000001 ff0200000000000000000001ff000002"
                "87 00 7bee 00000000 fd770000000000000000000000000002 01 01 02bb00000001"));
}

// fd77::2 asks the solicited-node group of fd77::1.
const std::string kSolicitation =
    "3333ff000001 02aa00000002 86dd 60000000 0020 3a ff"
    "fd770000000000000000000000000002 ff0200000000000000000001ff000001"
    "87 00 7bff 00000000 fd770000000000000000000000000001 01 01 02aa00000002";

TEST_F(NeighboursTest, AnswersSolicitationsForItsAddressAndLearnsWhoAsked) {
  EXPECT_EQ(answer_to(hex(kSolicitation)),
            hex("02aa00000002 02bb00000001 86dd 60000000 0020 3a ff"
                "fd770000000000000000000000000001 fd770000000000000000000000000002"
                "88 00 1a7c 60000000 fd770000000000000000000000000001 02 01 02bb00000001"));
  EXPECT_TRUE(handled_);
  EXPECT_TRUE(knows("fd77::2"));
}

TEST_F(NeighboursTest, IgnoresSolicitationsFromAfarOrDamaged) {
  Frame routed = hex(kSolicitation);
  routed[21] = 254;
  EXPECT_TRUE(answer_to(routed).empty());
  Frame damaged = hex(kSolicitation);
  damaged[85] ^= 1;
  EXPECT_TRUE(answer_to(damaged).empty());
  EXPECT_FALSE(knows("fd77::2"));
}

const std::string kAdvertisement =
    "02bb00000001 02aa00000002 86dd 60000000 0020 3a ff"
    "fd770000000000000000000000000002 fd770000000000000000000000000001"
    "88 00 1a8b 60000000 fd770000000000000000000000000002 02 01 02aa00000002";

TEST_F(NeighboursTest, ProbesTheOneThatItKnowsAloneInIp6) {
  answer_to(hex(kSolicitation));
  EXPECT_EQ(solicitation_of("fd77::2"),
            hex("02aa00000002 02bb00000001 86dd 60000000 0020 3a ff"
                "fd770000000000000000000000000001 fd770000000000000000000000000002"
                "87 00 7c7b 00000000 fd770000000000000000000000000002 01 01 02bb00000001"));
  answer_to(hex(kAdvertisement));
  EXPECT_TRUE(solicitation_of("fd77::2", kNow + NeighbourTable::kProbeNs).empty()) << "it answered";
}

TEST_F(NeighboursTest, AForgedAdvertisementDoesNotTakeTheOthersPlace) {
  solicitation_of("fd77::2");
  answer_to(hex(kAdvertisement));
  ASSERT_TRUE(knows("fd77::2"));
  Frame forged = hex(kAdvertisement);
  forged[85] = 7, forged[57] = 0x86;  // another link address, with its right checksum
  answer_to(forged);
  EXPECT_TRUE(contested_);
  EXPECT_TRUE(knows("fd77::2"));
}

TEST_F(NeighboursTest, LearnsFromAdvertisementsThatWereAskedFor) {
  solicitation_of("fd77::2");
  EXPECT_TRUE(answer_to(hex(kAdvertisement)).empty());
  EXPECT_TRUE(handled_);
  EXPECT_TRUE(knows("fd77::2"));
}

TEST_F(NeighboursTest, LearnsNothingFromUnaskedAdvertisements) {
  solicitation_of("fd77::2");
  Frame unasked = hex(kAdvertisement);
  unasked[58] = 0x20;                      // not solicited
  unasked[56] = 0x5a, unasked[57] = 0x8b;  // with its right checksum
  answer_to(unasked);
  EXPECT_TRUE(handled_);
  EXPECT_FALSE(knows("fd77::2"));
}

TEST_F(NeighboursTest, DefendsItsAddressAgainstDuplicates) {
  EXPECT_EQ(answer_to(hex("3333ff000001 02aa00000002 86dd 60000000 0018 3a ff"
                          "00000000000000000000000000000000 ff0200000000000000000001ff000001"
                          "87 00 7d2e 00000000 fd770000000000000000000000000001")),
            hex("333300000001 02bb00000001 86dd 60000000 0020 3a ff"
                "fd770000000000000000000000000001 ff020000000000000000000000000001"
                "88 00 58f2 20000000 fd770000000000000000000000000001 02 01 02bb00000001"));
}

const std::string kPing4 =
    "02bb00000001 02aa00000002 0800 4500 0022 1234 4000 40 01 140b 0a4d0002 0a4d0001"
    "08 00 b409 0001 0002 68656c6c 6f21";

TEST_F(NeighboursTest, AnswersPing) {
  Frame request = hex(kPing4);
  request.resize(60);  // as padded by the sender
  EXPECT_EQ(answer_to(request),
            hex("02aa00000002 02bb00000001 0800 4500 0022 0000 0000 40 01 663f 0a4d0001 0a4d0002"
                "00 00 bc09 0001 0002 68656c6c 6f21" +
                std::string(24, '0')));
  EXPECT_TRUE(handled_);
}

TEST_F(NeighboursTest, LeavesDamagedAndForeignPingsUnanswered) {
  for (const size_t at : {24U, 30U, 36U, 47U}) {  // checksums, addresses, text
    Frame damaged = hex(kPing4);
    damaged[at] ^= 1;
    EXPECT_TRUE(answer_to(damaged).empty()) << at;
  }
  Frame other_host = hex(kPing4);
  other_host[5] = 9;
  EXPECT_TRUE(answer_to(other_host).empty());
  EXPECT_FALSE(handled_);
}

TEST_F(NeighboursTest, AnswersPingInIp6WithOddLengths) {
  EXPECT_EQ(answer_to(hex("02bb00000001 02aa00000002 86dd 60000000 0009 3a 40"
                          "fd770000000000000000000000000002 fd770000000000000000000000000001"
                          "80 00 1cc6 0001 0002 68")),
            hex("02aa00000002 02bb00000001 86dd 60000000 0009 3a 40"
                "fd770000000000000000000000000001 fd770000000000000000000000000002"
                "81 00 1bc6 0001 0002 68"));
}

TEST_F(NeighboursTest, LeavesOtherProtocolsToTheCaller) {
  Frame udp = hex(kPing4);
  udp[23] = 17;
  answer_to(udp);
  EXPECT_FALSE(handled_);
  answer_to(hex("02bb00000001 02aa00000002 88b5 0000"));
  EXPECT_FALSE(handled_);
}

TEST_F(NeighboursTest, SurvivesEveryTruncationAndNoRoomToAnswer) {
  for (const std::string& text : {kArpRequest, kArpReply, kSolicitation, kAdvertisement, kPing4}) {
    const Frame whole = hex(text);
    for (size_t bytes = 0; bytes <= whole.size(); ++bytes) {
      const Frame part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes));
      Frame room(bytes);
      EXPECT_LE(neighbours_.handle(part, kNow, room).reply_bytes, room.size());
    }
  }
}

TEST_F(NeighboursTest, KeepsManyNeighboursApart) {
  Frame reply = hex(kArpRequest);
  for (uint8_t i = 2; i < 66; ++i) {
    reply[11] = reply[27] = reply[31] = i;
    answer_to(reply);
  }
  for (uint8_t i = 2; i < 66; ++i) {
    const uint8_t mac[6] = {0x02, 0xaa, 0, 0, 0, i};
    EXPECT_TRUE(knows(("10.77.0." + std::to_string(i)).c_str(), mac)) << int{i};
  }
}

}  // namespace
}  // namespace sluice::net
