/** Tests in the extension host, with the true `vscode` API; run by drive.mjs, which reads the file that this writes. */

import * as assert from "node:assert/strict";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";

import type { Api } from "../src/extension";
import type { Run } from "../src/model";

const FIXED = "self.first <= day <= self.last";
const BROKEN = "self.first <= day < self.last";

async function until<T>(what: string, look: () => T | undefined | false | Promise<T | undefined | false>, seconds = 60): Promise<T> {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await look();
    if (found) {
      return found;
    }
    if (Date.now() > end) {
      throw new Error(`did not happen in ${seconds} s: ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const tests: [string, (api: Api, root: vscode.Uri) => Promise<void>][] = [
  ["an unsaved break makes a test fail in place, in the Problems view too", async (api, root) => {
    const uri = vscode.Uri.joinPath(root, "meterly/period.py");
    const document = await vscode.workspace.openTextDocument(uri);
    const at = document.getText().indexOf(FIXED);
    assert.ok(at >= 0);
    const edit = new vscode.WorkspaceEdit();
    edit.replace(uri, new vscode.Range(document.positionAt(at), document.positionAt(at + FIXED.length)), BROKEN);
    assert.ok(await vscode.workspace.applyEdit(edit));
    assert.ok(document.isDirty);
    const before = new Set(api.runs.all().map((it) => it.id));
    await vscode.commands.executeCommand("agentLs.runTests");
    const run = await until("a run of tests", () => api.runs.all().find((it) => !before.has(it.id)));
    await until("its end", () => run.status.state === "finished");
    assert.equal(run.status.verdict, "failed");
    assert.ok(api.testing.failing.size >= 1, "failing tests are known");
    const problem = await until("a diagnostic", () =>
      vscode.languages.getDiagnostics().flatMap(([, list]) => list).find((it) => it.source === "agent-ls"));
    assert.equal(typeof problem.code === "object" ? problem.code.value : problem.code, "AG201");
  }],
  ["code lenses run through the same client, and update the session view", async (api, root) => {
    const uri = vscode.Uri.joinPath(root, "tests/test_period.py");
    await vscode.window.showTextDocument(uri);
    const lenses = await until("lenses", async () => {
      const found = await vscode.commands.executeCommand<vscode.CodeLens[]>("vscode.executeCodeLensProvider", uri);
      return found.some((it) => it.command?.command === "agent-ls.tests.run") && found;
    });
    const lens = lenses.find((it) => it.command?.command === "agent-ls.tests.run")!;
    const answer = await vscode.commands.executeCommand<{ runId: string }>(lens.command!.command, ...(lens.command!.arguments ?? []));
    const run = await until("the run", () => api.runs.get(answer.runId));
    await until("its end", () => run.status.state === "finished");
    assert.ok(["passed", "failed"].includes(run.status.verdict ?? ""), JSON.stringify([run.status, run.summary]));
    assert.match(run.status.title, /^Run /);
  }],
  ["a failing test is fixed from the unsaved text, reviewed, and accepted unsaved", async (api, root) => {
    const [failing] = [...api.testing.failing.keys()];
    const before = new Set(api.runs.all().map((it) => it.id));
    await vscode.commands.executeCommand("agentLs.fixTest", failing);
    const run: Run = await until("a session", () => api.runs.all().find((it) => !before.has(it.id)));
    await until("its end", () => run.status.state === "finished", 90);
    assert.equal(run.status.verdict, "fixed", run.summary);
    await vscode.commands.executeCommand("agentLs.review", run);
    const tab = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    assert.ok(tab instanceof vscode.TabInputTextDiff);
    const after = await vscode.workspace.openTextDocument(tab.modified);
    assert.ok(after.getText().includes(FIXED));
    assert.equal(after.languageId, "python");
    await vscode.commands.executeCommand("agentLs.accept", run);
    const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(root, "meterly/period.py"));
    assert.ok(document.getText().includes(FIXED));
    assert.equal(run.status.decided, "applied");
  }],
  ["where the text has moved on, nothing is overwritten and the three-way text is shown", async (api, root) => {
    const uri = vscode.Uri.joinPath(root, "meterly/period.py");
    const document = await vscode.workspace.openTextDocument(uri);
    const replace = async (from: string, to: string): Promise<void> => {
      const at = document.getText().indexOf(from);
      assert.ok(at >= 0, from);
      const edit = new vscode.WorkspaceEdit();
      edit.replace(uri, new vscode.Range(document.positionAt(at), document.positionAt(at + from.length)), to);
      assert.ok(await vscode.workspace.applyEdit(edit));
    };
    await replace(FIXED, BROKEN);
    const before = new Set(api.runs.all().map((it) => it.id));
    await vscode.commands.executeCommand("agentLs.fixIssue", 1);
    const run: Run = await until("a session", () => api.runs.all().find((it) => !before.has(it.id)));
    await until("its end", () => run.status.state === "finished", 90);
    assert.equal(run.status.verdict, "fixed", run.summary);
    await replace(BROKEN, "self.first <= day and day < self.last");
    const mine = document.getText();
    await vscode.commands.executeCommand("agentLs.accept", run);
    assert.equal(document.getText(), mine);
    assert.equal(run.status.decided, null);
    const tab = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    assert.ok(tab instanceof vscode.TabInputTextDiff);
    const shown = await vscode.workspace.openTextDocument(tab.modified);
    assert.match(shown.getText(), /<<<<<<< yours[\s\S]*self\.first <= day <= self\.last[\s\S]*>>>>>>> agent/);
    await replace("self.first <= day and day < self.last", FIXED);
    await document.save();
  }],
  ["a session is stopped within moments", async (api, root) => {
    const uri = vscode.Uri.joinPath(root, "meterly/period.py");
    const document = await vscode.workspace.openTextDocument(uri);
    const whole = document.getText();
    const edit = new vscode.WorkspaceEdit();
    edit.replace(uri, new vscode.Range(document.positionAt(0), document.positionAt(whole.length)), whole.replace(FIXED, BROKEN));
    assert.ok(await vscode.workspace.applyEdit(edit));
    const before = new Set(api.runs.all().map((it) => it.id));
    await vscode.commands.executeCommand("agentLs.fixIssue", 1);
    const run: Run = await until("a session", () => api.runs.all().find((it) => !before.has(it.id)));
    await until("its first step", () => run.steps.length > 0);
    const asked = Date.now();
    await vscode.commands.executeCommand("agentLs.stop", run);
    await until("its end", () => run.status.state === "finished", 20);
    assert.equal(run.status.verdict, "cancelled");
    assert.ok(Date.now() - asked < 5000, `${Date.now() - asked} ms`);
    assert.ok(document.isDirty && document.getText().includes(BROKEN), "the unsaved text is as it was");
  }],
];

export async function run(): Promise<void> {
  const { answer } = JSON.parse(readFileSync(path.join(__dirname, "out.json"), "utf8")) as { answer: string };
  const results: { name: string; ms: number; error?: string }[] = [];
  const tell = (more: object): void => {
    writeFileSync(`${answer}.part`, JSON.stringify({ tests: results, ...more }));
    renameSync(`${answer}.part`, answer);
  };
  try {
    const extension = vscode.extensions.getExtension<Api>("agent-ls.agent-ls")!;
    const api = await extension.activate();
    const root = vscode.workspace.workspaceFolders![0]!.uri;
    await vscode.workspace.getConfiguration("agentLs").update("client.notify", false, vscode.ConfigurationTarget.Global);
    for (const [name, test] of tests) {
      const began = Date.now();
      try {
        await test(api, root);
        results.push({ name, ms: Date.now() - began });
      } catch (error) {
        results.push({ name, ms: Date.now() - began, error: String((error as Error).stack ?? error) });
      }
    }
    tell({});
  } catch (error) {
    tell({ problem: String((error as Error).stack ?? error) });
  }
}
