// A unix socket on which lines come and each is answered with one line.
//
// Cold, main thread. Several clients at once; each line is answered at once and in order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::emulator {

class ControlSocket {
 public:
  using Answer = std::function<std::string(std::string_view line)>;

  // Takes the place of a socket on which nobody listens any more.
  static Result<ControlSocket> listen(const std::filesystem::path& path);
  ControlSocket(ControlSocket&&) = default;
  ~ControlSocket();

  // Serves for at most timeout_ms, or until `other_fd` is readable.
  void serve(int timeout_ms, int other_fd, const Answer& answer);

 private:
  struct Client {
    UniqueFd fd;
    std::string received;
  };
  ControlSocket(std::filesystem::path path, UniqueFd fd)
      : path_(std::move(path)), listening_(std::move(fd)) {}
  bool talk(Client& client, const Answer& answer);  // false: the conversation is over

  std::filesystem::path path_;
  UniqueFd listening_;
  std::vector<Client> clients_;
};

}  // namespace sluice::emulator
