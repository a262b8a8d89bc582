// What stands under each program's name in the bin/ of a bundle (tools/package/bundle.py): it starts the
// program by the bundle's own dynamic loader, with the bundle's own libraries. It is linked statically, for
// there may be no others.
//
//   ROOT/bin/NAME              this
//   ROOT/lib/loader/NAME       a link to ../ld-linux-x86-64.so.2, by whose name the kernel calls the process
//   ROOT/lib, ROOT/lib/dpdk    libraries, and DPDK's drivers
//   ROOT/lib/programs/NAME     the program
// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kConfiguration = 3;  // docs/RUNBOOK.md, "Exit codes"

struct Path {
  char text[2 * PATH_MAX];

  bool join(const char* root, const char* folder, const char* name) {
    const int length = std::snprintf(text, sizeof text, "%s%s%s", root, folder, name);
    return length >= 0 && static_cast<size_t>(length) < sizeof text;
  }
};

int refuse(const char* what, const char* why, const char* remedy) {
  std::fprintf(stderr, "sluice: %s: %s: %s\n", what, why, remedy);
  return kConfiguration;
}

}  // namespace

int main(int argc, char** argv) {
  char self[PATH_MAX];
  const ssize_t bytes = ::readlink("/proc/self/exe", self, sizeof self - 1);
  if (bytes < 0) return refuse("/proc/self/exe", std::strerror(errno), "mount /proc");
  self[bytes] = '\0';
  char* const slash = std::strrchr(self, '/');
  if (slash == nullptr) return refuse(self, "no absolute path", "mount /proc");
  *slash = '\0';
  const char* const name = slash + 1;
  char* const bin = std::strrchr(self, '/');
  if (bin == nullptr) return refuse(name, "it lies in no bin/ of a bundle", "unpack the bundle anew");
  *bin = '\0';
  const char* const root = self;
  // The loader takes these apart.
  if (std::strpbrk(root, ":;$") != nullptr)
    return refuse(root, "the path of a bundle may have no ':', ';' or '$'", "move it to another directory");

  Path loader;
  Path program;
  Path both;
  Path libraries;
  if (!loader.join(root, "/lib/loader/", name) || !program.join(root, "/lib/programs/", name) ||
      !both.join(root, "/lib:", root) || !libraries.join(both.text, "/lib/dpdk", ""))
    return refuse(root, "the path is too long", "move the bundle to a directory with a shorter one");
  char argv0_option[] = "--argv0";
  char libraries_option[] = "--library-path";
  char** const given = static_cast<char**>(std::calloc(static_cast<size_t>(argc) + 8, sizeof *given));
  if (given == nullptr) return refuse(name, "no memory", "free some");
  char** next = given;
  *next++ = loader.text;
  *next++ = argv0_option;
  *next++ = argc > 0 ? argv[0] : program.text;
  *next++ = libraries_option;
  *next++ = libraries.text;
  *next++ = program.text;
  for (int i = 1; i < argc; ++i) *next++ = argv[i];
  ::execv(loader.text, given);
  return refuse(loader.text, std::strerror(errno), "unpack the bundle anew");
}
