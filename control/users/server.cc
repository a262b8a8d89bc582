// SPDX-License-Identifier: Apache-2.0
#include "control/users/server.h"

#include <optional>
#include <utility>

#include "control/exports/exports.h"
#include "control/users/served_names.h"
#include "control/users/served_trees.h"
#include "dataplane/base/text.h"

namespace sluice::users {
namespace {

constexpr std::chrono::seconds kSendLimit{10};

using exports::DestinationFile;
using exports::Exports;

struct Reply {
  Answer answer;
  std::vector<int> beside;
  // What has these open, until the reply has left.
  UniqueFd source;
  std::optional<DestinationFile> file;
};

Error gone(const std::string& path) {
  return {ErrorCode::kStorage, base::printable(path) +
                                   ": its temporary file was removed or replaced by "
                                   "somebody; this file begins anew"};
}

Error not_named(const std::string& path) {
  return {ErrorCode::kOutsideExports,
          base::printable(path) + ": is not among the files that the command named"};
}

// A directory that is named stands for what it is to get, under names that are named as well.
Status check_name(const Served& served, const exports::DestinationSpec& spec) {
  if (!served.names) return {};
  const std::string path = spec.path.ends_with('/') ? spec.path.substr(0, spec.path.size() - 1) : spec.path;
  if (served.names->contains(path) || served.names->contains(path + "/" + spec.name)) return {};
  return not_named(path);
}

class Work {
 public:
  Work(const Served& served, const Exports& exports, Call call, UniqueFd fd)
      : served_(served), exports_(exports), call_(std::move(call)), fd_(std::move(fd)) {
    // An ACL that is kept says what others may.
    if (!call_.file.spec.keep.acls) call_.file.spec.mode &= ~static_cast<uint32_t>(served.umask);
  }

  Reply run() {
    Status status = check_name(served_, spec());
    if (status) status = perform();
    if (!status) reply_.answer.error = status.error();
    return std::move(reply_);
  }

 private:
  const exports::DestinationSpec& spec() const { return call_.file.spec; }

  Status perform() {
    switch (call_.kind) {
      case Kind::kOpenSource:
      case Kind::kOpenUnfinished:
        return open_source();
      case Kind::kCreate:
        return create();
      case Kind::kReopen:
        return reopen();
      case Kind::kFinish:
      case Kind::kCommit:
      case Kind::kDrop:
        return on_file();
      case Kind::kIsCommitted:
        return is_committed();
      default:  // of others
        return {};
    }
  }

  Status open_source() {
    if (call_.kind == Kind::kOpenSource && served_.names) {
      const auto tree = exports_.open_tree(spec().path);
      if (!tree) return tree.error();
      if (tree->has_value()) return Exports::not_as_user(spec().path, "it is a directory");
    }
    auto opened = call_.kind == Kind::kOpenSource ? exports_.open_source(spec().path)
                                                  : exports_.open_unfinished(spec().path);
    if (!opened) return opened.error();
    reply_.source = std::move(opened->fd);
    reply_.beside = {reply_.source.get()};
    return {};
  }

  Status create() {
    Result<DestinationFile> made = exports_.create_destination(spec(), &reply_.answer.failure);
    if (!made) return made.error();
    // What was a file's name when it was typed may be a directory by now.
    if (served_.names && !served_.names->contains(made->name_path())) return not_named(made->name_path());
    reply_.answer.name_path = made->name_path();
    reply_.beside = {made->fd(), made->directory_fd()};
    reply_.file = std::move(*made);
    return {};
  }

  Status reopen() {
    const bool came = static_cast<bool>(fd_);
    Result<std::optional<DestinationFile>> found =
        exports_.reopen_destination(spec(), call_.file.identity, std::move(fd_));
    if (!found) return found.error();
    reply_.answer.found = found->has_value();
    if (!found->has_value()) return {};
    (*found)->keep();
    if (!came) reply_.beside = {(*found)->fd()};
    reply_.beside.push_back((*found)->directory_fd());
    reply_.file = std::move(**found);
    return {};
  }

  Status on_file() {
    if (!fd_) return Error{ErrorCode::kInternal, "sluice-control sent no file to work on"};
    Result<std::optional<DestinationFile>> found =
        exports_.reopen_destination(spec(), call_.file.identity, std::move(fd_));
    if (!found) return found.error();
    if (!found->has_value()) return without_file();
    DestinationFile& file = **found;
    file.keep();  // only what is asked for removes it
    if (call_.kind == Kind::kFinish) return file.finish();
    if (call_.kind == Kind::kDrop) return file.drop();
    Status status = file.commit();
    reply_.answer.found = file.has_name();
    return status;
  }

  // Somebody took it away; or what is asked for was done, and nobody heard of it.
  Status without_file() {
    if (call_.kind == Kind::kDrop) return {};
    if (call_.kind == Kind::kCommit) {
      if (const Status status = is_committed(); !status) return status;
      if (reply_.answer.found) return {};
    }
    return gone(spec().path);
  }

  Status is_committed() {
    const Result<bool> named = exports_.is_committed(spec().path, call_.file.identity);
    if (!named) return named.error();
    reply_.answer.found = *named;
    return {};
  }

  const Served& served_;
  const Exports& exports_;
  Call call_;
  UniqueFd fd_;
  Reply reply_;
};

}  // namespace

bool serve(Channel& channel, const Served& served, std::chrono::milliseconds idle) {
  ServedNames names(served, channel);
  ServedTrees trees(served, channel);
  // A process of one command calls a control that it does not know.
  if (!served.names) channel.take_bulk();
  while (true) {
    Parcel parcel;
    if (channel.receive(&parcel, idle) != 0) return false;
    std::optional<Call> call = decode_call(parcel.bytes);
    if (!call || parcel.descriptors.size() > 1) return false;
    if (call->kind == Kind::kGoodbye) return true;
    if (call->kind == Kind::kNames || call->kind == Kind::kMore) {
      if (channel.send(encode(names.answer(*call)), {}, kSendLimit) != 0) return false;
      continue;
    }
    UniqueFd fd;
    if (!parcel.descriptors.empty()) fd = std::move(parcel.descriptors.front());
    if (is_of_trees(call->kind)) {
      if (!trees.answer(*call, std::move(fd))) return false;
      continue;
    }
    // Anew each time: what the user may reach, and what is mounted, changes.
    const Exports open = Exports::open_reachable(served.exports).for_peer(call->file.peer);
    Reply reply = Work(served, open, std::move(*call), std::move(fd)).run();
    if (channel.send(encode(reply.answer), reply.beside, kSendLimit) != 0) return false;
    // From now on it is control's: what was not heard of is removed by the destructor.
    if (reply.file) reply.file->keep();
  }
}

}  // namespace sluice::users
