/** The extension's entry: puts the parts together and registers the commands. */

import { existsSync } from "node:fs";
import * as path from "node:path";
import * as vscode from "vscode";

import { registerCommands } from "./commands";
import { removeKey, setKey } from "./keys";
import { installations } from "./locate";
import { firstLine, type Run, Runs } from "./model";
import type { DidUpdate, RunStatus } from "./protocol";
import { Reviews, SCHEME, Texts } from "./review";
import { Server } from "./server";
import { Testing } from "./testing";
import { type Node, SessionView } from "./view";

export interface Agent {
  server: Server;
  runs: Runs;
  reviews: Reviews;
  testing: Testing;
  tree: vscode.TreeView<Node>;
  log: vscode.LogOutputChannel;
}

/** What `activate` returns, for tests and other extensions. */
export interface Api {
  runs: Runs;
  testing: Testing;
}

export function activate(context: vscode.ExtensionContext): Api {
  const log = vscode.window.createOutputChannel("Agent LS", { log: true });
  const runs = new Runs();
  const view = new SessionView(runs);
  const tree = vscode.window.createTreeView<Node>("agentLs.sessions", { treeDataProvider: view, showCollapseAll: true });
  const bar = vscode.window.createStatusBarItem("agentLs.status", vscode.StatusBarAlignment.Left, 10);
  const texts = new Texts();
  const questions = new Questions(runs);
  const syncing = new Set<string>();

  const server: Server = new Server(context, log, {
    updated: (update) => {
      const taken = runs.take(update);
      if (taken === "gap") {
        void sync(update.runId);
      } else if (taken === "taken") {
        told(update);
      }
    },
    status: (kind, message) => showStatus(bar, kind, message),
    ask: (runId, question, token) => questions.ask(runId, question, token),
    running: (is) => {
      void vscode.commands.executeCommand("setContext", "agentLs.ready", is);
      showStatus(bar, is ? "Normal" : "Inactive", "");
      if (!is) {
        runs.clear(); // they were the server's
        view.refresh();
      }
    },
    commanded: (command, answer) => {
      const runId = (answer as { runId?: string } | undefined)?.runId;
      if (runId && (command === "agent-ls.run.start" || command === "agent-ls.tests.run")) {
        void sync(runId).then(() => reveal(runId));
      }
    },
    confirmed: () => reviews.confirmed(),
  });
  const reviews: Reviews = new Reviews(server, runs, texts, () => view.refresh());
  const testing = new Testing(server);
  const agent: Agent = { server, runs, reviews, testing, tree, log };

  /** Ask for what was missed, then for the title and the like. */
  async function sync(runId: string): Promise<void> {
    if (syncing.has(runId)) {
      return;
    }
    syncing.add(runId);
    try {
      const answer = await server.get(runId, runs.get(runId)?.next ?? 0);
      for (const { seq, update } of answer.updates) {
        const told_ = { schema: 1, runId, seq, update };
        if (runs.take(told_) === "taken") {
          told(told_);
        }
      }
      runs.setStatus(answer);
      view.refresh();
    } catch (error) {
      log.warn(`${runId}: ${String(error)}`);
    } finally {
      syncing.delete(runId);
    }
  }

  function told(it: DidUpdate): void {
    const run = runs.get(it.runId)!;
    if (it.seq === 0 && !run.status.kind) {
      void sync(it.runId);
    }
    if (it.update.kind === "test_result" && "tests" in it.update && !testing.knows(it.runId)) {
      testing.adopt(it.runId, run.status.folder || (vscode.workspace.workspaceFolders?.[0]?.uri.toString() ?? ""));
    }
    testing.feed(it.runId, it.update);
    questions.changed(run);
    view.refresh();
    if (it.update.kind === "state" && it.update.state === "finished") {
      void ended(run);
    }
  }

  async function reveal(runId: string): Promise<void> {
    const run = runs.get(runId);
    if (run !== undefined && vscode.workspace.getConfiguration("agentLs").get("client.reveal", true)) {
      await vscode.commands.executeCommand("agentLs.sessions.focus", { preserveFocus: true });
      await Promise.resolve(tree.reveal(run, { select: true, expand: true })).catch(() => undefined);
    }
  }

  const began = async (answer: RunStatus | { runId: string }): Promise<void> => {
    await sync(answer.runId);
    await reveal(answer.runId);
  };

  context.subscriptions.push(
    log, tree, bar, testing, questions, { dispose: () => void server.stop() },
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, texts),
    vscode.commands.registerCommand("agentLs.setApiKey", async () => {
      if (await setKey(context.secrets)) {
        await restart(agent);
      }
    }),
    vscode.commands.registerCommand("agentLs.removeApiKey", async () => {
      if (await removeKey(context.secrets)) {
        await restart(agent);
      }
    }),
    vscode.commands.registerCommand("agentLs.installServer", () => install(server)),
    vscode.commands.registerCommand("agentLs.restartServer", () => restart(agent)),
    vscode.commands.registerCommand("agentLs.showLog", () => log.show()),
    vscode.commands.registerCommand("agentLs.answer", async (node?: Run) => {
      const run = node ?? runs.active().find((it) => it.status.state === "asking");
      if (run?.status.question) {
        const text = await questions.input(run, run.status.question);
        if (text !== undefined) {
          await server.command("agent-ls.run.answer", { runId: run.id, text });
        }
      }
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("agentLs.server.path")) {
        void restart(agent);
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void server.start()),
    ...registerCommands(agent, began, () => view.refresh()),
  );
  bar.name = "Agent LS";
  bar.command = "agentLs.showSession";
  showStatus(bar, "Inactive", "");
  bar.show();
  void server.start().then((is) => (is ? testing.discover() : offer(server)));
  return { runs, testing };
}

