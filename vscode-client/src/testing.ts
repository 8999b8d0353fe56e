/** Our tests in the Test Explorer: found by the server's code lenses, run by the server. */

import * as path from "node:path";
import * as vscode from "vscode";

import type { TestResult, Update } from "./protocol";
import type { Server } from "./server";
import { type Found, fromLenses, rootOf, split, testAt } from "./tests-data";

const GLOB = "**/{test_*,*_test}.py";
const EXCLUDE = "**/{.git,.venv,venv,env,node_modules,site-packages}/**";
const MOST_FILES = 2000;

interface Going {
  run: vscode.TestRun;
  folder: string;
  done: () => void;
  ended: Set<string>;
  asked: vscode.TestItem[];
}

export class Testing implements vscode.Disposable {
  private readonly controller = vscode.tests.createTestController("agentLs", "Agent LS");
  private readonly items = new Map<string, vscode.TestItem>();
  private readonly going = new Map<string, Going>();
  /** Failing at the last run: id to message. */
  readonly failing = new Map<string, string>();
  private readonly disposables: vscode.Disposable[] = [this.controller];
  /** Updates of runs that begin from here, until their ids are known. */
  private early: { runId: string; update: Update }[] | undefined;

  constructor(private readonly server: Server) {
    this.controller.resolveHandler = (item) => (item === undefined ? this.discover() : this.resolve(item));
    this.controller.refreshHandler = () => this.discover();
    this.controller.createRunProfile("Run with Agent LS", vscode.TestRunProfileKind.Run, (request, token) => this.run(request, token), true);
    const watcher = vscode.workspace.createFileSystemWatcher(GLOB);
    this.disposables.push(
      watcher,
      watcher.onDidCreate((uri) => this.addFile(uri)),
      watcher.onDidDelete((uri) => this.controller.items.delete(uri.toString())),
      vscode.workspace.onDidSaveTextDocument((it) => this.again(it.uri)),
      vscode.workspace.onDidOpenTextDocument((it) => this.again(it.uri)),
    );
  }

  dispose(): void {
    this.disposables.forEach((it) => it.dispose());
  }

  async discover(): Promise<void> {
    const files = await vscode.workspace.findFiles(GLOB, EXCLUDE, MOST_FILES);
    const known = new Set(files.map((it) => it.toString()));
    this.controller.items.forEach((item) => {
      if (!known.has(item.id)) {
        this.controller.items.delete(item.id);
      }
    });
    files.forEach((uri) => this.addFile(uri));
  }

  private addFile(uri: vscode.Uri): vscode.TestItem {
    const known = this.controller.items.get(uri.toString());
    if (known !== undefined) {
      return known;
    }
    const item = this.controller.createTestItem(uri.toString(), vscode.workspace.asRelativePath(uri, false), uri);
    item.canResolveChildren = true;
    this.controller.items.add(item);
    return item;
  }

  private again(uri: vscode.Uri): void {
    const item = this.controller.items.get(uri.toString());
    if (item !== undefined) {
      void this.resolve(item);
    }
  }

  /** The tests of a file, as the server sees it. */
  async lenses(uri: vscode.Uri): Promise<Found[]> {
    const lenses = await this.server.request<Parameters<typeof fromLenses>[0]>("textDocument/codeLens", { textDocument: { uri: uri.toString() } });
    return fromLenses(lenses ?? []);
  }

  /** The test at a place, if it is in one. */
  async at(editor: vscode.TextEditor): Promise<string | undefined> {
    return testAt(await this.lenses(editor.document.uri), editor.selection.active.line)?.id;
  }

  private async resolve(file: vscode.TestItem): Promise<void> {
    if (file.uri === undefined || !this.controller.items.get(file.id)) {
      return; // a test, not a file
    }
    const found = await this.lenses(file.uri);
    if (!found.length && file.children.size) {
      return; // the index is behind: keep what is known
    }
    file.children.replace([]);
    for (const test of found) {
      const names = split(test.id).base.split("::").slice(1);
      let parent = file;
      for (const [n, name] of names.slice(0, -1).entries()) {
        const id = `${split(test.id).file}::${names.slice(0, n + 1).join("::")}`;
        const group = parent.children.get(id) ?? this.controller.createTestItem(id, name, file.uri);
        parent.children.add(group);
        parent = group;
      }
      const item = this.controller.createTestItem(test.id, names.at(-1) ?? test.id, file.uri);
      item.range = new vscode.Range(test.line, 0, test.line, 0);
      parent.children.add(item);
      this.items.set(test.id, item);
    }
  }

