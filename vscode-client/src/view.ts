/** The session view: sessions, below them attempts, below them tool calls and test results. */

import * as vscode from "vscode";

import { type Outcome, type Run, type Runs, type Step, outcomeOf, rows, traits } from "./model";

export type Node = Run | Step;

const ICONS: Record<Outcome, [string, string | undefined]> = {
  working: ["loading~spin", undefined],
  passed: ["pass", "testing.iconPassed"],
  failed: ["error", "testing.iconFailed"],
  warning: ["warning", "list.warningForeground"],
  info: ["circle-outline", undefined],
};
const SPOKEN: Record<Outcome, string> = {
  working: "running", passed: "passed", failed: "failed", warning: "needs a look", info: "for information",
};
const TOOLS: Record<string, string> = { read: "file", edit: "edit", search: "search", execute: "play", other: "tools" };

export function isRun(node: Node): node is Run {
  return "steps" in node;
}

export class SessionView implements vscode.TreeDataProvider<Node> {
  private readonly changed = new vscode.EventEmitter<Node | undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private timer: NodeJS.Timeout | undefined;
  private readonly parents = new WeakMap<Step, Node>();

  constructor(private readonly runs: Runs) {}

  /** Redraw soon: many updates come within a moment. */
  refresh(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.changed.fire(undefined);
    }, 80);
  }

  getChildren(node?: Node): Node[] {
    if (node === undefined) {
      return this.runs.all();
    }
    const children = isRun(node) ? rows(node) : node.children;
    children.forEach((it) => this.parents.set(it, node));
    return children;
  }

  getParent(node: Node): Node | undefined {
    return isRun(node) ? undefined : this.parents.get(node);
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return isRun(node) ? runItem(node) : stepItem(node);
  }
}

function runItem(run: Run): vscode.TreeItem {
  const { status } = run;
  const outcome = outcomeOf(run);
  const item = new vscode.TreeItem(
    status.title || run.id,
    status.decided ? vscode.TreeItemCollapsibleState.Collapsed : vscode.TreeItemCollapsibleState.Expanded,
  );
  item.id = run.id;
  item.contextValue = traits(run);
  item.description = status.decided ?? (status.state === "running" ? "" : status.verdict ?? status.state).replaceAll("_", " ");
  item.iconPath = status.state === "asking" ? icon("question", undefined) : status.state === "paused" ? icon("debug-pause", undefined) : icon(...ICONS[outcome]);
  item.accessibilityInformation = { label: `Session ${status.title}, ${SPOKEN[outcome]}, ${status.message}` };
  const tip = new vscode.MarkdownString("", true);
  tip.appendText(status.title);
  const facts = [["Branch", status.branch], ["Model", run.model], ["Verdict", status.verdict], ["Session", status.session]] as const;
  for (const [name, value] of facts) {
    if (value) {
      tip.appendMarkdown(`\n\n${name}: `).appendText(value);
    }
  }
  item.tooltip = tip;
  return item;
}

function stepItem(step: Step): vscode.TreeItem {
  const state = !step.children.length
    ? vscode.TreeItemCollapsibleState.None
    : step.outcome === "working" || step.kind === "attempt" ? vscode.TreeItemCollapsibleState.Expanded : vscode.TreeItemCollapsibleState.Collapsed;
  const item = new vscode.TreeItem(step.label, state);
  item.id = step.id;
  item.description = step.detail;
  item.contextValue = step.kind;
  const [name, colour] = ICONS[step.outcome];
  const plain = step.outcome === "info" || (step.kind === "call" && step.outcome === "passed");
  item.iconPath = plain ? icon(step.kind === "message" ? "comment" : step.kind === "stage" ? "beaker" : TOOLS[step.toolKind] ?? name, undefined) : icon(name, colour);
  item.tooltip = step.text ? step.text.slice(0, 2000) : step.label;
  item.accessibilityInformation = { label: `${step.kind} ${step.label}, ${SPOKEN[step.outcome]}${step.detail ? `, ${step.detail}` : ""}` };
  if (step.kind === "now" && step.toolKind !== "finished") {
    return item;
  }
  if (step.text || step.file) {
    item.command = { command: "agentLs.openStep", title: "Open", arguments: [step] };
  }
  return item;
}

function icon(name: string, colour: string | undefined): vscode.ThemeIcon {
  return new vscode.ThemeIcon(name, colour === undefined ? undefined : new vscode.ThemeColor(colour));
}
