// A journal of version 1, as sluice 0.1 left it: what was under way goes on, what has ended is still known.
//
// Its rows are written here byte by byte, by the numbers that the fields had then, and with its SQL: no later
// change of ours can change what they say.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/journal/journal_fixture.h"
#include "control/journal/records_for_test.h"

namespace sluice::journal {
namespace {

using recovery::BlockId;
using transfer::Durability;
using transfer::RecordState;
using transfer::Role;

// A message of protobuf: fields in the order in which they are added.
class Wire {
 public:
  Wire& number(uint32_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Wire& bytes(uint32_t field, const std::string& value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Wire& message(uint32_t field, const Wire& value) { return bytes(field, value.bytes_); }
  std::string literal() const {
    std::string hex = "x'";
    for (const char c : bytes_) {
      hex += "0123456789abcdef"[static_cast<uint8_t>(c) >> 4];
      hex += "0123456789abcdef"[static_cast<uint8_t>(c) & 15];
    }
    return hex + "'";
  }

 private:
  void varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

const std::string kSchema1 =
    "PRAGMA journal_mode=WAL;"
    "CREATE TABLE session(id TEXT PRIMARY KEY, state INTEGER NOT NULL, started INTEGER NOT NULL,"
    " record BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE file(session TEXT NOT NULL, object INTEGER NOT NULL, record BLOB NOT NULL,"
    " PRIMARY KEY(session, object)) WITHOUT ROWID;"
    "CREATE TABLE block(session TEXT NOT NULL, object INTEGER NOT NULL, block INTEGER NOT NULL,"
    " content BLOB NOT NULL, PRIMARY KEY(session, object, block)) WITHOUT ROWID;"
    "PRAGMA application_id=1397508657;"  // "SLJ1"
    "PRAGMA user_version=1;";

Wire request1() {
  return Wire()
      .bytes(1, "/export/a")
      .bytes(1, "/export/b")
      .bytes(2, "incoming/")
      .number(3, 3)
      .number(4, 5'000'000'000)
      .number(5, 1)
      .number(6, 1)
      .number(7, 2)
      .number(8, 4096);
}

Wire agreement1() {
  std::string ip;
  for (char i = 0; i < 16; ++i) ip += i;
  return Wire()
      .number(1, 2)
      .number(2, 8896)
      .number(3, 1U << 20)
      .number(4, 64U << 20)
      .number(5, 1)
      .number(6, 10'000'000'000)
      .number(7, 1)
      .number(8, 1)
      .bytes(9, ip)
      .bytes(10, {ip.rbegin(), ip.rend()})
      .bytes(11, std::string("\x98\xef\x02\xff\xff\x03", 6));  // packed: 47000, 65535
}

Wire flow1(uint64_t slot, uint64_t id, uint64_t credit, uint64_t port) {
  return Wire().number(1, slot).number(2, id).number(3, credit).number(4, port);
}

Wire file1(const std::string& name) {
  return Wire()
      .number(1, 2)
      .bytes(2, name)
      .bytes(3, "/export/" + name)
      .bytes(4, std::string("/export/\0\xff", 10) + name)
      .number(5, 1ULL << 59)
      .number(6, 0600)
      .number(7, static_cast<uint64_t>(-5))
      .number(8, ~0ULL)
      .number(9, 1ULL << 63)
      .number(10, 0xFEDCBA9876543210)
      .number(11, 1)
      .bytes(12, "/incoming/" + name)
      .number(13, 1);
}

class UpgradeTest : public JournalTest {
 protected:
  UpgradeTest() { sql(kSchema1); }

  // As the old journal wrote it: columns beside the record say what it says.
  void add(const std::string& id, int state, int started, Wire record) {
    record.bytes(1, id).number(5, static_cast<uint64_t>(state)).number(8, static_cast<uint64_t>(started));
    sql("INSERT OR REPLACE INTO session VALUES('" + id + "'," + std::to_string(state) + "," +
        std::to_string(started) + "," + record.literal() + ")");
  }
  void add_files(const std::string& id) {
    sql("INSERT INTO file VALUES('" + id + "',0," + file1("one").literal() + ")");
    sql("INSERT INTO file VALUES('" + id + "',1," + file1("two").literal() + ")");
    sql("INSERT INTO block VALUES('" + id + "',1,0,'first')");
    sql("INSERT INTO block VALUES('" + id + "',1,9,x'00ff')");
  }
  // What the old journal did not know of a file counts as not known.
  static catalog::File file_of_then(const std::string& name) {
    catalog::File file = sample_file(name);
    file.mtime_ns = -5;
    file.ctime_ns = file.identity.birth_ns = 0;
    file.identity.generation = 0;
    file.verify = false;
    file.kind = catalog::FileKind::kFile;
    file.pack = {};
    file.list = {};
    file.missing = {};
    file.holes = {};
    file.keep = {};
    file.attributes = {};
    file.digests = {};
    file.part = {};
    file.whole_digest.reset();
    return file;
  }
  static void expect_files(const transfer::Saved& saved) {
    ASSERT_EQ(saved.files.size(), 2U);
    EXPECT_TRUE(fields::equal(saved.files[0], file_of_then("one")));
    EXPECT_TRUE(fields::equal(saved.files[1], file_of_then("two")));
    EXPECT_TRUE(saved.blocks[ObjectId(0)].empty());
    const std::vector<recovery::Block> blocks = {{BlockId(0), "first"},
                                                 {BlockId(9), std::string("\0\xff", 2)}};
    EXPECT_TRUE(fields::equal(saved.blocks[ObjectId(1)], blocks));
  }
  static transfer::Saved saved(Journal& journal, const std::string& id) {
    const auto all = journal.saved(id, true);
    EXPECT_TRUE(all) << all.error().message;
    EXPECT_TRUE(!all || all->has_value());
    return all && *all ? **all : transfer::Saved();
  }
};

// What a version 1 record with everything in it means now.
transfer::Record everything(const std::string& id, int64_t started, RecordState state) {
  transfer::Record record = sample_record(id, started);
  record.state = state;
  record.files_left = false;  // was not kept
  record.legs.resize(1);
  record.request->user = std::nullopt;  // nobody but operators asked then
  record.granted = std::nullopt;        // and for no other node
  record.ordered = std::nullopt;
  record.lease = std::nullopt;
  record.moved = std::nullopt;
  record.mapped = std::nullopt;  // nor by a map of users
  record.request->local_files = std::nullopt;
  record.request->expected = nullptr;
  // As request1 has it. What a row of then does not say is 0, and what it could not say is as without it.
  record.request->options = {.lanes = 3,
                             .rate_bps = 5'000'000'000,
                             .crc = wire::CrcKind::kCrc32c,
                             .protection = wire::Protection::kCrc,
                             .chunk_bytes = 4096,
                             .overwrite = true,
                             .ip = transfer::IpFamily::kIp6};
  record.legs[0].agreement->mode = rate::Mode::kAdaptive;
  record.legs[0].agreement->expected_loss_ppm = 0;
  record.legs[0].agreement->chunk_reason = rate::SizeReason::kAgreed;
  record.legs[0].agreement->reach = board::Reach::kAgreed;
  record.limit_bps = 0;
  record.priority = 0;
  record.legs[0].agreement->chunk_auto = false;
  record.legs[0].agreement->abilities = {};
  record.legs[0].left_out.clear();
  record.legs[0].agreement->peer_queue_datagrams = 0;
  record.legs[0].agreement->digests_unanswered = transfer::kDigestsUnansweredMin;
  record.legs[0].agreement->protection = wire::Protection::kCrc;
  record.request->source_bytes = 0;
  record.request->source_paths = {"/export/a", "/export/b"};
  record.request->selection = {};
  record.deadline_admission = transfer::DeadlineAdmission::kNone;
  record.summary = {};  // figures were kept as another program's message
  return record;
}

Wire everything1() {
  return Wire()
      .number(2, 1)
      .number(3, 1)
      .bytes(4, "beta")
      .number(6, 10)
      .bytes(7, "/export: no space; make some")
      .number(9, 1)
      .message(10, request1())
      .message(11, agreement1())
      .message(12, flow1(7, 1ULL << 63, 16, 47001))
      .message(12, flow1(127, 99, 2, 65535))
      .number(13, 1ULL << 62)
      .number(14, 63)
      .bytes(15, "figures of the API, which nobody reads");
}

TEST_F(UpgradeTest, SessionsOfEveryStateComeOverWithEveryField) {
  for (int state = 0; state <= 4; ++state) {
    const std::string id(1, static_cast<char>('a' + state));
    add(id, state, 10 - state, everything1());
    add_files(id);
  }
  auto journal = open();
  const auto sessions = journal->sessions();
  ASSERT_TRUE(sessions) << sessions.error().message;
  ASSERT_EQ(sessions->size(), 5U);
  for (int state = 0; state <= 4; ++state) {
    const std::string id(1, static_cast<char>('a' + state));
    const auto record = everything(id, 10 - state, static_cast<RecordState>(state));
    EXPECT_TRUE(fields::equal(sessions->at(static_cast<size_t>(4 - state)), record)) << "oldest first";
    const transfer::Saved all = saved(*journal, id);
    EXPECT_TRUE(fields::equal(all.record, record)) << state;
    expect_files(all);
  }
}

TEST_F(UpgradeTest, ASessionOfTheOtherNodeComesOver) {
  add("a", 0, 5, Wire().bytes(4, "alpha").message(11, agreement1()).message(12, flow1(1, 2, 3, 47002)));
  add("b", 0, 6, Wire().bytes(4, "alpha").number(3, 1));
  auto journal = open();
  transfer::Record record{.id = "a", .role = Role::kDestination, .started_unix_ns = 5};
  record.legs = {
      {.peer = "alpha",
       .agreement = sample_agreement(),
       .flows = {{.slot = FlowSlotId(1), .flow_id = 2, .credit_extents = 3, .local_port = 47002}}}};
  record.legs[0].agreement->mode = rate::Mode::kAdaptive;
  record.legs[0].agreement->expected_loss_ppm = 0;
  record.legs[0].agreement->chunk_reason = rate::SizeReason::kAgreed;
  record.legs[0].agreement->reach = board::Reach::kAgreed;
  record.legs[0].agreement->chunk_auto = false;
  record.legs[0].agreement->protection = wire::Protection::kCrc;
  record.legs[0].agreement->abilities = {};
  record.legs[0].left_out.clear();
  record.legs[0].agreement->peer_queue_datagrams = 0;
  record.legs[0].agreement->digests_unanswered = transfer::kDigestsUnansweredMin;
  EXPECT_TRUE(fields::equal(saved(*journal, "a").record, record));
  // Nothing was agreed upon: it has a peer, and nothing else.
  record = {.id = "b", .role = Role::kSource, .started_unix_ns = 6};
  record.legs = {{.peer = "alpha"}};
  EXPECT_TRUE(fields::equal(saved(*journal, "b").record, record));
}

TEST_F(UpgradeTest, AnUpgradedJournalGoesOnAndIsUpgradedOnce) {
  add("a", 1, 5, everything1());
  add_files("a");
  transfer::Record record = everything("a", 5, RecordState::kActive);
  {
    auto journal = open();
    // A record without a request leaves it as it was, also one that an earlier version wrote.
    record.request.reset();
    ASSERT_TRUE(journal->write("a", {.record = record}, Durability::kPower));
    ASSERT_TRUE(journal->write("b", {.record = sample_record("b", 9)}, Durability::kPower));
  }
  EXPECT_EQ(ask("PRAGMA user_version"), "3 ");
  record.request = sample_request();
  // As the earlier version had it.
  record.request = everything("a", 5, RecordState::kActive).request;
  auto journal = open();
  EXPECT_TRUE(fields::equal(saved(*journal, "a").record, record));
  expect_files(saved(*journal, "a"));
  EXPECT_TRUE(fields::equal(saved(*journal, "b").record, sample_record("b", 9)));
}

TEST_F(UpgradeTest, AJournalOfVersionTwoGetsLeases) {
  add("a", 0, 5, everything1());
  open();  // as version 2 had it, but for the leases
  sql("DROP TABLE lease;PRAGMA user_version=2");
  auto journal = open();
  EXPECT_TRUE(fields::equal(saved(*journal, "a").record, everything("a", 5, RecordState::kActive)));
  EXPECT_TRUE(journal->leases()->empty());
  EXPECT_TRUE(journal->write({.lease = {.name = "0123456789abcdef", .epoch = 1}, .holder = "beta"}));
}

TEST_F(UpgradeTest, ADamagedRowIsRefusedAndStaysAsItIs) {
  add("a", 0, 5, everything1());
  sql("INSERT INTO session VALUES('b',0,6,x'ffff')");
  const std::string before = ask("SELECT id, state, started, hex(record) FROM session");
  {
    auto journal = open();
    EXPECT_TRUE(fields::equal(saved(*journal, "a").record, everything("a", 5, RecordState::kActive)));
    const auto sessions = journal->sessions();
    ASSERT_FALSE(sessions);
    expect_refused(sessions.error(), "session b cannot be read");
  }
  EXPECT_EQ(ask("SELECT id, state, started, hex(record) FROM session"), before);
}

TEST_F(UpgradeTest, AnUpgradeThatFailsLeavesVersionOne) {
  add("a", 0, 5, everything1());
  sql("ALTER TABLE session ADD COLUMN request BLOB");  // edited by somebody: it cannot be added again
  const auto journal = Journal::open(path_);
  ASSERT_FALSE(journal);
  expect_refused(journal.error(), "duplicate column", "check the disk");
  EXPECT_EQ(ask("PRAGMA user_version"), "1 ");
}

}  // namespace
}  // namespace sluice::journal
