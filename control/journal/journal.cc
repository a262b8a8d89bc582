// SPDX-License-Identifier: Apache-2.0
#include "control/journal/journal.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <mutex>
#include <optional>
#include <utility>

#include "control/journal/codec.h"
#include "control/journal/journal_state.h"

namespace sluice::journal {
namespace {

constexpr int kVersion = 3;
constexpr int kVersionOldest = 1;         // which is brought up to date
constexpr int kApplication = 0x534C4A31;  // "SLJ1"
constexpr int kBusyMs = 5000;

constexpr const char* kSchema =
    "CREATE TABLE session(id TEXT PRIMARY KEY, state INTEGER NOT NULL, started INTEGER NOT NULL,"
    " record BLOB NOT NULL, request BLOB) WITHOUT ROWID;"
    "CREATE TABLE file(session TEXT NOT NULL, object INTEGER NOT NULL, record BLOB NOT NULL,"
    " PRIMARY KEY(session, object)) WITHOUT ROWID;"
    "CREATE TABLE block(session TEXT NOT NULL, object INTEGER NOT NULL, block INTEGER NOT NULL,"
    " content BLOB NOT NULL, PRIMARY KEY(session, object, block)) WITHOUT ROWID;"
    "CREATE TABLE lease(name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, holder TEXT NOT NULL,"
    " used INTEGER NOT NULL) WITHOUT ROWID;";

// Version 2: what was asked for has a column of its own, so that it is not written again with each record.
constexpr const char* kUpgradeFrom1 = "ALTER TABLE session ADD COLUMN request BLOB;PRAGMA user_version=2;";
// Version 3: leases. An older control would not keep to them.
constexpr const char* kUpgradeFrom2 =
    "CREATE TABLE lease(name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, holder TEXT NOT NULL,"
    " used INTEGER NOT NULL) WITHOUT ROWID;PRAGMA user_version=3;";

}  // namespace

using transfer::Durability;

namespace {

// Requests move out of the records, which are written again without them. A row that cannot be read stays as
// it is, and whoever reads it hears so.
bool move_requests(sqlite3* db) {
  std::vector<std::pair<std::string, std::string>> requests;
  Statement select(db, "SELECT id, record FROM session");
  while (select.row()) {
    const std::optional<transfer::Record> record = decode_record(select.bytes(1), "");
    if (record && record->request) requests.emplace_back(select.bytes(0), encode(*record->request));
  }
  Statement put(db, "UPDATE session SET request=? WHERE id=?");
  for (const auto& [id, request] : requests) {
    if (!put.blob(1, request).text(2, id).run()) return false;
  }
  return !select.failed();
}

}  // namespace

Result<int> Journal::State::number(const char* pragma) const {
  Statement statement(db, pragma);
  if (!statement.row()) return error("reading");
  return static_cast<int>(statement.number(0));
}

Status Journal::State::set_up() {
  sqlite3_busy_timeout(db, kBusyMs);
  // In memory what is sorted: the sandbox lets no temporary file be made.
  if (auto status = run("PRAGMA journal_mode=WAL; PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=FULL; "
                        "PRAGMA temp_store=MEMORY;");
      !status)
    return status;
  const Result<int> application = number("PRAGMA application_id");
  if (!application) return application.error();
  const Result<int> version = number("PRAGMA user_version");
  if (!version) return version.error();
  const Result<int> tables = number("SELECT count(*) FROM sqlite_schema");
  if (!tables) return tables.error();
  if (*tables == 0) {
    const std::string sql = std::string("BEGIN IMMEDIATE;") + kSchema +
                            "PRAGMA application_id=" + std::to_string(kApplication) +
                            ";PRAGMA user_version=" + std::to_string(kVersion) + ";COMMIT;";
    return run(sql.c_str());
  }
  if (*application != kApplication)
    return Error{ErrorCode::kStorage,
                 "journal " + path.string() + ": is another program's database; move it away"};
  if (*version >= kVersionOldest && *version < kVersion) return upgrade(*version);
  if (*version != kVersion)
    return Error{ErrorCode::kStorage, "journal " + path.string() + ": has version " +
                                          std::to_string(*version) + ", this sluice-control reads " +
                                          std::to_string(kVersion) +
                                          "; run the version that wrote it, or move it away"};
  return {};
}

Status Journal::State::upgrade(int version) {
  if (auto status = run("BEGIN IMMEDIATE"); !status) return status;
  Status status;
  if (version == kVersionOldest) {
    status = run(kUpgradeFrom1);
    if (status && !move_requests(db)) status = error("writing");
  }
  if (status) status = run(kUpgradeFrom2);
  if (status) status = run("COMMIT");
  if (!status) (void)run("ROLLBACK");
  return status;
}

Status Journal::State::prepare(Durability wanted) {
  if (wanted == durability) return {};
  durability = wanted;
  return run(wanted == Durability::kPower ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
}

// In place of SQLite's own. The hook is called within a write, so under the mutex.
void Journal::State::start_checkpoints() {
  checkpointer.emplace(mutex, [this] {
    // What fails here fails again with a write, which can say so.
    (void)sqlite3_wal_checkpoint_v2(db, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  });
  const auto written = [](void* self, sqlite3*, const char*, int pages) {
    static_cast<State*>(self)->checkpointer->written(static_cast<uint32_t>(pages));
    return SQLITE_OK;
  };
  sqlite3_wal_hook(db, written, this);
}

Journal::Journal(std::unique_ptr<State> state) : state_(std::move(state)) {}
Journal::~Journal() = default;

Result<std::unique_ptr<Journal>> Journal::open(const std::filesystem::path& path) {
  auto state = std::make_unique<State>();
  state->path = path;
  const mode_t mask = ::umask(0177);  // names of files are nobody else's business
  const int result = sqlite3_open_v2(
      path.c_str(), &state->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Status status = result == SQLITE_OK ? state->set_up() : Status(state->error("opening"));
  ::umask(mask);
  if (!status) return status.error();
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0)
    return Error{ErrorCode::kStorage,
                 "journal " + path.string() + ": was removed while it was opened; start again"};
  state->device = info.st_dev;
  state->inode = info.st_ino;
  state->start_checkpoints();
  return std::unique_ptr<Journal>(new Journal(std::move(state)));
}

bool Journal::stands() const {
  struct stat info {};
  if (::stat(state_->path.c_str(), &info) != 0) return errno != ENOENT && errno != ENOTDIR;
  return info.st_dev == state_->device && info.st_ino == state_->inode;
}

namespace {

bool drop(sqlite3* db, const char* table, const std::string& session) {
  const std::string sql = std::string("DELETE FROM ") + table + " WHERE session=?";
  return Statement(db, sql.c_str()).text(1, session).run();
}

bool write_blocks(sqlite3* db, const std::string& session, const transfer::Batch& batch) {
  if (batch.drop_blocks && !drop(db, "block", session)) return false;
  Statement restart(db, "DELETE FROM block WHERE session=? AND object=?");
  for (const ObjectId object : batch.restart) {
    if (!restart.text(1, session).number(2, object.value()).run()) return false;
  }
  Statement put(db, "INSERT OR REPLACE INTO block VALUES(?,?,?,?)");
  for (const transfer::BlockRows& rows : batch.blocks) {
    for (const recovery::Block& block : rows.blocks) {
      put.text(1, session).number(2, rows.object.value()).number(3, static_cast<int64_t>(block.id.value()));
      if (!put.blob(4, block.bytes).run()) return false;
    }
  }
  return true;
}

bool write_record(sqlite3* db, const transfer::Record& record) {
  Statement put(
      db,
      "INSERT INTO session(id, state, started, record, request) VALUES(?,?,?,?,?) ON CONFLICT(id) DO "
      "UPDATE SET state=excluded.state, started=excluded.started, record=excluded.record, "
      "request=coalesce(excluded.request, request)");
  put.text(1, record.id).number(2, static_cast<int64_t>(record.state)).number(3, record.started_unix_ns);
  put.blob(4, encode(record));
  if (record.request) put.blob(5, encode(*record.request));
  return put.run();
}

bool write_rows(sqlite3* db, const std::string& session, const transfer::Batch& batch) {
  if (batch.record && !write_record(db, *batch.record)) return false;
  if (batch.drop_files && !drop(db, "file", session)) return false;
  Statement file(db, "INSERT OR REPLACE INTO file VALUES(?,?,?)");
  for (const transfer::FileRow& row : batch.files) {
    file.text(1, session).number(2, row.file.value());
    if (!file.blob(3, encode(row.record)).run()) return false;
  }
  return write_blocks(db, session, batch);
}

}  // namespace

Status Journal::write(const std::string& session, const transfer::Batch& batch, Durability durability) {
  const std::scoped_lock lock(state_->mutex);
  if (auto status = state_->prepare(durability); !status) return status;
  if (auto status = state_->run("BEGIN IMMEDIATE"); !status) return status;
  if (!write_rows(state_->db, session, batch)) {
    const Error error = state_->error("writing");
    (void)state_->run("ROLLBACK");
    return error;
  }
  if (auto status = state_->run("COMMIT"); !status) {
    (void)state_->run("ROLLBACK");
    return status;
  }
  return {};
}

Result<std::vector<transfer::Record>> Journal::sessions() {
  const std::scoped_lock lock(state_->mutex);
  std::vector<transfer::Record> sessions;
  Statement select(state_->db, "SELECT id, record, request FROM session ORDER BY started, id");
  while (select.row()) {
    std::optional<transfer::Record> record = decode_record(select.bytes(1), select.bytes(2));
    if (!record || record->id != select.bytes(0)) return damaged(state_->path, "session " + select.bytes(0));
    sessions.push_back(std::move(*record));
  }
  if (select.failed()) return state_->error("reading");
  return sessions;
}

Result<std::optional<transfer::Record>> Journal::session(const std::string& id) {
  const std::scoped_lock lock(state_->mutex);
  return state_->session(id);
}

Result<std::optional<transfer::Record>> Journal::State::session(const std::string& id) const {
  Statement select(db, "SELECT record, request FROM session WHERE id=?");
  if (!select.text(1, id).row()) {
    if (select.failed()) return error("reading");
    return std::optional<transfer::Record>();
  }
  std::optional<transfer::Record> record = decode_record(select.bytes(0), select.bytes(1));
  if (!record || record->id != id) return damaged(path, "session " + id);
  return record;
}

Result<std::optional<transfer::Saved>> Journal::saved(const std::string& id, bool with_blocks) {
  const std::scoped_lock lock(state_->mutex);
  Result<std::optional<transfer::Record>> record = state_->session(id);
  if (!record) return record.error();
  if (!record->has_value()) return std::optional<transfer::Saved>();
  transfer::Saved saved{.record = std::move(**record)};
  Statement files(state_->db, "SELECT object, record FROM file WHERE session=? ORDER BY object");
  files.text(1, id);
  while (files.row()) {
    std::optional<catalog::File> file = decode_file(files.bytes(1));
    if (!file || files.number(0) != static_cast<int64_t>(saved.files.size()))
      return damaged(state_->path, "file " + std::to_string(files.number(0)) + " of session " + id);
    saved.files.push_back(std::move(*file));
  }
  if (files.failed()) return state_->error("reading");
  saved.blocks.resize(saved.files.size());
  if (!with_blocks) return std::optional(std::move(saved));
  Statement blocks(state_->db,
                   "SELECT object, block, content FROM block WHERE session=? ORDER BY object, block");
  blocks.text(1, id);
  while (blocks.row()) {
    // Not yet an ObjectId, which has fewer bits: another object's number could come of it.
    if (blocks.number(0) < 0 || blocks.number(0) >= static_cast<int64_t>(saved.files.size()))
      return damaged(state_->path, "a block of session " + id);
    saved.blocks[ObjectId(static_cast<uint32_t>(blocks.number(0)))].push_back(
        {.id = recovery::BlockId(static_cast<uint64_t>(blocks.number(1))), .bytes = blocks.bytes(2)});
  }
  if (blocks.failed()) return state_->error("reading");
  return std::optional(std::move(saved));
}

namespace {

// A session that ended before then began before then.
constexpr const char* kOld =
    "SELECT id FROM (SELECT id, started FROM session WHERE state>=? ORDER BY started DESC LIMIT -1 OFFSET ?)"
    " WHERE started<? ORDER BY started";

int64_t ended_unix_ns(const transfer::Record& record) {
  return record.started_unix_ns + static_cast<int64_t>(record.summary.elapsed_ns);
}

}  // namespace

Status Journal::forget_ended(size_t keep, int64_t before_unix_ns) {
  std::vector<std::string> old;
  {
    const std::scoped_lock lock(state_->mutex);
    Statement select(state_->db, kOld);
    select.number(1, static_cast<int64_t>(transfer::RecordState::kSucceeded))
        .number(2, static_cast<int64_t>(keep))
        .number(3, before_unix_ns);
    while (select.row()) old.push_back(select.bytes(0));
    if (select.failed()) return state_->error("reading");
  }
  size_t forgotten = 0;
  for (auto id = old.begin(); id != old.end() && forgotten < kForgottenAtOnce; ++id) {
    const std::scoped_lock lock(state_->mutex);
    const Result<std::optional<transfer::Record>> record = state_->session(*id);
    if (!record) return record.error();
    if (!record->has_value() || !is_over(**record) || ended_unix_ns(**record) >= before_unix_ns) continue;
    if (Status status = state_->forget(*id); !status) return status;
    ++forgotten;
  }
  return {};
}

// What a crash brings back is forgotten again.
Status Journal::State::forget(const std::string& id) {
  if (auto status = prepare(Durability::kProcess); !status) return status;
  if (auto status = run("BEGIN IMMEDIATE"); !status) return status;
  bool good = true;
  for (const char* sql : {"DELETE FROM session WHERE id=?", "DELETE FROM file WHERE session=?",
                          "DELETE FROM block WHERE session=?"})
    good = good && Statement(db, sql).text(1, id).run();
  if (!good) {
    const Error failed = error("writing");
    (void)run("ROLLBACK");
    return failed;
  }
  if (auto status = run("COMMIT"); !status) {
    (void)run("ROLLBACK");
    return status;
  }
  return {};
}

}  // namespace sluice::journal
