// SPDX-License-Identifier: Apache-2.0
#include "control/users/identity.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace sluice::users {
namespace {

// Of each Debian: his group is `nogroup`.
constexpr const char* kGroup = "nogroup";

uid_t nobody() {
  const passwd* const entry = ::getpwnam("nobody");
  return entry != nullptr ? entry->pw_uid : 65534;
}

TEST(UsersIdentity, RootAccountsOfTheSystemAndStrangersAreRefused) {
  EXPECT_EQ(member(0, kGroup, 1).error().code, ErrorCode::kConfiguration);
  const Status low = Status(member(1, kGroup, 1000).error());
  EXPECT_NE(low.error().message.find("users_uid_min = 1000"), std::string::npos) << low.error().message;
  EXPECT_NE(member(3'999'999'999U, kGroup, 1000).error().message.find("no such user"), std::string::npos);
  EXPECT_NE(member(nobody(), "no-such-group", 1).error().message.find("no such group"), std::string::npos);
  EXPECT_NE(member(nobody(), "daemon", 1).error().message.find("is no member of group daemon"),
            std::string::npos);
}

TEST(UsersIdentity, AMemberHasHisNameAndGroups) {
  const Result<Account> account = member(nobody(), kGroup, 1);
  ASSERT_TRUE(account) << account.error().message;
  EXPECT_EQ(account->name, "nobody");
  EXPECT_EQ(account->uid, nobody());
  ASSERT_FALSE(account->groups.empty());
  EXPECT_EQ(name_of(nobody()), "nobody");
  EXPECT_EQ(name_of(3'999'999'999U), "3999999999");
}

// 0, or which of what must not be so any more is.
int try_all(const Account& account, const char* secret) {
  if (!become(account)) return 1;
  if (::getuid() != account.uid || ::geteuid() != account.uid || ::getegid() != account.gid) return 2;
  if (::setresuid(0, 0, 0) == 0 || ::seteuid(0) == 0 || ::setgroups(0, nullptr) == 0) return 3;
  if (::open(secret, O_RDONLY) >= 0) return 4;
  if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 || ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0) return 5;
  if (become(account)) return 6;  // it cannot change its groups again
  return 0;
}

TEST(UsersIdentity, WhoBecameHimIsNothingElseAndCannotGoBack) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another";
  const Result<Account> account = member(nobody(), kGroup, 1);
  ASSERT_TRUE(account);
  std::string secret = "/tmp/sluice-identity-test-XXXXXX";
  const int fd = ::mkstemp(secret.data());
  ASSERT_GE(fd, 0);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(try_all(*account, secret.c_str()));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ::close(fd);
  ::unlink(secret.c_str());
}

TEST(UsersIdentity, NobodyBecomesRoot) {
  EXPECT_FALSE(become(Account{.name = "root", .uid = 0, .gid = 0, .groups = {}}));
}

}  // namespace
}  // namespace sluice::users
