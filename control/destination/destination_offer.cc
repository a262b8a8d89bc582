// What a source offers: is it what may be stored here?
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "control/catalog/asked_names.h"
#include "control/destination/destination_files.h"
#include "control/words/bounds.h"
#include "control/words/kept.h"
#include "dataplane/base/text.h"

namespace sluice::transfer {
namespace {

constexpr uint64_t kBytesTotalMax = 1ULL << 62;

using catalog::AskedNames;
using catalog::last_name;

bool of_tree(const OfferedFile& file) {
  return file.kind != catalog::FileKind::kFile || file.name.find('/') != std::string::npos;
}

bool answers(const OfferedFile& file, std::string_view path) {
  if (path.starts_with(kMemoryPrefix)) return file.name == fmt::format("memory-{}", file.size_bytes);
  return file.name == last_name(path);
}

bool good_holes(const OfferedFile& file, uint32_t extent_bytes) {
  return catalog::good_holes(file.holes, file.size_bytes, extent_bytes) &&
         (file.holes.empty() || file.kind == catalog::FileKind::kFile);
}

// A part is of one file, of which all that is offered is the object that carries it.
std::string_view part_problem(const TransferOffer& offer, bool discard) {
  if (!selection::is_part(offer.part)) return "";
  if (offer.files.size() != 1 || offer.growing || of_tree(offer.files.front())) return "is not of one file";
  if (!offer.files.front().holes.empty()) return "has holes";
  if (discard) return "would be discarded";
  if (offer.digests != 0) return "wants digests of itself";
  return selection::offered_part_problem(offer.part, offer.files.front().size_bytes);
}

std::string_view kept_problem(const OfferedFile& file, const TransferOffer& offer) {
  if (file.kind != catalog::FileKind::kFile) return file.attributes.empty() ? "" : "an owner of a pack";
  return catalog::attributes_problem(file.attributes, selection::Keep::of(offer.keep),
                                     catalog::Bearer::kFile);
}

}  // namespace

std::optional<DestinationFiles::Wish> DestinationFiles::wish_of(const Request* request) {
  if (request == nullptr) return std::nullopt;
  return Wish{.paths = request->source_paths,
              .selection = request->selection,
              .destination = request->destination,
              .into_directory = request->into_directory(),
              .overwrite = request->options.overwrite,
              .verify = request->options.verify,
              .mkdir = request->options.mkdir,
              .digests = request->options.digests,
              .expected = request->expected};
}

Result<bool> DestinationFiles::take_offer(const TransferOffer& part, const Wish* wish) {
  if (phase_ == FilesPhase::kIdle) phase_.change(FilesPhase::kOffer);
  return add_part(part, wish);
}

Result<bool> DestinationFiles::take_more(const TransferOffer& part, const Wish* wish) {
  return add_part(part, wish);
}

Result<bool> DestinationFiles::add_part(const TransferOffer& part, const Wish* wish) {
  if (!std::exchange(offering_, true)) {
    offer_ = {.destination = part.destination,
              .into_directory = part.into_directory,
              .overwrite = part.overwrite,
              .verify = part.verify,
              .mkdir = part.mkdir,
              .growing = part.growing,
              .keep = part.keep,
              .part = part.part,
              .digests = part.digests};
  }
  if (part.keep != offer_.keep || (part.keep & ~selection::Keep::kKnown) != 0)
    return Error{
        ErrorCode::kIncompatible,
        "the peer's offer keeps more of each name than is known here, or not the same of all: run one "
        "version on both nodes"};
  if (const digests::Mask unknown = part.digests & ~settings_.digests_known; unknown != 0 && wish == nullptr)
    return Error{ErrorCode::kIncompatible,
                 fmt::format("the peer wants digests that this node cannot compute ({}): leave them out, or "
                             "upgrade this node",
                             (unknown & digests::kAllKinds) == 0 ? "of kinds that are not known here"
                                                                 : digests::names_of(unknown))};
  if (part.digests != offer_.digests && wish == nullptr)
    return Error{ErrorCode::kIncompatible, "the peer's offer wants digests of some files, and not of all"};
  if (part.more && part.files.empty()) {
    return Error{ErrorCode::kIncompatible, "the peer sends a part of an offer without a file"};
  }
  if (offer_.files.size() + part.files.size() > catalog::kFilesMax) {
    return Error{ErrorCode::kIncompatible,
                 fmt::format("the peer offers more than {} files", catalog::kFilesMax)};
  }
  offer_.files.insert(offer_.files.end(), part.files.begin(), part.files.end());
  if (part.more) return false;
  offering_ = false;
  if (wish != nullptr) {  // what the operator here asked for, not what the peer says
    offer_.destination = wish->destination;
    offer_.into_directory = wish->into_directory || AskedNames(wish->paths).any() ||
                            std::any_of(offer_.files.begin(), offer_.files.end(), of_tree) ||
                            offer_.growing || catalog_.grew();
    offer_.overwrite = wish->overwrite;
    offer_.verify = wish->verify;
    offer_.mkdir = wish->mkdir;
    offer_.digests = wish->digests;
    for (OfferedFile& file : offer_.files) file.expected = digests::expected_of(wish->expected, file.name);
    if (Status status = check_kept(offer_.keep, wish->selection.keep); !status) return status.error();
    if (Status status = check_asked_for(*wish); !status) return status.error();
  }
  if (Status status = check(offer_); !status) return status.error();
  if (agreed()) {
    const bool replicas = wish != nullptr && wish->replicas;
    if (Status status = check_same(replicas); !status) return status.error();
    for (const OfferedFile& file : offer_.files)
      if (file.number < catalog_.file_count()) take_holes(file, replicas);
  }
  return true;
}

// Should an unfinished file be gone, it is made with these. A replica may have bytes where another one has a
// hole: they are compared like any others.
void DestinationFiles::take_holes(const OfferedFile& file, bool replicas) {
  std::vector<base::Range>& holes = catalog_.file(catalog::FileId(file.number)).holes;
  if (!replicas) {
    holes = file.holes;
    return;
  }
  catalog::CommonHoles found = catalog::common_holes(holes, file.holes);
  for (const base::Range& range : found.rest)
    no_holes_.push_back({.object = ObjectId(file.number), .range = range});
  holes = std::move(found.common);
}

// Where the offer begins in the list; without files it only ends it.
uint32_t DestinationFiles::first_offered() const {
  return offer_.files.empty() ? static_cast<uint32_t>(catalog_.file_count()) : offer_.files.front().number;
}

Status DestinationFiles::check_place(const TransferOffer& offer) const {
  const auto bad = [](std::string what) { return Error{ErrorCode::kIncompatible, std::move(what)}; };
  const bool moves = phase_ == FilesPhase::kReady;
  if (offer.files.empty() && (!moves || offer.growing)) return bad("the peer offers no file");
  if (first_offered() > (moves ? catalog_.file_count() : 0))
    return bad(fmt::format("the peer's offer begins with file {}", first_offered()));
  if (first_offered() + offer.files.size() > catalog::kFilesMax)
    return bad(fmt::format("the peer offers more than {} files", catalog::kFilesMax));
  if (first_offered() != 0 && !offer.files.empty() &&
      catalog_.file(catalog::FileId(first_offered() - 1)).kind == catalog::FileKind::kLastPack)
    return bad("the peer offers something behind the last pack of a tree");
  if (catalog_.file_count() != 0 && offer.keep != catalog_.keep().bits())
    return bad(
        "the peer's offer keeps something else of each name than it did before: begin another session");
  if (offer.destination.empty()) return Error{ErrorCode::kUsage, "no destination given"};
  if ((first_offered() + offer.files.size() > 1 || offer.growing) && !offer.into_directory) {
    return Error{ErrorCode::kUsage, fmt::format("{}: several files need a directory", offer.destination)};
  }
  return {};
}

// With what is known of the files before it.
Status DestinationFiles::check(const TransferOffer& offer) const {
  const auto bad = [](std::string what) { return Error{ErrorCode::kIncompatible, std::move(what)}; };
  if (Status status = check_place(offer); !status) return status;
  const uint32_t first = first_offered();
  uint64_t total = 0;
  size_t holes = 0;
  size_t kept_bytes = 0;
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < first; ++i) {
    const catalog::File& file = catalog_.file(catalog::FileId(i));
    total += file.size_bytes;
    holes += file.holes.size();
    kept_bytes += file.attributes.kept_bytes();
    if (!file.packed()) names.insert(file.name);
  }
  for (size_t i = 0; i < offer.files.size(); ++i) {
    const OfferedFile& file = offer.files[i];
    if (file.number != first + i || file.size_bytes > catalog::kFileBytesMax ||
        (total += file.size_bytes) > kBytesTotalMax) {
      return bad(fmt::format("the peer's offer of file {} is wrong", first + i));
    }
    if (Status status = check_file(file, i + 1 == offer.files.size()); !status) return status;
    if (const std::string_view wrong = kept_problem(file, offer); !wrong.empty())
      return bad(fmt::format("the peer offers {} with {}", base::printable(file.name), wrong));
    if ((kept_bytes += file.attributes.kept_bytes()) > catalog::kKeptBytesOfAllMax)
      return bad("the peer offers more extended attributes and ACLs than a session may have");
    if (!good_holes(file, extent_bytes_) || (holes += file.holes.size()) > catalog::kHolesOfAllMax)
      return bad(fmt::format("the peer offers {} with holes that cannot be", base::printable(file.name)));
    if (of_tree(file) && !offer.into_directory)
      return Error{ErrorCode::kUsage, fmt::format("{}: a tree needs a directory", offer.destination)};
    if (file.kind == catalog::FileKind::kFile && !names.insert(file.name).second && !discard_) {
      return bad(fmt::format("the peer offers two files with the name \"{}\"", base::printable(file.name)));
    }
  }
  if (const std::string_view wrong = part_problem(offer, discard_); !wrong.empty())
    return bad(fmt::format("the peer offers a part that {}", wrong));
  if (Status status = check_bounds(offer, total); !status) return status;
  return check_bytes(total, extent_bytes_);
}

