// SPDX-License-Identifier: Apache-2.0
#include "control/site/site.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "control/identity/authority.h"
#include "control/identity/hex.h"
#include "control/identity/node_files.h"
#include "control/site/issue.h"
#include "control/site/parts.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/config/problems.h"
#include "dataplane/base/config/toml_text.h"
#include "dataplane/base/text.h"
#include "dataplane/base/utc.h"
#include "dataplane/base/write_all.h"

namespace sluice::site {

namespace fs = std::filesystem;

namespace {

using identity::configuration;

constexpr size_t kChainMax = 4;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kKeptS = 90LL * 86'400;  // so long a token is remembered after all that it signed has ended

Status make_directories(const fs::path& directory) {
  for (const char* const part : {"", "tokens", "issued", "revoked"}) {
    const fs::path one = *part == '\0' ? directory : directory / part;
    if (Status status = identity::make_directory(one, 0700); !status) return status;
  }
  return {};
}

// Whether the two belong together, and the first may sign for others.
Result<identity::KeyPointer> key_for(X509* certificate, const std::string& key_pem, const fs::path& place) {
  Result<identity::KeyPointer> key = identity::parse_key(key_pem);
  if (!key) return configuration((place / "key.pem").string() + ": " + key.error().message);
  if (X509_check_private_key(certificate, key->get()) == 1) return key;
  (void)identity::openssl_reason();  // empties the queue
  return configuration((place / "key.pem").string() + ": is not the key of the first certificate of ca.pem");
}

std::string rules_text(const TokenRules& rules) {
  const auto line = [](const char* name, int64_t value) {
    return std::string(name) + " = " + std::to_string(value) + "\n";
  };
  return "public_key = \"" + rules.public_key + "\"\nname = \"" + rules.pattern + "\"\n" +
         line("made", rules.made_unix_s) + line("until", rules.until_unix_s) + line("uses", rules.uses_max) +
         line("certificate_s", rules.lifetime_s) + "replaces = " + (rules.replaces ? "true" : "false") + "\n";
}

Result<TokenRules> read_rules(const fs::path& file, bool* not_found) {
  const auto text = identity::read_small_file(file, not_found);
  if (!text) return text.error();
  const auto table = config::parse_toml(*text, file.string());
  if (!table) return table.error();
  const auto number = [&table](const char* key) { return (*table)[key].value_or(int64_t{0}); };
  TokenRules rules{.public_key = (*table)["public_key"].value_or(std::string()),
                   .pattern = (*table)["name"].value_or(std::string()),
                   .made_unix_s = number("made"),
                   .until_unix_s = number("until"),
                   .uses_max = number("uses"),
                   .lifetime_s = number("certificate_s"),
                   .replaces = (*table)["replaces"].value_or(false)};
  const bool good = identity::is_fingerprint(rules.public_key) && valid_pattern(rules.pattern) &&
                    rules.uses_max > 0 && rules.lifetime_s > 0;
  if (good) return rules;
  return configuration(file.string() + ": is damaged; remove the directory of this token");
}

// Their fingerprints alone: a token may have thousands, and each newcomer makes this look.
Result<std::vector<TokenUse>> list_uses(const fs::path& directory) {
  const auto files = certificates_in(directory);
  if (!files) return files.error();
  std::vector<TokenUse> uses;
  for (const fs::path& file : *files)
    if (identity::is_hex(file.stem().string()))
      uses.push_back({.name = "?", .fingerprint = file.stem().string()});
  return uses;
}

}  // namespace

std::string date_of(int64_t unix_s) { return base::utc_text(unix_s * kSecondNs); }

void read_use(const fs::path& directory, TokenUse& use) {
  const fs::path file = directory / "uses" / (use.fingerprint + ".pem");
  struct stat info {};
  // One that cannot be read counts all the same: a token is never good for more than it says.
  const identity::CertificatePointer certificate = read_certificate(file);
  if (!certificate || ::stat(file.c_str(), &info) != 0) return;
  use.name = identity::common_name(certificate.get());
  use.unix_s = info.st_mtim.tv_sec;
}

Error cannot(const fs::path& file, int error) {
  if (identity::is_shortage(error)) return identity::shortage(file, error);
  return configuration(file.string() + ": " + std::strerror(error) + "; check its permissions and the disk");
}

Result<std::vector<fs::path>> certificates_in(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code failure;
  fs::directory_iterator entries(directory, failure);
  if (failure == std::errc::no_such_file_or_directory) return files;
  for (; !failure && entries != fs::directory_iterator(); entries.increment(failure))
    if (entries->path().extension() == ".pem") files.push_back(entries->path());
  if (failure) return cannot(directory, failure.value());
  return files;
}

identity::CertificatePointer read_certificate(const fs::path& file) {
  const auto text = identity::read_small_file(file);
  if (!text) return nullptr;
  auto certificate = identity::parse_certificate(*text);
  return certificate ? std::move(*certificate) : nullptr;
}

std::string TokenState::word(int64_t now_unix_s) const {
  if (revoked) return "revoked";
  if (std::cmp_greater_equal(uses.size(), rules.uses_max)) return "used";
  return now_unix_s >= rules.until_unix_s ? "expired" : "usable";
}

Status Site::create(const fs::path& directory, const SiteOptions& options) {
  std::error_code ignored;
  for (const char* const part : {"ca.pem", "key.pem"}) {
    if (fs::exists(directory / part, ignored))
      return configuration(directory.string() + " holds " + part +
                           " already; choose another directory, nothing was changed");
  }
  if (const std::string_view problem = config::domain_problem(options.domain); !problem.empty())
    return Error{ErrorCode::kUsage, "--domain: " + std::string(problem)};
  identity::KeyPair pair{.key_pem = options.key_pem, .certificate_pem = options.ca_pem};
  if (options.ca_pem.empty()) {
    auto made = make_authority(options.name, options.lifetime_s);
    if (!made) return made.error();
    pair = std::move(*made);
  }
  const auto chain = identity::parse_certificates(pair.certificate_pem, kChainMax);
  if (!chain) return configuration("the certificate of the authority: " + chain.error().message);
  if (const auto key = key_for(chain->front().get(), pair.key_pem, directory); !key) return key.error();
  fs::create_directories(directory.parent_path(), ignored);
  if (Status status = make_directories(directory); !status) return status;
  const std::string toml = "domain = \"" + options.domain + "\"\n";
  if (Status status =
          identity::write_small_file(directory / "authority.toml", toml, 0600, identity::Replace::kYes);
      !status)
    return status;
  if (Status status =
          identity::write_small_file(directory / "key.pem", pair.key_pem, 0600, identity::Replace::kNo);
      !status)
    return status;
  if (Status status = identity::write_small_file(directory / "ca.pem", pair.certificate_pem, 0644,
                                                 identity::Replace::kNo);
      !status) {
    fs::remove(directory / "key.pem", ignored);
    return status;
  }
  // As nodes judge it.
  const auto judged = identity::Authority::load(directory / "ca.pem", "", options.domain);
  Result<Site> site = judged ? open(directory) : Result<Site>(judged.error());
  Status listed = site ? Status() : Status(site.error());
  if (site && site->chain_.size() == 1) {
    const auto list = make_list({.certificate = site->chain_.front().get(), .key = site->key_.get()}, {});
    listed = list ? identity::write_small_file(directory / "crl.pem", *list, 0644, identity::Replace::kYes)
                  : Status(list.error());
  }
  if (!listed) {
    fs::remove(directory / "ca.pem", ignored);
    fs::remove(directory / "key.pem", ignored);
    return listed;
  }
  return site->audit("authority_made", {{"fingerprint", site->fingerprint()}, {"domain", options.domain}});
}

Result<Site> Site::open(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::exists(directory / "ca.pem", ignored))
    return configuration(directory.string() +
                         " holds no authority; make one with 'sluice authority init', or name its directory");
  const fs::path key_file = directory / "key.pem";
  struct stat info {};
  if (::stat(key_file.c_str(), &info) != 0) return cannot(key_file, errno);
  if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return configuration(key_file.string() + ": others may read it; run: chmod 600 " + key_file.string());
  const auto certificates = identity::read_guarded_file(directory / "ca.pem");
  if (!certificates) return certificates.error();
  auto chain = identity::parse_certificates(*certificates, kChainMax);
  if (!chain) return configuration((directory / "ca.pem").string() + ": " + chain.error().message);
  const auto key_text = identity::read_small_file(key_file);
  if (!key_text) return key_text.error();
  auto key = key_for(chain->front().get(), *key_text, directory);
  if (!key) return key.error();
  const auto fingerprint = identity::fingerprint_of(chain->front().get());
  if (!fingerprint) return fingerprint.error();
  const auto settings = identity::read_guarded_file(directory / "authority.toml");
  if (!settings) return settings.error();
  const auto table = config::parse_toml(*settings, (directory / "authority.toml").string());
  if (!table) return table.error();
  Site site;
  site.directory_ = directory;
  site.ca_pem_ = *certificates;
  site.chain_ = std::move(*chain);
  site.key_ = std::move(*key);
  site.fingerprint_ = *fingerprint;
  site.domain_ = (*table)["domain"].value_or(std::string());
  site.subject_ = identity::subject_of(site.chain_.front().get());
  if (const std::string_view problem = config::domain_problem(site.domain_); !problem.empty())
    return configuration((directory / "authority.toml").string() + ": domain " + std::string(problem));
  return site;
}

