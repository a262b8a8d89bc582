// Divides what a tree holds into objects: files that are large by themselves, all others in packs.
//
// Large files are to be spread among the packs: so the many names of these are written while the bytes of
// those are on their way. The last pack comes last: hard links and the times of directories, when all that
// they concern is there.
//
// With the number of packs and of large files both limits grow, so that whatever a tree holds fits into a
// session. Packs that are closed, and large files, may be taken while more is added; the last pack comes
// last.
//
// Pure. A pack's list is kept as bytes, some sixty for each name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/catalog/catalog.h"
#include "control/tree/known_names.h"
#include "control/tree/pack.h"
#include "dataplane/base/error.h"

namespace sluice::tree {

struct PackerLimits {
  uint64_t large_bytes = 1U << 20;  // a file that is longer is an object of its own
  uint64_t pack_bytes = 4U << 20;
  uint32_t pack_entries = 4096;
};

class Packer {
 public:
  // `known` was taken from another one, and is left out.
  explicit Packer(PackerLimits limits = {}, KnownNames known = {});

  // Of all that follow: `path` by which the directory is opened again, `shown` for people, `prefix` under
  // which its names arrive; empty: as they are.
  void begin_tree(std::string path, std::string shown, std::string prefix);
  void add(catalog::Entry entry);
  // What a list wants of names, by the path under which each arrives.
  void expect(std::shared_ptr<const digests::Expected> list) { expected_ = std::move(list); }
  bool knows(std::string_view name) { return known_.take(name); }  // and not a second time

  struct Large {
    catalog::File file;
    catalog::Entry entry;
  };
  // Files that become objects of their own, the first of them. What cannot be opened is given back to add(),
  // with its failure.
  std::vector<Large> take_large(size_t most = SIZE_MAX);
  std::vector<catalog::File> take_closed();  // packs
  // The packs but the last one, then the last one: nothing is added behind them.
  std::vector<catalog::File> take_packs();
  catalog::File take_last();
  size_t large_count() const { return large_.size(); }
  size_t closed_count() const { return packs_.size(); }
  bool has_last() const { return !links_.empty() || !directories_.empty(); }

 private:
  struct Tree {
    std::string path;
    std::string shown;
    std::string prefix;
  };
  std::string arriving(const std::string& path) const;
  catalog::File pack_of(const std::vector<catalog::Entry>& entries, catalog::FileKind kind) const;
  void close_pack();
  void grow();

  PackerLimits limits_;
  std::shared_ptr<const digests::Expected> expected_;
  KnownNames known_;
  size_t packs_made_ = 0;
  size_t large_made_ = 0;
  Tree tree_;
  std::vector<catalog::Entry> open_;  // the pack that is being filled
  uint64_t open_bytes_ = kPackHeadBytes;
  std::vector<catalog::File> packs_;
  std::vector<Large> large_;
  std::vector<catalog::Entry> links_;
  std::vector<catalog::Entry> directories_;
  size_t last_kept_ = 0;  // of these
};

}  // namespace sluice::tree