  /** Run what was asked for, one server run for each folder. */
  private async run(request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<void> {
    const run = this.controller.createTestRun(request);
    const groups = new Map<string, { ids: string[]; items: vscode.TestItem[] }>();
    if (request.include === undefined && !request.exclude?.length) {
      await this.discover();
      for (const folder of vscode.workspace.workspaceFolders ?? []) {
        groups.set(folder.uri.toString(), { ids: [], items: [] });
      }
    } else {
      const chosen = request.include ?? [...this.controller.items].map(([, item]) => item);
      for (const item of await this.leaves(chosen, new Set(request.exclude))) {
        const folder = item.uri && vscode.workspace.getWorkspaceFolder(item.uri)?.uri.toString();
        if (folder) {
          const group = groups.get(folder) ?? { ids: [], items: [] };
          group.ids.push(item.id);
          group.items.push(item);
          groups.set(folder, group);
        }
      }
    }
    try {
      await Promise.all([...groups].map(([folder, { ids, items }]) => this.go(run, folder, ids, items, token)));
    } catch (error) {
      run.appendOutput(`${error instanceof Error ? error.message : String(error)}\r\n`);
      void this.server.tell(error);
    } finally {
      run.end();
    }
  }

  private async leaves(items: readonly vscode.TestItem[], left: Set<vscode.TestItem>): Promise<vscode.TestItem[]> {
    const found: vscode.TestItem[] = [];
    for (const item of items) {
      if (left.has(item)) {
        continue;
      }
      if (item.canResolveChildren && !item.children.size) {
        await this.resolve(item);
      }
      const children = [...item.children].map(([, it]) => it).filter((it) => !it.id.includes("["));
      found.push(...(children.length ? await this.leaves(children, left) : item.canResolveChildren ? [] : [item]));
    }
    return found;
  }

  private async go(run: vscode.TestRun, folder: string, ids: string[], asked: vscode.TestItem[], token: vscode.CancellationToken): Promise<void> {
    asked.forEach((it) => run.started(it));
    this.early ??= [];
    let runId: string;
    try {
      ({ runId } = await this.server.command<{ runId: string }>("agent-ls.tests.run", { ids, folder }));
    } finally {
      queueMicrotask(() => (this.early = undefined));
    }
    const stop = token.onCancellationRequested(() => void this.server.run("cancel", runId));
    await new Promise<void>((resolve) => {
      this.going.set(runId, { run, folder, done: resolve, ended: new Set(), asked });
      const missed = this.early?.filter((it) => it.runId === runId) ?? [];
      missed.forEach((it) => this.feed(it.runId, it.update));
    });
    stop.dispose();
  }

  /** A run of tests that a code lens or the palette began: shown here as well. */
  adopt(runId: string, folder: string): void {
    if (!this.going.has(runId)) {
      const run = this.controller.createTestRun(new vscode.TestRunRequest(), "Agent LS");
      this.going.set(runId, { run, folder, done: () => run.end(), ended: new Set(), asked: [] });
    }
  }

  knows(runId: string): boolean {
    return this.going.has(runId);
  }

  /** What a run told. */
  feed(runId: string, update: Update): void {
    const going = this.going.get(runId);
    if (going === undefined) {
      this.early?.push({ runId, update });
      return;
    }
    if (update.kind === "test_result" && "tests" in update) {
      for (const test of update.tests) {
        this.result(going, test);
      }
    } else if (update.kind === "state" && update.state === "finished") {
      for (const item of going.asked) {
        if (!going.ended.has(item.id)) {
          if (update.verdict === "env_broken" || update.verdict === "error" || update.verdict === "usage") {
            going.run.errored(item, new vscode.TestMessage(update.summary ?? update.message));
          } else {
            going.run.skipped(item);
          }
        }
      }
      going.run.appendOutput(`${(update.summary || update.message).replaceAll("\n", "\r\n")}\r\n`);
      this.going.delete(runId);
      going.done();
    }
  }

  private result(going: Going, test: TestResult): void {
    const item = this.itemFor(going.folder, test);
    going.ended.add(split(test.id).base);
    const took = test.duration_s === undefined ? undefined : test.duration_s * 1000;
    this.failing.delete(test.id);
    going.run.appendOutput(`${test.outcome}: ${test.id}\r\n`, undefined, item);
    if (test.outcome === "failed" || test.outcome === "error") {
      this.failing.set(test.id, test.message ?? "");
      const message = new vscode.TestMessage(test.message || test.outcome);
      const place = this.place(going.folder, item, test);
      if (place !== undefined) {
        message.location = place;
      }
      going.run[test.outcome === "error" ? "errored" : "failed"](item, message, took);
    } else if (test.outcome === "skipped" || test.outcome === "xfailed") {
      going.run.skipped(item);
    } else {
      going.run.passed(item, took);
    }
  }

  private place(folder: string, item: vscode.TestItem, test: TestResult): vscode.Location | undefined {
    if (!test.file || !test.line || item.uri === undefined) {
      return undefined;
    }
    const root = rootOf(item.uri.fsPath, split(test.id).file) ?? vscode.Uri.parse(folder).fsPath;
    return new vscode.Location(vscode.Uri.file(path.join(root, test.file)), new vscode.Position(Math.max(0, test.line - 1), 0));
  }

  /** The item of a result; one of a parameter set is below its function's. */
  private itemFor(folder: string, test: TestResult): vscode.TestItem {
    const { file, base, parameters } = split(test.id);
    const parent = this.items.get(base) ?? this.make(folder, file, base);
    if (!parameters) {
      return parent;
    }
    const known = parent.children.get(test.id);
    if (known !== undefined) {
      return known;
    }
    const item = this.controller.createTestItem(test.id, parameters, parent.uri);
    if (parent.range !== undefined) {
      item.range = parent.range;
    }
    parent.children.add(item);
    return item;
  }

  private make(folder: string, file: string, base: string): vscode.TestItem {
    const parent = this.addFile(vscode.Uri.joinPath(vscode.Uri.parse(folder), file));
    const item = this.controller.createTestItem(base, base.split("::").slice(1).join(" › ") || base, parent.uri);
    parent.children.add(item);
    this.items.set(base, item);
    return item;
  }
}
