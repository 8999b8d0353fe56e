// Drives a real VS Code (code-server) by a real browser: through the palette, and with tests in the extension host.
//
//   node e2e/drive.mjs OUT CODE_SERVER_DIR REPOSITORY AGENT_LS [SCREENSHOTS]
//
// OUT gets result.json, logs and, if no other folder is named, the screenshots. Exits 1 on a failure, after ending
// every process that it began.
import { execFileSync, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { chromium } from "playwright-core";

const [out, codeServer, repository, program, pictures = out] = process.argv.slice(2).map((it) => path.resolve(it));
const here = path.resolve(import.meta.dirname, "..");
const entry = path.join(codeServer, "node_modules/code-server/out/node/entry.js");
const data = path.join(out, "data");
const began = Date.now();
const log = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}`);
mkdirSync(pictures, { recursive: true });
mkdirSync(path.join(data, "User"), { recursive: true });
mkdirSync(path.join(data, "Machine"), { recursive: true });
// A path is the machine's: a window on a remote machine, which code-server's are, doesn't take it from the user's settings.
writeFileSync(path.join(data, "Machine/settings.json"), JSON.stringify({ "agentLs.server.path": program }));
writeFileSync(path.join(data, "User/settings.json"), JSON.stringify({
  "workbench.startupEditor": "none", "workbench.tips.enabled": false,
  "telemetry.telemetryLevel": "off", "extensions.ignoreRecommendations": true, "git.openRepositoryInParentFolders": "never",
  "workbench.colorTheme": process.env.THEME ?? "Default Light Modern", "window.restoreWindows": "none", "files.autoSave": "off",
  "editor.minimap.enabled": false, "chat.commandCenter.enabled": false, "workbench.layoutControl.enabled": false,
  "window.commandCenter": false, "git.enabled": false,
}));
const common = ["--user-data-dir", data, "--extensions-dir", path.join(data, "ext")];
const env = { ...process.env, AGENT_LS_CACHE_DIR: path.join(out, "cache"), AGENT_LS_STATE_DIR: path.join(out, "state"), HOME: out, XDG_CONFIG_HOME: path.join(out, "config") };

const port = await new Promise((resolve) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const { port } = probe.address();
    probe.close(() => resolve(port));
  });
});
execFileSync(process.execPath, [entry, ...common, "--install-extension", path.join(here, "dist/agent-ls.vsix")], { env, stdio: "pipe" });
log("extension installed");
const server = spawn(process.execPath, [
  entry, "--auth", "none", "--bind-addr", `127.0.0.1:${port}`, ...common, "--disable-telemetry", "--disable-update-check",
  "--disable-workspace-trust", "--disable-getting-started-override", repository,
], { env, stdio: "ignore", detached: true });

let browser;
const result = { checks: {} };
const check = (name, value) => {
  result.checks[name] = value;
  log(`${value ? "ok  " : "FAIL"} ${name}`);
  if (!value) {
    throw new Error(name);
  }
};

try {
  const base = `http://127.0.0.1:${port}`;
  for (let n = 0; ; n += 1) {
    if (await fetch(`${base}/healthz`).then((it) => it.ok, () => false)) {
      break;
    }
    if (n > 150) {
      throw new Error("code-server does not answer");
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  log("code-server answers");
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"],
  });
  const context = await browser.newContext({ viewport: { width: 1180, height: 720 } });
  const parts = (process.env.PARTS ?? "palette,host").split(",");
  for (const [name, part] of [["palette", throughThePalette], ["host", inTheHost]]) {
    if (parts.includes(name)) {
      const page = await context.newPage();
      await part(page, base);
      await page.close();
    }
  }
  result.passed = true;
} catch (error) {
  result.passed = false;
  result.problem = String(error?.stack ?? error);
  console.error(result.problem);
} finally {
  if (!result.passed) {
    const pages = browser?.contexts().flatMap((it) => it.pages()) ?? [];
    await pages.at(-1)?.screenshot({ path: path.join(out, "failure.png") }).catch(() => undefined);
  }
  await browser?.close().catch(() => undefined);
  await end(server);
  result.seconds = (Date.now() - began) / 1000;
  writeFileSync(path.join(out, "result.json"), JSON.stringify(result, null, 2));
  log(result.passed ? "passed" : "failed");
}
process.exit(result.passed ? 0 : 1);