// A third node has ordered what the peer may offer: no more is taken.
Status DestinationFiles::check_bounds(const TransferOffer& offer, uint64_t bytes_total) const {
  if (!bounds_) return {};
  const auto beyond = [](std::string what) {
    return Error{ErrorCode::kPeerUntrusted, "the peer " + what + ": nothing is stored"};
  };
  if (offer.destination != bounds_->path)
    return beyond(fmt::format("sends to {}, and was ordered to send to {}",
                              base::printable(offer.destination), base::printable(bounds_->path)));
  if (offer.overwrite && !bounds_->overwrite)
    return beyond("wants to replace files, which it was not ordered to do");
  if (bounds_->bytes_max != 0 && bytes_total > bounds_->bytes_max)
    return beyond(
        fmt::format("offers {} bytes, and was ordered to send {} at most", bytes_total, bounds_->bytes_max));
  return {};
}

Status DestinationFiles::check_file(const OfferedFile& file, bool is_last) const {
  const auto bad = [](std::string what) { return Error{ErrorCode::kIncompatible, std::move(what)}; };
  switch (file.kind) {
    case catalog::FileKind::kFile:
      if (file.name.size() > kNameBytesMax && !of_tree(file))
        return bad(fmt::format("the peer offers a file with a name of {} bytes", file.name.size()));
      if (catalog::good_path(file.name)) return {};
      return bad(fmt::format("the peer offers a file with the name \"{}\"", base::printable(file.name)));
    case catalog::FileKind::kLastPack:
      if (!is_last) return bad("the peer offers something behind the last pack of a tree");
      [[fallthrough]];
    case catalog::FileKind::kPack:
      if (file.name.empty() && file.members != 0 && file.size_bytes >= catalog::kPackHeadBytes &&
          file.size_bytes <= catalog::kPackBytesMax)
        return {};
      return bad("the peer offers a pack of files that is none");
  }
  return bad("the peer offers a file of a kind that is not known here: upgrade this node");
}

