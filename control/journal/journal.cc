// SPDX-License-Identifier: Apache-2.0
#include "control/journal/journal.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <mutex>
#include <utility>

namespace sluice::journal {
namespace {

constexpr int kVersion = 1;
constexpr int kApplication = 0x534C4A31;  // "SLJ1"
constexpr int kBusyMs = 5000;

constexpr const char* kSchema =
    "CREATE TABLE session(id TEXT PRIMARY KEY, state INTEGER NOT NULL, started INTEGER NOT NULL,"
    " record BLOB NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE file(session TEXT NOT NULL, object INTEGER NOT NULL, record BLOB NOT NULL,"
    " PRIMARY KEY(session, object)) WITHOUT ROWID;"
    "CREATE TABLE block(session TEXT NOT NULL, object INTEGER NOT NULL, block INTEGER NOT NULL,"
    " content BLOB NOT NULL, PRIMARY KEY(session, object, block)) WITHOUT ROWID;";

}  // namespace

struct Journal::State {
  std::filesystem::path path;
  sqlite3* db = nullptr;
  std::mutex mutex;
  Durability durability = Durability::kPower;

  ~State() { sqlite3_close_v2(db); }

  Error error(const std::string& what) const {
    return {ErrorCode::kStorage, "journal " + path.string() + ": " + what + ": " + sqlite3_errmsg(db) +
                                     "; check the disk, or move the file away to begin without it"};
  }
  Status run(const char* sql) const {
    if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error("writing");
    return {};
  }
  Result<int> number(const char* pragma) const;
  Status set_up();
  Status prepare(Durability wanted);
};

namespace {

// A prepared statement; parameters are bound from 1 on.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) {
    ok_ = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr) == SQLITE_OK;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& text(int at, const std::string& value) {
    ok_ = ok_ && sqlite3_bind_text(statement_, at, value.data(), static_cast<int>(value.size()),
                                   SQLITE_TRANSIENT) == SQLITE_OK;
    return *this;
  }
  Statement& blob(int at, const std::string& value) {
    ok_ = ok_ && sqlite3_bind_blob(statement_, at, value.data(), static_cast<int>(value.size()),
                                   SQLITE_TRANSIENT) == SQLITE_OK;
    return *this;
  }
  Statement& number(int at, int64_t value) {
    ok_ = ok_ && sqlite3_bind_int64(statement_, at, value) == SQLITE_OK;
    return *this;
  }
  // True while there is a row; afterwards failed() tells whether that was the end.
  bool row() {
    const int result = ok_ ? sqlite3_step(statement_) : SQLITE_ERROR;
    ok_ = result == SQLITE_ROW || result == SQLITE_DONE;
    return result == SQLITE_ROW;
  }
  bool run() {
    while (row()) {
    }
    const bool done = ok_;
    if (statement_ != nullptr) sqlite3_reset(statement_);
    return done;
  }
  bool failed() const { return !ok_; }
  int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string bytes(int column) const {
    const void* data = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return data == nullptr ? "" : std::string(static_cast<const char*>(data), static_cast<size_t>(size));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  bool ok_ = false;
};

Error damaged(const std::filesystem::path& path, std::string what) {
  for (char& c : what)
    c = static_cast<unsigned char>(c) < ' ' || c == 0x7F ? '?' : c;  // a name from the file
  return {ErrorCode::kStorage, "journal " + path.string() + ": " + what +
                                   " cannot be read: the file is damaged; move it away to begin without it "
                                   "(unfinished sessions start anew)"};
}

}  // namespace

Result<int> Journal::State::number(const char* pragma) const {
  Statement statement(db, pragma);
  if (!statement.row()) return error("reading");
  return static_cast<int>(statement.number(0));
}

