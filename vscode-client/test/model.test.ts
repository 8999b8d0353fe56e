import assert from "node:assert/strict";
import { test } from "node:test";

import { outcomeOf, Runs, type Step, traits } from "../src/model";
import type { RunStatus, Update } from "../src/protocol";

const state = (message: string, more: object = {}): Update => ({ kind: "state", state: "running", message, ...more }) as Update;
const stage = (name: string, outcome: string, message: string, failing: object[] = []): Update =>
  ({ kind: "test_result", stage: name, outcome, counts: { passed: 1, failed: failing.length, errors: 0, skipped: 0 }, failing, durationMs: 1500, message }) as Update;
const call = (toolCallId: string, title: string, more: object = {}): Update =>
  ({ kind: "tool_call", toolCallId, title, toolKind: "edit", status: "completed", ...more }) as Update;
const finished = (verdict: string, more: object = {}): Update =>
  ({ kind: "state", state: "finished", message: verdict, verdict, exitCode: 0, summary: "done", branch: "agent-ls/x", commit: "abc", ...more }) as Update;

function fed(...updates: Update[]) {
  const runs = new Runs();
  updates.forEach((update, seq) => assert.equal(runs.take({ schema: 1, runId: "r", seq, update }), "taken"));
  return runs.get("r")!;
}

const shape = (steps: Step[]): unknown[] =>
  steps.map((it) => (it.children.length ? [it.outcome, it.label, shape(it.children)] : [it.outcome, it.label]));

test("the repair engine's session: an attempt has the test runs that it was told by", () => {
  const run = fed(
    state("Title", { session: "s1", branch: "agent-ls/x" }),
    stage("baseline", "failed", "baseline: 18 passed, 1 failed", [{ id: "t.py::a", outcome: "failed", message: "no\nyes" }]),
    state("tried 55 of 36,537 candidate edits"),
    stage("asked", "passed", "asked tests: 1 passed"),
    stage("full", "passed", "full suite: 19 passed"),
    call("attempt-1", "attempt 1: `<` to `<=`", { diff: "--- a", content: "all pass" }),
    state("1 of 1 fixed"),
    finished("fixed"),
  );
  assert.deepEqual(shape(run.steps), [
    ["info", "baseline: 18 passed, 1 failed", [["failed", "t.py::a"]]],
    ["passed", "attempt 1: `<` to `<=`", [["passed", "asked tests: 1 passed"], ["passed", "full suite: 19 passed"]]],
  ]);
  assert.equal(run.steps[1]!.isDiff, true);
  assert.equal(run.status.title, "Title");
  assert.equal(outcomeOf(run), "passed");
  assert.equal(traits(run), "finished result");
});

test("a model's session: tool calls are below their attempt, results reach them", () => {
  const run = fed(
    state("Title"),
    call("c1", "read a.py", { status: "in_progress", toolKind: "read" }),
    { kind: "tool_call_update", toolCallId: "c1", status: "completed", content: "text\nmore" },
    call("c2", "edit a.py", { status: "in_progress" }),
    { kind: "tool_call_update", toolCallId: "c2", status: "failed", content: "does not fit" },
    stage("asked", "failed", "asked tests: 1 failed"),
    call("attempt-1", "attempt 1: edit"),
    { kind: "agent_message_chunk", text: "pie", final: false },
    { kind: "agent_message_chunk", text: "piece by piece", final: true },
    call("c3", "search x", { status: "in_progress", toolKind: "search" }),
    { kind: "guard", findings: [{ kind: "k", severity: "block", path: "t.py", line: 3, message: "weakened" }] },
    finished("blocked", { session: "s1" }),
  );
  assert.deepEqual(shape(run.steps), [
    ["failed", "attempt 1: edit", [["passed", "read a.py"], ["failed", "edit a.py"], ["failed", "asked tests: 1 failed"]]],
    ["info", "attempt 2", [["info", "piece by piece"], ["info", "search x"], ["failed", "weakened"]]],
  ]);
  assert.equal(run.steps[0]!.children[0]!.text, "text\nmore");
  assert.equal(outcomeOf(run), "failed");
  assert.equal(traits(run), "finished result resumable");
});

for (const [name, given, expected] of [
  ["in order", [0, 1, 2], ["taken", "taken", "taken"]],
  ["twice", [0, 0, 1], ["taken", "known", "taken"]],
  ["a hole", [0, 2, 1, 2], ["taken", "gap", "taken", "taken"]],
  ["the first is missing", [1, 0, 1], ["gap", "taken", "taken"]],
] as const) {
  test(`sequence numbers: ${name}`, () => {
    const runs = new Runs();
    assert.deepEqual(given.map((seq) => runs.take({ schema: 1, runId: "r", seq, update: state(`m${seq}`) })), expected);
    assert.equal(runs.get("r")?.next, Math.max(...given) + 1);
  });
}

test("any order with gaps filled from the server's log gives the same tree", () => {
  const log = [state("a"), stage("baseline", "failed", "b"), call("c1", "edit"), stage("asked", "passed", "t"), call("attempt-1", "one"), finished("fixed")];
  const whole = fed(...log);
  for (let lost = 0; lost < 1 << log.length; lost += 1) {
    const runs = new Runs();
    const resync = (): void => log.forEach((update, seq) => seq >= (runs.get("r")?.next ?? 0) && runs.take({ schema: 1, runId: "r", seq, update }));
    log.forEach((update, seq) => {
      if (!(lost & (1 << seq)) && runs.take({ schema: 1, runId: "r", seq, update }) === "gap") {
        resync();
      }
    });
    resync();
    assert.deepEqual(shape(runs.get("r")!.steps), shape(whole.steps));
    assert.deepEqual(runs.get("r")!.status, whole.status);
  }
});

test("a status answers a title; an older one does not undo what updates said", () => {
  const status: RunStatus = {
    runId: "r", kind: "issue", title: "Real title", folder: "file:///f", branch: "b", session: null, state: "running", message: "old",
    percent: null, question: null, verdict: null, decided: null, started: 1, seq: 1,
  };
  const runs = new Runs();
  runs.take({ schema: 1, runId: "r", seq: 0, update: state("first") });
  runs.take({ schema: 1, runId: "r", seq: 1, update: finished("fixed") });
  runs.setStatus(status);
  const run = runs.get("r")!;
  assert.deepEqual([run.status.title, run.status.state, run.status.kind], ["Real title", "finished", "issue"]);
  runs.setStatus({ ...status, seq: 2, state: "finished", verdict: "fixed", decided: "applied" });
  assert.equal(traits(run), "finished");
});

for (const [update, outcome, words] of [
  [state("m"), "working", "running active"],
  [state("m", { state: "asking", question: "How?" }), "warning", "asking active"],
  [state("m", { state: "paused" }), "warning", "paused active resumable"],
  [finished("handed_over", { commit: null, session: "s" }), "warning", "finished resumable"],
  [finished("cancelled", { commit: null, session: "s" }), "info", "finished resumable"],
  [finished("usage", { commit: null, session: "s" }), "failed", "finished"],
] as const) {
  test(`what can be done: ${words}`, () => {
    const run = fed(update as Update);
    assert.deepEqual([outcomeOf(run), traits(run)], [outcome, words]);
  });
}
