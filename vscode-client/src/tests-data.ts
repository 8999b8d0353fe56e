/** Test ids and where they are. Pure. */

import type { TestResult } from "./protocol";

/** A test that a code lens of the server names. */
export interface Found {
  id: string;
  line: number;
}

interface Lens {
  range: { start: { line: number } };
  command?: { command: string; arguments?: unknown[] };
}

/** The tests of a file, from the server's code lenses for it (each has "run" once). */
export function fromLenses(lenses: readonly Lens[]): Found[] {
  const found: Found[] = [];
  for (const lens of lenses) {
    const given = lens.command?.command === "agent-ls.tests.run" ? lens.command.arguments?.[0] : undefined;
    const ids = given !== null && typeof given === "object" && "ids" in given ? given.ids : undefined;
    if (Array.isArray(ids) && typeof ids[0] === "string") {
      found.push({ id: ids[0], line: lens.range.start.line });
    }
  }
  return found;
}

/** The test that a line (from 0) is in: the last one that begins at or above it. */
export function testAt(tests: readonly Found[], line: number): Found | undefined {
  return tests.filter((it) => it.line <= line).at(-1);
}

/** `tests/test_x.py::T::test_y[1]`: its file, the function's id, the parameters. */
export function split(id: string): { file: string; base: string; parameters: string } {
  const bracket = id.indexOf("[");
  const base = bracket < 0 ? id : id.slice(0, bracket);
  return { file: base.split("::", 1)[0]!, base, parameters: bracket < 0 ? "" : id.slice(bracket) };
}

/** The repository's root, from a test file's absolute path and its name in ids; undefined if they don't fit. */
export function rootOf(absolute: string, file: string): string | undefined {
  const plain = absolute.replaceAll("\\", "/");
  return plain.endsWith(`/${file}`) ? plain.slice(0, -file.length - 1) : undefined;
}

/** Of a test's parameter sets the worst outcome counts. */
export function worst(outcomes: readonly TestResult["outcome"][]): TestResult["outcome"] | undefined {
  const order = ["error", "failed", "xpassed", "passed", "xfailed", "skipped"] as const;
  return order.find((it) => outcomes.includes(it));
}
