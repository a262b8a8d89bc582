// A journal of any content: rows, the bytes of its file, the bytes of its write-ahead log. It is refused with
// one line, or read: then every session has its own name, what a row says is said again by the row that would
// be written for it, and a row of blocks that an object takes fits that object.
// SPDX-License-Identifier: Apache-2.0
#include <sqlite3.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>

#include "control/journal/codec.h"
#include "control/journal/journal.h"
#include "control/journal/records_for_test.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::journal;
using transfer::Durability;
namespace fs = std::filesystem;

const recovery::Layout kLayout{
    .size_bytes = 100U << 16, .extent_bytes = 1U << 16, .crc_kind = crc::CrcKind::kCrc64Ecma};

// A whole journal, as bytes: what the fuzzer damages.
struct Whole {
  Whole()
      : folder((fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) /
               ("sluice-journal-fuzz-" + std::to_string(::getpid()))),
        path(folder / "journal") {
    fs::create_directories(folder);
    {
      auto journal = Journal::open(path);
      bool good = static_cast<bool>(journal);
      for (const char* id : {"a", "b"}) good = good && (*journal)->write(id, batch(id), Durability::kProcess);
      fuzz::require(good, "a journal is made");
      bytes = read(path);
      log = read(path.string() + "-wal");
    }
    settled = read(path);
  }
  ~Whole() { fs::remove_all(folder); }

  static transfer::Batch batch(const std::string& id) {
    transfer::Batch batch{.record = sample_record(id, 1)};
    recovery::ExtentLedger ledger(kLayout);
    for (ExtentId extent; extent < ExtentId(90); ++extent) ledger.add(extent, extent.value() * 7);
    for (uint32_t i = 0; i < 2; ++i) {
      batch.files.push_back({.file = catalog::FileId(i), .record = sample_file("name")});
      batch.blocks.push_back({.object = ObjectId(i), .blocks = ledger.take_changed()});
    }
    return batch;
  }
  static std::string read(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& database, const std::string& wal) const {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) fs::remove(path.string() + suffix);
    std::ofstream(path, std::ios::binary) << database;
    if (!wal.empty()) std::ofstream(path.string() + "-wal", std::ios::binary) << wal;
  }

  fs::path folder;
  fs::path path;
  std::string bytes;  // while its log was not yet folded in
  std::string log;
  std::string settled;  // after that
};

const Whole& whole() {
  static const Whole the_whole;
  return the_whole;
}

template <typename T>
bool good(const T& result) {
  if (result) return true;
  const Error& error = result.error();
  fuzz::require(error.code == ErrorCode::kStorage && error.message.find('\n') == std::string::npos,
                "one line says why");
  return false;
}

void say_again(const transfer::Record& record) {
  const auto back = decode_record(encode(record), record.request ? encode(*record.request) : "");
  fuzz::require(!record.legs.empty(), "it has a peer");
  fuzz::require(back && fields::equal(*back, record), "a record says the same again");
}

void say_again(const catalog::File& file) {
  const auto back = decode_file(encode(file));
  fuzz::require(back && fields::equal(*back, file), "a file says the same again");
}

void read_all(Journal& journal) {
  const auto sessions = journal.sessions();
  if (!good(sessions)) return;
  std::set<std::string> ids;
  for (const transfer::Record& record : *sessions) {
    fuzz::require(ids.insert(record.id).second, "a session is there once");
    say_again(record);
    const auto saved = journal.saved(record.id, true);
    if (!good(saved)) continue;
    fuzz::require(saved->has_value() && (*saved)->record.id == record.id, "it is there, alone as well");
    fuzz::require((*saved)->blocks.size() == (*saved)->files.size(), "blocks are of files");
    for (const catalog::File& file : (*saved)->files) say_again(file);
    for (const std::vector<recovery::Block>& blocks : (*saved)->blocks) {
      recovery::ExtentLedger ledger(kLayout);
      for (const recovery::Block& block : blocks) (void)ledger.restore(block);
      fuzz::require(ledger.map().set_bytes() <= kLayout.size_bytes, "no more is known than there is");
    }
  }
}

// One damaged place at a time: where, and with what.
void damage(std::string& bytes, fuzz::Input& input) {
  for (uint32_t n = input.below(8); n > 0 && !bytes.empty(); --n) {
    const size_t at = input.take<uint32_t>() % bytes.size();
    bytes[at] = static_cast<char>(input.take<uint8_t>());
  }
  if (input.below(8) == 7) bytes.resize(input.take<uint32_t>() % (bytes.size() + 1));
}

void bind_blob(sqlite3_stmt* row, int column, const std::string& blob) {
  sqlite3_bind_blob(row, column, blob.data(), static_cast<int>(blob.size()), SQLITE_TRANSIENT);
}

void put_rows(fuzz::Input& input) {
  sqlite3* db = nullptr;
  fuzz::require(sqlite3_open(whole().path.c_str(), &db) == SQLITE_OK, "opens");
  const char* const statements[] = {
      "INSERT OR REPLACE INTO session(id, state, started, record, request) VALUES(?,?,?,?,?)",
      "INSERT OR REPLACE INTO file VALUES(?,?,?)", "INSERT OR REPLACE INTO block VALUES(?,?,?,?)"};
  const int columns[] = {4, 3, 4};
  for (uint32_t n = 0; n < 8 && !input.empty(); ++n) {
    const uint32_t table = input.below(3);
    sqlite3_stmt* row = nullptr;
    fuzz::require(sqlite3_prepare_v2(db, statements[table], -1, &row, nullptr) == SQLITE_OK, "prepares");
    for (int column = 1; column < columns[table]; ++column) {
      const std::string id = input.flag() ? "a" : input.text(2);
      if (column == 1) sqlite3_bind_text(row, 1, id.data(), static_cast<int>(id.size()), SQLITE_TRANSIENT);
      if (column > 1) sqlite3_bind_int64(row, column, static_cast<int64_t>(input.edge()));
    }
    bind_blob(row, columns[table], input.text(input.take<uint8_t>()));
    if (table == 0 && input.flag()) bind_blob(row, 5, input.text(input.take<uint8_t>()));
    (void)sqlite3_step(row);
    sqlite3_finalize(row);
  }
  sqlite3_close(db);
}

// Without a database around them, many more rows can be tried in the same time.
void read_rows(fuzz::Input& input) {
  const std::string request = input.text(input.take<uint8_t>());
  const auto rest = input.rest();
  const std::string bytes(rest.begin(), rest.end());
  if (const auto record = decode_record(bytes, request)) say_again(*record);
  if (const auto file = decode_file(bytes)) say_again(*file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint32_t mode = input.below(9);
  if (mode == 8) {
    read_rows(input);
    return 0;
  }
  std::string database = mode < 2 ? whole().bytes : whole().settled;
  std::string log = mode < 2 ? whole().log : "";
  if (mode == 0) damage(log, input);
  if (mode == 1 || mode == 2) damage(database, input);
  if (mode == 3) database = input.text(size);
  whole().put(database, log);
  if (mode > 3) put_rows(input);
  auto journal = Journal::open(whole().path);
  if (!good(journal)) {
    fuzz::require(mode <= 3, "rows do not keep a journal from being opened");
    return 0;
  }
  read_all(**journal);
  (void)good((*journal)->forget_ended(1, INT64_MAX));
  const bool written = good((*journal)->write("a", Whole::batch("a"), Durability::kProcess));
  if (written && mode > 3) {
    fuzz::require(static_cast<bool>((*journal)->session("a")), "a sound journal goes on");
  }
  return 0;
}
