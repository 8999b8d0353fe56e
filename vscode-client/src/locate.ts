/** Where the server's program may be. Pure: the disk is asked through `exists`. */

import * as path from "node:path";

export interface Places {
  configured: string;
  folders: string[];
  home: string;
  pathVariable: string;
  windows: boolean;
}

/** `~` and `${workspaceFolder}` in a path of the settings. */
export function expand(given: string, folder: string | undefined, home: string): string {
  const named = given.trim().replaceAll("${workspaceFolder}", folder ?? "");
  return named === "~" || named.startsWith("~/") || named.startsWith("~\\") ? path.join(home, named.slice(1)) : named;
}

/** Candidates, best first. With a configured path there is no other: what a person chose is not replaced. */
export function candidates(places: Places): string[] {
  const { configured, folders, home, windows } = places;
  if (configured.trim()) {
    return [expand(configured, folders[0], home)];
  }
  const name = windows ? "agent-ls.exe" : "agent-ls";
  const bin = windows ? "Scripts" : "bin";
  const found: string[] = [];
  for (const folder of folders) {
    for (const environment of [".venv", "venv", "env"]) {
      found.push(path.join(folder, environment, bin, name));
    }
  }
  for (const folder of places.pathVariable.split(windows ? ";" : ":")) {
    if (path.isAbsolute(folder)) {
      found.push(path.join(folder, name));
    }
  }
  found.push(path.join(home, ".local", "bin", name)); // uv tool, pipx
  return [...new Set(found)];
}

export function locate(places: Places, exists: (file: string) => boolean): string | undefined {
  return candidates(places).find(exists);
}

export interface Installation {
  label: string;
  detail: string;
  program: string;
  arguments: string[];
}

/** Ways to install, those whose program is there. `venv` is the workspace's Python, if it has one. */
export function installations(has: (program: string) => boolean, venv: string | undefined): Installation[] {
  const ways: (Installation | undefined)[] = [
    venv === undefined ? undefined : {
      label: "Into this workspace's virtual environment", detail: `${venv} -m pip install agent-ls`,
      program: venv, arguments: ["-m", "pip", "install", "agent-ls"],
    },
    !has("uv") ? undefined : {
      label: "For you, with uv", detail: "uv tool install agent-ls", program: "uv", arguments: ["tool", "install", "agent-ls"],
    },
    !has("pipx") ? undefined : {
      label: "For you, with pipx", detail: "pipx install agent-ls", program: "pipx", arguments: ["install", "agent-ls"],
    },
  ];
  return ways.filter((it) => it !== undefined);
}
