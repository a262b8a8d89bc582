// SPDX-License-Identifier: Apache-2.0
#include "storage/ring.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "dataplane/base/io_uring_denied.h"
#include "dataplane/base/page_cache.h"

namespace sluice::storage {
namespace {

constexpr uint64_t kRegisteredBytesMax = 1ULL << 30;  // the kernel's limit for one buffer

uint32_t rounded(uint32_t length) { return (length + kDirectAlignment - 1) & ~(kDirectAlignment - 1); }

int setup(uint32_t entries, io_uring* ring) {
  io_uring_params params{};
  // Completions wait for us to ask, and a flag in shared memory says whether there is anything to ask for.
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
                 IORING_SETUP_CQSIZE | IORING_SETUP_R_DISABLED;
  params.cq_entries = 4 * entries;
  int rc = io_uring_queue_init_params(entries, ring, &params);
  if (rc != -EINVAL) return rc;
  params = {};  // a kernel before 6.1
  params.flags = IORING_SETUP_R_DISABLED;
  rc = io_uring_queue_init_params(entries, ring, &params);
  if (rc != -EINVAL) return rc;
  params = {};  // before 5.10
  return io_uring_queue_init_params(entries, ring, &params);
}

// Debian's liburing declares these and does not have them.
bool register_with(const io_uring& ring, unsigned what, const void* data, unsigned count) {
  return ::syscall(SYS_io_uring_register, ring.ring_fd, what, data, count) == 0;
}

// What is not named here fails with EACCES from then on, and nothing can be registered. A ring that is not
// disabled takes no restrictions.
bool restrict(io_uring* ring) {
  io_uring_restriction allowed[4] = {};
  constexpr uint8_t kOperations[] = {IORING_OP_READ, IORING_OP_WRITE, IORING_OP_READ_FIXED,
                                     IORING_OP_WRITE_FIXED};
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    allowed[i].opcode = IORING_RESTRICTION_SQE_OP;
    allowed[i].sqe_op = kOperations[i];
  }
  return register_with(*ring, IORING_REGISTER_RESTRICTIONS, allowed, std::size(allowed));
}

}  // namespace

Ring::~Ring() {
  if (open_) io_uring_queue_exit(&ring_);
}

Status Ring::open(uint32_t slots, std::span<uint8_t> memory, std::span<const int> helper_cpus,
                  const std::function<void(const std::string&)>& warn) {
  const int rc = setup(std::max(slots, 8U), &ring_);
  if (rc < 0) {
    return Error{ErrorCode::kResources, std::string("io_uring cannot be set up: ") + std::strerror(-rc) +
                                            "; " + base::io_uring_remedy(-rc, base::io_uring_host())};
  }
  open_ = true;
  progress_.resize(slots);
  if (!helper_cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : helper_cpus) CPU_SET(static_cast<unsigned>(cpu), &set);
    if (io_uring_register_iowq_aff(&ring_, sizeof set, &set) < 0) {
      warn(
          "io_uring helper threads stay on the worker's core: file systems without asynchronous writes "
          "will be slower");
    }
  }
  std::vector<iovec> vectors;
  for (uint64_t at = 0; at < memory.size(); at += kRegisteredBytesMax) {
    vectors.push_back({memory.data() + at, std::min<uint64_t>(kRegisteredBytesMax, memory.size() - at)});
  }
  // With more than one vector an extent could cross from one into the next.
  if (vectors.size() == 1) {
    const int registered = io_uring_register_buffers(&ring_, vectors.data(), 1);
    registered_ = registered == 0;
    if (!registered_) {
      warn(std::string("extent buffers cannot be registered with io_uring: ") + std::strerror(-registered) +
           "; raise the locked-memory limit (ulimit -l) for less CPU per byte");
    }
  }
  restricted_ = restrict(&ring_);
  if (!restricted_) warn("io_uring cannot be limited to reading and writing: this kernel is older than 5.10");
  if ((ring_.flags & IORING_SETUP_R_DISABLED) != 0 &&
      !register_with(ring_, IORING_REGISTER_ENABLE_RINGS, nullptr, 0))
    return Error{ErrorCode::kResources, "io_uring cannot be started"};
  return {};
}

void Ring::start(uint32_t slot, const Operation& operation) {
  progress_[slot] = {.operation = operation};
  ++in_flight_;
  queue(slot);
}

void Ring::queue(uint32_t slot) {
  const Progress& p = progress_[slot];
  const Operation& op = p.operation;
  io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
  if (sqe == nullptr) {  // entries == slots, so only continued operations can come here
    io_uring_submit(&ring_);
    unsubmitted_ = 0;
    sqe = io_uring_get_sqe(&ring_);
  }
  const uint32_t length = (op.direct ? rounded(op.length) : op.length) - p.done;
  uint8_t* const data = op.data + p.done;
  const uint64_t offset = op.offset + p.done;
  if (op.write) {
    registered_ ? io_uring_prep_write_fixed(sqe, op.fd, data, length, offset, 0)
                : io_uring_prep_write(sqe, op.fd, data, length, offset);
  } else {
    registered_ ? io_uring_prep_read_fixed(sqe, op.fd, data, length, offset, 0)
                : io_uring_prep_read(sqe, op.fd, data, length, offset);
  }
  io_uring_sqe_set_data64(sqe, slot);
  ++unsubmitted_;
}

void Ring::submit() {
  if (unsubmitted_ == 0) return;
  if (io_uring_submit(&ring_) >= 0) unsubmitted_ = io_uring_sq_ready(&ring_);
}

bool Ring::advance(uint32_t slot, int result, int* error) {
  Progress& p = progress_[slot];
  const Operation& op = p.operation;
  *error = 0;
  // Some file systems take O_DIRECT and then refuse what comes: of blocks that are larger, say, or by FUSE.
  if (result == -EINVAL && op.direct && !p.cached) {
    p.cached = true;
    if (base::go_through_page_cache(op.fd)) return false;
  }
  if (result == -EINTR || result == -EAGAIN) return false;
  if (result < 0) {
    *error = -result;
    return true;
  }
  p.done += static_cast<uint32_t>(result);
  if (p.done >= op.length) return true;
  if (result == 0) {
    *error = op.write ? EIO : ENODATA;
    return true;
  }
  ++short_operations_;
  if (op.direct) p.done &= ~(kDirectAlignment - 1);
  return false;
}

uint32_t Ring::poll(std::span<Completion> out) {
  if (in_flight_ == 0) return 0;
  uint32_t count = 0;
  io_uring_cqe* cqe = nullptr;
  while (count < out.size() && io_uring_peek_cqe(&ring_, &cqe) == 0) {
    const auto slot = static_cast<uint32_t>(io_uring_cqe_get_data64(cqe));
    const int result = cqe->res;
    io_uring_cqe_seen(&ring_, cqe);
    int error = 0;
    if (advance(slot, result, &error)) {
      --in_flight_;
      out[count++] = {slot, error};
    } else {
      queue(slot);
    }
  }
  return count;
}

}  // namespace sluice::storage
