/** Keys of model services: in the editor's secret storage, never in settings; the server gets them in its environment. */

import * as vscode from "vscode";

const SERVICES = [
  { label: "Anthropic", variable: "ANTHROPIC_API_KEY", description: "for models anthropic:…" },
  { label: "OpenAI or a compatible server", variable: "OPENAI_API_KEY", description: "for models openai:…" },
];

const place = (variable: string): string => `agentLs.${variable}`;

/** What the server's environment gets. */
export async function keysFor(secrets: vscode.SecretStorage): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const { variable } of SERVICES) {
    const key = await secrets.get(place(variable));
    if (key) {
      found[variable] = key;
    }
  }
  return found;
}

/** Ask for a key and keep it; true if one was given. */
export async function setKey(secrets: vscode.SecretStorage): Promise<boolean> {
  const service = await vscode.window.showQuickPick(SERVICES, { title: "Agent: API Key", placeHolder: "Which service is the key for?" });
  if (service === undefined) {
    return false;
  }
  const key = await vscode.window.showInputBox({
    title: `Agent: API Key of ${service.label}`, password: true, ignoreFocusOut: true,
    prompt: "Kept in the editor's secret storage, and given to the language server only.",
    validateInput: (text) => (/\s/.test(text.trim()) || !text.trim() ? "A key is one word." : undefined),
  });
  if (!key) {
    return false;
  }
  await secrets.store(place(service.variable), key.trim());
  return true;
}

/** Forget a key; true if there was one. */
export async function removeKey(secrets: vscode.SecretStorage): Promise<boolean> {
  const known = await keysFor(secrets);
  const held = SERVICES.filter((it) => it.variable in known);
  if (!held.length) {
    void vscode.window.showInformationMessage("Agent: no API key is stored.");
    return false;
  }
  const service = await vscode.window.showQuickPick(held, { title: "Agent: Remove API Key" });
  if (service === undefined) {
    return false;
  }
  await secrets.delete(place(service.variable));
  return true;
}