/** The server's process group, and the extension hosts that left it, by their parents. */
async function end(child) {
  const table = execFileSync("ps", ["-eo", "pid=,ppid="], { encoding: "utf8" }).trim().split("\n").map((it) => it.trim().split(/\s+/).map(Number));
  const ours = [child.pid];
  for (let n = 0; n < ours.length; n += 1) {
    ours.push(...table.filter(([, parent]) => parent === ours[n]).map(([pid]) => pid));
  }
  for (const signal of ["SIGTERM", "SIGKILL"]) {
    for (const pid of ours) {
      try {
        process.kill(pid, signal);
      } catch {
        // it has ended
      }
    }
    await new Promise((resolve) => setTimeout(resolve, signal === "SIGTERM" ? 700 : 50));
  }
}

async function palette(page, text) {
  await page.keyboard.press("F1");
  const box = page.locator(".quick-input-widget input").first();
  await box.waitFor();
  await box.fill(`>${text}`);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first().waitFor();
}

async function throughThePalette(page, base) {
  const picture = async (name) => page.screenshot({ path: path.join(pictures, `vscode-${name}.png`) });
  const row = (text) => page.locator(".pane-body .monaco-list-row", { hasText: text });
  const opened = JSON.stringify([["openFile", `vscode-remote://${base.replace("http://", "")}${repository}/tests/test_period.py`]]);
  await page.goto(`${base}/?folder=${repository}&payload=${encodeURIComponent(opened)}`);
  await page.locator("#agentLs\\.status, [id='agent-ls.agent-ls.agentLs.status']").or(page.locator(".statusbar-item", { hasText: "Agent" })).first().waitFor({ timeout: 60000 });
  await page.locator(".statusbar-item[aria-label*='ready']").first().waitFor({ timeout: 30000 });
  check("the server runs: the status bar says ready", true);

  await palette(page, "Agent: ");
  const offered = await page.locator(".quick-input-list .monaco-list-row").allInnerTexts();
  for (const name of ["Fix Issue…", "Fix Failing Test", "Fix Problem at Cursor", "Review My Change", "Run Tests", "Show Session", "Stop"]) {
    check(`palette: ${name}`, offered.some((it) => it.includes(`Agent: ${name}`)) || (await inPalette(page, name)));
  }
  await palette(page, "Agent: Fix");
  await picture("palette");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Agent: Fix Issue…" }).first().click();
  const box = page.locator(".quick-input-widget input").first();
  await page.locator(".quick-input-message", { hasText: "issue's number" }).waitFor();
  await box.fill("one");
  await page.locator(".quick-input-message", { hasText: "for example 12" }).waitFor();
  check("a word is no issue's number", true);
  await box.fill("1");
  await page.keyboard.press("Enter");

  await row("Usage on the last day").first().waitFor({ timeout: 30000 });
  await row("baseline").first().waitFor({ timeout: 60000 });
  await page.locator(".pane-body .monaco-list-row", { hasText: /candidate edits|searching|asked tests/ }).first().waitFor({ timeout: 60000 });
  await picture("running");
  check("the session view shows the running session", true);
  const toast = page.locator(".notification-toast", { hasText: "fixed" });
  await toast.waitFor({ timeout: 120000 });
  await row("attempt 1").first().waitFor();
  check("the session ends as fixed, its attempt is in the tree", true);

  await toast.getByRole("button", { name: "Review" }).click();
  await page.locator(".monaco-diff-editor .modified-in-monaco-diff-editor .view-line", { hasText: "self.last" }).first().waitFor({ timeout: 20000 });
  await page.waitForTimeout(1200);
  await picture("review");
  const added = (await page.locator(".modified-in-monaco-diff-editor .view-lines:not(.line-delete)").first().innerText()).replaceAll("\u00a0", " ");
  check("the review shows the change", added.includes("self.first <= day <= self.last"));
  const file = path.join(repository, "meterly/period.py");
  const before = readFileSync(file, "utf8");
  await page.locator(".editor-actions .action-label[aria-label*='Accept Result']").first().click();
  const applied = page.locator(".notification-toast", { hasText: "not saved yet" });
  await applied.waitFor({ timeout: 30000 });
  check("accepting writes nothing to the disk", readFileSync(file, "utf8") === before);
  await row("applied").first().waitFor();
  await page.waitForTimeout(1200); // the message slides in, and the lenses follow
  await picture("accepted");
  await applied.getByRole("button", { name: "Save All" }).click();
  for (let n = 0; n < 50 && readFileSync(file, "utf8") === before; n += 1) {
    await page.waitForTimeout(100);
  }
  check("saved: the file has the change", readFileSync(file, "utf8").includes("self.first <= day <= self.last"));
  const branches = execFileSync("git", ["-C", repository, "branch", "--list", "agent-ls/*"], { encoding: "utf8" });
  check("the branch is there", branches.includes("agent-ls/issue-1"));

  await page.locator(".editor-instance .view-line", { hasText: "test_a_month_has_all_its_days" }).first().click();
  await page.keyboard.press("Home");
  await page.keyboard.press("Shift+End");
  await page.keyboard.press("Control+.");
  await page.locator(".action-widget .monaco-list-row", { hasText: "Refactor with agent…" }).first().waitFor();
  const chosen = page.locator(".action-widget .monaco-list-row.focused", { hasText: "Refactor with agent…" });
  for (let n = 0; n < 10 && !(await chosen.count()); n += 1) {
    await page.keyboard.press("ArrowDown");
    await page.waitForTimeout(50);
  }
  await picture("actions");
  await page.keyboard.press("Enter");
  await page.locator(".quick-input-message", { hasText: "How shall this be refactored?" }).waitFor({ timeout: 20000 });
  await row("How shall this be refactored?").first().waitFor();
  await picture("question");
  await page.keyboard.press("Escape");
  await row("cancelled").first().waitFor({ timeout: 20000 });
  check("a refactoring asks how; no answer means no", true);
}

