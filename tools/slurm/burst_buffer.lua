-- Staging by Sluice for jobs of Slurm: the script of Slurm's plug-in burst_buffer/lua, beside slurm.conf.
--
--   #SLUICE stage-in SRC DST [list=FILE] [overwrite=yes] [mkdir=yes]
--   #SLUICE stage-out SRC DST [list=FILE] [overwrite=yes] [mkdir=yes]
--
-- docs/SLURM.md says what the words mean. It serves Slurm 22.05, whose data_in waits for the end, and the Slurm that asks
-- test_data_in again and again. It runs with Lua 5.1 to 5.4. slurmctld itself calls job_process, pools and paths, with its
-- locks held, and cannot end them: they only parse, and read files of Slurm's and of our own. All else is done by stage.py, which
-- judges the job's script once more.
-- SPDX-License-Identifier: Apache-2.0

local STAGE = os.getenv("SLUICE_STAGE") or "/usr/share/sluice/slurm/stage.py"
local CONFIGURATION = os.getenv("SLUICE_STAGE_CONF") or "/etc/sluice/slurm.conf"
local LINES_MAX = 64
local MESSAGE_MAX = 900

-- ---- the directives: stage.py has the same rules, and tools/slurm/directives_test.py holds both to one table

local USAGE = "write: #SLUICE stage-in|stage-out SRC DST [list=FILE] [overwrite=yes|no] [mkdir=yes|no]"

