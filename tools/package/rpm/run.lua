-- SPDX-License-Identifier: Apache-2.0
-- Before each script: there may be no shell, and no systemd. How many of the package are there afterwards.
local count = tonumber(arg[2]) or 0
local booted = posix.stat("/run/systemd/system") ~= nil
-- Runs a program if it is there; a failure is told by the program and ends nothing.
local function run(name, ...)
  for _, folder in ipairs({"/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/"}) do
    if posix.access(folder .. name, "x") then
      rpm.execute(folder .. name, ...)
      return true
    end
  end
  return false
end
