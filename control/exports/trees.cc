// Directories: those that are sent, and those into which a tree comes.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "control/exports/as_user.h"
#include "control/exports/beneath.h"
#include "control/exports/exports.h"
#include "control/exports/owners.h"
#include "control/exports/parent.h"
#include "control/exports/refusals.h"
#include "control/exports/temporary.h"
#include "dataplane/base/check.h"
#include "dataplane/base/path.h"

namespace sluice::exports {

Result<std::optional<SourceTree>> Exports::open_tree(std::string_view path) const {
  if (user_) return std::optional<SourceTree>();  // what is one is refused when it is opened
  const auto location = locate_readable(path);
  if (!location) return location.error();
  UniqueFd fd = open_beneath(location->root->fd->get(), location->relative, O_PATH | O_NOFOLLOW);
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0)
    return lookup_error(location->absolute, errno, ErrorCode::kSourceUnreadable);
  if (!S_ISDIR(info.st_mode)) return std::optional<SourceTree>();
  return std::optional<SourceTree>(SourceTree{.fd = std::move(fd),
                                              .path = location->absolute,
                                              .name = std::string(base::arriving_name(path)),
                                              .nested = nested(*location, &config::Export::read)});
}

std::vector<Exports::Within> Exports::within(const Location& location) const {
  const auto parts_of = [](const Root& root) {
    return components(root.config.path.string()).value_or(std::vector<std::string>());
  };
  std::vector<std::string> at = parts_of(*location.root);
  const auto beneath = components(location.relative);
  if (beneath) at.insert(at.end(), beneath->begin(), beneath->end());
  std::vector<Within> found;
  for (const Root& root : roots_) {
    const std::vector<std::string> parts = parts_of(root);
    if (parts.size() <= at.size() || !std::equal(at.begin(), at.end(), parts.begin())) continue;
    found.push_back({.root = &root, .path = join(parts, at.size(), parts.size())});
  }
  return found;
}

// Whoever may choose owners can have a file belong to root; ACLs give others what this operator gave to none.
bool Exports::permits(const config::Export& config, const catalog::Keep& keep) {
  return (config.owners || !(keep.owner || keep.group)) && (config.acls || !keep.acls);
}

Status Exports::check_keep(const Location& location, const catalog::Keep& keep) const {
  const config::Export& config = location.root->config;
  if (!permits(config, keep)) {
    const bool owners = !config.owners && (keep.owner || keep.group);
    return Error{
        ErrorCode::kOutsideExports,
        location.absolute + ": export " + config.name + " lets no peer choose " +
            (owners ? "owners and groups (--owner, --group): set owners" : "ACLs (--acls): set acls") +
            " = \"yes\" for it in node.toml there, or leave them out"};
  }
  if (keep.owner && user_)
    return Error{
        ErrorCode::kUsage,
        location.absolute + ": what arrives as a user of this host belongs to that user; leave out --owner"};
  if (keep.owner && !may_give_away())
    return Error{
        ErrorCode::kConfiguration,
        location.absolute +
            ": sluice-control may not give files to other users: run it as root or with CAP_CHOWN and "
            "CAP_FOWNER, or leave out --owner"};
  return {};
}

// What a peer may not choose owners or ACLs in, it may not write to with them.
std::vector<Nested> Exports::nested(const Location& location, bool config::Export::*right,
                                    const catalog::Keep& keep) const {
  std::vector<Nested> found;
  for (Within& each : within(location)) {
    const config::Export& config = each.root->config;
    found.push_back({.path = std::move(each.path), .allowed = config.*right && permits(config, keep)});
  }
  return found;
}

std::vector<QuotaOf> Exports::quotas(std::string_view path) const {
  return quotas_by(path, [this](const config::Export& each) { return each.quota_of(peer_); });
}

std::vector<QuotaOf> Exports::quotas_of_user(std::string_view path, std::string_view user) const {
  return quotas_by(path, [user](const config::Export& each) { return each.quota_of_user(user); });
}

