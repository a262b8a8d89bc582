// SPDX-License-Identifier: Apache-2.0
#include "control/identity/rotation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control/identity/node_files.h"
#include "control/identity/successor.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNsOfSecond = 1'000'000'000;

fs::path next_key_file(const fs::path& node) { return node / "identity" / "next-key.pem"; }

bool can_be_seen(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

Error cannot_write(const fs::path& file) {
  return configuration(file.string() + ": " + std::strerror(errno) + "; check its permissions and the disk");
}

Status sync_directory(const fs::path& directory) {
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return cannot_write(directory);
  return {};
}

Status take_place(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return cannot_write(from);
  return sync_directory(to.parent_path());
}

// The present certificate is kept, then the next key and certificate take their places.
Status switch_over(const fs::path& node, const std::function<void()>& step) {
  const fs::path directory = node / "identity";
  const fs::path next_certificate = next_certificate_file(node);
  // Since when the new key is the node's own says the time of its certificate.
  if (::utimensat(AT_FDCWD, next_certificate.c_str(), nullptr, 0) != 0) return cannot_write(next_certificate);
  if (can_be_seen(next_key_file(node))) {
    const Result<Identity> present = load(node);
    if (!present) return present.error();
    if (Status status = keep_former(directory, present->fingerprint, directory / "cert.pem"); !status)
      return status;
    step();
    if (Status status = take_place(next_key_file(node), directory / "key.pem"); !status) return status;
  }
  step();
  return take_place(next_certificate, directory / "cert.pem");
}

Status write_next(const fs::path& node, const std::string& key_pem, const std::string& certificate_pem) {
  // Without its certificate a next key is nothing: it comes first.
  if (!key_pem.empty()) {
    if (Status status = write_small_file(next_key_file(node), key_pem, 0600, Replace::kYes); !status)
      return status;
  }
  return write_small_file(next_certificate_file(node), certificate_pem, 0644, Replace::kNo);
}

Status check_pair(X509* certificate, const std::string& key_pem) {
  const Result<KeyPointer> key = parse_key(key_pem);
  if (!key) return key.error();
  if (X509_check_private_key(certificate, key->get()) == 1) return {};
  (void)openssl_reason();
  return configuration("the certificate is of another key; give the one that belongs to it");
}

Status refuse_if_under_way(const fs::path& node) {
  if (!can_be_seen(next_certificate_file(node))) return {};
  return configuration(
      "the key of this node is being changed already; 'sluice node rotate --finish' ends that, --abandon "
      "undoes it");
}

}  // namespace

fs::path next_certificate_file(const fs::path& node_directory) {
  return node_directory / "identity" / "next-cert.pem";
}

Result<Identity> begin_rotation(const fs::path& node_directory, const RotationOptions& options,
                                int64_t now_unix_s) {
  const Result<Identity> self = load(node_directory);
  if (!self) return self.error();
  if (Status status = refuse_if_under_way(node_directory); !status) return status.error();
  const Result<std::string> key_text = read_small_file(self->key_file);
  if (!key_text) return key_text.error();
  const Result<KeyPointer> key = parse_key(*key_text);
  if (!key) return key.error();
  if (EVP_PKEY_is_a(key->get(), "ED25519") != 1)
    return configuration(
        self->key_file.string() +
        ": only an Ed25519 key can sign for its successor; give the new key and its certificate "
        "with 'sluice node rotate --certificate CERT.pem --key KEY.pem'");
  const Succession succession{.former = key->get(),
                              .former_fingerprint = self->fingerprint,
                              .until_unix_s = now_unix_s + options.overlap_s};
  const auto pair =
      make_key_pair({.name = self->name, .lifetime_s = options.lifetime_s, .succession = &succession});
  if (!pair) return pair.error();
  if (Status status = write_next(node_directory, pair->key_pem, pair->certificate_pem); !status)
    return status.error();
  return load(node_directory);
}

Result<Identity> finish_rotation(const fs::path& node_directory, const std::function<void()>& step) {
  if (!can_be_seen(next_certificate_file(node_directory)))
    return configuration("no new key was made; begin with 'sluice node rotate'");
  if (Status status = switch_over(node_directory, step); !status) return status.error();
  return load(node_directory);
}

Result<bool> abandon_rotation(const fs::path& node_directory) {
  const Result<Identity> self = load(node_directory);
  if (!self) return self.error();
  const fs::path next = next_certificate_file(node_directory);
  if (can_be_seen(next) && !can_be_seen(next_key_file(node_directory)))
    return configuration("the new key is in use already; 'sluice node rotate --finish' ends the change");
  // The certificate first: without it the next key means nothing.
  const Result<bool> gone = remove_small_file(next);
  if (!gone) return gone;
  const Result<bool> key_gone = remove_small_file(next_key_file(node_directory));
  if (!key_gone) return key_gone;
  return *gone || *key_gone;
}

Result<Identity> install(const fs::path& node_directory, const std::string& certificate_pem,
                         const std::string& key_pem) {
  const Result<Identity> self = load(node_directory);
  if (!self) return self.error();
  if (Status status = refuse_if_under_way(node_directory); !status) return status.error();
  const auto certificate = parse_certificate(certificate_pem);
  if (!certificate) return certificate.error();
  const Result<std::string> present_key = read_small_file(self->key_file);
  if (!present_key) return present_key.error();
  if (Status status = check_pair(certificate->get(), key_pem.empty() ? *present_key : key_pem); !status)
    return status.error();
  // A next key that an interrupted change left is not the one of this certificate.
  if (const Result<bool> gone = remove_small_file(next_key_file(node_directory)); !gone) return gone.error();
  if (Status status = write_next(node_directory, key_pem, certificate_pem); !status) return status.error();
  return finish_rotation(node_directory);
}

Status keep_former(const fs::path& directory, const std::string& name, const fs::path& file) {
  const fs::path former = directory / "former";
  if (Status status = make_directory(former, 0755); !status) return status;
  const fs::path kept = former / (name + ".pem");
  // A second name of the same file: its time stays.
  if (::link(file.c_str(), kept.c_str()) != 0 && errno != EEXIST) return cannot_write(kept);
  return sync_directory(former);
}

Result<std::vector<Former>> load_former(const fs::path& node_directory) {
  std::vector<Former> all;
  for (const char* const part : {"identity", "trusted"}) {
    std::error_code failure;
    fs::directory_iterator entries(node_directory / part / "former", failure);
    if (failure == std::errc::no_such_file_or_directory) continue;
    for (; !failure && entries != fs::directory_iterator(); entries.increment(failure)) {
      const fs::path& file = entries->path();
      struct stat info {};
      const Result<std::string> text = read_small_file(file);
      if (!text || ::stat(file.c_str(), &info) != 0) continue;
      const Result<std::string> fingerprint = fingerprint_of_pem(*text);
      if (!fingerprint) continue;
      const std::string stem = file.stem().string();
      const size_t dot = stem.find('.');
      all.push_back({.name = dot == std::string::npos ? "" : stem.substr(0, dot),
                     .fingerprint = *fingerprint,
                     .since_unix_ns = info.st_mtim.tv_sec * kNsOfSecond + info.st_mtim.tv_nsec});
    }
    if (failure)
      return configuration((node_directory / part / "former").string() + ": " + failure.message() +
                           "; check its permissions");
  }
  std::ranges::sort(all, {}, &Former::since_unix_ns);
  return all;
}

}  // namespace sluice::identity