Status Journal::State::set_up() {
  sqlite3_busy_timeout(db, kBusyMs);
  if (auto status = run("PRAGMA journal_mode=WAL; PRAGMA locking_mode=EXCLUSIVE; PRAGMA synchronous=FULL;");
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
  if (*version != kVersion)
    return Error{ErrorCode::kStorage, "journal " + path.string() + ": has version " +
                                          std::to_string(*version) + ", this sluice-control reads " +
                                          std::to_string(kVersion) +
                                          "; run the version that wrote it, or move it away"};
  return {};
}

Status Journal::State::prepare(Durability wanted) {
  if (wanted == durability) return {};
  durability = wanted;
  return run(wanted == Durability::kPower ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
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
  return std::unique_ptr<Journal>(new Journal(std::move(state)));
}

namespace {

bool write_blocks(sqlite3* db, const Batch& batch) {
  Statement drop(db, "DELETE FROM block WHERE session=?");
  for (const std::string& id : batch.end) {
    if (!drop.text(1, id).run()) return false;
  }
  for (const std::string& id : batch.forget) {
    if (!drop.text(1, id).run()) return false;
  }
  Statement restart(db, "DELETE FROM block WHERE session=? AND object=?");
  for (const auto& [id, object] : batch.restart) {
    if (!restart.text(1, id).number(2, object).run()) return false;
  }
  Statement put(db, "INSERT OR REPLACE INTO block VALUES(?,?,?,?)");
  for (const BlockRows& rows : batch.blocks) {
    for (const recovery::Block& block : rows.blocks) {
      put.text(1, rows.session).number(2, rows.object).number(3, static_cast<int64_t>(block.id.value()));
      if (!put.blob(4, block.bytes).run()) return false;
    }
  }
  return true;
}

bool write_rows(sqlite3* db, const Batch& batch) {
  Statement session(db, "INSERT OR REPLACE INTO session VALUES(?,?,?,?)");
  for (const SessionRecord& record : batch.sessions) {
    session.text(1, record.id()).number(2, record.state()).number(3, record.started_unix_ns());
    if (!session.blob(4, record.SerializeAsString()).run()) return false;
  }
  Statement forget(db, "DELETE FROM file WHERE session=?");
  for (const std::string& id : batch.forget) {
    if (!forget.text(1, id).run()) return false;
  }
  Statement file(db, "INSERT OR REPLACE INTO file VALUES(?,?,?)");
  for (const FileRow& row : batch.files) {
    file.text(1, row.session).number(2, row.object);
    if (!file.blob(3, row.record.SerializeAsString()).run()) return false;
  }
  return write_blocks(db, batch);
}

}  // namespace

Status Journal::write(const Batch& batch, Durability durability) {
  const std::scoped_lock lock(state_->mutex);
  if (auto status = state_->prepare(durability); !status) return status;
  if (auto status = state_->run("BEGIN IMMEDIATE"); !status) return status;
  if (!write_rows(state_->db, batch)) {
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

Result<std::vector<SessionRecord>> Journal::sessions() {
  const std::scoped_lock lock(state_->mutex);
  std::vector<SessionRecord> sessions;
  Statement select(state_->db, "SELECT id, record FROM session ORDER BY started, id");
  while (select.row()) {
    SessionRecord record;
    if (!record.ParseFromString(select.bytes(1)) || record.id() != select.bytes(0))
      return damaged(state_->path, "session " + select.bytes(0));
    sessions.push_back(std::move(record));
  }
  if (select.failed()) return state_->error("reading");
  return sessions;
}

Result<std::optional<SessionRecord>> Journal::session(const std::string& id) {
  const std::scoped_lock lock(state_->mutex);
  Statement select(state_->db, "SELECT record FROM session WHERE id=?");
  SessionRecord record;
  if (!select.text(1, id).row()) {
    if (select.failed()) return state_->error("reading");
    return std::optional<SessionRecord>();
  }
  if (!record.ParseFromString(select.bytes(0)) || record.id() != id)
    return damaged(state_->path, "session " + id);
  return std::optional(std::move(record));
}

Result<std::vector<FileRow>> Journal::files(const std::string& session) {
  const std::scoped_lock lock(state_->mutex);
  std::vector<FileRow> files;
  Statement select(state_->db, "SELECT object, record FROM file WHERE session=? ORDER BY object");
  select.text(1, session);
  while (select.row()) {
    FileRow row{.session = session, .object = static_cast<uint32_t>(select.number(0))};
    if (select.number(0) != static_cast<int64_t>(files.size()) ||
        !row.record.ParseFromString(select.bytes(1)))
      return damaged(state_->path, "file " + std::to_string(select.number(0)) + " of session " + session);
    files.push_back(std::move(row));
  }
  if (select.failed()) return state_->error("reading");
  return files;
}

Result<std::vector<recovery::Block>> Journal::blocks(const std::string& session, uint32_t object) {
  const std::scoped_lock lock(state_->mutex);
  std::vector<recovery::Block> blocks;
  Statement select(state_->db,
                   "SELECT block, content FROM block WHERE session=? AND object=? ORDER BY block");
  select.text(1, session).number(2, object);
  while (select.row()) {
    blocks.push_back(
        {.id = recovery::BlockId(static_cast<uint64_t>(select.number(0))), .bytes = select.bytes(1)});
  }
  if (select.failed()) return state_->error("reading");
  return blocks;
}

Status Journal::forget_ended(size_t keep) {
  const std::scoped_lock lock(state_->mutex);
  Statement select(state_->db,
                   "SELECT id FROM session WHERE state>=? ORDER BY started DESC LIMIT -1 OFFSET ?");
  select.number(1, SessionRecord::SUCCEEDED).number(2, static_cast<int64_t>(keep));
  std::vector<std::string> old;
  while (select.row()) old.push_back(select.bytes(0));
  if (select.failed()) return state_->error("reading");
  if (old.empty()) return {};
  if (auto status = state_->run("BEGIN IMMEDIATE"); !status) return status;
  bool good = true;
  for (const char* sql : {"DELETE FROM session WHERE id=?", "DELETE FROM file WHERE session=?",
                          "DELETE FROM block WHERE session=?"}) {
    Statement drop(state_->db, sql);
    for (const std::string& id : old) good = good && drop.text(1, id).run();
  }
  const Status ended = state_->run(good ? "COMMIT" : "ROLLBACK");
  if (!good) return state_->error("writing");
  return ended;
}

}  // namespace sluice::journal
