// A journal of any content: rows, the bytes of its file, the bytes of its write-ahead log. It is refused with
// one line, or read: then every session has its own name, files are numbered without a gap, and a row of
// blocks that an object takes fits that object.
// SPDX-License-Identifier: Apache-2.0
#include <sqlite3.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>

#include "control/journal/journal.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::journal;
namespace fs = std::filesystem;

// The library would report every malformed string.
[[maybe_unused]] const auto kQuietLibrary = google::protobuf::SetLogHandler(nullptr);

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
      fuzz::require(journal && (*journal)->write(batch(), Durability::kProcess), "a journal is made");
      bytes = read(path);
      log = read(path.string() + "-wal");
    }
    settled = read(path);
  }
  ~Whole() { fs::remove_all(folder); }

  static Batch batch() {
    Batch batch;
    recovery::ExtentLedger ledger(kLayout);
    for (ExtentId extent; extent < ExtentId(90); ++extent) ledger.add(extent, extent.value() * 7);
    for (const char* id : {"a", "b"}) {
      SessionRecord session;
      session.set_id(id);
      session.set_peer("there");
      session.mutable_request()->add_source_paths("/some/where");
      session.add_flows()->set_slot(3);
      batch.sessions.push_back(session);
      for (uint32_t object = 0; object < 2; ++object) {
        batch.files.push_back({id, object, {}});
        batch.files.back().record.set_name("name");
        batch.files.back().record.set_size(kLayout.size_bytes);
        batch.blocks.push_back({id, object, ledger.take_changed()});
      }
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

void read_all(Journal& journal) {
  const auto sessions = journal.sessions();
  if (!good(sessions)) return;
  std::set<std::string> ids;
  for (const SessionRecord& session : *sessions) {
    fuzz::require(ids.insert(session.id()).second, "a session is there once");
    const auto files = journal.files(session.id());
    if (!good(files)) continue;
    for (size_t i = 0; i < files->size(); ++i) {
      fuzz::require((*files)[i].object == i && (*files)[i].session == session.id(), "files without a gap");
      const auto blocks = journal.blocks(session.id(), (*files)[i].object);
      if (!good(blocks)) continue;
      recovery::ExtentLedger ledger(kLayout);
      for (const recovery::Block& block : *blocks) (void)ledger.restore(block);
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

void put_rows(fuzz::Input& input) {
  sqlite3* db = nullptr;
  fuzz::require(sqlite3_open(whole().path.c_str(), &db) == SQLITE_OK, "opens");
  const char* const statements[] = {"INSERT OR REPLACE INTO session VALUES(?,?,?,?)",
                                    "INSERT OR REPLACE INTO file VALUES(?,?,?)",
                                    "INSERT OR REPLACE INTO block VALUES(?,?,?,?)"};
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
    const std::string blob = input.text(input.take<uint8_t>());
    sqlite3_bind_blob(row, columns[table], blob.data(), static_cast<int>(blob.size()), SQLITE_TRANSIENT);
    (void)sqlite3_step(row);
    sqlite3_finalize(row);
  }
  sqlite3_close(db);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const uint32_t mode = input.below(8);
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
  (void)good((*journal)->forget_ended(1));
  if (good((*journal)->write(Whole::batch(), Durability::kProcess)) && mode > 3) {
    fuzz::require(static_cast<bool>((*journal)->blocks("a", 0)), "a sound journal goes on");
  }
  return 0;
}