identity::Identity Site::identity() const {
  return {.name = subject_,
          .certificate_pem = ca_pem_,
          .certificate_file = directory_ / "ca.pem",
          .key_file = directory_ / "key.pem",
          .fingerprint = fingerprint_};
}

Status Site::lock() {
  const fs::path file = directory_ / "lock";
  lock_.reset(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_) return cannot(file, errno);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  return configuration(directory_.string() + ": another 'sluice authority serve' runs there; stop that one");
}

Result<UniqueFd> Site::names_lock() const {
  UniqueFd lock(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) return cannot(directory_, errno);
  return lock;
}

// ---- tokens --------------------------------------------------------------------------------------

Result<std::string> Site::add_token(const Token& token, TokenRules rules) {
  const auto public_key = public_key_of(token);
  if (!public_key) return public_key.error();
  rules.public_key = *public_key;
  forget_old_tokens(rules.made_unix_s);
  const std::string id = token_id(rules.public_key);
  const fs::path directory = token_directory(id);
  for (const fs::path& each : {directory, directory / "uses"}) {
    if (Status status = identity::make_directory(each, 0700); !status) return status.error();
  }
  if (Status status = identity::write_small_file(directory / "rules.toml", rules_text(rules), 0600,
                                                 identity::Replace::kNo);
      !status)
    return status.error();
  if (Status status = audit("token_made", {{"token", id},
                                           {"name", rules.pattern},
                                           {"until", date_of(rules.until_unix_s)},
                                           {"uses", std::to_string(rules.uses_max)}});
      !status)
    return status.error();
  return id;
}

