// File systems that take letters of another case for the same: two names of a source may be one there, and
// the second would replace the first without a word.
//
// Blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace sluice::exports {

// `present`: a name that is there, with letters of ASCII; otherwise it is not found out.
bool folds_case(int directory_fd, const std::string& present);
// Is something there by this name, of which no name of the directory is this one? To be asked where case is
// folded; reads the whole directory.
bool has_other_letters(int directory_fd, const std::string& name);

// Of one directory alone, as ext4 and tmpfs have them: those beside it may tell letters apart.
bool folds_case_by_itself(int directory_fd);

// Are names listed as they were made? Makes one in an empty directory, or one of numbers, and removes it.
bool keeps_case(int directory_fd);
// Letters of ASCII in lower case: of names that are the same to such a file system.
std::string folded(std::string name);

}  // namespace sluice::exports
