-- agent-ls for Neovim 0.7.2 and newer: save as ~/.config/nvim/plugin/agent-ls.lua (or `dofile` it).
--
-- :AgentFixIssue N   fix an issue             :AgentFixTest [ID]  make the test under the cursor (or ID) pass
-- :AgentFix TEXT     fix what TEXT describes  :AgentStop          stop the newest run
-- :AgentReview       the newest result in a diff tab     :AgentAccept  apply it to your buffers
-- :AgentDiscard      throw the newest result away        :AgentStatus  what the runs do
--
-- Configure before loading: vim.g.agent_ls = { cmd = { "agent-ls", "serve" }, settings = { model = "repair" } }

local M = {}
local config = vim.tbl_extend("force", {
  cmd = { "agent-ls", "serve" },
  filetypes = { "python", "javascript", "typescript", "go", "rust", "java", "c", "cpp", "ruby", "php", "cs", "sh" },
  settings = vim.empty_dict(),
}, vim.g.agent_ls or {})

M.runs = {} -- runId -> the last state update
M.newest = nil -- runId of the newest run
M.last_message = nil

local function say(text, level)
  M.last_message = text
  vim.schedule(function()
    vim.notify("agent-ls: " .. text, level or vim.log.levels.INFO)
  end)
end

local clients = {} -- root -> client id

-- The folder above the nearest .git (a folder, or a file in a linked worktree).
local function git_root(path)
  local folder = vim.fn.fnamemodify(path, ":p"):gsub("(.)/$", "%1")
  while true do
    if vim.fn.isdirectory(folder .. "/.git") == 1 or vim.fn.filereadable(folder .. "/.git") == 1 then
      return folder
    end
    local up = vim.fn.fnamemodify(folder, ":h")
    if up == folder then
      return nil
    end
    folder = up
  end
end

-- A run asks the person: the answer goes back by a command of its own.
local function ask_person(client, id, question)
  vim.ui.input({ prompt = question .. " " }, function(text)
    local argument = { runId = id, text = text or vim.NIL }
    client.request("workspace/executeCommand", { command = "agent-ls.run.answer", arguments = { argument } })
  end)
end

local function on_update(_, params, ctx)
  if not params or not params.update then
    return
  end
  local update = params.update
  if update.kind == "state" then
    M.runs[params.runId] = update
    if update.state == "asking" then
      local client = vim.lsp.get_client_by_id(ctx.client_id)
      vim.schedule(function()
        ask_person(client, params.runId, update.question)
      end)
      return
    end
    if update.state == "finished" then
      local text = update.message
      if update.branch and update.branch ~= vim.NIL then
        text = text .. " · branch " .. update.branch
      end
      if update.verdict ~= "fixed" and update.verdict ~= "passed" and update.summary ~= "" then
        text = text .. "\n" .. update.summary
      end
      say(text, update.exitCode == 0 and vim.log.levels.INFO or vim.log.levels.WARN)
      if M.on_finished then
        vim.schedule(function()
          M.on_finished(params.runId, update)
        end)
      end
      return
    end
  end
  if update.message then
    M.last_message = update.message
    vim.schedule(function()
      vim.api.nvim_echo({ { "agent-ls: " .. update.message, "Comment" } }, false, {})
      vim.cmd("redrawstatus")
    end)
  end
end

-- For a statusline: %{v:lua.AgentLsStatus()}
function _G.AgentLsStatus()
  local update = M.newest and M.runs[M.newest]
  if not update or update.state == "finished" then
    return ""
  end
  return "agent: " .. (update.message or update.state)
end

function M.start(path)
  local root = git_root(path or vim.fn.getcwd())
  if not root then
    return nil
  end
  local id = clients[root]
  if id and vim.lsp.get_client_by_id(id) then
    return id
  end
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.experimental = { agentLs = { answers = true } }
  id = vim.lsp.start_client({
    name = "agent-ls",
    cmd = config.cmd,
    root_dir = root,
    workspace_folders = { { uri = vim.uri_from_fname(root), name = vim.fn.fnamemodify(root, ":t") } },
    capabilities = capabilities,
    settings = { agentLs = config.settings },
    init_options = { agentLs = config.settings },
    handlers = {
      ["agent-ls/run/didUpdate"] = on_update,
      ["agent-ls/didChangeStatus"] = function() end,
    },
    on_exit = function()
      clients[root] = nil
    end,
  })
  clients[root] = id
  return id
end

