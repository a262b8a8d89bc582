// A process that `sluice send` or `sluice get` starts for files outside the exports: with the rights of who
// typed the command it opens the files that he named, and nothing else, for as long as the session lives.
//
// It calls sluice-control (callers.h) and does what that asks (server.h). It outlives the command, and a
// restart of control; it ends when control says that nothing more is wanted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::users {

// `in`: "LENGTH\n" and so many bytes: the path of control's socket, the token, the umask in octal; "r", "w",
// or "t" for sources that are made for the session, which it removes at the end, each with its directory; and
// absolute paths, all ended by a zero byte. On `out` it says "ok\n", or "CODE message\n" and ends. Then one
// byte on `in` says that the session has begun; its end says that there is none, and it ends. Returns the
// exit status.
int open_for_caller(int in, int out);

}  // namespace sluice::users