// The peer chooses neither how many files are stored here nor what they are called.
Status DestinationFiles::check_asked_for(const Wish& wish) const {
  const std::vector<std::string>& paths = wish.paths;
  if (!selection::answers_wish(offer_.part, wish.selection.part))
    return Error{ErrorCode::kIncompatible,
                 "the peer offers another part of the file than was asked for: nothing is stored"};
  Result<selection::Choice> choice = selection::Choice::make(wish.selection);
  if (!choice) return choice.error();
  // What is in packs is checked when they are unpacked.
  const AskedNames asked(paths, std::move(*choice));
  if (asked.any() || !wish.selection.everything() || offer_.growing || catalog_.grew() ||
      std::any_of(offer_.files.begin(), offer_.files.end(), of_tree)) {
    for (const OfferedFile& file : offer_.files) {
      if (file.kind != catalog::FileKind::kFile || asked.include(file.name, false)) continue;
      return Error{ErrorCode::kIncompatible,
                   fmt::format("the peer offers {}, which was not asked for: nothing is stored",
                               base::printable(file.name))};
    }
    return {};
  }
  if (offer_.files.size() != paths.size()) {
    return Error{ErrorCode::kIncompatible,
                 fmt::format("the peer offers {} files where {} were asked for: nothing is stored",
                             offer_.files.size(), paths.size())};
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    if (answers(offer_.files[i], paths[i])) continue;
    return Error{
        ErrorCode::kIncompatible,
        fmt::format("the peer offers a file of another name where {} was asked for: nothing is stored",
                    paths[i])};
  }
  return {};
}

Status DestinationFiles::check_same(bool replicas) const {
  const size_t count = first_offered() + offer_.files.size();
  const bool more = !catalog_.growing() && (count > catalog_.file_count() || offer_.growing);
  if (more && !replicas) {
    return Error{ErrorCode::kIntegrity,
                 "the peer offers more files than it had, when it said that these were all: begin another "
                 "session"};
  }
  bool same = !more && count >= catalog_.file_count() && offer_.part == catalog_.files().begin()->part;
  for (size_t i = 0; same && i < offer_.files.size(); ++i) {
    const OfferedFile& offered = offer_.files[i];
    if (offered.number >= catalog_.file_count()) break;
    const catalog::File& known = catalog_.file(catalog::FileId(offered.number));
    same = offered.name == known.name && offered.size_bytes == known.size_bytes &&
           offered.kind == known.kind && offered.members == known.pack.members &&
           (offered.mtime_ns == known.mtime_ns || discard_ || replicas);
  }
  if (same) return {};
  if (replicas)
    return Error{ErrorCode::kIntegrity,
                 "not the same files with the same sizes: nothing more is stored; compare them with "
                 "'sluice ls -lR', or leave one of them out of --from"};
  return Error{
      ErrorCode::kIntegrity,
      "the peer offers other files than it did before: nothing more is stored, begin another session"};
}

}  // namespace sluice::transfer
