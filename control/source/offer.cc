// SPDX-License-Identifier: Apache-2.0
#include "control/source/offer.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "control/catalog/asked_names.h"
#include "control/words/kept.h"

namespace sluice::transfer {
namespace {

constexpr size_t kFilesAheadMax = 64;

// Nothing of it is cut, kept or computed as both nodes have yet to agree.
bool is_plain(const catalog::File& file) {
  return file.kind == catalog::FileKind::kFile && file.list == catalog::ListState::kWhole &&
         file.size_bytes != 0 && file.holes.empty() && file.keep == catalog::Keep() &&
         file.attributes == catalog::Attributes() && !selection::is_part(file.part);
}

}  // namespace

std::vector<TransferOffer> offer_of(const catalog::Catalog& catalog, const Request* request,
                                    bool digests_agreed, size_t from) {
  std::vector<TransferOffer> parts(1);
  auto number = static_cast<uint32_t>(from);
  size_t holes = 0, kept_bytes = 0;  // in this part
  for (const catalog::File& file : std::span(catalog.files().begin(), catalog.files().end()).subspan(from)) {
    holes += file.holes.size();
    kept_bytes += file.attributes.kept_bytes();
    if (parts.back().files.size() == kFilesPerOffer || holes > catalog::kHolesMax ||
        kept_bytes > kKeptBytesPerOffer) {
      parts.back().more = true;
      parts.emplace_back();
      holes = file.holes.size();
      kept_bytes = file.attributes.kept_bytes();
    }
    parts.back().files.push_back({.number = number++,
                                  .name = file.name,
                                  .size_bytes = file.size_bytes,
                                  .mode = file.mode,
                                  .mtime_ns = file.mtime_ns,
                                  .kind = file.kind,
                                  .members = file.pack.members,
                                  .holes = file.holes,
                                  .attributes = file.attributes,
                                  .expected = request == nullptr || file.packed()
                                                  ? digests::Values()
                                                  : digests::expected_of(request->expected, file.name)});
  }
  for (TransferOffer& part : parts) {
    part.growing = catalog.growing();
    part.keep = catalog.keep().bits();
    if (catalog.file_count() == 1) part.part = catalog.files().begin()->part;
    part.into_directory = catalog.file_count() > 1 || catalog.has_packs() || catalog.grew();
    if (request == nullptr) continue;
    part.destination = request->destination;
    // "DIR/" means what is in it, and that goes into a directory, be it one file.
    part.into_directory |=
        part.destination.ends_with('/') || catalog::AskedNames(request->source_paths).any();
    part.overwrite = request->options.overwrite;
    part.verify = request->options.verify;
    part.mkdir = request->options.mkdir;
    if (digests_agreed) part.digests = request->options.digests;
  }
  return parts;
}

std::optional<TransferOffer> offer_ahead(const std::vector<catalog::File>& files, const Request& request) {
  if (files.empty() || files.size() > kFilesAheadMax || !std::ranges::all_of(files, is_plain)) return {};
  if (request.options.digests != 0 || request.expected != nullptr ||
      selection::is_part(request.selection.part))
    return {};
  catalog::Catalog catalog;
  for (const catalog::File& file : files) catalog.add(file);
  std::vector<TransferOffer> parts = offer_of(catalog, &request, false);
  if (parts.size() != 1) return {};
  return std::move(parts.front());
}

}  // namespace sluice::transfer
