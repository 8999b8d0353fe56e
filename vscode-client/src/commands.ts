/** The palette's commands. Each may be given its argument, for key bindings and other extensions. */

import * as vscode from "vscode";

import type { Agent } from "./extension";
import type { Run, Step } from "./model";
import type { Finding } from "./protocol";

type Began = (answer: { runId: string }) => Promise<void>;
interface Choice<T> extends vscode.QuickPickItem {
  value: T;
}

export function registerCommands(agent: Agent, began: Began, refresh: () => void): vscode.Disposable[] {
  const { server, runs, reviews, testing } = agent;

  /** Whatever a command throws becomes a message that names the remedy. */
  const command = (id: string, run: (...given: never[]) => Promise<void>): vscode.Disposable =>
    vscode.commands.registerCommand(id, async (...given: never[]) => {
      try {
        await run(...given);
      } catch (error) {
        void server.tell(error);
      }
    });

  const start = async (kind: string, target: unknown, folder: string | undefined): Promise<void> => {
    await began(await server.command("agent-ls.run.start", { kind, target, ...(folder ? { folder } : {}) }));
  };

  /** The run that a command is for: the given one, the only one that fits, or the one chosen. */
  const pick = async (given: Run | undefined, fits: (run: Run) => boolean, none: string): Promise<Run | undefined> => {
    if (given !== undefined) {
      return runs.get(given.id) ?? given;
    }
    const selected = agent.tree.selection.find((it): it is Run => "steps" in it);
    const fitting = runs.all().filter(fits);
    if (fitting.length === 1 || (selected !== undefined && fitting.includes(selected))) {
      return fitting.length === 1 ? fitting[0] : selected;
    }
    if (!fitting.length) {
      void vscode.window.showInformationMessage(`Agent: ${none}`);
      return undefined;
    }
    const items = fitting.map((run): Choice<Run> => ({ label: run.status.title, description: run.status.message, value: run }));
    return (await vscode.window.showQuickPick(items, { title: "Agent: which session?" }))?.value;
  };
  const hasResult = (run: Run): boolean => Boolean(run.commit) && !run.status.decided;
  const isActive = (run: Run): boolean => run.status.state !== "finished";

  return [
    command("agentLs.fixIssue", async (given?: number | string) => {
      const folder = await pickFolder();
      const number = given ?? (await vscode.window.showInputBox({
        title: "Agent: Fix Issue", prompt: "The issue's number, in .agent-ls/issues or at the repository's tracker", placeHolder: "12",
        validateInput: (text) => (/^#?[1-9]\d{0,11}$/.test(text.trim()) ? undefined : "A number, for example 12."),
      }));
      if (number !== undefined && folder !== undefined) {
        await start("issue", String(number).trim().replace(/^#/, ""), folder);
      }
    }),
    command("agentLs.fixTest", async (given?: string | string[]) => {
      const target = given ?? (await chooseTest(agent));
      const folder = target === undefined ? undefined : await pickFolder();
      if (target !== undefined && folder !== undefined) {
        await start("test", target, folder);
      }
    }),
    command("agentLs.fixProblem", () => fixProblem(start)),
    command("agentLs.reviewChange", async () => {
      const folder = await pickFolder();
      if (folder === undefined) {
        return;
      }
      const { findings } = await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Window, title: "Agent: looking at your change" },
        () => server.command<{ findings: Finding[] }>("agent-ls.guard.review", { folder }),
      );
      if (!findings.length) {
        void vscode.window.showInformationMessage("Agent: your change since the last commit weakens no test and breaks no rule.");
        return;
      }
      const many = findings.length === 1 ? "1 finding" : `${findings.length} findings`;
      void vscode.window.showWarningMessage(`Agent: ${many} about your change: ${findings[0]!.message}`);
      await vscode.commands.executeCommand("workbench.actions.view.problems");
    }),
    command("agentLs.runTests", async () => {
      const folder = await pickFolder();
      if (folder !== undefined) {
        const answer = await server.command<{ runId: string }>("agent-ls.tests.run", { folder });
        testing.adopt(answer.runId, folder);
        await began(answer);
      }
    }),
    command("agentLs.showSession", async () => {
      await vscode.commands.executeCommand("agentLs.sessions.focus");
      const newest = runs.active()[0] ?? runs.all()[0];
      if (newest !== undefined) {
        await agent.tree.reveal(newest, { select: true, focus: true, expand: true });
      }
    }),
    command("agentLs.stop", async (given?: Run) => {
      const run = await pick(given, isActive, "no session is at work.");
      if (run !== undefined) {
        runs.setStatus(await server.run("cancel", run.id));
        refresh();
      }
    }),
    command("agentLs.pause", async (given?: Run) => {
      const run = await pick(given, (it) => it.status.state === "running", "no session is at work.");
      if (run !== undefined) {
        await server.run("pause", run.id);
      }
    }),
    command("agentLs.resume", async (given?: Run) => {
      const goesOn = (it: Run): boolean =>
        it.status.state === "paused" || (it.status.state === "finished" && Boolean(it.status.session) && it.status.verdict !== "fixed");
      const run = await pick(given, goesOn, "no session can go on.");
      if (run !== undefined) {
        runs.setStatus(await server.run("resume", run.id));
        refresh();
      }
    }),
    command("agentLs.review", async (given?: Run) => {
      const run = await pick(given, hasResult, "no session has a result to review.");
      if (run !== undefined) {
        await reviews.review(run);
      }
    }),
    command("agentLs.accept", async (given?: Run | vscode.Uri) => {
      const run = await pick(asRun(given) ?? reviews.current(), hasResult, "no session has a result to accept.");
      if (run !== undefined) {
        await reviews.accept(run);
      }
    }),
    command("agentLs.discard", async (given?: Run | vscode.Uri) => {
      const run = await pick(asRun(given) ?? reviews.current(), hasResult, "no session has a result to discard.");
      if (run !== undefined) {
        await reviews.discard(run);
      }
    }),
    command("agentLs.showSummary", async (given?: Run) => {
      const run = await pick(given, (it) => !isActive(it), "no session has ended.");
      if (run !== undefined) {
        await reviews.showSummary(run);
      }
    }),
    command("agentLs.openStep", (step: Step) => reviews.openStep(step)),
  ];
}

/** A session, where a command was given one (the view does; an editor's title gives an address). */
function asRun(given: Run | vscode.Uri | undefined): Run | undefined {
  return given !== undefined && "steps" in given ? given : undefined;
}

/** The folder to work in: the only one, that of the front editor, or the one chosen. */
async function pickFolder(): Promise<string | undefined> {
  const folders = vscode.workspace.workspaceFolders ?? [];
  const front = vscode.window.activeTextEditor?.document.uri;
  const holding = front && vscode.workspace.getWorkspaceFolder(front);
  if (!folders.length) {
    throw new Error("No folder is open. Open a folder with a git repository.");
  }
  const chosen = folders.length === 1 ? folders[0] : holding ?? (await vscode.window.showWorkspaceFolderPick());
  return chosen?.uri.toString();
}

async function chooseTest(agent: Agent): Promise<string | string[] | undefined> {
  const editor = vscode.window.activeTextEditor;
  const here = editor && (await agent.testing.at(editor));
  const items: Choice<string | string[]>[] = [];
  if (here) {
    items.push({ label: `$(symbol-method) ${here.split("::").slice(1).join(" › ")}`, description: "at the cursor", detail: here, value: here });
  }
  for (const [id, message] of agent.testing.failing) {
    if (id !== here) {
      items.push({ label: `$(error) ${id.split("::").slice(1).join(" › ")}`, description: message.split("\n", 1)[0]!, detail: id, value: id });
    }
  }
  items.push({ label: "$(run-all) Whatever fails", description: "the suite is run to find out", value: [] });
  const title = "Agent: Fix Failing Test";
  return (await vscode.window.showQuickPick(items, { title, placeHolder: "Which test shall pass?", matchOnDetail: true }))?.value;
}

async function fixProblem(start: (kind: string, target: unknown, folder: string | undefined) => Promise<void>): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    throw new Error("No editor is open. Put the cursor on a problem first.");
  }
  const { document, selection } = editor;
  const line = selection.active.line;
  const here = vscode.languages.getDiagnostics(document.uri).filter((it) => it.range.start.line <= line && line <= it.range.end.line);
  if (!here.length) {
    throw new Error("There is no problem at the cursor. Press F8 to go to the next one.");
  }
  const items = here.map((it): Choice<vscode.Diagnostic> => ({ label: it.message.split("\n", 1)[0]!, description: it.source ?? "", value: it }));
  const chosen = items.length === 1 ? items[0] : await vscode.window.showQuickPick(items, { title: "Agent: Fix Problem", placeHolder: "Which one?" });
  if (chosen === undefined) {
    return;
  }
  const found = chosen.value;
  const folder = vscode.workspace.getWorkspaceFolder(document.uri)?.uri.toString();
  const test = (found as { data?: { test?: string } }).data?.test;
  if (found.source === "agent-ls" && test) {
    return start("test", test, folder);
  }
  const code = typeof found.code === "object" ? found.code.value : found.code;
  const first = Math.max(0, found.range.start.line - 5);
  const last = Math.min(document.lineCount - 1, found.range.end.line + 5);
  await start("diagnostic", {
    uri: document.uri.toString(), path: vscode.workspace.asRelativePath(document.uri, false), line: found.range.start.line + 1,
    endLine: found.range.end.line + 1, message: found.message, source: found.source ?? null, code: code === undefined ? null : String(code),
    text: document.getText(new vscode.Range(first, 0, last, document.lineAt(last).text.length)),
  }, folder);
}
