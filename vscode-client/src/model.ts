/** What the sessions did so far, as a tree. Knows nothing of the editor. */

import type { DidUpdate, RunStatus, TestResult, Update } from "./protocol";

/** How a step went, for its icon. */
export type Outcome = "working" | "passed" | "failed" | "warning" | "info";

export interface Step {
  id: string;
  kind: "attempt" | "call" | "stage" | "test" | "finding" | "message" | "warning" | "now";
  label: string;
  detail: string;
  outcome: Outcome;
  /** What opening the step shows. */
  text: string;
  isDiff: boolean;
  toolKind: string;
  file: string | null;
  line: number | null;
  children: Step[];
}

export interface Run {
  id: string;
  status: RunStatus;
  steps: Step[];
  /** The next `seq` that is expected. */
  next: number;
  summary: string;
  commit: string | null;
  model: string;
  reviewed: boolean;
}

const EARLY = new Set(["baseline", "baseline-again"]);

/** What an update did: taken in, known already, or something before it is missing. */
export type Taken = "taken" | "known" | "gap";

export class Runs {
  private readonly runs = new Map<string, Run>();

  /** Newest first. */
  all(): Run[] {
    return [...this.runs.values()].reverse();
  }

  get(id: string): Run | undefined {
    return this.runs.get(id);
  }

  active(): Run[] {
    return this.all().filter((run) => run.status.state !== "finished");
  }

  clear(): void {
    this.runs.clear();
  }

  /** Take in a run's status, as commands answer it. It does not replace what later updates said. */
  setStatus(status: RunStatus): Run {
    const known = this.runs.get(status.runId);
    if (known === undefined) {
      return this.add({ ...status });
    }
    if (status.seq >= known.next) {
      known.status = { ...status };
    } else {
      Object.assign(known.status, {
        title: status.title, kind: status.kind, folder: status.folder, started: status.started,
        decided: status.decided ?? known.status.decided,
      });
    }
    return known;
  }

  /** Take in one update. For a `gap`, ask the server for what follows `next` of the run (0 if there is none). */
  take({ runId, seq, update }: DidUpdate): Taken {
    const run = this.runs.get(runId) ?? (seq === 0 ? this.add(unknown(runId)) : undefined);
    if (run === undefined || seq > run.next) {
      return "gap";
    }
    if (seq < run.next) {
      return "known";
    }
    run.next += 1;
    run.status.seq = Math.max(run.status.seq, run.next);
    apply(run, seq, update);
    return "taken";
  }

  private add(status: RunStatus): Run {
    const run: Run = {
      id: status.runId, status, steps: [], next: 0, summary: "", commit: null, model: "", reviewed: false,
    };
    this.runs.set(run.id, run);
    return run;
  }
}

function unknown(runId: string): RunStatus {
  return {
    runId, kind: "", title: "", folder: "", branch: null, session: null, state: "running", message: "starting",
    percent: null, question: null, verdict: null, decided: null, started: 0, seq: 0,
  };
}

function step(id: string, kind: Step["kind"], label: string, outcome: Outcome, more: Partial<Step> = {}): Step {
  return {
    id, kind, label, outcome, detail: "", text: "", isDiff: false, toolKind: "", file: null, line: null, children: [],
    ...more,
  };
}

function apply(run: Run, seq: number, update: Update): void {
  const id = `${run.id}/${seq}`;
  switch (update.kind) {
    case "state":
      return applyState(run, id, update);
    case "test_result":
      return "tests" in update ? applyTests(run, update.tests) : applyStage(run, id, update);
    case "guard":
      for (const [n, finding] of update.findings.entries()) {
        const outcome = finding.severity === "block" ? "failed" : finding.severity === "review" ? "warning" : "info";
        const text = [finding.message, finding.before && `before: ${finding.before}`, finding.after && `after: ${finding.after}`];
        open(run, id).children.push(step(`${id}/${n}`, "finding", finding.message, outcome, {
          detail: `${finding.path}:${finding.line}`, text: text.filter(Boolean).join("\n"), file: finding.path, line: finding.line,
        }));
      }
      return;
    case "tool_call":
      return applyCall(run, id, update);
    case "tool_call_update": {
      const call = calls(run).find((it) => it.id === `${run.id}/${update.toolCallId}`);
      if (call !== undefined) {
        call.outcome = update.status === "failed" ? "failed" : "passed";
        call.text = call.isDiff ? call.text : update.content;
        call.detail = firstLine(update.content);
      }
      return;
    }
    case "agent_message_chunk":
      if (update.final && update.text.trim()) {
        open(run, id).children.push(step(id, "message", firstLine(update.text), "info", { text: update.text }));
      }
      return;
    case "usage_update":
      return;
  }
}

