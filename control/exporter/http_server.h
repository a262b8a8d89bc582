// Answers GET /metrics, and nothing else, for as many callers as like.
//
// One thread polls all connections, so who says nothing, or takes nothing, holds up nobody: each has a few
// seconds for its request and for taking the answer, and where there are too many, the oldest that has not
// asked yet goes, of the address with the most.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exporter {

class HttpServer {
 public:
  struct Limits {
    size_t callers = 64;
    size_t of_address = 16;
    std::chrono::milliseconds patience{5000};
  };
  // What a scrape is answered with; called on the server's thread, once for all that ask at the same time.
  using Answer = std::function<std::string()>;

  // `listening`: a socket that does. kResources: no thread or descriptor is to be had.
  static Result<std::unique_ptr<HttpServer>> start(UniqueFd listening, Answer answer, Limits limits);
  virtual ~HttpServer() = default;  // stops, once an answer that is being made is made
};

}  // namespace sluice::exporter
