// run.ts: the model as a command, for long runs and for the test of the model.
//
//   node test/model/run.ts [--sequences N] [--seed N] [--steps N] [--mutation MISTAKE]
//
// With --mutation, a function of the spool is replaced by a wrong one (mutations.ts). A load hook appends the
// replacement to its module. A function that no longer exists ends the run with a ReferenceError, and a
// function that the model never calls ends it with an error as well.

import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    sequences: { type: 'string', default: '5000' },
    seed: { type: 'string', default: '1' },
    steps: { type: 'string', default: '60' },
    mutation: { type: 'string' },
    /** FILE#FUNCTION below src/spool, as the mutation names it. */
    target: { type: 'string', default: '' },
  },
})

const [file = '', name = ''] = values.target.split('#')
let calls = 0

if (values.mutation !== undefined) {
  const path = join(import.meta.dirname, '../../src/spool', file)
  const { href } = pathToFileURL(path)
  registerHooks({
    load(loaded, context, nextLoad) {
      const module = nextLoad(loaded, context)
      if (loaded !== href) return module
      const replacement = `{ const original = ${name}; ${name} = (...args) => mutate(original)(...args) }`
      return { ...module, source: `${readFileSync(path, 'utf8')}\n${replacement}\n` }
    },
  })
  const { mutations } = await import('./mutations.ts')
  const found = mutations.find(({ mistake }) => mistake === values.mutation)
  if (found === undefined) throw new Error(`unknown mutation ${values.mutation}`)
  Object.assign(globalThis, {
    mutate(original: Parameters<typeof found.wrap>[0]) {
      calls += 1
      return found.wrap(original)
    },
  })
}

const { runModel } = await import('./model.ts')
const report = await runModel({
  firstSeed: Number(values.seed),
  sequences: Number(values.sequences),
  steps: Number(values.steps),
})
if (values.mutation !== undefined && calls === 0) throw new Error(`${values.target} was never called`)
process.stdout.write(`${JSON.stringify(report)}\n`)