function applyState(run: Run, id: string, update: Extract<Update, { kind: "state" }>): void {
  const status = run.status;
  status.state = update.state;
  status.message = update.message;
  status.question = update.question ?? null;
  status.session = update.session ?? status.session;
  status.branch = update.branch !== undefined ? update.branch : status.branch;
  run.model = update.model ?? run.model;
  status.title ||= update.message;
  if (update.warning) {
    run.steps.push(step(id, "warning", firstLine(update.warning), "warning", { text: update.warning }));
  }
  if (update.state !== "finished") {
    if (update.state === "running") {
      status.verdict = null; // one that ended may go on
    }
    return;
  }
  status.verdict = update.verdict ?? null;
  status.percent = null;
  run.summary = update.summary ?? "";
  run.commit = update.commit ?? null;
  for (const it of [...run.steps, ...calls(run)]) {
    if (it.outcome === "working") {
      it.outcome = "info";
    }
  }
  const last = run.steps.at(-1);
  if (last?.kind === "attempt" && !last.toolKind) {
    last.toolKind = "closed";
  }
}

/** The attempt that is under way: what happens after a verdict belongs to the next one. */
function open(run: Run, id: string): Step {
  const last = run.steps.at(-1);
  if (last?.kind === "attempt" && !last.toolKind) {
    return last;
  }
  const number = run.steps.filter((it) => it.kind === "attempt").length + 1;
  const made = step(`${id}/attempt`, "attempt", `attempt ${number}`, "working");
  run.steps.push(made);
  return made;
}

function calls(run: Run): Step[] {
  return run.steps.flatMap((it) => it.children).filter((it) => it.kind === "call");
}

function applyStage(run: Run, id: string, update: Extract<Update, { failing: TestResult[] }>): void {
  const made = step(id, "stage", update.message, update.outcome === "passed" ? "passed" : "failed", {
    detail: `${(update.durationMs / 1000).toFixed(1)} s`,
    children: update.failing.map((test, n) => failing(`${id}/${n}`, test)),
  });
  if (EARLY.has(update.stage)) {
    made.outcome = update.outcome === "env_broken" ? "failed" : "info"; // failing is what it is to find
    run.steps.push(made);
  } else {
    open(run, id).children.push(made);
  }
}

function failing(id: string, test: TestResult): Step {
  return step(id, "test", test.id, test.outcome === "failed" || test.outcome === "error" ? "failed" : test.outcome === "passed" ? "passed" : "info", {
    detail: firstLine(test.message ?? ""), text: test.message ?? "", file: test.file ?? null, line: test.line ?? null,
  });
}

/** Single results of the user's own run: the failing ones are shown, all are counted. */
function applyTests(run: Run, tests: TestResult[]): void {
  for (const test of tests) {
    if (test.outcome === "failed" || test.outcome === "error") {
      run.steps.push(failing(`${run.id}/${test.id}`, test));
    }
  }
}

function applyCall(run: Run, id: string, update: Extract<Update, { kind: "tool_call" }>): void {
  if (update.toolCallId.startsWith("attempt-")) {
    const attempt = open(run, id); // told when its tests have run: their results are in it already
    attempt.label = update.title;
    attempt.toolKind = "edit";
    attempt.detail = firstLine(update.content ?? "");
    const last = attempt.children.filter((it) => it.kind === "stage").at(-1);
    attempt.outcome = update.status === "failed" || last?.outcome === "failed" ? "failed" : last ? "passed" : "info";
    attempt.text = update.diff || update.content || "";
    attempt.isDiff = Boolean(update.diff);
    return;
  }
  const shown = update.diff || update.content || "";
  open(run, id).children.push(step(`${run.id}/${update.toolCallId}`, "call", update.title, update.status === "in_progress" ? "working" : update.status === "failed" ? "failed" : "passed", {
    text: shown || (update.arguments === undefined ? "" : JSON.stringify(update.arguments, null, 2)),
    isDiff: Boolean(update.diff), toolKind: update.toolKind,
  }));
}

/** The rows below a run: its steps, and what it does now or ended with. */
export function rows(run: Run): Step[] {
  const { state, message, question, decided } = run.status;
  const outcome = state === "running" ? "working" : outcomeOf(run);
  const label = state === "asking" ? question ?? message : decided ? `${decided}; ${message}` : message;
  return [...run.steps, step(`${run.id}/now`, "now", label, outcome, { text: run.summary, toolKind: state })];
}

export function firstLine(text: string): string {
  return text.trim().split("\n", 1)[0]!.slice(0, 200);
}

/** Words for the menus (`viewItem`): active, running, paused, asking, finished, result, resumable. */
export function traits(run: Run): string {
  const { state, verdict, decided } = run.status;
  const words: string[] = [state];
  if (state !== "finished") {
    words.push("active");
  }
  if (state === "finished" && run.commit && !decided) {
    words.push("result");
  }
  const ended = state === "finished" && run.status.session && !["fixed", "usage"].includes(verdict ?? "");
  if (state === "paused" || ended) {
    words.push("resumable");
  }
  return words.join(" ");
}

/** How a run stands, for its icon. */
export function outcomeOf(run: Run): Outcome {
  const { state, verdict } = run.status;
  if (state === "asking" || state === "paused") {
    return "warning";
  }
  if (state === "running") {
    return "working";
  }
  if (verdict === "fixed" || verdict === "passed") {
    return "passed";
  }
  return verdict === "cancelled" ? "info" : verdict === "budget" || verdict === "handed_over" ? "warning" : "failed";
}