local function attach(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  if name == "" or vim.api.nvim_buf_get_option(buffer, "buftype") ~= "" then
    return
  end
  local id = M.start(vim.fn.fnamemodify(name, ":p:h"))
  if id then
    vim.lsp.buf_attach_client(buffer, id)
  end
end

local function here()
  local name = vim.api.nvim_buf_get_name(0)
  return name ~= "" and vim.fn.fnamemodify(name, ":p:h") or vim.fn.getcwd()
end

-- Send a command; `done(result)` runs with its answer.
function M.command(name, argument, done)
  local id = M.start(here())
  local client = id and vim.lsp.get_client_by_id(id)
  if not client then
    say("no git repository here", vim.log.levels.ERROR)
    return
  end
  local function send()
    client.request("workspace/executeCommand", { command = name, arguments = { argument } }, function(error, result)
      if error then
        say(error.message or tostring(error), vim.log.levels.ERROR)
      elseif done then
        done(result)
      end
    end)
  end
  if client.initialized then
    send()
  else
    vim.defer_fn(function()
      vim.wait(10000, function()
        return client.initialized
      end, 20)
      send()
    end, 0)
  end
end

function M.run(kind, target)
  M.command("agent-ls.run.start", { kind = kind, target = target }, function(result)
    M.newest = result.runId
    M.runs[result.runId] = M.runs[result.runId] or { state = "running", message = "starting" }
    say("working on a copy · branch " .. tostring(result.branch))
  end)
end

local function test_here()
  local line = vim.api.nvim_win_get_cursor(0)[1]
  local lines = vim.api.nvim_buf_get_lines(0, 0, line, false)
  local name, indent, parts = nil, math.huge, {}
  for number = #lines, 1, -1 do
    local space, word, found = lines[number]:match("^(%s*)(%a*)%s+([%w_]+)")
    if word == "async" then
      space, found = lines[number]:match("^(%s*)async%s+def%s+([%w_]+)")
      word = found and "def" or ""
    end
    if found and #space < indent and ((word == "def" and not name) or (word == "class" and name)) then
      name, indent = found, #space
      table.insert(parts, 1, found)
      if indent == 0 then
        break
      end
    end
  end
  local root = git_root(here())
  local file = vim.fn.fnamemodify(vim.api.nvim_buf_get_name(0), ":p")
  if not name or not root then
    return nil
  end
  return file:sub(#root + 2) .. "::" .. table.concat(parts, "::")
end

local function newest(done)
  if not M.newest then
    say("no run yet", vim.log.levels.WARN)
    return
  end
  done(M.newest)
end

-- Open each file of a result beside what it was, in a tab.
function M.review()
  newest(function(id)
    M.command("agent-ls.run.accept", { runId = id, how = "diff" }, function(result)
      for _, file in ipairs(result.files) do
        local function show(text, label)
          local buffer = vim.api.nvim_create_buf(false, true)
          local lines = vim.split(text == vim.NIL and "" or text or "", "\n", { plain = true })
          vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
          vim.api.nvim_buf_set_name(buffer, "agent-ls://" .. id .. "/" .. label .. "/" .. file.path)
          vim.api.nvim_buf_set_option(buffer, "bufhidden", "wipe")
          vim.api.nvim_buf_set_option(buffer, "filetype", vim.fn.fnamemodify(file.path, ":e") == "py" and "python" or "")
          vim.api.nvim_win_set_buf(0, buffer)
          vim.cmd("diffthis")
        end
        vim.cmd("tabnew")
        show(file.before, "before")
        vim.cmd("vsplit")
        show(file.after, "after")
      end
      M.last_message = "result shown"
    end)
  end)
end

function M.accept()
  newest(function(id)
    M.command("agent-ls.run.accept", { runId = id, how = "apply" }, function(result)
      if result.applied then
        say("applied to your buffers; save them when you have looked")
      else
        say("not applied: " .. tostring(result.reason), vim.log.levels.WARN)
      end
    end)
  end)
end

local function user_command(name, action, options)
  vim.api.nvim_create_user_command(name, action, options or {})
end

user_command("AgentFixIssue", function(given)
  M.run("issue", given.args)
end, { nargs = 1 })
user_command("AgentFixTest", function(given)
  local test = given.args ~= "" and given.args or test_here()
  if not test then
    say("the cursor is in no test", vim.log.levels.ERROR)
    return
  end
  M.run("test", test)
end, { nargs = "?" })
user_command("AgentFix", function(given)
  M.run("prompt", given.args)
end, { nargs = "+" })
user_command("AgentStop", function()
  newest(function(id)
    M.command("agent-ls.run.cancel", { runId = id })
  end)
end)
user_command("AgentReview", M.review)
user_command("AgentAccept", M.accept)
user_command("AgentDiscard", function()
  newest(function(id)
    M.command("agent-ls.run.reject", { runId = id }, function()
      say("thrown away")
    end)
  end)
end)
user_command("AgentStatus", function()
  M.command("agent-ls.run.list", vim.empty_dict(), function(result)
    for _, run in ipairs(result.runs) do
      say(run.runId .. " " .. run.state .. ": " .. run.title .. " · " .. run.message)
    end
  end)
end)

vim.api.nvim_create_autocmd("FileType", {
  pattern = config.filetypes,
  callback = function(event)
    attach(event.buf or vim.api.nvim_get_current_buf())
  end,
})
for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
  if vim.api.nvim_buf_is_loaded(buffer) and vim.tbl_contains(config.filetypes, vim.bo[buffer].filetype) then
    attach(buffer)
  end
end

_G.AgentLs = M
return M
