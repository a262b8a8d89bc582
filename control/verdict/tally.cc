// SPDX-License-Identifier: Apache-2.0
#include "control/verdict/tally.h"

#include <algorithm>

namespace sluice::verdict {

void Tally::add(const Verdict& verdict, uint64_t interval_ns) {
  add(Row{.cause = verdict.cause, .held_ns = interval_ns, .evidence = verdict.evidence});
}

void Tally::add(const Row& row) {
  if (row.held_ns == 0) return;
  Row& own = rows_[static_cast<size_t>(row.cause)];
  own.cause = row.cause;
  own.held_ns += row.held_ns;
  own.evidence = row.evidence;
}

void Tally::add(const Tally& other) {
  for (const Row& row : other.rows_) add(row);
}

uint64_t Tally::total_ns() const {
  uint64_t total_ns = 0;
  for (const Row& row : rows_) total_ns += row.held_ns;
  return total_ns;
}

bool Tally::empty() const { return total_ns() == 0; }

std::vector<Verdict> Tally::shares() const {
  const auto all_ns = static_cast<double>(total_ns());
  std::vector<Verdict> shares;
  for (const Row& row : rows_) {
    if (row.held_ns == 0) continue;
    shares.push_back(
        {.cause = row.cause, .share = static_cast<double>(row.held_ns) / all_ns, .evidence = row.evidence});
  }
  std::stable_sort(shares.begin(), shares.end(), [](const Verdict& a, const Verdict& b) {
    if ((a.cause == Cause::kNone) != (b.cause == Cause::kNone)) return b.cause == Cause::kNone;
    return a.share > b.share;
  });
  return shares;
}

Verdict Tally::whole() const {
  const std::vector<Verdict> all = shares();
  return all.empty() ? Verdict{} : all.front();
}

std::vector<Tally::Row> Tally::rows() const {
  std::vector<Row> rows;
  for (const Row& row : rows_) {
    if (row.held_ns != 0) rows.push_back(row);
  }
  return rows;
}

}  // namespace sluice::verdict