Result<TokenState> Site::load_token(const std::string& id) const {
  const fs::path directory = token_directory(id);
  bool not_found = false;
  const auto rules = read_rules(directory / "rules.toml", &not_found);
  if (!rules && not_found) return Error{ErrorCode::kUsage, "there is no token " + id};
  if (!rules) return rules.error();
  auto uses = list_uses(directory / "uses");
  if (!uses) return uses.error();
  std::error_code ignored;
  return TokenState{.id = id,
                    .rules = *rules,
                    .revoked = fs::exists(directory / "revoked", ignored),
                    .uses = std::move(*uses)};
}

Result<std::vector<TokenState>> Site::tokens() const {
  std::vector<TokenState> all;
  std::error_code failure;
  fs::directory_iterator entries(directory_ / "tokens", failure);
  for (; !failure && entries != fs::directory_iterator(); entries.increment(failure)) {
    const std::string id = entries->path().filename().string();
    if (!valid_token_id(id)) continue;
    auto one = load_token(id);
    if (!one && one.error().code == ErrorCode::kUsage) continue;  // it is being made, or was just forgotten
    if (!one) return one.error();
    for (TokenUse& use : one->uses) read_use(token_directory(id), use);
    std::ranges::sort(one->uses, {}, &TokenUse::unix_s);
    all.push_back(std::move(*one));
  }
  if (failure) return cannot(directory_ / "tokens", failure.value());
  std::ranges::sort(all, [](const TokenState& a, const TokenState& b) {
    return std::tie(a.rules.made_unix_s, a.id) < std::tie(b.rules.made_unix_s, b.id);
  });
  return all;
}

Status Site::revoke_token(const std::string& id) {
  if (const auto token = load_token(id); !token) return token.error();
  if (Status status =
          identity::write_small_file(token_directory(id) / "revoked", "", 0600, identity::Replace::kYes);
      !status)
    return status;
  return audit("token_revoked", {{"token", id}});
}

void Site::forget_old_tokens(int64_t now_unix_s) const {
  std::error_code failure;
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(directory_ / "tokens", failure)) {
    const auto rules = read_rules(entry.path() / "rules.toml", nullptr);
    const auto uses = list_uses(entry.path() / "uses");
    if (!rules || !uses) continue;
    const int64_t end_unix_s = rules->until_unix_s + (uses->empty() ? 0 : rules->lifetime_s);
    if (end_unix_s < now_unix_s - kKeptS) old.push_back(entry.path());
  }
  for (const fs::path& one : old) fs::remove_all(one, failure);
}

Status Site::audit(const std::string& event,
                   const std::vector<std::pair<std::string, std::string>>& words) const {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  nlohmann::ordered_json line = {{"time", base::utc_text(int64_t{now.tv_sec} * kSecondNs + now.tv_nsec)},
                                 {"event", event}};
  for (const auto& [name, value] : words) line[name] = base::printable(value);
  const std::string text = line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const fs::path file = directory_ / "audit.ndjson";
  const UniqueFd opened(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (!opened || !base::write_all(opened.get(), text.data(), text.size())) return cannot(file, errno);
  return {};
}

}  // namespace sluice::site
