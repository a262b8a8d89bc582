// SPDX-License-Identifier: Apache-2.0
#include "control/journal/journal_state.h"

namespace sluice::journal {

// Whichever of two calls comes last: an epoch never goes down.
Status Journal::write(const transfer::LeaseRow& row) {
  const std::scoped_lock lock(state_->mutex);
  if (auto status = state_->prepare(transfer::Durability::kPower); !status) return status;
  Statement put(
      state_->db,
      "INSERT INTO lease(name, epoch, holder, used) VALUES(?,?,?,?) ON CONFLICT(name) DO UPDATE SET "
      "epoch=excluded.epoch, holder=excluded.holder, used=excluded.used "
      "WHERE excluded.epoch>=lease.epoch");
  put.text(1, row.lease.name).number(2, static_cast<int64_t>(row.lease.epoch)).text(3, row.holder);
  if (!put.number(4, row.used_unix_ns).run()) return state_->error("writing");
  return {};
}

Result<std::vector<transfer::LeaseRow>> Journal::leases() {
  const std::scoped_lock lock(state_->mutex);
  std::vector<transfer::LeaseRow> rows;
  Statement select(state_->db, "SELECT name, epoch, holder, used FROM lease ORDER BY name");
  while (select.row()) {
    transfer::LeaseRow row{
        .lease = {.name = select.bytes(0), .epoch = static_cast<uint64_t>(select.number(1))},
        .holder = select.bytes(2),
        .used_unix_ns = select.number(3)};
    if (!transfer::check_lease(row.lease)) return damaged(state_->path, "a lease");
    rows.push_back(std::move(row));
  }
  if (select.failed()) return state_->error("reading");
  return rows;
}

Status Journal::forget_leases(const std::vector<std::string>& names) {
  const std::scoped_lock lock(state_->mutex);
  if (names.empty()) return {};
  if (auto status = state_->run("BEGIN IMMEDIATE"); !status) return status;
  Statement drop(state_->db, "DELETE FROM lease WHERE name=?");
  bool good = true;
  for (const std::string& name : names) good = good && drop.text(1, name).run();
  const Status ended = state_->run(good ? "COMMIT" : "ROLLBACK");
  if (!good) return state_->error("writing");
  return ended;
}

}  // namespace sluice::journal
