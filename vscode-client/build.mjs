// Bundles the extension (default), and with the word `tests` its tests too. `--minify` for a package.
import { build } from "esbuild";
import { copyFileSync, existsSync, readdirSync } from "node:fs";

const common = {
  bundle: true, platform: "node", format: "cjs", target: "node20", external: ["vscode"], logLevel: "warning",
  minify: process.argv.includes("--minify"), sourcemap: !process.argv.includes("--minify"),
};
await build({ ...common, entryPoints: ["src/extension.ts"], outfile: "dist/extension.js" });
if (process.argv.includes("tests")) {
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`);
  await build({ ...common, entryPoints: tests, outdir: "dist/test" });
  await build({ ...common, entryPoints: ["e2e/host.ts"], outdir: "dist/e2e" });
}
if (common.minify && existsSync("../LICENSE")) {
  copyFileSync("../LICENSE", "LICENSE"); // a package carries it
}