async function inPalette(page, name) {
  await palette(page, `Agent: ${name}`);
  return true;
}

async function inTheHost(page, base) {
  const answer = path.join(out, "host.json");
  rmSync(answer, { force: true });
  const tests = path.join(out, "host-tests");
  mkdirSync(tests, { recursive: true });
  cpSync(path.join(here, "dist/e2e/host.js"), path.join(tests, "host.js"));
  writeFileSync(path.join(tests, "out.json"), JSON.stringify({ answer }));
  const authority = base.replace("http://", "");
  const payload = [["extensionDevelopmentPath", `vscode-remote://${authority}${here}`], ["extensionTestsPath", `vscode-remote://${authority}${tests}/host.js`]];
  await page.goto(`${base}/?folder=${repository}&payload=${encodeURIComponent(JSON.stringify(payload))}`);
  for (let n = 0; n < 900 && !existsSync(answer); n += 1) {
    await page.waitForTimeout(100);
  }
  await page.waitForTimeout(100);
  const { tests: ran, problem } = existsSync(answer) ? JSON.parse(readFileSync(answer, "utf8")) : { tests: [], problem: "no answer" };
  result.host = ran;
  for (const it of ran) {
    log(`${it.error ? "FAIL" : "ok  "} host: ${it.name} (${it.ms} ms)${it.error ? `: ${it.error}` : ""}`);
  }
  check("tests in the extension host", !problem && ran.length > 0 && ran.every((it) => !it.error));
}
