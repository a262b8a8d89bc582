// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/local_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <functional>
#include <vector>

#include "dataplane/base/config/config.h"
#include "dataplane/base/path.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/base/write_all.h"
#include "tools/cli/format.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

// The process that opens the files, until the session has begun: without that it ends with this object.
class Opener {
 public:
  Opener() = default;
  Opener(Opener&&) = default;
  Opener& operator=(Opener&&) = default;
  ~Opener() {
    in_.reset();
    if (pid_ > 0 && !let_go_) ::waitpid(pid_, nullptr, 0);
  }

  // Until it has called control, or control refused it.
  Status start(const std::filesystem::path& program, const std::string& wish) {
    int in[2] = {-1, -1};
    int out[2] = {-1, -1};
    if (::pipe2(in, O_CLOEXEC) != 0) return cannot(program);
    UniqueFd its_in(in[0]);
    in_.reset(in[1]);
    if (::pipe2(out, O_CLOEXEC) != 0) return cannot(program);
    const UniqueFd answer(out[0]);
    UniqueFd its_out(out[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, its_in.get(), STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, its_out.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::string name = program.string();
    std::string option = "--for-caller";
    char* arguments[] = {name.data(), option.data(), nullptr};
    const int reason = ::posix_spawn(&pid_, name.c_str(), &actions, nullptr, arguments, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    its_in.reset();
    its_out.reset();
    if (reason != 0) {
      pid_ = 0;
      errno = reason;
      return cannot(program);
    }
    const std::string whole = fmt::format("{}\n{}", wish.size(), wish);
    // Where that fails it has ended, and said why.
    (void)base::write_all(in_.get(), whole.data(), whole.size());
    return heard(answer.get());
  }
  // The session has begun: from now on the process is the session's.
  void let_go() {
    if (pid_ == 0) return;
    [[maybe_unused]] const ssize_t told = ::write(in_.get(), "g", 1);
    let_go_ = true;
  }

 private:
  static Error cannot(const std::filesystem::path& program) {
    return {ErrorCode::kConfiguration,
            fmt::format("cannot start {}, which opens files outside the exports: {}",
                        printable(program.string()), std::strerror(errno))};
  }
  static Status heard(int fd) {
    std::string line;
    char part[256];
    ssize_t got = 0;
    while (line.find('\n') == std::string::npos && (got = ::read(fd, part, sizeof part)) != 0) {
      if (got > 0) line.append(part, static_cast<size_t>(got));
      if (got < 0 && errno != EINTR) break;
    }
    line = line.substr(0, line.find('\n'));
    if (line == "ok") return {};
    const size_t space = line.find(' ');
    int code = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + std::min(space, line.size()), code);
    if (space == std::string::npos || parsed.ec != std::errc() || code <= 0 ||
        code > static_cast<int>(kErrorCodeLast))
      return Error{ErrorCode::kInternal, "the process that opens files outside the exports ended: " +
                                             (line.empty() ? "it said nothing" : printable(line))};
    return Error{static_cast<ErrorCode>(code), line.substr(space + 1)};
  }

  UniqueFd in_;
  pid_t pid_ = 0;
  bool let_go_ = false;
};

std::string new_token() {
  unsigned char bytes[16] = {};
  std::string token;
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

// Where what is fetched comes to stand.
std::vector<std::string> names_of(const api::GetRequest& request) {
  const std::string& to = request.destination();
  if (api::is_null_destination(to)) return {};
  if (!to.ends_with('/') && request.sources_size() == 1) return {to};
  std::vector<std::string> names;
  for (const std::string& source : request.sources()) {
    const std::string name = api::is_memory_source(source) ? "memory-" + source.substr(source.find(':') + 1)
                                                           : std::string(base::arriving_name("/" + source));
    names.push_back((to.ends_with('/') ? to : to + "/") + name);
  }
  return names;
}

std::vector<std::string> names_of(const api::SendRequest& request) {
  std::vector<std::string> names;
  for (const std::string& source : request.sources()) {
    if (api::is_memory_source(source)) continue;
    names.push_back(source.size() > 1 && source.ends_with('/') ? source.substr(0, source.size() - 1)
                                                               : source);
  }
  return names;
}

// The path without the links on its way: what a daemon would not follow, whoever typed it has seen. The last
// name stays what it is, unless a slash behind it says that a directory is meant.
std::string without_links(const std::string& path) {
  std::error_code problem;
  const std::filesystem::path typed(path);
  const std::filesystem::path direct = std::filesystem::weakly_canonical(typed.parent_path(), problem);
  if (problem) return path;
  return (direct / typed.filename()).string();
}

api::TransferRequest without_links(api::TransferRequest request) {
  if (auto* const get = std::get_if<api::GetRequest>(&request)) {
    if (!api::is_null_destination(get->destination()))
      get->set_destination(without_links(get->destination()));
    return request;
  }
  for (std::string& source : *std::get<api::SendRequest>(request).mutable_sources()) {
    if (!api::is_memory_source(source)) source = without_links(source);
  }
  return request;
}

bool same_paths(const api::TransferRequest& one, const api::TransferRequest& other) {
  if (const auto* const get = std::get_if<api::GetRequest>(&one))
    return get->destination() == std::get<api::GetRequest>(other).destination();
  const auto& sources = std::get<api::SendRequest>(one).sources();
  const auto& others = std::get<api::SendRequest>(other).sources();
  return std::equal(sources.begin(), sources.end(), others.begin(), others.end());
}

// As `mkdir -p` does, with the umask of this command.
Status make_missing(const api::GetRequest& request) {
  const std::string& to = request.destination();
  const bool directory = to.ends_with('/') || request.sources_size() > 1;
  const std::filesystem::path wanted =
      directory ? std::filesystem::path(to) : std::filesystem::path(to).parent_path();
  std::error_code problem;
  std::filesystem::create_directories(wanted, problem);
  if (!problem) return {};
  return Error{ErrorCode::kStorage,
               fmt::format("cannot make directory {}: {}", printable(wanted.string()), problem.message())};
}

// Whom to call: as api::Client::connect, which takes the users' socket where the operators' is closed to this
// user.
std::filesystem::path files_socket_of(const config::Node& node) {
  return ::access(node.control_socket().c_str(), W_OK) == 0 ? node.files_socket() : node.users_files_socket();
}

// What that process may do (control/users/for_caller.h).
constexpr const char* kReads = "r";
constexpr const char* kWrites = "w";
constexpr const char* kReadsAndRemoves = "t";

std::string wish_of(const std::filesystem::path& node_directory, const api::LocalFiles& files,
                    const char* rights) {
  config::Node node;
  node.directory = node_directory;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  std::string wish;
  const auto add = [&wish](const std::string& field) { wish.append(field).push_back('\0'); };
  add(files_socket_of(node).string());
  add(files.token());
  add(fmt::format("{:o}", mask));
  add(rights);
  for (const std::string& name : files.names()) add(name);
  return wish;
}

Result<std::filesystem::path> whole_path(const std::filesystem::path& directory) {
  std::error_code problem;
  std::filesystem::path whole = std::filesystem::absolute(directory, problem);
  if (problem)
    return Error{ErrorCode::kConfiguration, printable(directory.string()) + ": " + problem.message()};
  return whole;
}

template <typename Request>
Status start_opener(const Context& context, const char* rights, Request* request, Opener* opener) {
  const Result<std::filesystem::path> node = whole_path(context.node_directory());
  if (!node) return node.error();
  api::LocalFiles& files = *request->mutable_options()->mutable_local_files();
  files.set_token(new_token());
  for (const std::string& name : names_of(*request)) files.add_names(name);
  return opener->start(context.environment.file_opener, wish_of(*node, files, rights));
}

Status start_opener(const Context& context, api::TransferRequest* request, Opener* opener) {
  auto* const get = std::get_if<api::GetRequest>(request);
  if (get == nullptr) return start_opener(context, kReads, &std::get<api::SendRequest>(*request), opener);
  // Before that process gives up all but the directories that are there.
  if (get->options().mkdir()) {
    if (Status status = make_missing(*get); !status) return status;
    get->mutable_options()->set_mkdir(false);
  }
  return start_opener(context, kWrites, get, opener);
}

// What is asked, first as it is, then without links on the way to what it names here, then with the process
// that opens that.
template <typename Answer>
Answer ask_anywhere(const Context& context, api::TransferRequest request, Opener* opener,
                    const std::function<Answer(const api::TransferRequest&)>& ask) {
  const auto is_outside = [](const Answer& answer) {
    return !answer && answer.error().code == ErrorCode::kOutsideExports;
  };
  Answer answer = ask(request);
  if (!is_outside(answer)) return answer;
  if (api::TransferRequest direct = without_links(request); !same_paths(direct, request)) {
    request = std::move(direct);
    answer = ask(request);
  }
  if (!is_outside(answer) || context.environment.file_opener.empty()) return answer;
  if (const Status status = start_opener(context, &request, opener); !status) return status.error();
  return ask(request);
}

}  // namespace

Result<std::string> begin_transfer(const Context& context, api::Client& client,
                                   const api::TransferRequest& request) {
  Opener opener;
  Result<std::string> id = ask_anywhere<Result<std::string>>(
      context, request, &opener, [&client](const api::TransferRequest& one) { return client.begin(one); });
  if (id) opener.let_go();
  return id;
}

Status preview_transfer(const Context& context, api::Client& client, const api::SendRequest& request,
                        const std::function<void(const api::PreviewReply&)>& on_part) {
  Opener opener;
  return ask_anywhere<Status>(context, request, &opener, [&](const api::TransferRequest& one) {
    return client.preview(std::get<api::SendRequest>(one), on_part);
  });
}

Result<std::string> begin_with_spool(const Context& context, api::Client& client, api::SendRequest request) {
  Opener opener;
  if (const Status status = start_opener(context, kReadsAndRemoves, &request, &opener); !status)
    return status.error();
  Result<std::string> id = client.begin(api::TransferRequest(std::move(request)));
  if (id) opener.let_go();
  return id;
}

Status bring_back_files(const Context& context, const api::Session& session) {
  const std::filesystem::path& program = context.environment.file_opener;
  if (!session.has_local_files() || program.empty() || session.local_files().uid() != ::geteuid()) return {};
  const Result<std::filesystem::path> node = whole_path(context.node_directory());
  if (!node) return node.error();
  Opener opener;
  const char* const rights = session.direction() == "get" ? kWrites : kReads;
  const Status status = opener.start(program, wish_of(*node, session.local_files(), rights));
  if (status) opener.let_go();
  // One is there already.
  if (!status && status.error().code == ErrorCode::kDestinationExists) return {};
  return status;
}

}  // namespace sluice::cli
