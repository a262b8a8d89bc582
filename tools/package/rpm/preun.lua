-- SPDX-License-Identifier: Apache-2.0
if count == 0 then
  run("systemctl", "--no-reload", "disable", "--now", "sluice-notify.service")
  if booted then run("systemctl", "stop", "sluice-watch@*.service", "sluice-run@*") end
  run("systemctl", "--no-reload", "disable", "--now", "sluice-console.socket", "sluice-console.service")
  run("systemctl", "--no-reload", "disable", "--now", "sluice-users.socket", "sluice-users.service")
  run("systemctl", "--no-reload", "disable", "--now", "sluice-control.service", "sluice-dataplane.service", "sluice-host.service")
end
