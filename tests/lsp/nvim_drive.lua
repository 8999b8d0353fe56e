-- Drives a real Neovim: attach, fix the sample's issue, look at the result, apply it. Prints one line of JSON.
local out, plugin, file, program = vim.env.OUT, vim.env.PLUGIN, vim.env.FILE, vim.env.PROGRAM
local said = {}
local function finish(fields)
  fields.said = said
  local handle = io.open(out, "w")
  handle:write(vim.fn.json_encode(fields))
  handle:close()
  vim.cmd("qa!")
end

local ok, problem = pcall(function()
  vim.notify = function(text)
    table.insert(said, text)
  end
  vim.g.agent_ls = { cmd = { program, "-m", "agent_ls", "serve" } }
  dofile(plugin)
  vim.cmd("filetype on")
  vim.cmd("edit " .. vim.fn.fnameescape(file))
  vim.cmd("setfiletype python")
  local M = _G.AgentLs
  local function wait(seconds, test)
    return vim.wait(seconds * 1000, test, 50)
  end
  local attached = wait(20, function()
    return next(vim.lsp.buf_get_clients(0)) ~= nil
  end)
  if vim.env.STEP == "stop" then
    vim.cmd("AgentFixIssue 1")
    wait(20, function()
      return M.newest ~= nil and M.last_message and M.last_message:match("running the test suite")
    end)
    vim.cmd("AgentStop")
  elseif vim.env.STEP == "test" then
    vim.fn.search("def test_contains_its_last_day")
    vim.cmd("AgentFixTest")
  else
    vim.cmd("AgentFixIssue 1")
  end
  local ended = wait(150, function()
    return M.newest ~= nil and M.runs[M.newest] and M.runs[M.newest].state == "finished"
  end)
  local result = ended and M.runs[M.newest] or {}
  local fields = { attached = attached, verdict = result.verdict, branch = result.branch }
  if vim.env.STEP == "issue" then
    vim.cmd("AgentReview")
    wait(20, function()
      return M.last_message == "result shown"
    end)
    fields.tabs = vim.fn.tabpagenr("$")
    fields.diff = vim.wo.diff
    vim.cmd("tabonly | tabfirst")
    vim.cmd("edit " .. vim.fn.fnameescape(vim.env.TARGET))
    wait(5, function()
      return false
    end)
    vim.cmd("AgentAccept")
    wait(20, function()
      return M.last_message and M.last_message:match("applied")
    end)
    fields.applied = M.last_message
    fields.text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
  end
  finish(fields)
end)
if not ok then
  finish({ problem = tostring(problem) })
end
