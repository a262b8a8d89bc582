// One copy that gfal2 asks for: a session of Sluice from its beginning to its end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gfal_plugins_api.h>

#include <stdexcept>
#include <string>

#include "tools/gfal2/places/problem.h"

namespace sluice::gfal {

// A Problem of a copy: at which side, and of which step.
class CopyProblem : public Problem {
 public:
  CopyProblem(const Problem& problem, const char* side, const char* note)
      : Problem(problem.reason(), problem.what()), side_(side), note_(note) {}
  const char* side() const { return side_; }
  const char* note() const { return note_; }  // one of GFALT_ERROR_*, or ""

 private:
  const char* side_;
  const char* note_;
};

GQuark quark();

// Throws a CopyProblem.
void copy_file(gfal2_context_t context, gfalt_params_t params, const char* source, const char* destination);

}  // namespace sluice::gfal
