-- SPDX-License-Identifier: Apache-2.0
if not run("systemd-sysusers", "sluice.conf") then
  print("sluice: no systemd-sysusers here: the users of the services were not made (/usr/lib/sysusers.d/sluice.conf)")
end
run("systemd-tmpfiles", "--create", "sluice.conf")
if count == 1 then
  -- sluice-users.service, sluice-console.service and sluice-notify.service stay off: who wants them enables them.
  run("systemctl", "--no-reload", "preset", "sluice-host.service", "sluice-dataplane.service", "sluice-control.service")
end
if booted then run("systemctl", "daemon-reload") end
