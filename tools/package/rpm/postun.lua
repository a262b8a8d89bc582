-- SPDX-License-Identifier: Apache-2.0
if booted then
  run("systemctl", "daemon-reload")
  if count >= 1 then
    -- Each by itself, so that sessions go on.
    for _, unit in ipairs({"sluice-dataplane.service", "sluice-users.service", "sluice-control.service",
      "sluice-console.service", "sluice-notify.service", "sluice-watch@*.service"}) do
      run("systemctl", "try-restart", unit)
    end
  end
end