-- Words between blanks; double quotes keep blanks. nil: a quote has no end.
local function words_of(text)
  local words, word, quoted = {}, nil, false
  for char in text:gmatch(".") do
    if char == '"' then
      quoted = not quoted
      word = word or ""
    elseif (char == " " or char == "\t") and not quoted then
      if word then words[#words + 1] = word end
      word = nil
    else
      word = (word or "") .. char
    end
  end
  if quoted then return nil end
  if word then words[#words + 1] = word end
  return words
end

-- The node of NODE:PATH; "" of a local path. nil and the reason: it is neither.
local function node_of(operand)
  local bare = operand:gsub("%%%%", "")
  local stray = bare:match("%%[^ju]") or bare:match("%%$")
  if stray then return nil, "'" .. stray .. "' in " .. operand .. " is not known: %j is the job's number, %u its user, %% a percent sign" end
  if operand:sub(1, 1) == "/" then return "" end
  local node, path = operand:match("^([%w._-]+):(.+)$")
  if not node then return nil, operand .. " is neither an absolute path nor NODE:PATH" end
  if node == "memory" or node == "null" then return nil, operand .. " is no file" end
  return node, path
end

local function check_option(key, value)
  if key == "list" then
    if value:sub(1, 1) == "/" then return nil end
    return "list=" .. value .. ": write an absolute path of this host"
  end
  if key ~= "overwrite" and key ~= "mkdir" then return "unknown option " .. key .. "=; " .. USAGE end
  if value ~= "yes" and value ~= "no" then return key .. "=" .. value .. ": yes or no" end
  return nil
end

-- What is wrong with the words behind #SLUICE; nil: nothing.
local function problem_of(text)
  if text:find("[%z\1-\8\11-\31\127]") then return "a control character" end
  local words = words_of(text)
  if not words then return "a quote has no end" end
  local verb = table.remove(words, 1)
  if not verb then return "a directive is missing; " .. USAGE end
  if verb ~= "stage-in" and verb ~= "stage-out" then return "unknown directive " .. verb .. "; " .. USAGE end
  local operands, seen = {}, {}
  for _, word in ipairs(words) do
    local key, value = word:match("^(%l+)=(.*)$")
    if key then
      if seen[key] then return key .. "= is given twice" end
      seen[key] = true
      local problem = check_option(key, value)
      if problem then return problem end
    else
      operands[#operands + 1] = word
    end
  end
  if #operands ~= 2 then return verb .. " needs SRC and DST, and has " .. #operands .. " of them; " .. USAGE end
  local from, why = node_of(operands[1])
  if not from then return why end
  local to, why_not = node_of(operands[2])
  if not to then return why_not end
  if from == to then
    if from == "" then return "neither " .. operands[1] .. " nor " .. operands[2] .. " is at another node" end
    return from .. " is both source and destination: copy the files there"
  end
  return nil
end

-- What is wrong with a job's script: nil or a text. As Slurm does, it reads directives up to the first line that is no comment.
function sluice_problem(script)
  local number, count, header = 0, 0, true
  for line in (script .. "\n"):gmatch("([^\n]*)\n") do
    number = number + 1
    if line ~= "" and line:sub(1, 1) ~= "#" then header = false end
    local text = line:match("^#SLUICE(.*)$")
    if text and (text == "" or text:find("^[ \t\r]")) then
      count = count + 1
      local problem
      if not header then
        problem = "Slurm reads directives before the first command only: move it up"
      elseif count > LINES_MAX then
        problem = "more than " .. LINES_MAX .. " directives; name several files by list=FILE"
      else
        problem = problem_of((text:gsub("\r$", "")))
      end
      if problem then return "sluice: line " .. number .. ": " .. problem end
    end
  end
  return nil
end

-- ---- the other program

local function quoted(word)
  return "'" .. tostring(word):gsub("'", "'\\''") .. "'"
end

-- Runs stage.py: its exit status, and what it said in one line. Lua 5.1 has no other way to learn the status.
local function stage(...)
  local command = quoted(STAGE)
  for _, word in ipairs({...}) do command = command .. " " .. quoted(word) end
  local pipe = io.popen(command .. " 2>&1 </dev/null; echo \"status $?\"")
  if not pipe then return 1, "sluice: cannot run " .. STAGE end
  local text = pipe:read("*a") or ""
  pipe:close()
  local said, status = text:match("^(.*)status (%d+)%s*$")
  if not status then return 1, "sluice: " .. STAGE .. " was ended" end
  said = said:gsub("%s+$", ""):gsub("[%c]+", "; "):sub(1, MESSAGE_MAX)
  if status ~= "0" and said == "" then said = "sluice: " .. STAGE .. " ended with " .. status end
  return tonumber(status), said
end

-- slurm.ERROR alone: Slurm 22.05 makes an exit status of what is returned, of which 256 would be 0.
local function done_or_error(status, said)
  if status == 0 then return slurm.SUCCESS end
  return slurm.ERROR, said
end

-- Slurm 22.05 has no test_data_in and test_data_out: data_in and data_out wait. Later Slurm asks those until all is done, and
-- then a restart of slurmctld ends nothing.
local function transfer(way, job_id)
  if slurm.SLURM_BB_BUSY then return done_or_error(stage("begin", way, job_id)) end
  return done_or_error(stage("run", way, job_id))
end

local BUSY_STATUS = 75

local function test_transfer(way, job_id)
  local status, said = stage("test", way, job_id)
  if status == BUSY_STATUS then return slurm.SUCCESS, slurm.SLURM_BB_BUSY end
  return done_or_error(status, said)
end

-- ---- what Slurm calls

function slurm_bb_job_process(job_script, uid, gid, job_info)
  local file, why = io.open(job_script, "r")
  if not file then return slurm.ERROR, "sluice: cannot read the job's script: " .. tostring(why) end
  local text = file:read("*a") or ""
  file:close()
  local problem = sluice_problem(text)
  if problem then return slurm.ERROR, problem end
  return slurm.SUCCESS
end

function slurm_bb_pools()
  return slurm.SUCCESS
end

function slurm_bb_setup(job_id, uid, gid, pool, bb_size, job_script, job_info)
  return done_or_error(stage("setup", job_id, uid, job_script))
end

function slurm_bb_data_in(job_id, job_script, uid, gid, job_info)
  return transfer("in", job_id)
end

function slurm_bb_test_data_in(job_id, job_script, uid, gid, job_info)
  return test_transfer("in", job_id)
end

function slurm_bb_real_size(job_id, uid, gid, job_info)
  return slurm.SUCCESS
end

-- As stage.py reads it.
local function state_dir()
  local found = "/var/lib/sluice-slurm"
  local file = io.open(CONFIGURATION, "r")
  if not file then return found end
  for line in file:lines() do found = line:match("^%s*state_dir%s*=%s*(.-)%s*$") or found end
  file:close()
  return found
end

-- The job finds the paths in its environment: SLUICE_STAGE_IN_1, SLUICE_STAGE_OUT_1 and so on.
function slurm_bb_paths(job_id, job_script, path_file, uid, gid, job_info)
  local folder = state_dir() .. "/" .. job_id
  local from, missing = io.open(folder .. "/paths", "r")
  if not from then return slurm.ERROR, "sluice: " .. tostring(missing) end
  local text = from:read("*a") or ""
  from:close()
  local to, why = io.open(path_file, "w")
  if not to then return slurm.ERROR, "sluice: " .. tostring(why) end
  to:write(text)
  to:close()
  local started = io.open(folder .. "/started", "w")
  if started then started:close() end
  return slurm.SUCCESS
end

function slurm_bb_pre_run(job_id, job_script, uid, gid, job_info)
  return slurm.SUCCESS
end

function slurm_bb_post_run(job_id, job_script, uid, gid, job_info)
  return slurm.SUCCESS
end

function slurm_bb_data_out(job_id, job_script, uid, gid, job_info)
  return transfer("out", job_id)
end

function slurm_bb_test_data_out(job_id, job_script, uid, gid, job_info)
  return test_transfer("out", job_id)
end

-- Slurm calls it when a job has ended or is cancelled, and when slurmctld was restarted while a job was staged in. stage.py asks
-- Slurm which of them it is.
function slurm_bb_job_teardown(job_id, job_script, hurry, uid, gid)
  return done_or_error(stage("teardown", job_id))
end

-- `scontrol show bbstat JOB`
function slurm_bb_get_status(...)
  local words = {...}
  local job_id = words[#words]
  if not job_id or not tostring(job_id):match("^%d+$") then return slurm.ERROR, "write: scontrol show bbstat JOBID\n" end
  local status, said = stage("status", job_id)
  return slurm.SUCCESS, said .. "\n"
end
