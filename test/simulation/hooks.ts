// hooks.ts: gives the daemon and its packages the simulated modules of Node, and virtual time.
//
//   node --import ./test/simulation/hooks.ts PROGRAM
//
// The simulation itself has the real ones: its own files see no replacement.

import { registerHooks } from 'node:module'
import { installGlobals } from './machine/globals.ts'

const here = new URL('./', import.meta.url).href

/** Node's module, or one of the daemon that reads what has no content here, and the file in `node/`. */
const simulated: Readonly<Record<string, string>> = {
  fs: 'fs',
  'fs/promises': 'fs-promises',
  net: 'net',
  http: 'http',
  timers: 'timers',
  'timers/promises': 'timers-promises',
  crypto: 'crypto',
  zlib: 'zlib',
  child_process: 'child-process',
  os: 'os',
  perf_hooks: 'perf-hooks',
  dns: 'dns',
  worker_threads: 'worker-threads',
  level: 'level',
  'classic-level': 'level',
  './level-files/level-files.ts': 'level-files',
}

registerHooks({
  resolve(specifier, context, next) {
    const replacement = simulated[specifier.replace(/^node:/, '')]
    const parent = context.parentURL ?? here
    if (replacement === undefined || parent.startsWith(here)) return next(specifier, context)
    return { url: `${here}node/${replacement}.ts`, format: 'module-typescript', shortCircuit: true }
  },
})

const realBuiltin = process.getBuiltinModule.bind(process)
const { default: http } = await import('./node/http.ts')
process.getBuiltinModule = (name: string) => (name === 'node:http' ? http : realBuiltin(name))

installGlobals()
// Each fault of the disk and each signal that ends makes an error, and its stack takes longer than the rest of it.
Error.stackTraceLimit = 3

const wanted = process.env['SIMULATION_MUTATION'] ?? ''
if (wanted !== '') {
  const { mutations } = await import('./mutations.ts')
  const { mutate } = await import('./mutate.ts')
  mutate(mutations.find(({ name }) => name === wanted) ?? fail(`There is no mutation "${wanted}".`))
}

function fail(what: string): never {
  throw new Error(what)
}
