// pinned-node.js: runs a program on the Node that the lockfile pins, whatever Node starts it.
//
//   node src/pinned-node.js FILE [ARG...]    a file of this project: src/main.ts
//   node src/pinned-node.js NAME [ARG...]    a program of the installed packages: vitest
//
// Every npm script begins with it. npm starts scripts with the Node of the machine, and links no other one into
// node_modules/.bin (npm 9 and 10 link none of two packages that claim the name `node`). So the pinned Node is found by
// its path. Plain JavaScript that Node 16 can read, because an old Node cannot load a .ts file.
//
// The installed command (launcher.sh) does the same in a shell and comes here only where there is no pinned Node.
// A Node of the machine that is new enough then takes its place; an older one gets NODE_TOO_OLD and exit status 2.

import { spawn } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import Module from 'node:module'
import { delimiter, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const [program = '', ...args] = process.argv.slice(2)

const pinned = pinnedNode()
if (pinned !== null && pinned !== realpathSync(process.execPath)) runOn(pinned)
else if (isNewEnough()) runHere()
else refuse()

/** npm installs a dependency in the folder of the package or beside the package. */
function pinnedNode() {
  const name = `node-${process.platform}-${process.arch}`
  const paths = ['../node_modules', '../..'].map((modules) => join(here, modules, name, 'bin/node'))
  const found = paths.find((path) => existsSync(path))
  return found === undefined ? null : realpathSync(found)
}

function isNewEnough() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return major === 22 ? minor >= 19 : major === 23 ? minor >= 8 : major >= 24
}

function programFile() {
  const linked = join(here, '../node_modules/.bin', program)
  return /\.[jt]s$/.test(program) ? resolve(program) : existsSync(linked) ? realpathSync(linked) : null
}

/** Programs that the program starts as `node` get the same one. */
function environment(node) {
  return { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env['PATH'] ?? ''}` }
}

/** An old Node cannot replace its process: this one passes signals on, and ends as its child ends. */
function runOn(node) {
  const file = programFile()
  if (file === null) return refuseName()
  const child = spawn(node, [file, ...args], { stdio: 'inherit', env: environment(node) })
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of signals) process.on(signal, () => child.kill(signal))
  child.on('exit', (status, signal) => {
    if (signal === null) process.exit(status)
    for (const name of signals) process.removeAllListeners(name)
    process.kill(process.pid, signal)
  })
  // It is for another C library (musl).
  child.on('error', () => (isNewEnough() ? runHere() : refuse()))
}

function runHere() {
  const file = programFile()
  if (file === null) return refuseName()
  process.argv = [process.execPath, file, ...args]
  Object.assign(process.env, environment(process.execPath))
  // As a main program, not as an import of this file: import.meta.main is true in it.
  Module.runMain()
}

function refuseName() {
  end('PROGRAM_MISSING', {
    what: `Cannot run ${program || 'a program without a name'}.`,
    why: 'It is not among the installed packages.',
    act: 'In a checkout run `npm ci` first.',
  })
}

function refuse() {
  end('NODE_TOO_OLD', {
    what: `This is Node ${process.versions.node} (${process.execPath}).`,
    why:
      'The gateway needs Node 22.19 or newer, best 24. The one that npm installs with it is missing\n' +
      `(node_modules/node-${process.platform}-${process.arch}).`,
    act:
      'On Linux x64 and arm64 with glibc run `npm ci` (without --omit=optional), which installs Node 24 for the\n' +
      'gateway alone. On other systems install Node 24 (https://nodejs.org/en/download) and repeat the command.',
  })
}

function end(code, { what, why, act }) {
  const indented = [what, why, act].map((text) => `  ${text.split('\n').join('\n  ')}\n`)
  process.stderr.write(
    args.includes('--json')
      ? `${JSON.stringify({ error: { code, what, why, act } })}\n`
      : `${code}\n${indented.join('')}`,
  )
  process.exitCode = 2
}