std::vector<QuotaOf> Exports::quotas_by(
    std::string_view path, const std::function<config::Quota(const config::Export&)>& quota) const {
  std::vector<QuotaOf> found;
  const auto location = locate(path);
  if (!location) return found;
  const auto add = [&](const Root& root) {
    found.push_back({.export_name = root.config.name, .quota = quota(root.config)});
  };
  add(*location->root);
  for (const Within& each : within(*location)) {
    if (each.root->open) add(*each.root);
  }
  return found;
}

Result<DestinationTree> Exports::open_destination_tree(std::string_view path,
                                                       const catalog::Keep& keep) const {
  if (user_) return not_as_user(path, "a tree comes into it");
  const auto location = locate_writable(path);
  if (!location) return location.error();
  if (Status status = check_keep(*location, keep); !status) return status.error();
  DestinationTree tree{
      .fd = open_beneath(location->root->fd->get(), location->relative, O_RDONLY | O_DIRECTORY),
      .path = location->root->config.path,
      .root_path = location->root->config.path,
      .relative = location->relative,
      .nested = nested(*location, &config::Export::write, keep),
      .keeps_own = location->relative == "." && !of_operator_,
      .given = given_,
      .writable = writable_};
  DCHECK(tree.given && tree.writable, "a tree has what is noted of its names and directories");
  if (location->relative != ".") tree.path = tree.absolute(location->relative);
  if (tree.fd) return tree;
  if (errno == ENOENT)
    return Error{ErrorCode::kStorage,
                 "directory " + location->absolute + " does not exist; make it first, or use --mkdir"};
  if (errno == ENOTDIR)
    return Error{ErrorCode::kStorage, location->absolute + ": is not a directory; a tree goes into one"};
  return lookup_error(location->absolute, errno, ErrorCode::kStorage);
}

Result<std::string> Exports::destination_path(std::string_view path, const catalog::Keep& keep) const {
  if (!user_) {
    const Result<DestinationTree> tree = open_destination_tree(path, keep);
    return tree ? Result<std::string>(tree->path) : tree.error();
  }
  const auto location = locate_writable(path);
  if (!location) return location.error();
  if (Status status = check_keep(*location, keep); !status) return status.error();
  UserTrees* const trees = trees_of_user();
  if (trees == nullptr) return not_as_user(path, "a tree comes into it");
  return trees->open_destination(peer_, location->path(), keep);
}

Result<std::string> Exports::make_directories_for(std::string_view destination, const std::string& relative,
                                                  catalog::Failure* why) const {
  if (UserTrees* const trees = trees_of_user(); trees != nullptr) {
    const auto location = locate_writable(destination);
    if (!location) return location.error();
    return trees->make_directories(peer_, location->path(), relative, why);
  }
  const Result<DestinationTree> tree = open_destination_tree(destination);
  if (!tree) return tree.error();
  const std::string path = tree->absolute(relative);
  const auto refuse = [why](catalog::Failure failure, Error error) {
    if (why != nullptr) *why = failure;
    return error;
  };
  if (leads_through_temporary(relative))
    return refuse(
        catalog::Failure::kName,
        {ErrorCode::kStorage, printable(path) + ": such names are kept for files under way; choose another"});
  if (!permitted(tree->nested, relative)) return locate_writable(path).error();
  UniqueFd directory;
  const int reason = Parent(*tree).make(relative, &directory);
  if (reason == 0) return path;
  const catalog::Failure failure = why_not(tree->fd.get(), relative, reason);
  if (failure == catalog::Failure::kOtherLetters) return refuse(failure, other_letters(path));
  if (failure == catalog::Failure::kOtherKind)
    return refuse(
        failure,
        {ErrorCode::kDestinationExists,
         printable(path) + ": something that is no directory stands in its way; choose another destination"});
  return refuse(failure, refusal_of(tree->fd.get(), relative, printable(path), reason));
}

}  // namespace sluice::exports
