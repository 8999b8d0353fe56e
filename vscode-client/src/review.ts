/** A result as diff editors, accepting it and throwing it away. */

import * as vscode from "vscode";

import type { Run, Runs, Step } from "./model";
import type { ResultFile } from "./protocol";
import type { Server } from "./server";

export const SCHEME = "agent-ls-review";

/** Texts that are on no disk: the two sides of a result, three-way texts, outputs. */
export class Texts implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  put(run: string, side: string, path: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, authority: run, path: `/${side}/${path}` });
    if (this.texts.get(uri.toString()) !== text) {
      this.texts.set(uri.toString(), text);
      this.changed.fire(uri);
    }
    return uri;
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "This text is no longer kept: the session is of an earlier window.";
  }
}

export class Reviews {
  private accepting: string | undefined;

  constructor(
    private readonly server: Server,
    private readonly runs: Runs,
    private readonly texts: Texts,
    private readonly refresh: () => void,
  ) {}

  /** Has the person seen the edit that is being applied? */
  confirmed(): boolean {
    return this.accepting !== undefined && Boolean(this.runs.get(this.accepting)?.reviewed);
  }

  async review(run: Run): Promise<void> {
    const answer = await this.server.accept(run.id, "diff");
    const files = (answer.files ?? []).filter((it) => it.fate !== "binary");
    run.reviewed = true;
    const title = run.status.title || run.id;
    const conflicts = files.filter((it) => it.fate === "conflict");
    const clean = files.filter((it) => it.fate !== "conflict");
    if (clean.length === 1 && !conflicts.length) {
      await this.open(run, clean[0]!);
    } else if (clean.length) {
      const resources = clean.map((it) => [vscode.Uri.parse(it.uri), ...this.sides(run, it)]);
      await vscode.commands.executeCommand("vscode.changes", `Agent: ${title}`, resources);
    }
    await this.showConflicts(run, conflicts);
    if (!files.length) {
      void vscode.window.showInformationMessage("Agent: the result has no text that can be shown here.");
    }
  }

  private sides(run: Run, file: ResultFile): [vscode.Uri, vscode.Uri] {
    return [
      this.texts.put(run.id, "before", file.path, file.before ?? ""),
      this.texts.put(run.id, "after", file.path, (file.fate === "merge" ? file.merged : file.after) ?? ""),
    ];
  }

  private async open(run: Run, file: ResultFile): Promise<void> {
    const [before, after] = this.sides(run, file);
    const notes: Record<string, string> = { merge: ", merged with your changes", same: ", yours already" };
    await vscode.commands.executeCommand("vscode.diff", before, after, `${file.path} (agent${notes[file.fate] ?? ""})`, { preview: false });
  }

  private async showConflicts(run: Run, conflicts: readonly ResultFile[]): Promise<void> {
    for (const file of conflicts) {
      const text = file.merged ?? "One of the sides has no such file.\n";
      const merged = this.texts.put(run.id, "conflict", file.path, text);
      await vscode.commands.executeCommand(
        "vscode.diff", vscode.Uri.parse(file.uri), merged, `${file.path} (yours ↔ three-way, conflict)`, { preview: false },
      );
    }
    if (conflicts.length) {
      const names = conflicts.map((it) => it.path).join(", ");
      void vscode.window.showWarningMessage(
        `Agent: your text has moved on where the result changes it: ${names}. The three-way text is shown beside yours; take over what you want, or merge the branch ${run.status.branch ?? ""}.`,
      );
    }
  }

  async accept(run: Run): Promise<void> {
    this.accepting = run.id;
    try {
      const answer = await this.server.accept(run.id, "apply");
      this.runs.setStatus(answer);
      if (answer.conflicts?.length) {
        await this.showConflicts(run, answer.conflicts);
      } else if (!answer.applied) {
        void vscode.window.showWarningMessage(`Agent: not applied: ${answer.reason ?? "the editor did not apply it"}.`);
      } else {
        await this.close(run);
        this.offerSave(answer.reason ?? "applied to your open files, not saved yet");
      }
    } finally {
      this.accepting = undefined;
      this.refresh();
    }
  }

  private offerSave(said: string): void {
    const dirty = vscode.workspace.textDocuments.filter((it) => it.isDirty && it.uri.scheme === "file");
    void vscode.window.showInformationMessage(`Agent: ${said}.`, ...(dirty.length ? ["Save All"] : [])).then(async (chosen) => {
      if (chosen === "Save All") {
        await Promise.all(dirty.map((it) => it.save()));
      }
    });
  }

  async discard(run: Run): Promise<void> {
    const sure = await vscode.window.showWarningMessage(
      `Discard the result of “${run.status.title}”?`, { modal: true, detail: `The branch ${run.status.branch ?? ""} is deleted.` }, "Discard",
    );
    if (sure === "Discard") {
      this.runs.setStatus(await this.server.run("reject", run.id));
      await this.close(run);
      this.refresh();
    }
  }

  /** Close the run's diff editors. */
  private async close(run: Run): Promise<void> {
    const ours = (uri: vscode.Uri): boolean => uri.scheme === SCHEME && uri.authority === run.id;
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => {
      const input: unknown = tab.input;
      return input instanceof vscode.TabInputTextDiff && (ours(input.original) || ours(input.modified));
    });
    await vscode.window.tabGroups.close(tabs, true);
  }

  /** The run that the front editor is a review of. */
  current(): Run | undefined {
    const input: unknown = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    const uri = input instanceof vscode.TabInputTextDiff ? input.modified : vscode.window.activeTextEditor?.document.uri;
    return uri?.scheme === SCHEME ? this.runs.get(uri.authority) : undefined;
  }

  async showSummary(run: Run): Promise<void> {
    const text = `# ${run.status.title}\n\n${run.summary || run.status.message}\n`;
    await vscode.commands.executeCommand("markdown.showPreview", this.texts.put(run.id, "summary", "Summary.md", text));
  }

  async openStep(step: Step): Promise<void> {
    const run = step.id.split("/", 1)[0]!;
    const whole = this.runs.get(run);
    if (step.kind === "now" && whole !== undefined) {
      return this.showSummary(whole);
    }
    if (step.file && (step.kind === "test" || step.kind === "finding")) {
      const folder = vscode.workspace.workspaceFolders?.find((it) => it.uri.toString() === this.runs.get(run)?.status.folder) ?? vscode.workspace.workspaceFolders?.[0];
      if (folder !== undefined) {
        const line = Math.max(0, (step.line ?? 1) - 1);
        const uri = vscode.Uri.joinPath(folder.uri, step.file);
        await vscode.window.showTextDocument(uri, { selection: new vscode.Range(line, 0, line, 0) });
        return;
      }
    }
    const name = `${step.label.replaceAll(/[^\p{L}\p{N} _.-]+/gu, " ").trim().slice(0, 60) || "step"}${step.isDiff ? ".diff" : ".txt"}`;
    const uri = this.texts.put(run, `step-${step.id.split("/").slice(1).join("-")}`, name, step.text);
    await vscode.window.showTextDocument(uri, { preview: true });
  }
}
