import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { candidates, expand, installations, locate, type Places } from "../src/locate";
import { fromLenses, rootOf, split, testAt, worst } from "../src/tests-data";

const places = (more: Partial<Places> = {}): Places => ({ configured: "", folders: ["/w"], home: "/h", pathVariable: "/usr/bin:rel", windows: false, ...more });

for (const [name, there, given, expected] of [
  ["the workspace's environment is first", ["/w/.venv/bin/agent-ls", "/usr/bin/agent-ls"], {}, "/w/.venv/bin/agent-ls"],
  ["then the PATH", ["/usr/bin/agent-ls", "/h/.local/bin/agent-ls"], {}, "/usr/bin/agent-ls"],
  ["then uv's and pipx's place", ["/h/.local/bin/agent-ls"], {}, "/h/.local/bin/agent-ls"],
  ["a relative entry of the PATH counts for nothing", ["rel/agent-ls"], {}, undefined],
  ["a chosen one is not replaced", ["/usr/bin/agent-ls"], { configured: "/x/agent-ls" }, undefined],
  ["a chosen one", ["/w/x/agent-ls"], { configured: "${workspaceFolder}/x/agent-ls" }, "/w/x/agent-ls"],
  ["a chosen one at home", ["/h/b/agent-ls"], { configured: " ~/b/agent-ls" }, "/h/b/agent-ls"],
] as const) {
  test(`the server is found: ${name}`, () => {
    assert.equal(locate(places(given), (file) => (there as readonly string[]).includes(file)), expected);
  });
}

test("paths of Windows and of several folders", () => {
  const found = candidates(places({ windows: true, folders: ["/a", "/b"] }));
  assert.ok(found.some((it) => it.includes("/b/.venv/Scripts/agent-ls.exe")));
  assert.equal(expand("~user/x", "/w", "/h"), "~user/x");
});

test("only ways to install whose program is there", () => {
  assert.deepEqual(installations(() => false, undefined), []);
  assert.deepEqual(installations((it) => it === "uv", undefined).map((it) => it.arguments), [["tool", "install", "agent-ls"]]);
  assert.equal(installations(() => true, "/w/.venv/bin/python")[0]!.program, "/w/.venv/bin/python");
});

test("tests from code lenses", () => {
  const lens = (line: number, command: string, given: unknown) => ({ range: { start: { line } }, command: { command, arguments: [given] } });
  const found = fromLenses([
    lens(3, "agent-ls.tests.run", { ids: ["t.py::a"] }), lens(3, "agent-ls.run.start", { kind: "test", target: "t.py::a" }),
    lens(9, "agent-ls.tests.run", { ids: ["t.py::B::b"] }), lens(12, "agent-ls.tests.run", null), { range: { start: { line: 14 } } },
  ]);
  assert.deepEqual(found, [{ id: "t.py::a", line: 3 }, { id: "t.py::B::b", line: 9 }]);
  assert.deepEqual([2, 3, 8, 40].map((line) => testAt(found, line)?.id), [undefined, "t.py::a", "t.py::a", "t.py::B::b"]);
});

for (const [id, expected] of [
  ["tests/t.py::f", ["tests/t.py", "tests/t.py::f", ""]],
  ["tests/t.py::C::f[a::b-1]", ["tests/t.py", "tests/t.py::C::f", "[a::b-1]"]],
] as const) {
  test(`a test's id: ${id}`, () => {
    const { file, base, parameters } = split(id);
    assert.deepEqual([file, base, parameters], expected);
  });
}

test("the repository's root, and the worst outcome", () => {
  assert.equal(rootOf("/r/sub/tests/t.py", "tests/t.py"), "/r/sub");
  assert.equal(rootOf("/r/xtests/t.py", "tests/t.py"), undefined);
  assert.equal(worst(["passed", "failed", "skipped"]), "failed");
  assert.equal(worst([]), undefined);
});

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as {
  contributes: {
    commands: { command: string }[];
    configuration: { properties: Record<string, { default: unknown; description?: string; markdownDescription?: string; scope: string }> };
    menus: Record<string, { command: string }[]>;
  };
  capabilities: { untrustedWorkspaces: { supported: unknown } };
};

test("the manifest: every command that is offered is registered, settings say what they do", () => {
  const source = ["src/extension.ts", "src/commands.ts"].map((it) => readFileSync(it, "utf8")).join("");
  const registered = new Set([...source.matchAll(/(?:registerCommand|command)\("(agentLs\.\w+)"/g)].map((it) => it[1]));
  const declared = new Set(manifest.contributes.commands.map((it) => it.command));
  assert.deepEqual([...declared].sort(), [...registered].sort());
  for (const { command } of Object.values(manifest.contributes.menus).flat()) {
    assert.ok(declared.has(command), command);
  }
  for (const [name, setting] of Object.entries(manifest.contributes.configuration.properties)) {
    assert.ok((setting.description ?? setting.markdownDescription ?? "").length > 20, name);
    const client = /^agentLs\.(server|client|trace)\./.test(name); // what the server is not sent
    assert.equal(setting.default === null, !client, `${name}: what is unset is left to the other layers`);
  }
});

test("nothing of it runs in a folder that is not trusted, and a workspace can't redirect a model", () => {
  assert.equal(manifest.capabilities.untrustedWorkspaces.supported, false);
  assert.equal(manifest.contributes.configuration.properties["agentLs.baseUrl"]!.scope, "machine");
});