const BAR: Record<string, [string, string | undefined]> = {
  Normal: ["$(hubot)", undefined],
  Busy: ["$(sync~spin)", undefined],
  Warning: ["$(warning)", "statusBarItem.warningBackground"],
  Error: ["$(error)", "statusBarItem.errorBackground"],
  Inactive: ["$(circle-slash)", undefined],
};

function showStatus(bar: vscode.StatusBarItem, kind: string, message: string): void {
  const [icon, colour] = BAR[kind] ?? BAR["Normal"]!;
  // what is done stands beside it, as the work's progress
  bar.text = `${icon} Agent${kind === "Busy" ? "" : message ? `: ${message.slice(0, 60)}` : ""}`;
  bar.backgroundColor = colour === undefined ? undefined : new vscode.ThemeColor(colour);
  const said = kind === "Inactive" ? "the language server is not running" : kind === "Busy" ? `works: ${message}` : message || "ready";
  bar.tooltip = `Agent LS: ${said}`;
  bar.accessibilityInformation = { label: bar.tooltip };
}

/** A person's answers. One box at a time; it closes when the question is answered elsewhere. */
class Questions implements vscode.Disposable {
  private readonly boxes = new Map<string, vscode.CancellationTokenSource>();

  constructor(private readonly runs: Runs) {}

  async ask(runId: string, question: string, token: vscode.CancellationToken): Promise<string | undefined> {
    const source = new vscode.CancellationTokenSource();
    token.onCancellationRequested(() => source.cancel());
    this.boxes.set(runId, source);
    try {
      return await this.input(this.runs.get(runId), question, source.token);
    } finally {
      this.boxes.delete(runId);
    }
  }

  async input(run: Run | undefined, question: string, token?: vscode.CancellationToken): Promise<string | undefined> {
    return await vscode.window.showInputBox(
      { title: `Agent: ${run?.status.title || "question"}`, prompt: question, placeHolder: "Escape gives no answer", ignoreFocusOut: true },
      token,
    );
  }

  changed(run: Run): void {
    if (run.status.state !== "asking") {
      this.boxes.get(run.id)?.cancel();
    }
  }

  dispose(): void {
    this.boxes.forEach((it) => it.cancel());
  }
}

