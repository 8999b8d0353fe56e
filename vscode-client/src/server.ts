/** The server's process and what is asked of it. */

import { existsSync } from "node:fs";
import * as os from "node:os";
import * as vscode from "vscode";
import {
  type ClientCapabilities, LanguageClient, type LanguageClientOptions, State, type StaticFeature, TransportKind,
} from "vscode-languageclient/node";

import { keysFor } from "./keys";
import { locate } from "./locate";
import type { AcceptAnswer, DidUpdate, RunGet, RunStatus } from "./protocol";

export interface Handlers {
  updated(update: DidUpdate): void;
  status(kind: string, message: string): void;
  ask(runId: string, question: string, token: vscode.CancellationToken): Promise<string | undefined>;
  /** The server runs (again), or has gone. */
  running(is: boolean): void;
  /** A command of ours was run from a code lens or a code action. */
  commanded(command: string, answer: unknown): void;
  /** Must an edit be confirmed line by line? Not where the person has just seen and accepted it. */
  confirmed(label: string | undefined): boolean;
}

class Experimental implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    capabilities.experimental = { ...(capabilities.experimental as object), agentLs: { requestPermission: true } };
  }
  initialize(): void {}
  getState() {
    return { kind: "static" as const };
  }
  clear(): void {}
}

export class Server {
  private client: LanguageClient | undefined;
  private starting: Promise<boolean> | undefined;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly handlers: Handlers,
  ) {}

  get ready(): boolean {
    return this.client?.state === State.Running;
  }

  /** Start the server unless it runs; false where it can't be found or does not start. */
  start(): Promise<boolean> {
    this.starting ??= this.begin().finally(() => (this.starting = undefined));
    return this.starting;
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client !== undefined) {
      await client.dispose(5000).catch((error: unknown) => this.log.warn(`stopping: ${String(error)}`));
    }
  }

  async restart(): Promise<boolean> {
    await this.stop();
    return this.start();
  }

  private async begin(): Promise<boolean> {
    if (this.ready) {
      return true;
    }
    if (!vscode.workspace.isTrusted) {
      return false;
    }
    await this.stop();
    const program = findServer();
    if (program === undefined) {
      this.log.warn("agent-ls was not found");
      this.handlers.running(false);
      return false;
    }
    const keys = await keysFor(this.context.secrets);
    this.log.info(`starting ${program}${Object.keys(keys).length ? ` with ${Object.keys(keys).join(", ")}` : ""}`);
    const client = new LanguageClient(
      "agentLs", "Agent LS",
      {
        command: program, args: ["serve"], transport: TransportKind.stdio,
        options: { env: { ...process.env, ...keys } },
      },
      this.options(),
    );
    client.registerFeature(new Experimental());
    client.onNotification("agent-ls/run/didUpdate", (update: DidUpdate) => this.handlers.updated(update));
    client.onNotification("agent-ls/didChangeStatus", (it: { kind: string; message: string }) =>
      this.handlers.status(it.kind, it.message),
    );
    client.onRequest("agent-ls/requestPermission", async (it: { runId: string; question: string }, token) => ({
      text: (await this.handlers.ask(it.runId, it.question, token)) ?? null,
    }));
    client.onDidChangeState(({ newState }) => {
      if (this.client === client && newState !== State.Starting) {
        this.handlers.running(newState === State.Running);
      }
    });
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.log.error(`the server did not start: ${String(error)}`);
      this.handlers.running(false);
      return false;
    }
    return true;
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: "file" }],
      synchronize: { configurationSection: "agentLs" },
      outputChannel: this.log,
      traceOutputChannel: this.log,
      middleware: {
        executeCommand: async (command, args, next) => {
          try {
            const answer: unknown = await next(command, args);
            this.handlers.commanded(command, answer);
            return answer;
          } catch (error) {
            await this.tell(error);
            return undefined;
          }
        },
        workspace: {
          handleApplyEdit: async (params, next) => {
            if (this.handlers.confirmed(params.label)) {
              for (const annotation of Object.values(params.edit.changeAnnotations ?? {})) {
                annotation.needsConfirmation = false;
              }
            }
            return next(params, new vscode.CancellationTokenSource().token);
          },
        },
      },
    };
  }

  /** One of the server's commands. Rejects with the server's message. */
  async command<T>(command: string, argument: object): Promise<T> {
    if (!(await this.start())) {
      throw new Error("The language server agent-ls is not running. Install it, or set agentLs.server.path.");
    }
    return await this.client!.sendRequest<T>("workspace/executeCommand", { command, arguments: [argument] });
  }

  async request<T>(method: string, params: object, token?: vscode.CancellationToken): Promise<T | undefined> {
    return this.ready ? await this.client!.sendRequest<T>(method, params, token) : undefined;
  }

  run(verb: "cancel" | "pause" | "resume" | "reject", runId: string): Promise<RunStatus> {
    return this.command(`agent-ls.run.${verb}`, { runId });
  }

  get(runId: string, fromSeq: number): Promise<RunGet> {
    return this.command("agent-ls.run.get", { runId, fromSeq });
  }

  accept(runId: string, how: "diff" | "apply" | "merge"): Promise<AcceptAnswer> {
    return this.command("agent-ls.run.accept", { runId, how });
  }

  /** Show what went wrong; the server's messages name the remedy. */
  async tell(error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error);
    this.log.error(message);
    const missing = !this.ready;
    const chosen = await vscode.window.showErrorMessage(`Agent: ${message}`, ...(missing ? ["Install…", "Settings"] : []), "Show Log");
    if (chosen === "Install…") {
      await vscode.commands.executeCommand("agentLs.installServer");
    } else if (chosen === "Settings") {
      await vscode.commands.executeCommand("workbench.action.openSettings", "agentLs.server.path");
    } else if (chosen === "Show Log") {
      this.log.show();
    }
  }
}

export function findServer(): string | undefined {
  return locate(
    {
      configured: vscode.workspace.getConfiguration("agentLs").get("server.path", ""),
      folders: (vscode.workspace.workspaceFolders ?? []).filter((it) => it.uri.scheme === "file").map((it) => it.uri.fsPath),
      home: os.homedir(),
      pathVariable: process.env["PATH"] ?? "",
      windows: process.platform === "win32",
    },
    existsSync,
  );
}
