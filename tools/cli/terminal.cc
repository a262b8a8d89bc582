// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/terminal.h"

#include <langinfo.h>

#include <algorithm>
#include <array>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

// Last: it defines words of everyday use.
#define NCURSES_NOMACROS
#include <curses.h>

namespace sluice::cli {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
volatile std::sig_atomic_t came = 0;

void note(int signal) { came = signal; }

// A terminal that knows one byte for a character shows something for each other one.
std::string plain(const std::string& line) {
  std::string out;
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80)
      out += c;
    else if ((byte & 0xC0) != 0x80)
      out += '?';
  }
  return out;
}

}  // namespace

bool knows_escapes(const char* kind) {
  const std::string_view name = kind == nullptr ? "" : kind;
  return !name.empty() && name != "dumb" && name != "unknown";
}

Result<std::unique_ptr<Terminal>> Terminal::open() {
  constexpr const char* kOtherwise = ": set TERM, or use 'sluice session show' or 'sluice session events'";
  const char* const kind = std::getenv("TERM");
  if (kind == nullptr || *kind == '\0')
    return Error{ErrorCode::kUsage, std::string("TERM does not say what kind this terminal is") + kOtherwise};
  // Without a locale that is installed names are shown as far as they are ASCII.
  if (std::setlocale(LC_CTYPE, "") == nullptr) std::setlocale(LC_CTYPE, "C.UTF-8");
  std::unique_ptr<Terminal> terminal(new Terminal());
  terminal->utf8_ = std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
  SCREEN* const screen = ::newterm(nullptr, stdout, stdin);
  if (screen == nullptr) {
    return Error{ErrorCode::kUsage,
                 std::string("cannot draw on a terminal of kind '") + kind + "'" + kOtherwise};
  }
  terminal->screen_ = screen;
  ::cbreak();
  ::noecho();
  ::keypad(stdscr, TRUE);
  ::curs_set(0);
  came = 0;
  struct sigaction action {};
  action.sa_handler = note;
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
  return terminal;
}

Terminal::~Terminal() {
  if (screen_ == nullptr) return;
  ::endwin();
  ::delscreen(static_cast<SCREEN*>(screen_));
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
}

size_t Terminal::columns() const { return static_cast<size_t>(std::max(0, COLS)); }
size_t Terminal::rows() const { return static_cast<size_t>(std::max(0, LINES)); }

void Terminal::draw(const std::vector<std::string>& lines) {
  ::erase();
  for (size_t row = 0; row < std::min(lines.size(), rows()); ++row) {
    const std::string line = utf8_ ? lines[row] : plain(lines[row]);
    ::mvaddnstr(static_cast<int>(row), 0, line.c_str(), static_cast<int>(line.size()));
  }
  ::refresh();
}

Terminal::Key Terminal::key(int milliseconds) {
  ::timeout(milliseconds);
  switch (::getch()) {
    case ERR:
      return Key::kNone;
    case KEY_RESIZE:
      return Key::kResized;
    case 'q':
    case 'Q':
      return Key::kQuit;
    default:
      return Key::kOther;
  }
}

int Terminal::signal() { return came; }

}  // namespace sluice::cli
