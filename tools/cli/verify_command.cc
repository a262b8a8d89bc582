// sluice verify: files of a session against the journal, or a tree at rest against a list of digests.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <ostream>
#include <thread>
#include <vector>

#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/counted.h"
#include "tools/cli/app.h"
#include "tools/cli/connect.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/local_files.h"
#include "tools/manifest/write_list.h"

namespace sluice::cli {
namespace {

using base::counted;
using namespace std::chrono_literals;

constexpr size_t kUsualJobsMax = 4;

struct VerifyFlags {
  std::string what;  // a session, or with a list a path
  bool quiet = false;
  std::string against;
  std::string write;
  std::string digests;
  std::string format;
  std::string resume;
  std::string strip_prefix;
  size_t jobs = 0;
  bool extra = false;
  bool ignore_missing = false;
  bool overwrite = false;
};

Result<int> verify_session(const Context& context, const VerifyFlags& flags) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  if (const auto session = (*client)->show(flags.what)) {
    if (const Status status = bring_back_files(context, *session); !status) return status.error();
  }
  std::vector<api::VerifyProgress> verdicts;
  std::string text;
  Environment& environment = context.environment;
  const bool shows = environment.err_is_terminal && !flags.quiet;
  const Status status = (*client)->verify(flags.what, [&](const api::VerifyProgress& progress) {
    if (!progress.done()) {
      if (shows) {
        environment.err << fmt::format("\r\x1b[K{}  {} of {}", printable(progress.file()),
                                       format_bytes(progress.bytes_checked()),
                                       format_bytes(progress.bytes_total()))
                        << std::flush;
      }
      return;
    }
    verdicts.push_back(progress);
    text += progress.good()
                ? fmt::format("{}: good, {} bytes {}\n", printable(progress.file()), progress.bytes_checked(),
                              progress.digest())
                : fmt::format("{}: BAD: {}\n", printable(progress.file()), printable(progress.problem()));
  });
  if (shows) environment.err << "\r\x1b[K" << std::flush;
  if (!status) return status.error();
  if (const uint64_t names = verdicts.empty() ? 0 : verdicts.back().names_unchecked(); names != 0)
    text += fmt::format(
        "not checked: {} that travelled in packs, whose digests are not kept, or did not arrive; "
        "compare them with sluice send --sync --checksum --dry-run\n",
        counted(names, "name"));
  context.print(api::verify_json(verdicts), text);
  const auto bad = std::count_if(verdicts.begin(), verdicts.end(), [](const auto& v) { return !v.good(); });
  if (bad == 0) return 0;
  environment.err << fmt::format(
      "sluice: {} of {} could not be verified: see above, or send what is bad again\n", bad,
      counted(verdicts.size(), "file"));
  return static_cast<int>(ErrorCode::kIntegrity);
}

// While it lives, a line on the terminal says how far the work is.
class PaceLine {
 public:
  PaceLine(Environment& environment, bool shows, const manifest::Pace& pace, std::mutex& output)
      : environment_(environment), pace_(pace), output_(output) {
    if (shows) thread_ = std::thread([this] { show(); });
  }
  PaceLine(const PaceLine&) = delete;
  PaceLine& operator=(const PaceLine&) = delete;
  ~PaceLine() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(output_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void show() {
    const auto began = std::chrono::steady_clock::now();
    std::unique_lock lock(output_);
    while (!changed_.wait_for(lock, 300ms, [this] { return ended_; })) {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
      const uint64_t bytes = pace_.bytes.load();
      environment_.err << fmt::format("\r\x1b[K{}, {} read, {}", counted(pace_.files.load(), "file"),
                                      format_bytes(bytes),
                                      format_rate(static_cast<double>(bytes) * 8 / passed.count()))
                       << std::flush;
    }
    environment_.err << "\r\x1b[K" << std::flush;
  }

  Environment& environment_;
  const manifest::Pace& pace_;
  std::mutex& output_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

api::Json finding_json(const manifest::Finding& finding) {
  api::Json out{
      {"name", finding.name}, {"problem", manifest::name_of(finding.problem)}, {"reason", finding.reason}};
  if (!is_utf8(finding.name)) {
    std::string hex;
    for (const char c : finding.name) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    out["name_bytes"] = hex;
  }
  if (finding.line != 0) out["line"] = finding.line;
  return out;
}

// What both kinds of work at rest share: what they print, and how they are ended.
class AtRest {
 public:
  AtRest(const Context& context, const VerifyFlags& flags)
      : context_(context),
        flags_(flags),
        interrupt_([this] { pace.stop.store(true); }, static_cast<int>(ErrorCode::kCancelled)),
        line_(context.environment, context.environment.err_is_terminal && !flags.quiet, pace, output_) {}

  void on_finding(const manifest::Finding& finding) {
    const std::lock_guard lock(output_);
    if (context_.json) {
      findings.push_back(finding_json(finding));
      return;
    }
    if (context_.environment.err_is_terminal) context_.environment.err << "\r\x1b[K" << std::flush;
    (is_standard(flags_.write) ? context_.environment.err : context_.environment.out)
        << fmt::format("{}: {}: {}\n", printable(finding.name), manifest::name_of(finding.problem),
                       printable(finding.reason))
        << std::flush;
  }

  manifest::Pace pace;
  api::Json findings = api::Json::array();

 private:
  const Context& context_;
  const VerifyFlags& flags_;
  std::mutex output_;
  const Interrupt interrupt_;
  const PaceLine line_;
};

size_t jobs_of(const VerifyFlags& flags) {
  if (flags.jobs != 0) return flags.jobs;
  return std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kUsualJobsMax);
}

std::string counts_text(const manifest::Counts& counts, uint64_t bytes) {
  std::string text = counted(counts.good + counts.good_before, "file") + " good";
  if (counts.good_before != 0) text += fmt::format(" ({} not read again)", counts.good_before);
  const std::pair<uint64_t, const char*> others[] = {
      {counts.differs, "differ"},  {counts.missing, "missing"},
      {counts.refused, "refused"}, {counts.unreadable, "unreadable"},
      {counts.extra, "extra"},     {counts.ignored, "not there, and ignored"}};
  for (const auto& [count, word] : others)
    if (count != 0) text += fmt::format(", {} {}", count, word);
  return text + ", " + format_bytes(bytes) + " read";
}

api::Json counts_json(const manifest::Counts& counts, uint64_t bytes) {
  return {{"good", counts.good + counts.good_before},
          {"good_before", counts.good_before},
          {"differs", counts.differs},
          {"missing", counts.missing},
          {"refused", counts.refused},
          {"unreadable", counts.unreadable},
          {"extra", counts.extra},
          {"ignored", counts.ignored},
          {"bytes_read", bytes},
          {"interrupted", counts.interrupted}};
}

int interrupted(const Context& context, const std::string& remedy) {
  context.environment.err << "sluice: interrupted; " << remedy << "\n";
  return static_cast<int>(ErrorCode::kCancelled);
}

int end_of_check(const Context& context, const VerifyFlags& flags, const manifest::Counts& counts) {
  if (counts.interrupted)
    return interrupted(context, flags.resume.empty()
                                    ? "give --resume FILE, and a check that is run again resumes"
                                    : "run it again, and it resumes");
  const ErrorCode verdict = manifest::verdict_of(counts);
  const bool found_nothing =
      counts.good + counts.good_before + counts.differs == 0 && counts.missing + counts.ignored != 0;
  if (verdict == ErrorCode::kIntegrity && found_nothing)
    context.environment.err << fmt::format(
        "sluice: no file of the list is in {}: name the directory in which the list's names begin, or take "
        "what they begin with away by --strip-prefix DIR\n",
        printable(flags.what));
  else if (verdict == ErrorCode::kIntegrity)
    context.environment.err << "sluice: files are not as the list has them: see above, and RUNBOOK, \"A "
                               "manifest says that a file differs\"\n";
  if (verdict == ErrorCode::kSourceUnreadable)
    context.environment.err << "sluice: files could not be read: see above\n";
  return static_cast<int>(verdict);
}

Result<int> check_against(const Context& context, const VerifyFlags& flags) {
  const std::filesystem::path& here = context.environment.working_directory;
  const auto in_here = [&here](const std::string& name) {
    return name.empty() ? name : (here / name).string();
  };
  manifest::CheckOptions options{.path = in_here(flags.what),
                                 .list_name = flags.against,
                                 .strip_prefix = flags.strip_prefix,
                                 .resume = in_here(flags.resume),
                                 .jobs = jobs_of(flags),
                                 .extra = flags.extra,
                                 .ignore_missing = flags.ignore_missing};
  if (!flags.digests.empty()) {
    const auto kinds = digests::parse_kinds(flags.digests);
    if (!kinds) return Error{kinds.error().code, "--digest: " + kinds.error().message};
    if (kinds->size() != 1)
      return Error{ErrorCode::kUsage, "--digest: one, with --against; of which kind the list's digests are"};
    options.kind = kinds->front();
  }
  std::ifstream file;
  if (!is_standard(flags.against)) {
    file.open(in_here(flags.against), std::ios::binary);
    struct stat info {};
    if (!file || ::stat(in_here(flags.against).c_str(), &info) != 0)
      return Error{ErrorCode::kUsage, printable(flags.against) + ": cannot be opened; check the name"};
    options.list_file = {info.st_dev, info.st_ino};
  }
  std::istream& list = is_standard(flags.against) ? context.environment.in : file;
  std::optional<Result<manifest::Counts>> counts;
  api::Json findings;
  uint64_t bytes = 0;
  {
    AtRest work(context, flags);
    counts = manifest::check_list(options, list, work.pace,
                                  [&work](const manifest::Finding& finding) { work.on_finding(finding); });
    findings = std::move(work.findings);
    bytes = work.pace.bytes.load();
  }
  if (!*counts) return counts->error();
  api::Json out{{"schema", "sluice.manifest_check.v1"}, {"path", flags.what}, {"against", flags.against}};
  out.update(counts_json(**counts, bytes));
  out["problems"] = std::move(findings);
  context.print(out, counts_text(**counts, bytes) + "\n");
  return end_of_check(context, flags, **counts);
}

Result<manifest::WriteOptions> write_options(const Context& context, const VerifyFlags& flags) {
  const std::filesystem::path& here = context.environment.working_directory;
  manifest::WriteOptions options{
      .path = here / flags.what,
      .list = is_standard(flags.write) ? std::filesystem::path("-") : here / flags.write,
      .out = is_standard(flags.write) ? &context.environment.out : nullptr,
      .jobs = jobs_of(flags),
      .replace = flags.overwrite};
  const auto kinds = manifest::kinds_to_write(flags.digests, flags.write);
  if (!kinds) return kinds.error();
  options.kinds = *kinds;
  options.format = kinds->size() > 1 ? manifest::Format::kTag : manifest::Format::kSum;
  if (!flags.format.empty()) options.format = *manifest::format_named(flags.format);
  return options;
}

Result<int> write_manifest(const Context& context, const VerifyFlags& flags) {
  const Result<manifest::WriteOptions> options = write_options(context, flags);
  if (!options) return options.error();
  const bool to_stdout = options->out != nullptr;
  if (const Status possible = context.check_stdout_is_free("--write-manifest -"); to_stdout && !possible)
    return possible.error();
  std::optional<Result<manifest::Written>> written;
  api::Json findings;
  uint64_t bytes = 0;
  {
    AtRest work(context, flags);
    written = manifest::write_list(*options, work.pace,
                                   [&work](const manifest::Finding& finding) { work.on_finding(finding); });
    findings = std::move(work.findings);
    bytes = work.pace.bytes.load();
  }
  if (!*written) return written->error();
  const manifest::Written& result = **written;
  std::string text = counted(result.files, "file") + ", " + format_bytes(bytes) + " read";
  if (result.others != 0)
    text += fmt::format("; left out: {} without bytes, such as links", counted(result.others, "name"));
  if (to_stdout) context.environment.err << text << "\n";
  context.print({{"schema", "sluice.manifest.v1"},
                 {"path", flags.what},
                 {"manifest", flags.write},
                 {"format", manifest::name_of(options->format)},
                 {"files", result.files},
                 {"others", result.others},
                 {"unreadable", result.unreadable},
                 {"bytes_read", bytes},
                 {"interrupted", result.interrupted},
                 {"problems", std::move(findings)}},
                to_stdout ? "" : text + "\n");
  if (result.interrupted) return interrupted(context, "no list was written");
  if (result.unreadable == 0) return 0;
  context.environment.err << "sluice: no list was written, since files could not be read: see above\n";
  return static_cast<int>(ErrorCode::kSourceUnreadable);
}

Result<int> verify(const Context& context, const VerifyFlags& flags) {
  if (!flags.write.empty()) return write_manifest(context, flags);
  if (!flags.against.empty()) return check_against(context, flags);
  if (!flags.digests.empty())
    return Error{ErrorCode::kUsage, "--digest: only with --against or --write-manifest"};
  return verify_session(context, flags);
}

void add_list_options(CLI::App& command, VerifyFlags& flags) {
  CLI::Option* const against =
      command
          .add_option("--against", flags.against,
                      "Compare the files of PATH with this list: of sha256sum, md5sum, b3sum, BagIt or "
                      "hashdeep; - for the standard input")
          ->type_name("FILE");
  CLI::Option* const write =
      command
          .add_option("--write-manifest", flags.write,
                      "Write a list of the files of PATH instead; - to the standard output")
          ->type_name("FILE")
          ->excludes(against);
  command
      .add_option(
          "--digest", flags.digests,
          "Of the list that is written (default: sha256); with --against: of a list that does not say")
      ->type_name("LIST");
  command.add_option("--manifest-format", flags.format, "Of the list that is written")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"sum", "tag", "bagit", "hashdeep"}))
      ->needs(write);
  command.add_flag("--overwrite", flags.overwrite, "Replace a list that is there")->needs(write);
  command.add_option("--resume", flags.resume, "Keep there what is good, and do not read it again")
      ->type_name("FILE")
      ->needs(against);
  command.add_flag("--extra", flags.extra, "A file that is not in the list counts as well")->needs(against);
  command.add_flag("--ignore-missing", flags.ignore_missing, "A file that is not there does not count")
      ->needs(against);
  command.add_option("--strip-prefix", flags.strip_prefix, "Take this beginning of the list's names away")
      ->type_name("DIR")
      ->needs(against);
  command.add_option("--jobs", flags.jobs, "Read so many files at a time (default: one a core, 4 at most)")
      ->type_name("N")
      ->transform(arguments::whole(1, static_cast<int64_t>(manifest::kJobsMax)));
}

}  // namespace

void add_verify_command(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<VerifyFlags>();
  CLI::App* const command = app.add_subcommand(
      "verify",
      "Read a session's files at this node back and compare them with the journal, or files of this host "
      "with a list of digests");
  command
      ->add_option(
          "what", flags->what,
          "Session, as 'sluice session list' shows it; with a list a directory or a file of this host")
      ->required()
      ->type_name("ID|PATH");
  command->add_flag("-q,--quiet", flags->quiet, "Show no progress");
  add_list_options(*command, *flags);
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return verify(context, *flags); }; });
}

}  // namespace sluice::cli
