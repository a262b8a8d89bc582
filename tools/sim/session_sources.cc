// The files of a simulated source: found, at once or while data moves, opened and looked at again.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/sim/session.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kOpenNs = 50'000;  // opening, asking what there is

// In one of so many seeds somebody has the sources open for writing, in another they get other rights
// meanwhile.
constexpr uint64_t kSuspects = 8;
constexpr size_t kBlockBytes = 4096;

// As a file system tells them that keeps no block of zeros.
std::vector<base::Range> holes_of(const std::vector<uint8_t>& bytes) {
  std::vector<base::Range> holes;
  for (size_t at = 0; at < bytes.size(); at += kBlockBytes) {
    const auto begin = bytes.begin() + static_cast<ptrdiff_t>(at);
    const auto end = begin + static_cast<ptrdiff_t>(std::min(kBlockBytes, bytes.size() - at));
    if (std::any_of(begin, end, [](uint8_t byte) { return byte != 0; })) continue;
    if (holes.empty() || holes.back().end() != at) holes.push_back({.offset = at, .length = 0});
    holes.back().length += static_cast<uint64_t>(end - begin);
  }
  return holes;
}

}  // namespace

catalog::File Session::source_file(const std::string& path, uint32_t number) const {
  const catalog::FileKind kind = kind_of(host_.plan, number);
  const bool packed = kind != catalog::FileKind::kFile;
  const uint64_t inode_number = host_.files.find(path);
  const FileSystem::Inode& inode = *host_.files.inode(inode_number);
  return {.name = packed ? std::string() : path,
          .shown = path,
          .path = path,
          .size_bytes = inode.now.size(),
          .mtime_ns = static_cast<int64_t>(inode.version),
          .ctime_ns = 1,
          .identity = {.inode = inode_number},
          .suspect = !packed && host_.plan.seed % kSuspects == 1,
          .kind = kind,
          .pack = {.members = packed ? 1U : 0U},
          .holes = packed ? std::vector<base::Range>() : holes_of(inode.now)};
}

// A source whose memory, or owner, is bad: what it says that it has read is not what it sends.
transfer::Message Session::lied(transfer::Message message) {
  auto* const said = std::get_if<transfer::ExtentDigests>(&message);
  const SourcesPlan& plan = host_.plan.several;
  if (said == nullptr || plan.lie != Lie::kWrongDigests || plan.liar != host_.node) return message;
  for (uint64_t& digest : said->digests) {
    if (!lies_.chance(200'000)) continue;
    digest ^= 1;
    host_.trace.add(host_.now_ns(), host_.node, "lies", said->object.value(), said->offset);
  }
  return message;
}

void Session::foresee() {
  std::vector<catalog::File> files;
  for (const std::string& path : transfer_->job().request->source_paths)
    files.push_back(source_file(path, static_cast<uint32_t>(files.size())));
  transfer_->begin_foreseen(files);
}

void Session::perform(const transfer::OpenSources& e) {
  std::vector<catalog::File> files;
  size_t count = e.paths.size();
  if (host_.plan.growing) count = 1 + host_.random.below(count);
  for (uint32_t i = 0; i < count; ++i) files.push_back(source_file(e.paths[i], i));
  sources_open_ = true;
  // That there is no more may have to be found as well.
  if (host_.plan.growing && (count < e.paths.size() || host_.random.flip())) {
    files.back().list = catalog::ListState::kGrowing;
    listed_ = count;
  }
  answer(transfer::SourcesOpened{.files = std::move(files), .of_leg = e.of_leg}, kOpenNs);
}

// A control that has not begun to read it knows from its journal what it has.
void Session::perform(const transfer::ReadList& e) {
  if (!listed_) listed_ = transfer_->job().catalog()->file_count();
  transfer::ListRead read{.tag = e.tag, .files = std::vector<catalog::File>()};
  const size_t left = e.paths.size() - *listed_;
  for (size_t more = left == 0 ? 0 : 1 + host_.random.below(left); more != 0; --more, ++*listed_)
    read.files->push_back(source_file(e.paths[*listed_], static_cast<uint32_t>(*listed_)));
  read.ended = *listed_ == e.paths.size() && (read.files->empty() || host_.random.flip());
  answer(std::move(read), host_.random.below(host_.plan.list_ns + 1));
}

void Session::perform(const transfer::ReopenSources&) {
  transfer::SourcesReopened reopened;
  ObjectId object;
  for (const catalog::File& file : transfer_->job().catalog()->files()) {
    const ObjectId its = object++;
    const FileSystem::Inode* const inode = host_.files.inode(host_.files.find(file.path));
    if (sources_open_ || (inode != nullptr && static_cast<int64_t>(inode->version) == file.mtime_ns))
      continue;
    reopened.failed.emplace_back(its, Error{ErrorCode::kIntegrity, "the source changed"});
  }
  sources_open_ = true;
  answer(reopened, kOpenNs);
}

void Session::perform(const transfer::CheckSource& e) {
  transfer::SourceChecked checked{.object = e.object, .otherwise = e.otherwise};
  const catalog::File& file = transfer_->job().catalog()->files_of(e.object).front();
  if (static_cast<int64_t>(host_.files.inode(file.identity.inode)->version) != file.mtime_ns) {
    checked.status = Error{ErrorCode::kIntegrity, "the source changed"};
  }
  checked.ctime_ns = host_.plan.seed % kSuspects == 2 ? 2 : 1;
  answer(checked, kOpenNs);
}

}  // namespace sluice::sim
