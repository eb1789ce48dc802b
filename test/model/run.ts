// run.ts: the model as a command, for long runs and for the tests of the tests.
//
//   node test/model/run.ts [--sequences N] [--seed N] [--steps N]

import { parseArgs } from 'node:util'
import { runModel } from './model.ts'

const { values } = parseArgs({
  options: {
    sequences: { type: 'string', default: '5000' },
    seed: { type: 'string', default: '1' },
    steps: { type: 'string', default: '60' },
  },
})

const report = await runModel({
  firstSeed: Number(values.seed),
  sequences: Number(values.sequences),
  steps: Number(values.steps),
})
process.stdout.write(`${JSON.stringify(report)}\n`)
