/** The server's messages: docs/protocol.md, docs/protocol/did-update.schema.json. */

export type RunState = "running" | "paused" | "asking" | "finished";

export interface TestResult {
  id: string;
  outcome: "passed" | "failed" | "error" | "skipped" | "xfailed" | "xpassed";
  file?: string | null;
  line?: number | null;
  message?: string | null;
  duration_s?: number;
  stack?: { file: string; line: number; function: string }[];
}

export interface Finding {
  kind: string;
  severity: "block" | "review" | "info";
  path: string;
  line: number;
  message: string;
  before?: string;
  after?: string;
}

export type Update =
  | {
      kind: "state"; state: RunState; message: string; warning?: string; question?: string; verdict?: string;
      summary?: string; branch?: string | null; commit?: string | null; session?: string | null; model?: string;
      filesChanged?: string[];
    }
  | { kind: "test_result"; stage: "tests"; tests: TestResult[] }
  | {
      kind: "test_result"; stage: string; outcome: string; counts: Record<string, number>; failing: TestResult[];
      durationMs: number; message: string;
    }
  | { kind: "guard"; findings: Finding[] }
  | { kind: "agent_message_chunk"; text: string; final: boolean }
  | {
      kind: "tool_call"; toolCallId: string; title: string; toolKind: string; status: CallStatus; arguments?: unknown;
      diff?: string; content?: string;
    }
  | { kind: "tool_call_update"; toolCallId: string; status: CallStatus; content: string }
  | { kind: "usage_update"; usage: Record<string, unknown>; total?: boolean };

export type CallStatus = "in_progress" | "completed" | "failed";

export interface DidUpdate {
  schema: number;
  runId: string;
  seq: number;
  update: Update;
}

export interface RunStatus {
  runId: string;
  kind: string;
  title: string;
  folder: string;
  branch: string | null;
  session: string | null;
  state: RunState;
  message: string;
  percent: number | null;
  question: string | null;
  verdict: string | null;
  decided: string | null;
  started: number;
  seq: number;
}

export interface RunGet extends RunStatus {
  updates: { seq: number; update: Update }[];
  report: { commit?: string | null; summary?: string } | null;
}

export interface ResultFile {
  path: string;
  uri: string;
  fate: "apply" | "merge" | "conflict" | "same" | "binary";
  before: string | null;
  after: string | null;
  merged: string | null;
}

export type AcceptAnswer = RunStatus & {
  applied?: boolean;
  reason?: string | null;
  conflicts?: ResultFile[];
  files?: ResultFile[];
  diff?: string;
  command?: string;
};
