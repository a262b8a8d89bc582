// SPDX-License-Identifier: Apache-2.0
#include "tools/unattended/telling.h"

#include <algorithm>
#include <utility>

#include "tools/unattended/words.h"

namespace sluice::unattended {
namespace {

std::string letter_line(const Letter& letter) {
  return "letter " + as_word(letter.key) + " " + std::to_string(letter.tries) + " " + as_word(letter.text) +
         "\n";
}

}  // namespace

Telling::Added Telling::add(Letter letter, int64_t now_ns) {
  if (known_.contains(letter.key)) return Added::kKnown;
  if (letters_.size() >= limits_.waiting) return Added::kNoRoom;
  known_[letter.key] = true;
  if (letter.lasting) lines_ += letter_line(letter);
  letters_.push_back({.letter = std::move(letter), .due_ns = now_ns});
  return Added::kNew;
}

void Telling::pass_over(const std::string& key) {
  if (!known_.try_emplace(key, false).second) return;
  lines_ += "told " + as_word(key) + "\n";
  decisive_ = true;
}

const Letter* Telling::next(int64_t now_ns) {
  if (running_ >= limits_.at_once) return nullptr;
  const auto due = std::find_if(letters_.begin(), letters_.end(), [now_ns](const Waiting& one) {
    return !one.running && one.due_ns <= now_ns;
  });
  if (due == letters_.end()) return nullptr;
  due->running = true;
  ++running_;
  ++due->letter.tries;
  return &due->letter;
}

Telling::At Telling::find(const std::string& key) {
  return std::find_if(letters_.begin(), letters_.end(),
                      [&key](const Waiting& one) { return one.letter.key == key; });
}

void Telling::settle(At at, const char* word) {
  if (at->letter.lasting) {
    known_[at->letter.key] = false;
    lines_ += word + (" " + as_word(at->letter.key)) + "\n";
    decisive_ = true;
  } else {
    known_.erase(at->letter.key);
  }
  letters_.erase(at);
}

Telling::Outcome Telling::ended(const std::string& key, bool well, int64_t now_ns) {
  const At at = find(key);
  if (at == letters_.end() || !at->running) return Outcome::kTold;
  at->running = false;
  --running_;
  if (well) {
    settle(at, "told");
    return Outcome::kTold;
  }
  if (at->letter.tries >= limits_.tries) {
    settle(at, "failed");
    return Outcome::kGivenUp;
  }
  at->due_ns = now_ns + limits_.waits.after_ns(at->letter.tries);
  if (at->letter.lasting) lines_ += "tried " + as_word(key) + " " + std::to_string(at->letter.tries) + "\n";
  return Outcome::kAgain;
}

void Telling::given_back(const std::string& key) {
  const At at = find(key);
  if (at == letters_.end() || !at->running) return;
  at->running = false;
  --running_;
  --at->letter.tries;
}

int64_t Telling::next_ns() const {
  int64_t next_ns = kNever;
  if (running_ >= limits_.at_once) return next_ns;
  for (const Waiting& one : letters_) {
    if (!one.running) next_ns = std::min(next_ns, one.due_ns);
  }
  return next_ns;
}

void Telling::keep(const std::function<bool(const std::string& key)>& wanted) {
  for (auto at = known_.begin(); at != known_.end();) {
    if (at->second || wanted(at->first)) {
      ++at;
      continue;
    }
    lines_ += "forget " + as_word(at->first) + "\n";
    at = known_.erase(at);
  }
}

std::string Telling::take_lines() {
  decisive_ = false;
  return std::exchange(lines_, {});
}

std::string Telling::all_lines() const {
  std::string lines;
  for (const auto& [key, waits] : known_) {
    if (!waits) lines += "told " + as_word(key) + "\n";
  }
  for (const Waiting& one : letters_) {
    if (one.letter.lasting) lines += letter_line(one.letter);
  }
  return lines;
}

void Telling::read(std::string_view text) {
  for (const std::string_view line : lines_of(text)) read_line(line);
}

bool Telling::is_line(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 2 || !of_word(words[1])) return false;
  if (words[0] == "letter") return words.size() == 4 && number_of<uint32_t>(words[2]) && of_word(words[3]);
  if (words[0] == "tried") return words.size() == 3 && number_of<uint32_t>(words[2]);
  return words.size() == 2 && (words[0] == "told" || words[0] == "failed" || words[0] == "forget");
}

void Telling::read_line(std::string_view line) {
  const std::vector<std::string_view> words = words_of(line);
  if (words.size() < 2) return;
  const std::optional<std::string> key = of_word(words[1]);
  if (!key) return;
  const At at = find(*key);
  const auto tries = words.size() > 2 ? number_of<uint32_t>(words[2]) : std::nullopt;
  if (words[0] == "letter" && words.size() == 4 && tries && !known_.contains(*key)) {
    const std::optional<std::string> letter = of_word(words[3]);
    if (!letter) return;
    known_[*key] = true;
    letters_.push_back({.letter = {.key = *key, .text = *letter, .lasting = true, .tries = *tries}});
  } else if (words[0] == "tried" && tries && at != letters_.end()) {
    at->letter.tries = *tries;
  } else if (words[0] == "told" || words[0] == "failed") {
    if (at != letters_.end()) letters_.erase(at);
    known_[*key] = false;
  } else if (words[0] == "forget" && at == letters_.end()) {
    known_.erase(*key);
  }
}

}  // namespace sluice::unattended
