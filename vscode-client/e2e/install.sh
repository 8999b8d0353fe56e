#!/usr/bin/env bash
# Builds a real VS Code (code-server 4.100.3, which is VS Code 1.100.3) into the folder $1, from npm packages alone, for
# Node 20: the packages' own install scripts download things, so they are not run, and the native parts are compiled
# against the headers of the installed Node. Needs a C++ compiler, make, python3, ripgrep and node's headers.
set -euo pipefail
target=${1:?usage: install.sh FOLDER}
for program in node npm make g++ python3 rg; do
    command -v "$program" > /dev/null || { echo "$program is needed (Debian: apt install nodejs npm build-essential python3 ripgrep)" >&2; exit 2; }
done
headers=$(dirname "$(dirname "$(command -v node)")")
[ -f "$headers/include/node/node.h" ] || { echo "node's headers are needed (Debian: apt install libnode-dev)" >&2; exit 2; }
mkdir -p "$target"
target=$(cd "$target" && pwd)
vscode=$target/node_modules/code-server/lib/vscode
gyp=$(npm root -g)/npm/node_modules/node-gyp/bin/node-gyp.js
[ -f "$gyp" ] || gyp=/usr/share/nodejs/node-gyp/bin/node-gyp.js
quiet="--ignore-scripts --no-audit --no-fund --loglevel=error"

[ -f "$target/package.json" ] || echo '{"private": true}' > "$target/package.json"
(cd "$target" && npm install $quiet code-server@4.100.3)
(cd "$vscode" && npm install $quiet --omit=dev)
(cd "$vscode/extensions" && npm install $quiet --omit=dev)
for module in "$target/node_modules/argon2" "$vscode/node_modules/@vscode/spdlog" "$vscode/node_modules/native-watchdog" "$vscode/node_modules/node-pty"; do
    # The variables are argon2's, which expects them from a tool that would download its binary.
    (cd "$module" && node "$gyp" rebuild --nodedir="$headers" --module_name=argon2 --module_path="$module/lib/binding/napi-v3" \
        --napi_build_version=3 > build.log 2>&1) || { tail -20 "$module/build.log" >&2; exit 1; }
done
mkdir -p "$vscode/node_modules/@vscode/ripgrep/bin"
ln -sf "$(command -v rg)" "$vscode/node_modules/@vscode/ripgrep/bin/rg"
ln -sfn node_modules "$vscode/node_modules.asar"
ln -sf code-linux.sh "$vscode/bin/remote-cli/code-server"
ln -sf browser-linux.sh "$vscode/bin/helpers/browser.sh"
XDG_CONFIG_HOME=$target/config node "$target/node_modules/code-server/out/node/entry.js" --version