/** Tell the end of a session, and offer what can be done next. */
async function ended(run: Run): Promise<void> {
  const { verdict, title, kind } = run.status;
  const about = `Agent: ${title}: ${run.status.message}`;
  if (!vscode.workspace.getConfiguration("agentLs").get("client.notify", true) || verdict === "cancelled") {
    return;
  }
  if (verdict === "passed" || verdict === "failed") {
    return; // a run of tests: the Test Explorer has it
  }
  let chosen: string | undefined;
  if (verdict === "fixed") {
    chosen = await vscode.window.showInformationMessage(about, "Review", "Accept", "Discard");
  } else if (verdict === "handed_over" || verdict === "budget" || verdict === "blocked") {
    const choices = [...(run.commit ? ["Review"] : []), "Show Summary", "Resume"];
    chosen = await vscode.window.showWarningMessage(about, ...choices);
  } else {
    const remedy = run.summary.trim().replaceAll(/\s*\n+\s*/g, ". ").replaceAll("..", ".");
    chosen = await vscode.window.showErrorMessage(
      `Agent: ${kind === "tests" ? "" : `${title}: `}${remedy.length > 400 ? firstLine(run.summary) : remedy || run.status.message}`,
      ...(verdict === "provider_error" ? ["Set API Key…"] : []), "Show Summary", "Settings",
    );
  }
  const commands: Record<string, string> = {
    Review: "agentLs.review", Accept: "agentLs.accept", Discard: "agentLs.discard", Resume: "agentLs.resume",
    "Show Summary": "agentLs.showSummary", "Set API Key…": "agentLs.setApiKey",
  };
  if (chosen === "Settings") {
    await vscode.commands.executeCommand("workbench.action.openSettings", "@ext:agent-ls.agent-ls");
  } else if (chosen !== undefined) {
    await vscode.commands.executeCommand(commands[chosen]!, run);
  }
}

async function restart(agent: Agent): Promise<void> {
  const working = agent.runs.active().length;
  if (working) {
    const go = await vscode.window.showWarningMessage(
      `Agent: ${working === 1 ? "a session is" : `${working} sessions are`} at work; restarting the server stops them.`, "Restart",
    );
    if (go !== "Restart") {
      return;
    }
  }
  if (!(await agent.server.restart())) {
    await offer(agent.server);
  }
}

/** The server is missing: say so once, with the ways out. */
async function offer(server: Server): Promise<void> {
  if (!vscode.workspace.isTrusted || server.ready) {
    return;
  }
  const chosen = await vscode.window.showWarningMessage(
    "Agent: the program agent-ls was not found or does not start.", "Install…", "Set Path", "Show Log",
  );
  const commands: Record<string, [string, ...unknown[]]> = {
    "Install…": ["agentLs.installServer"], "Set Path": ["workbench.action.openSettings", "agentLs.server.path"], "Show Log": ["agentLs.showLog"],
  };
  if (chosen !== undefined) {
    await vscode.commands.executeCommand(...commands[chosen]!);
  }
}

/** Let the person choose how to install, do it in a terminal they see, then start. */
async function install(server: Server): Promise<void> {
  const windows = process.platform === "win32";
  const places = (process.env["PATH"] ?? "").split(path.delimiter);
  const has = (program: string): boolean => places.some((it) => existsSync(path.join(it, windows ? `${program}.exe` : program)));
  const folders = vscode.workspace.workspaceFolders ?? [];
  const venv = folders
    .flatMap((it) => [".venv", "venv", "env"].map((name) => path.join(it.uri.fsPath, name, ...(windows ? ["Scripts", "python.exe"] : ["bin", "python"]))))
    .find(existsSync);
  const ways = installations(has, venv);
  if (!ways.length) {
    void vscode.window.showErrorMessage(
      "Agent: neither uv nor pipx is installed, and the workspace has no virtual environment. Install one of them, or run “python -m pip install agent-ls” yourself and set agentLs.server.path.",
    );
    return;
  }
  const way = await vscode.window.showQuickPick(ways, { title: "Agent: Install the Language Server", placeHolder: "Where to?" });
  if (way === undefined) {
    return;
  }
  const task = new vscode.Task(
    { type: "agentLs.install" }, vscode.TaskScope.Workspace, "Install agent-ls", "Agent LS",
    new vscode.ProcessExecution(way.program, way.arguments),
  );
  const execution = await vscode.tasks.executeTask(task);
  const code = await new Promise<number | undefined>((resolve) => {
    const listening = vscode.tasks.onDidEndTaskProcess((event) => {
      if (event.execution === execution) {
        listening.dispose();
        resolve(event.exitCode);
      }
    });
  });
  if (code === 0 && (await server.restart())) {
    void vscode.window.showInformationMessage("Agent: the language server is installed and runs.");
  } else {
    void vscode.window.showErrorMessage("Agent: the installation did not end well; the terminal says why.");
  }
}
